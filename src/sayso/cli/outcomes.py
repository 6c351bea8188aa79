"""What to say after a decision, and what an edit changes."""

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from sayso.approvals import Approval, Cause, Status
from sayso.cli.printing import BAD, GOOD, LABEL, WARNING
from sayso.decisions import already, missing
from sayso.presentation import Change, ChangeKind, visible

_STYLES = {
    Status.PENDING: "",
    Status.APPROVED: GOOD,
    Status.RUNNING: GOOD,
    Status.DONE: GOOD,
    Status.FAILED: BAD,
    Status.UNKNOWN: BAD,
    Status.REJECTED: WARNING,
    Status.EXPIRED: WARNING,
    Status.WITHDRAWN: WARNING,
    Status.RESPONDED: GOOD,
}
_SIGNS = {ChangeKind.ADDED: "+", ChangeKind.REMOVED: "-", ChangeKind.CHANGED: "~"}


def status_text(status: Status) -> Text:
    """Return a status with its colour."""
    return Text(status.value, style=_STYLES[status])


def outcome_line(approval: Approval) -> tuple[str, str]:
    """Say what a decision led to, and in which colour."""
    ended = approval.resolution
    if ended is not None and ended.cause is Cause.SUPERSEDED:
        why = visible(ended.message)
        return (
            f"A new approval was opened instead: {why}. Decide it with: sayso approve {ended.successor}",
            WARNING,
        )
    match approval.status:
        case Status.PENDING:
            owed = " and ".join(
                f"{count} from {visible(group)}" for group, count in missing(approval).items()
            )
            return f"Your approval counts. It still needs {owed}.", GOOD
        case Status.APPROVED:
            return "Approved. It may run once, exactly as shown.", GOOD
        case Status.RUNNING:
            return "Approved. The agent runs it now, once.", GOOD
        case Status.REJECTED:
            return "Rejected. It will not run, and the agent is told.", GOOD
        case Status.RESPONDED:
            return "Answered. It will not run; your words are its result.", GOOD
        case _:
            return f"It was {visible(already(approval))}.", WARNING


def standing(approval: Approval) -> str:
    """Say in one line where an approval stands, and in whose words it ended."""
    ended = approval.resolution
    if ended is None:
        owed = missing(approval) if approval.decisions else {}
        more = "".join(f", still needs {count} from {visible(group)}" for group, count in owed.items())
        return f"{approval.status}{more}"
    words = f": {visible(ended.message)}" if ended.message else ""
    successor = f"; replaced by {ended.successor}" if ended.successor else ""
    if ended.status is not approval.status:
        return f"{approval.status}, after it was {already(approval)}{successor}"
    return f"{already(approval)}{words}{successor}"


def changes_table(changes: Sequence[Change], console: Console) -> RenderableType:
    """Return what an edit changes: plain lines in a pipe, colours on a terminal."""
    if not console.is_terminal:
        lines = "\n".join(_plain(change) for change in changes)
        return Text(lines)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style=LABEL)
    table.add_column(overflow="fold")
    for change in changes:
        value = Text()
        if change.before:
            value.append(f"- {change.before}", style=BAD)
        if change.after:
            value.append(f"{chr(10) if change.before else ''}+ {change.after}", style=GOOD)
        table.add_row(Text(change.path), value)
    return table


def _plain(change: Change) -> str:
    before = f" was {change.before}" if change.kind is not ChangeKind.ADDED else ""
    after = f" becomes {change.after}" if change.kind is not ChangeKind.REMOVED else " is taken out"
    return f"{_SIGNS[change.kind]} {change.path}{before}{after}".replace("\n", "\n    ")
