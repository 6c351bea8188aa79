"""The port every store implements: one write is one transaction, whole or not at all.

A store remembers approvals, the audit and the outbox. It decides nothing: what a write does
to an approval is a pure function that it calls inside the transaction, with its own clock.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from sayso.approvals import Approval, Status
from sayso.audit import Entry, seal
from sayso.clock import Clock, Millis
from sayso.decisions import Change, Event
from sayso.errors import InvalidAction, NotFound, ProofWrong, UsageError
from sayso.stores.writer import EventLoop

Step: TypeAlias = Callable[[Approval, Millis], Change]
"""What becomes of an approval, given the store's time; raises to refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Store a new approval; opening the same request again returns the one there is.

    Args:
        approval: The approval to store.
    """

    approval: Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class Alter:
    """Read an approval, compute its change, save it: one compare-and-set.

    Args:
        approval_id: Which approval.
        step: What becomes of it. May be called again when the transaction is retried.
    """

    approval_id: str
    step: Step


Write: TypeAlias = Open | Alter

Outcome: TypeAlias = Change | BaseException
"""What came of a write: its change, or why there is none."""

Changed: TypeAlias = Mapping[str, Approval | None]
"""Approvals that changed, by id; None where the record is not at hand and must be read."""


class Notice(NamedTuple):
    """An audit entry that nobody was told of yet; `kind` is the entry's."""

    seq: int
    approval_id: str
    kind: str
    at: Millis


class Page(NamedTuple):
    """A page of approvals, the cursor of the next one, and what of the page cannot be read.

    Args:
        approvals: The approvals.
        next: The cursor of the next page, None at the end.
        damaged: The ids of rows that do not match their digest; nothing of them may run.
    """

    approvals: tuple[Approval, ...]
    next: str | None
    damaged: tuple[str, ...] = ()


class Store(Protocol):
    """What remembers. Every method is one transaction and returns when it is safe on disk."""

    clock: Clock

    def write(self, write: Write) -> Change:
        """Do one write and return its change.

        Raises:
            NotFound: There is no such approval.
            SaysoError: The step refused; nothing was saved but what the refusal records.
            StoreError: The store could not; nothing was saved.
        """
        ...

    def write_many(self, writes: Sequence[Write]) -> list[Outcome]:
        """Do many writes in as few transactions as possible; each succeeds or fails alone."""
        ...

    def submit(
        self,
        write: Write,
        done: Callable[[Outcome], None],
        loop: EventLoop | None = None,
    ) -> None:
        """Do one write without waiting.

        Args:
            write: The write.
            done: Called with what came of it, from the event loop or another thread.
            loop: The event loop this is called from, where it is asyncio's.
        """
        ...

    def note(self, event: Event, *, durable: bool = False) -> None:
        """Write down something about an action nobody was asked about, soon or, if durable, now."""
        ...

    def flush(self) -> None:
        """Write down what `note` still holds back."""
        ...

    def get(self, approval_id: str) -> Approval:
        """Return one approval.

        Raises:
            NotFound: There is none by this id.
        """
        ...

    def peek(self, approval_id: str) -> Approval | None:
        """Return one approval, or None when there is none by this id."""
        ...

    def find(self, prefix: str) -> list[str]:
        """Return up to ten ids that start with `prefix`."""
        ...

    def page(self, status: Status | None = Status.PENDING, *, after: str = "", limit: int = 50) -> Page:
        """Return a page, the nearest deadline first; with `status` None, every status, newest first.

        Args:
            status: Which approvals.
            after: The `next` of the page before.
            limit: How many at most.

        Raises:
            UsageError: `after` is no cursor, or `limit` is not at least 1.
        """
        ...

    def counts(self) -> Mapping[Status, int]:
        """Return how many approvals are in each status."""
        ...

    def due(self, now: Millis, limit: int = 500) -> list[str]:
        """Return the approvals that time alone changes by now, oldest first."""
        ...

    def entries(self, *, after: int = 0) -> Iterator[Entry]:
        """Yield the audit in order, from after a number."""
        ...

    def entries_of(self, approval_id: str) -> list[Entry]:
        """Return the audit entries of one approval."""
        ...

    def heads(self) -> Mapping[str, tuple[int, bytes]]:
        """Return the last number and hash of every chain."""
        ...

    def statuses(self) -> Mapping[str, str]:
        """Return the status of every approval."""
        ...

    def notices(self, limit: int = 500) -> list[Notice]:
        """Return what happened since the last notice delivered, oldest first."""
        ...

    def delivered(self, notice: Notice) -> None:
        """Remember that everything up to this notice was told."""
        ...

    def subscribe(self, callback: Callable[[Changed], None]) -> None:
        """Call `callback` with the approvals that changed, in any process."""
        ...

    def close(self) -> None:
        """Write down what is held back and let go of files and threads."""
        ...


_LONGEST_NUMBER = 18
"""How many digits every store keeps exact."""


def check_limit(limit: int) -> None:
    """Check how many approvals a page should hold.

    Raises:
        UsageError: It is not at least 1.
    """
    if limit < 1:
        raise UsageError(
            f"the limit of a page must be at least 1, got {limit}", hint="pass how many to return"
        )


def read_cursor(cursor: str) -> tuple[int, int]:
    """Return the rank and number a page's cursor stands for.

    Raises:
        UsageError: It is no cursor.
    """
    if not cursor:
        return 0, 0
    rank, _, seq = cursor.partition("-")
    if not (rank.isdecimal() and seq.isdecimal()) or max(len(rank), len(seq)) > _LONGEST_NUMBER:
        raise UsageError(f"`{cursor}` is no cursor", hint="pass the `next` of the page before")
    return int(rank), int(seq)


def settled(change: Change) -> Change:
    """Return the change, or raise the refusal that it records."""
    if change.refusal is not None:
        raise change.refusal
    return change


def outcome_of(outcome: Outcome) -> Outcome:
    """Return the refusal that a change records in its place."""
    return outcome.refusal if isinstance(outcome, Change) and outcome.refusal is not None else outcome


def sealed(event: Event) -> str:
    """Return the body of an event's entry, so that one that cannot be written fails its own caller.

    Raises:
        InvalidAction: The event holds something that is not text or JSON.
    """
    try:
        f"{event.thread} {event.kind} {event.approval_id}".encode()
        return seal(event)
    except (TypeError, UnicodeError) as error:
        raise InvalidAction(
            f"`{event.kind}` cannot be written down: {error}", hint="use plain JSON values"
        ) from error


def not_found(approval_id: str) -> NotFound:
    """Return the refusal for an id that names no approval."""
    return NotFound(
        f"there is no approval `{approval_id}`",
        hint="list the open ones with `sayso inbox`",
        approval_id=approval_id,
    )


def spent_already(person: str, approval_id: str) -> ProofWrong:
    """Return the refusal for a one-time password that was used before."""
    return ProofWrong(
        f"the one-time password of `{person}` was used already",
        hint="wait for the next one",
        approval_id=approval_id,
    )
