"""What the demo prints: who speaks, what ran, what was stopped, and what is on record.

Everything an agent, a model or a tool wrote is made visible before it is printed.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.text import Text

from sayso.actions import Json
from sayso.approvals import Approval
from sayso.clock import clock_text
from sayso.decisions import already
from sayso.demo.agent import Ended, Said
from sayso.errors import DecisionRefused
from sayso.presentation import visible

_INDENT, _NAMES, _WIDEST = 2, 10, 100
_FARES_SHOWN = 4
_SHORT = 8
_STOPPED = ("stopped; it waits for a person", "bold yellow")
_OUTCOMES = {
    "done": ("ran", "green"),
    "failed": ("failed, and changed nothing", "yellow"),
    "responded": ("answered by a person; it did not run", "yellow"),
    "rejected": ("rejected; it did not run", "yellow"),
    "expired": ("denied by silence; it did not run", "yellow"),
    "denied": ("denied by policy; it did not run", "yellow"),
}


class Screen:
    """The terminal, for everything but the card and the prompt.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self.console = console

    def title(self, model: str, thread: str) -> None:
        """Say what this is."""
        self.console.print()
        names = Text(f"  model {visible(model)}, thread {thread}", style="dim")
        self.console.print(Text.assemble("  ", ("Sayso demo", "bold"), names))
        self.console.print(Text("  An agent proposes, the gate stops what matters, a person decides."))
        self.console.print()

    def line(self, who: str, text: str, *, style: str = "") -> None:
        """Print what somebody says, beside their name."""
        self._beside(Text(who, style="bold"), Text(visible(text, lines=True), style=style))

    def said(self, said: Said) -> None:
        """Print the agent's words."""
        self.console.print()
        self.line("Agent", said.text)

    def ended(self, ended: Ended) -> None:
        """Print what became of a call."""
        words, style = _OUTCOMES.get(ended.status, (f"{ended.status}; it did not run", "yellow"))
        if ended.status == "done":
            words = _how_it_ran(ended)
        if ended.asked:
            self.console.print()
        head = Text.assemble((visible(ended.call.tool), "cyan"), ("  ", ""), (words, style))
        self._beside(Text(), head)
        for detail in _details(ended):
            self._beside(Text(), Text(visible(detail), style="dim"))

    def stopped(self, tool: str) -> None:
        """Print that a call waits for a person."""
        head = Text.assemble((visible(tool), "cyan"), ("  ", ""), _STOPPED)
        self._beside(Text(), head)

    def answer(self, text: str) -> None:
        """Print the agent's last words."""
        self.console.print()
        self.line("Agent", text, style="bold")

    def heading(self, text: str) -> None:
        """Print what the next lines are about."""
        self.console.print()
        self.console.print(Text.assemble("  ", (text, "bold")))

    def rows(self, rows: Sequence[Sequence[Text]]) -> None:
        """Print rows of cells in columns."""
        widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
        for row in rows:
            line = Text(" " * _INDENT)
            for cell, width in zip(row, widths, strict=True):
                line += cell + " " * (width - cell.cell_len + 2)
            line.rstrip()
            self.console.print(line)

    def remark(self, text: str, *, style: str = "") -> None:
        """Print a line of a list."""
        self.console.print(Text.assemble(" " * _INDENT, (visible(text), style)))

    def note(self, text: str, *, style: str = "dim") -> None:
        """Print a remark by the demo itself."""
        self._beside(Text(), Text(text, style=style))

    def elsewhere(self, approval_id: str, config: Path) -> None:
        """Say how the same approval can be decided from another terminal."""
        self.note("Decide here, or from another terminal:")
        self.command(f"sayso approve {approval_id[:_SHORT]} --config {config}")

    def closed(self, approval: Approval) -> None:
        """Say that an approval was settled while the prompt was open."""
        self.console.print()
        self.note(f"This was {already(approval)}.", style="yellow")

    def left_waiting(self, approval: Approval) -> None:
        """Say that the agent waits on, and until when."""
        self.note(f"The agent waits until {clock_text(approval.deadline)}; Ctrl-C withdraws its request.")

    def refused(self, refusal: DecisionRefused) -> None:
        """Say why an answer was not taken."""
        self.note(str(refusal), style="yellow")

    def interrupted(self, booked: Sequence[str]) -> None:
        """Say what became of the request after Ctrl-C."""
        self.console.print()
        self.console.print()
        self.note("Interrupted. What waited for a person was withdrawn.", style="yellow")
        self.note(f"Booked: {'; '.join(booked) or 'nothing'}.", style="yellow")

    def farewell(self, config: Path) -> None:
        """Say where everything was kept."""
        self.console.print()
        self.note("Everything is kept. Look again:")
        self.command(f"sayso inbox --all --config {config}")
        self.console.print()

    def command(self, text: str) -> None:
        """Print a command on one line, so that it can be copied."""
        self.console.print(Text(" " * (_INDENT + _NAMES) + text, style="cyan"), soft_wrap=True)

    def _beside(self, who: Text, text: Text) -> None:
        """Print a text beside a name, wrapped on its own side, without trailing blanks."""
        room = min(self.console.width, _WIDEST) - _INDENT - _NAMES
        for number, line in enumerate(text.wrap(self.console, room, overflow="fold")):
            line.rstrip()
            name = who if number == 0 else Text()
            start = Text.assemble(" " * _INDENT, name, " " * (_NAMES - name.cell_len))
            self.console.print(start + line if line else Text(), soft_wrap=True)


def _how_it_ran(ended: Ended) -> str:
    if not ended.asked:
        return "ran, nobody was asked"
    return "edited by a person, ran once" if "changed_by" in json.loads(ended.text) else "approved, ran once"


def _details(ended: Ended) -> Sequence[str]:
    if ended.status != "done":
        return (f"The agent is told: {ended.text}",)
    result: object = json.loads(ended.text)["result"]
    if isinstance(result, list):
        return _fares(cast("list[Mapping[str, Json]]", result))
    values = cast("Mapping[str, Json]", result)
    return (", ".join(f"{name} {_plain(value)}" for name, value in values.items()),)


def _fares(fares: Sequence[Mapping[str, Json]]) -> list[str]:
    """Return the first fares found and how many more there are."""
    lines = [
        f"{fare['flight']:<8}{fare['date']}  {fare['cabin']:<16}{_dollars(fare['price']):>7}  "
        f"{'refundable' if fare['refundable'] else 'non-refundable'}"
        for fare in fares[:_FARES_SHOWN]
    ]
    more = len(fares) - _FARES_SHOWN
    return [*lines, f"and {more} more"] if more > 0 else lines or ["no fare found"]


def _dollars(price: Json) -> str:
    return f"${price:,}" if isinstance(price, int | float) else "?"


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)
