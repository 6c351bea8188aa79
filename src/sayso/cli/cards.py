"""A card on a terminal, and the same card as plain lines where there is no terminal.

Both show everything the presentation holds, whole: lines wrap, and nothing is cut. Text of
others is only ever printed as `Text`, never read as markup.
"""

import re
from collections.abc import Iterator, Sequence

from rich.box import ROUNDED
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sayso.approvals import Effect
from sayso.cli.printing import BAD, GOOD, LABEL, WARNING, WIDEST, duration, plural
from sayso.presentation import Field, Presentation

_MARKER = re.compile("\u2039[^\u203a]*\u203a")
_LABEL_WIDTH = 24
_DIGITS = 16
_NARROW = 60
_EFFECTS = {Effect.IRREVERSIBLE: BAD, Effect.REVERSIBLE: WARNING, Effect.READ: GOOD}


def render_card(card: Presentation, console: Console) -> None:
    """Print all that a person must see before they decide."""
    if not console.is_terminal:
        for line in plain_lines(card):
            console.file.write(line + "\n")
        return
    width = min(console.width, WIDEST)
    panel = Panel(
        Group(*_parts(card, width)),
        box=ROUNDED,
        border_style=LABEL,
        title=Text(f"approval {card.approval_id}", style=LABEL),
        title_align="left",
        padding=(1, 2),
        width=width,
    )
    console.print(panel)


def plain_lines(card: Presentation) -> Iterator[str]:
    """Yield a card as `name: value` lines; what goes on in a further line is indented by four blanks."""
    pairs = [
        ("approval", card.approval_id),
        ("headline", card.headline),
        ("tool", card.tool),
        ("effect", str(card.effect)),
        ("asked by", card.asked_by),
        ("thread", card.thread),
        ("why", card.why),
        *(("reason", reason) for reason in card.reasons),
        ("rule", card.rule),
        *_plain_fields(card),
        *(("warning", warning) for warning in card.warnings),
        *(("not fully shown", path) for path in card.hidden),
        ("silence", card.silence),
        ("time left", time_left(card)),
        ("quorum", card.quorum),
        ("proof", card.proof.sentence),
        ("decisions", ", ".join(card.decisions)),
        ("shown as", card.digest),
    ]
    for name, value in pairs:
        yield f"{name}: {value}".replace("\n", "\n    ")


def time_left(card: Presentation) -> str:
    """Say how long people still have."""
    return duration(card.seconds_left) if card.seconds_left else "none"


def _plain_fields(card: Presentation) -> Iterator[tuple[str, str]]:
    if card.description:
        yield "description", card.description.text
    for field in card.fields:
        yield field.path, field.text
        if field.before is not None:
            yield f"{field.path} was", field.before


def _parts(card: Presentation, width: int) -> Iterator[RenderableType]:
    """Yield the parts of a card from top to bottom: what, who and why, with what, and until when."""
    circumstances, values, terms = map(list, (_circumstances(card), _values(card), _terms(card)))
    labels = max(len(name) for name, _ in (*circumstances, *values, *terms))
    labels = 0 if width < _NARROW else min(labels, _LABEL_WIDTH)
    yield Text(card.headline, style="bold")
    yield Text()
    yield _grid(circumstances, labels)
    if values:
        yield Text()
        yield _grid(values, labels)
    warnings = _general_warnings(card)
    if warnings:
        yield Text()
        yield from (Text(f"! {warning}", style=WARNING) for warning in warnings)
    if card.hidden:
        yield Text()
        yield Text(
            f"{plural(len(card.hidden), 'part')} not fully shown: {', '.join(card.hidden)}", style=WARNING
        )
    yield Text()
    yield _grid(terms, labels)


def _circumstances(card: Presentation) -> Iterator[tuple[str, Text]]:
    yield "tool", Text.assemble((card.tool, "cyan"), ("  ", ""), (str(card.effect), _EFFECTS[card.effect]))
    yield "asked by", Text(card.asked_by)
    yield "thread", Text(card.thread)
    yield "stopped because", Text("; ".join(card.reasons) or card.why)
    if card.why and card.why != "; ".join(card.reasons):
        yield "policy says", Text(card.why)
    if card.rule:
        yield "rule", Text(card.rule)


def _values(card: Presentation) -> Iterator[tuple[str, Text]]:
    if card.description:
        yield "description", _value(card.description)
    for field in card.fields:
        yield field.path, _value(field)


def _value(field: Field) -> Text:
    """Return a value with its notes; what Sayso wrote into it stands out."""
    shown = Text(field.text, style="" if field.before is None else GOOD)
    if field.before is not None:
        shown.append(f"\nwas {field.before}", style=BAD)
    shown.highlight_regex(_MARKER, WARNING)
    for note in field.notes:
        shown.append(f"\n! {note}", style=WARNING)
    return shown


def _general_warnings(card: Presentation) -> list[str]:
    """Return the warnings that do not stand beside a value already."""
    fields = (*card.fields, card.description) if card.description else card.fields
    beside = {f"{field.path}: {note}" for field in fields for note in field.notes}
    return [warning for warning in card.warnings if warning not in beside]


def _terms(card: Presentation) -> Iterator[tuple[str, Text]]:
    yield "time left", Text(time_left(card), style="bold" if card.seconds_left else WARNING)
    yield "silence", Text(card.silence)
    yield "who", Text(card.quorum)
    yield "proof", Text(card.proof.sentence)
    yield "shown as", Text(card.digest[:_DIGITS], style=LABEL)


def _grid(rows: Sequence[tuple[str, Text]], labels: int) -> RenderableType:
    """Align names and values in two columns; without room for labels values stand under their names."""
    if not labels:
        parts = [
            part for name, value in rows for part in (Text(name, style=LABEL), Padding(value, (0, 0, 0, 2)))
        ]
        return Group(*parts)
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    grid.add_column(width=labels, overflow="fold", style=LABEL)
    grid.add_column(ratio=1, overflow="fold")
    for name, value in rows:
        grid.add_row(Text(name, style=LABEL), value)
    return grid
