"""`sayso reconcile`: settling what may have run and did not report back."""

from typing import Annotated

import typer

from sayso.approvals import Approval, Status
from sayso.cli.inbox import ID_SHOWN
from sayso.cli.opening import deciding, reading
from sayso.cli.options import ConfigOption, JsonOption, StoreOption
from sayso.cli.outcomes import standing
from sayso.cli.printing import Column, age, print_json, print_line, print_remark, print_rows, terminal
from sayso.cli.records import approval_json
from sayso.clock import Millis
from sayso.errors import UsageError
from sayso.presentation import present, visible
from sayso.worker import sweep

RanOption = Annotated[bool | None, typer.Option("--ran/--did-not-run", help="What you found out.")]
_COLUMNS = (
    Column(title="id", width=ID_SHOWN),
    Column(title="started", width=12, right=True),
    Column(title="by", width=24),
    Column(title="what may have run"),
)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reconcile)


def reconcile(
    approval: Annotated[
        str, typer.Argument(metavar="ID", help="The approval; without it, all are listed.")
    ] = "",
    *,
    ran: RanOption = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="How you found out; kept with it.")] = "",
    as_json: JsonOption = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Say whether something that never reported back has run.

    It is never started again.
    Look at the world first: the airline, the bank, the folder. Without an ID, everything of
    unknown outcome is listed.
    """
    if not approval:
        _list(as_json=as_json, config_and_store=(config, store))
        return
    if ran is None:
        raise UsageError("did it run?", hint="say --ran or --did-not-run, once you have found out")
    with deciding(config, store) as desk:
        sweep(desk.inbox.store)
        found = desk.inbox.get(approval)
        settled = desk.inbox.reconcile(found.id, desk.person, ran=ran, note=note)
        if as_json:
            print_json({"approval": approval_json(settled, desk.inbox.store.clock.now())})
        else:
            print_line(f"{settled.id} {standing(settled)}")


def _list(*, as_json: bool, config_and_store: tuple[ConfigOption, StoreOption]) -> None:
    with reading(*config_and_store) as door:
        sweep(door.store)  # a lease that just ended counts as unknown from now on
        found = door.page(status=Status.UNKNOWN, limit=1000).approvals
        now = door.store.clock.now()
    if as_json:
        print_json({"approvals": [approval_json(each, now) for each in found]})
    elif not found:
        print_remark("Nothing of unknown outcome.")
    else:
        piped = not terminal().is_terminal
        print_rows(_COLUMNS, (_row(each, now, whole=piped) for each in found), cut=True)


def _row(approval: Approval, now: Millis, *, whole: bool) -> tuple[str, ...]:
    started = approval.resolution.at if approval.resolution else approval.opened_at
    holder = visible(approval.permit.holder) if approval.permit else ""
    name = approval.id if whole else approval.id[:ID_SHOWN]
    return name, age(started, now), holder, present(approval, now).headline
