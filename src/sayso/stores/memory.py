"""A store that lives as long as its process: for tests, trials and agents with nothing to keep.

It keeps the same promises as every store but one: nothing survives the process.
"""

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Mapping, Sequence

from sayso.approvals import Approval, Status, evolve
from sayso.audit import Entry, genesis, link
from sayso.clock import Clock, Millis
from sayso.decisions import Change, Event, open_approval
from sayso.errors import StoreUnavailable
from sayso.stores.base import (
    Alter,
    Changed,
    Notice,
    Open,
    Outcome,
    Page,
    Write,
    check_limit,
    not_found,
    outcome_of,
    read_cursor,
    sealed,
    settled,
    spent_already,
)
from sayso.stores.writer import EventLoop

_LAST = 2**63 - 1


class MemoryStore:
    """Approvals, audit and outbox in plain objects, under one lock.

    Args:
        clock: What tells the time.
    """

    def __init__(self, *, clock: Clock) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._approvals: dict[str, Approval] = {}
        self._arrivals: list[str] = []
        self._ranks: dict[Status, list[tuple[Millis, int]]] = {status: [] for status in Status}
        self._entries: list[Entry] = []
        self._about: dict[str, list[Entry]] = {}
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._totp: dict[str, int] = {}
        self._told = 0
        self._subscribers: list[Callable[[Changed], None]] = []
        self._closed = False

    def write(self, write: Write) -> Change:
        """Do one write; see `Store.write`."""
        with self._lock:
            change = self._apply(write, self.clock.now())
        self._tell(change)
        return settled(change)

    def write_many(self, writes: Sequence[Write]) -> list[Outcome]:
        """Do many writes; see `Store.write_many`."""
        return [self._outcome(write) for write in writes]

    def submit(self, write: Write, done: Callable[[Outcome], None], loop: EventLoop | None = None) -> None:  # noqa: ARG002 - there is nothing to wait for
        """Do one write; there is nothing to wait for; see `Store.submit`."""
        done(self._outcome(write))

    def note(self, event: Event, *, durable: bool = False) -> None:  # noqa: ARG002 - there is no disk to wait for
        """Write down something about an action nobody was asked about; see `Store.note`."""
        self._check_open()
        body = sealed(event)
        with self._lock:
            self._append(event, body, self.clock.now())

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def get(self, approval_id: str) -> Approval:
        """Return one approval; see `Store.get`."""
        approval = self.peek(approval_id)
        if approval is None:
            raise not_found(approval_id)
        return approval

    def peek(self, approval_id: str) -> Approval | None:
        """Return one approval, or None when there is none by this id."""
        self._check_open()
        return self._approvals.get(approval_id)

    def find(self, prefix: str) -> list[str]:
        """Return up to ten ids that start with `prefix`."""
        with self._lock:
            return sorted(each for each in self._arrivals if each.startswith(prefix))[:10]

    def page(self, status: Status | None = Status.PENDING, *, after: str = "", limit: int = 50) -> Page:
        """Return a page; see `Store.page`."""
        self._check_open()
        check_limit(limit)
        rank, seq = read_cursor(after)
        with self._lock:
            if status is None:
                last = min(seq or _LAST, len(self._arrivals) + 1) - 1
                numbers = range(last, max(0, last - limit), -1)
            else:
                ranked = self._ranks[status]
                start = bisect_right(ranked, (rank, seq)) if after else 0
                numbers = [number for _, number in ranked[start : start + limit]]
            found = tuple(self._approvals[self._arrivals[number - 1]] for number in numbers)
        return Page(found, f"{found[-1].rank}-{found[-1].seq}" if len(found) == limit else None)

    def counts(self) -> Mapping[Status, int]:
        """Return how many approvals are in each status."""
        return {status: len(ranked) for status, ranked in self._ranks.items() if ranked}

    def due(self, now: Millis, limit: int = 500) -> list[str]:
        """Return the approvals that time alone changes by now, oldest first."""
        found: list[str] = []
        with self._lock:
            for status in (Status.PENDING, Status.RUNNING):
                ranked = self._ranks[status]
                overdue = ranked[: min(limit, bisect_left(ranked, (now, 0)))]
                found += [self._arrivals[number - 1] for _, number in overdue]
        return found

    def entries(self, *, after: int = 0) -> Iterator[Entry]:
        """Yield the audit in order, from after a number."""
        yield from self._entries[after:]

    def entries_of(self, approval_id: str) -> list[Entry]:
        """Return the audit entries of one approval."""
        return list(self._about.get(approval_id, ()))

    def heads(self) -> Mapping[str, tuple[int, bytes]]:
        """Return the last number and hash of every chain."""
        return dict(self._heads)

    def statuses(self) -> Mapping[str, str]:
        """Return the status of every approval."""
        with self._lock:
            return {each: self._approvals[each].status.value for each in self._arrivals}

    def notices(self, limit: int = 500) -> list[Notice]:
        """Return what is still to be told, oldest first."""
        return [
            Notice(entry.seq, entry.approval_id, entry.kind, entry.at)
            for entry in self._entries[self._told : self._told + limit]
        ]

    def delivered(self, notice: Notice) -> None:
        """Remember that everything up to this notice was told."""
        with self._lock:
            self._told = max(self._told, notice.seq)

    def subscribe(self, callback: Callable[[Changed], None]) -> None:
        """Call `callback` with the approvals that changed."""
        with self._lock:
            self._subscribers.append(callback)

    def close(self) -> None:
        """Take no more writes."""
        self._closed = True

    def _outcome(self, write: Write) -> Outcome:
        with self._lock:
            try:
                change = self._apply(write, self.clock.now())
            except BaseException as error:  # noqa: BLE001 - delivered to the caller it belongs to
                return error
        self._tell(change)
        return outcome_of(change)

    def _apply(self, write: Write, now: Millis) -> Change:
        """Do one write whole, or raise before anything changed."""
        self._check_open()
        match write:
            case Open(approval=approval):
                return self._open(approval, now)
            case Alter(approval_id=approval_id, step=step):
                before = self.get(approval_id)
                change = step(before, now)
                return self._save(before, change, now)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed", hint="open it again")

    def _open(self, approval: Approval, now: Millis) -> Change:
        known = self._approvals.get(approval.id)
        if known is not None:
            return Change(approval=known)
        stored = evolve(approval, seq=len(self._arrivals) + 1, version=0)
        change = open_approval(stored)
        bodies = [sealed(event) for event in change.events]
        self._arrivals.append(stored.id)
        self._put(stored)
        for event, body in zip(change.events, bodies, strict=True):
            self._append(event, body, now)
        return change

    def _save(self, before: Approval, change: Change, now: Millis) -> Change:
        bodies = [sealed(event) for event in change.events]
        self._spend(change, before)
        if change.approval is not before:
            after = evolve(change.approval, version=before.version + 1)
            ranked = self._ranks[before.status]
            del ranked[bisect_left(ranked, (before.rank, before.seq))]
            self._put(after)
            change = evolve(change, approval=after)
        for event, body in zip(change.events, bodies, strict=True):
            self._append(event, body, now)
        if change.opens is not None:
            return evolve(change, opens=self._open(change.opens, now).approval)
        return change

    def _spend(self, change: Change, before: Approval) -> None:
        if change.totp is None:
            return
        person, step = change.totp
        if step <= self._totp.get(person, -1):
            raise spent_already(person, before.id)
        self._totp[person] = step

    def _put(self, approval: Approval) -> None:
        self._approvals[approval.id] = approval
        insort(self._ranks[approval.status], (approval.rank, approval.seq))

    def _append(self, event: Event, body: str, now: Millis) -> None:
        thread, kind, about = event.thread, event.kind, event.approval_id
        n, previous = self._heads.get(thread) or (0, genesis(thread))
        digest = link(previous, n + 1, now, kind, about, body)
        entry = Entry(len(self._entries) + 1, thread, n + 1, now, kind, about, body, digest)
        self._heads[thread] = (n + 1, digest)
        self._entries.append(entry)
        if about:
            self._about.setdefault(about, []).append(entry)

    def _tell(self, change: Change) -> None:
        if not change.events or not self._subscribers:
            return
        changed: dict[str, Approval | None] = {change.approval.id: change.approval}
        if change.opens is not None:
            changed[change.opens.id] = change.opens
        for callback in tuple(self._subscribers):
            callback(changed)
