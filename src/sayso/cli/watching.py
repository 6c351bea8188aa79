"""`sayso watch`: approvals and outcomes as they happen, told by the store."""

from queue import SimpleQueue

import typer
from rich.text import Text

from sayso.audit import Entry
from sayso.cli.history import who_did
from sayso.cli.inbox import ID_SHOWN
from sayso.cli.opening import reading
from sayso.cli.options import ConfigOption, JsonOption, StoreOption
from sayso.cli.printing import BAD, GOOD, LABEL, WARNING, moment, print_json, print_remark, terminal
from sayso.cli.records import approval_json, entry_json
from sayso.clock import Millis
from sayso.errors import NotFound
from sayso.inbox import Inbox
from sayso.presentation import present
from sayso.stores.base import Changed

_STYLES = {
    "opened": "bold",
    "approved": GOOD,
    "edited": GOOD,
    "done": GOOD,
    "responded": GOOD,
    "rejected": WARNING,
    "expired": WARNING,
    "late": WARNING,
    "proof_failed": WARNING,
    "withdrawn": WARNING,
    "superseded": WARNING,
    "failed": BAD,
    "unknown": BAD,
}
_QUIET = frozenset({"renewed", "code_issued"})


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(watch)


def watch(*, as_json: JsonOption = False, config: ConfigOption = None, store: StoreOption = None) -> None:
    """Print approvals and outcomes as they happen, until Ctrl-C."""
    with reading(config, store) as door:
        rung: SimpleQueue[Changed] = SimpleQueue()
        told = _Told(door, since=door.store.clock.now())
        door.store.subscribe(rung.put)
        if not as_json:
            print_remark("Watching; Ctrl-C ends.")
        while True:
            for approval_id in rung.get():
                for entry in told.news(approval_id):
                    _print(door, entry, as_json=as_json)


class _Told:
    """Which audit entries were printed already."""

    def __init__(self, door: Inbox, *, since: Millis) -> None:
        self._door = door
        self._since = since
        self._last: dict[str, int] = {}

    def news(self, approval_id: str) -> list[Entry]:
        """Return what happened to an approval since it was last asked about."""
        last = self._last.get(approval_id, 0)
        new = [
            each
            for each in self._door.history(approval_id)
            if each.seq > last and (last or each.at >= self._since)
        ]
        if new:
            self._last[approval_id] = new[-1].seq
        return [entry for entry in new if entry.kind not in _QUIET]


def _print(door: Inbox, entry: Entry, *, as_json: bool) -> None:
    try:
        approval = door.get(entry.approval_id)
    except NotFound:
        return
    now = door.store.clock.now()
    if as_json:
        print_json({"entry": entry_json(entry), "approval": approval_json(approval, now)})
        return
    console = terminal()
    by = who_did(entry)
    headline = present(approval, now).headline
    if not console.is_terminal:
        console.file.write("\t".join((moment(entry.at), approval.id, entry.kind, by, headline)) + "\n")
        console.file.flush()
        return
    line = Text.assemble(
        (moment(entry.at), LABEL),
        f"  {approval.id[:ID_SHOWN]}  ",
        (f"{entry.kind:<10}", _STYLES.get(entry.kind, "")),
        f"  {headline}  ",
        (f"by {by}", LABEL),
    )
    console.print(line, no_wrap=True, overflow="ellipsis")
