"""`sayso inbox` and `sayso show`: what waits, and what exactly would run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from sayso.actions import Json
from sayso.approvals import Approval, Status
from sayso.cli.cards import render_card
from sayso.cli.history import HISTORY, history_row
from sayso.cli.opening import deciding, reading
from sayso.cli.options import (
    ApprovalArgument,
    ConfigOption,
    JsonOption,
    OpenAllOption,
    OpenOption,
    StoreOption,
)
from sayso.cli.outcomes import standing, status_text
from sayso.cli.printing import (
    LABEL,
    WARNING,
    Column,
    age,
    duration,
    print_json,
    print_line,
    print_remark,
    print_rows,
    terminal,
)
from sayso.cli.records import approval_json, card_json, entry_json
from sayso.clock import Millis
from sayso.errors import UsageError
from sayso.inbox import Inbox
from sayso.presentation import Presentation, present, visible

ID_SHOWN = 10
"""How many characters of an id a list shows; enough to name it."""

_COLUMNS = (
    Column(title="id", width=ID_SHOWN),
    Column(title="status", width=9),
    Column(title="time", width=8, right=True),
    Column(title="effect", width=12),
    Column(title="asked by", width=18),
    Column(title="what would run"),
)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(inbox)
    app.command()(show)


def inbox(
    *,
    all_: Annotated[bool, typer.Option("--all", help="Every status, the newest first.")] = False,
    status: Annotated[
        Status,
        typer.Option(
            metavar="STATUS", help="Only this one: pending, approved, running, done, failed and so on."
        ),
    ] = Status.PENDING,
    limit: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="How many at most.")] = 50,
    after: Annotated[str, typer.Option(metavar="CURSOR", help="Go on after this page.")] = "",
    as_json: JsonOption = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """List what waits for a decision.

    The nearest deadline comes first.

    In a pipe: one line each with id, status, seconds left, effect, who asks and the headline,
    separated by tabs.
    """
    with reading(config, store) as door:
        page = door.page(status=None if all_ else status, after=after, limit=limit)
        now = door.store.clock.now()
    if as_json:
        print_json(
            {
                "approvals": [approval_json(each, now) for each in page.approvals],
                "next": page.next,
                "damaged": list(page.damaged),
            }
        )
        return
    for damaged in page.damaged:
        print_remark(
            f"{damaged} cannot be trusted: its row was changed or damaged; run `sayso audit verify`."
        )
    if not page.approvals and not page.damaged:
        print_remark(
            "Nothing waits for a decision." if status is Status.PENDING and not all_ else "Nothing here."
        )
        return
    piped = not terminal().is_terminal
    columns = _COLUMNS if all_ or status is not Status.PENDING else (_COLUMNS[0], *_COLUMNS[2:])
    rows = (_plain_row(each, now) if piped else _row(each, now) for each in page.approvals)
    print_rows(
        columns, (row if piped or columns is _COLUMNS else (row[0], *row[2:]) for row in rows), cut=True
    )
    if page.next:
        print_remark(f"There is more: --after {page.next}")


def show(
    approval: ApprovalArgument,
    *,
    open_: OpenOption = None,
    open_all: OpenAllOption = False,
    code: Annotated[bool, typer.Option("--code", help="Make the code that approving it takes.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Show exactly what would run, and why it was stopped.

    Below the card stands what happened to it since.
    """
    with reading(config, store) as door:
        found = door.get(approval)
        card = shown_card(door, found.id, open_ or [], open_all=open_all)
        history = door.history(found.id)
        now = door.store.clock.now()
    made: Mapping[str, Json] = _make_code(card, config, store) if code else {}
    if as_json:
        told: dict[str, Json] = {"approval": approval_json(found, now), "card": card_json(card)}
        print_json({**told, "history": [entry_json(entry) for entry in history], **made})
        return
    render_card(card, terminal())
    if card.hidden:
        print_line("To see all of it: --open PATH, or --open-all.", style=WARNING)
    print_line(f"status: {standing(found)}", style="" if found.status is Status.PENDING else "bold")
    print_rows(HISTORY, map(history_row, history))
    if made:
        print_line(f"code: {made['code']}")
        print_line(f"Good in this session: sayso approve {found.id} --proof {made['code']}", style=LABEL)


def shown_card(door: Inbox, approval_id: str, paths: list[str], *, open_all: bool) -> Presentation:
    """Return the card of an approval with the named parts, or all, opened.

    Raises:
        UsageError: A path is not one that is hidden.
    """
    opened: frozenset[str] = frozenset()
    card = door.show(approval_id)
    for path in paths:
        if path not in card.hidden and path not in opened:
            hidden = ", ".join(card.hidden)
            raise UsageError(
                f"`{visible(path)}` is not hidden",
                hint=f"open one of: {hidden}" if hidden else "everything is shown already",
                approval_id=approval_id,
            )
        opened |= {path}
        card = door.show(approval_id, opened=opened)
    while open_all and card.hidden:
        opened |= frozenset(card.hidden)
        card = door.show(approval_id, opened=opened)
    return card


def _make_code(card: Presentation, config: Path | None, store: str | None) -> Mapping[str, Json]:
    with deciding(config, store) as desk:
        return {"code": desk.inbox.challenge(card, desk.person), "session": desk.person.session}


def _row(approval: Approval, now: Millis) -> tuple[str | Text, ...]:
    card = present(approval, now)
    return (
        approval.id[:ID_SHOWN],
        status_text(approval.status),
        _time(approval, card, now),
        Text(card.effect.value, style="" if card.effect.value != "irreversible" else WARNING),
        card.asked_by.split(", requested by ")[0],
        card.headline,
    )


def _plain_row(approval: Approval, now: Millis) -> tuple[str, ...]:
    card = present(approval, now)
    return (
        approval.id,
        approval.status.value,
        str(card.seconds_left),
        card.effect.value,
        card.asked_by,
        card.headline,
    )


def _time(approval: Approval, card: Presentation, now: Millis) -> Text:
    """Return the time left of what waits, and the age of what is over."""
    if approval.status is not Status.PENDING:
        return Text(age(approval.opened_at, now).removesuffix(" ago"), style=LABEL)
    return Text(duration(card.seconds_left)) if card.seconds_left else Text("over", style=WARNING)
