"""What the exit code says, for scripts."""

from collections.abc import Mapping
from enum import IntEnum

from sayso.errors import (
    ClaimRefused,
    DecisionRefused,
    Late,
    NotFound,
    Refused,
    SaysoError,
    StoreError,
    UsageError,
)


class Exit(IntEnum):
    """How a command ended."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    LATE = 4
    NOT_SOUND = 5
    STORE = 6
    INTERRUPTED = 130
    CLOSED = 141


MEANINGS: Mapping[Exit, str] = {
    Exit.DONE: "done",
    Exit.REFUSED: "refused: the decision was not taken, or nothing was decided",
    Exit.USAGE: "a mistake in the command, the settings or the policy",
    Exit.NOT_FOUND: "there is no such approval, or more than one",
    Exit.LATE: "too late: the deadline had passed, and the denial stands",
    Exit.NOT_SOUND: "the audit or the store is not sound",
    Exit.STORE: "the store could not be used; nothing was saved",
    Exit.INTERRUPTED: "interrupted with Ctrl-C",
    Exit.CLOSED: "whoever read the output went away",
}
"""What each exit code means, in the words of the help and the documentation."""

_CODES: tuple[tuple[type[SaysoError], Exit], ...] = (
    (NotFound, Exit.NOT_FOUND),
    (Late, Exit.LATE),
    (DecisionRefused, Exit.REFUSED),
    (ClaimRefused, Exit.REFUSED),
    (Refused, Exit.REFUSED),
    (UsageError, Exit.USAGE),
    (StoreError, Exit.STORE),
)


def exit_for(error: SaysoError) -> Exit:
    """Return the exit code of an error; the nearest kind in the table counts."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.REFUSED)
