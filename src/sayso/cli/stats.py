"""`sayso stats`: how often agents are stopped, how people decide, and who carries the load."""

from collections.abc import Mapping, Sequence

import typer
from rich.table import Table
from rich.text import Text

from sayso.actions import Json
from sayso.approvals import Status
from sayso.audit.statistics import HASTY, PersonLoad, Statistics, ToolUse, summarise
from sayso.cli.opening import reading
from sayso.cli.options import ConfigOption, JsonOption, StoreOption
from sayso.cli.printing import LABEL, WARNING, duration, print_json, terminal
from sayso.presentation import visible

_BAR = 30
_LISTED = 12
_WORRYING = 0.3
"""From which share of hasty approvals on the figure is marked: people may have stopped reading."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(stats)


def stats(*, as_json: JsonOption = False, config: ConfigOption = None, store: StoreOption = None) -> None:
    """Sum up how often agents are stopped and how people decide.

    An approval given in under two seconds counts as hasty: it was hardly read.
    """
    with reading(config, store) as door:
        counts = door.store.counts()
        summary = summarise(door.store.entries())
    if as_json:
        print_json(_json(counts, summary))
    elif terminal().is_terminal:
        _print(counts, summary)
    else:
        _print_plain(counts, summary)


def _print(counts: Mapping[Status, int], summary: Statistics) -> None:
    console = terminal()
    total = sum(counts.values())
    _heading("Approvals")
    rows = [(status.value, counts.get(status, 0), total) for status in Status if counts.get(status)]
    console.print(_bars(rows) if rows else Text("  none yet", style=LABEL))
    _heading("Interruptions, by tool")
    tools = [(visible(use.tool), use.asked, _calls(use)) for use in summary.tools]
    console.print(_bars(tools[:_LISTED], share=True) if tools else Text("  no calls yet", style=LABEL))
    if len(tools) > _LISTED:
        console.print(Text(f"  and {len(tools) - _LISTED} more tools", style=LABEL))
    _heading("Decisions")
    console.print(_grid(_figures(summary)))
    _heading("Who carries the load")
    most = max((each.decisions for each in summary.people), default=0)
    people = [(visible(each.person), each.decisions, most) for each in summary.people]
    console.print(_bars(people[:_LISTED]) if people else Text("  nobody decided yet", style=LABEL))
    console.print()


def _print_plain(counts: Mapping[Status, int], summary: Statistics) -> None:
    out = terminal().file
    for status in Status:
        out.write(f"status\t{status}\t{counts.get(status, 0)}\n")
    for use in summary.tools:
        out.write(
            f"tool\t{visible(use.tool)}\t{use.allowed}\t{use.asked}\t{use.denied}\t{use.interrupt_rate:.4f}\n"
        )
    for name, value, _ in _figures(summary):
        out.write(f"figure\t{name}\t{value}\n")
    for each in summary.people:
        out.write(f"person\t{visible(each.person)}\t{each.decisions}\t{each.hasty}\t{each.late}\n")


def _figures(summary: Statistics) -> Sequence[tuple[str, str, str]]:
    """Return the figures about decisions: a name, a value and how it is shown."""
    took = "none yet" if summary.median_seconds is None else _seconds(summary.median_seconds)
    hasty = (
        f"{summary.hasty} of {summary.approvals} ({summary.hasty_share:.0%})" if summary.approvals else "0"
    )
    kinds = ", ".join(f"{count} {kind}" for kind, count in summary.decisions.items()) or "none yet"
    return (
        ("decisions", kinds, ""),
        ("median time to decide", took, ""),
        (f"approved in under {HASTY} s", hasty, WARNING if summary.hasty_share >= _WORRYING else ""),
        ("nobody answered", str(summary.expired), WARNING if summary.expired else ""),
        ("answered too late", str(summary.late), WARNING if summary.late else ""),
        ("wrong proofs", str(summary.wrong_proofs), WARNING if summary.wrong_proofs else ""),
        ("calls that stopped for a person", f"{summary.interrupt_rate:.1%}", ""),
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 10 else duration(seconds)  # noqa: PLR2004 - where tenths stop mattering


def _heading(text: str) -> None:
    console = terminal()
    console.print()
    console.print(Text(text, style="bold"))


def _bars(rows: Sequence[tuple[str, int, int]], *, share: bool = False) -> Table:
    """Return one bar a row, as long as its share of the whole."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=26, no_wrap=True, overflow="ellipsis")
    table.add_column(width=_BAR)
    table.add_column(justify="right")
    for name, part, whole in rows:
        filled = round(_BAR * part / whole) if whole else 0
        bar = Text("\u2501" * filled, style="cyan")
        bar.append("\u2500" * (_BAR - filled), style="bright_black")
        figure = f"{part:,} of {whole:,}  {part / whole if whole else 0:>4.0%}" if share else f"{part:,}"
        table.add_row(Text(f"  {name}"), bar, Text(figure))
    return table


def _grid(rows: Sequence[tuple[str, str, str]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=34)
    table.add_column()
    for name, value, style in rows:
        table.add_row(Text(f"  {name}"), Text(value, style=style))
    return table


def _calls(use: ToolUse) -> int:
    return use.allowed + use.asked + use.denied


def _json(counts: Mapping[Status, int], summary: Statistics) -> dict[str, Json]:
    return {
        "statuses": {status.value: counts.get(status, 0) for status in Status},
        "entries": summary.entries,
        "interrupt_rate": summary.interrupt_rate,
        "tools": [_tool_json(use) for use in summary.tools],
        "decisions": dict(summary.decisions),
        "median_seconds": summary.median_seconds,
        "approvals": summary.approvals,
        "hasty": summary.hasty,
        "hasty_share": summary.hasty_share,
        "expired": summary.expired,
        "late": summary.late,
        "wrong_proofs": summary.wrong_proofs,
        "people": [_person_json(each) for each in summary.people],
    }


def _tool_json(use: ToolUse) -> dict[str, Json]:
    return {
        "tool": use.tool,
        "allowed": use.allowed,
        "asked": use.asked,
        "denied": use.denied,
        "interrupt_rate": use.interrupt_rate,
    }


def _person_json(each: PersonLoad) -> dict[str, Json]:
    return {"person": each.person, "decisions": each.decisions, "hasty": each.hasty, "late": each.late}
