"""The embedded store: one SQLite file, safe with several threads and processes on it.

WAL, `synchronous=FULL`, BEGIN IMMEDIATE. A write returns only when it is on disk. It never
decides anything; it must never lose or half-save what it was given.
"""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from sayso.approvals import Approval, Status, Terms
from sayso.audit import Entry
from sayso.clock import Clock, Millis
from sayso.decisions import Change, Event
from sayso.errors import StoreDamaged, StoreUnavailable
from sayso.stores.base import (
    Changed,
    Notice,
    Outcome,
    Page,
    Write,
    check_limit,
    not_found,
    outcome_of,
    read_cursor,
    sealed,
    settled,
)
from sayso.stores.codec import Row, read_approval, read_terms
from sayso.stores.doorbell import Doorbell
from sayso.stores.schema import begin, closed_on_failure, connect, explain, explained, prepare, presize_log
from sayso.stores.sql import queries
from sayso.stores.transaction import Transaction
from sayso.stores.writer import EventLoop, GroupWriter, Job

NOTES_HELD = 256
"""How many notes about allowed actions are held back at most before they are written."""

CACHED = 4096
"""How many approvals are kept decoded, each checked against its stored version when used."""

SETTLED = 16
"""After how many commits a store is taken to live long enough to give its log room."""

OUTBOX = "outbox"
"""The cursor of what people were told."""


Noted: TypeAlias = tuple[Event, Millis, str]
"""A note held back: what happened, when, and the body of its entry."""


class SqliteStore:
    """Approvals, audit and outbox in one SQLite file.

    Args:
        path: The file.
        clock: What tells the time.
        migrate: Whether to bring an older schema up to date.

    Raises:
        StoreError: The file cannot be opened or used; says why.
    """

    def __init__(self, path: str, *, clock: Clock, migrate: bool = True) -> None:
        self.path = path
        self.clock = clock
        self._sql = queries()
        self._writing = connect(path)
        with closed_on_failure(self._writing):
            prepare(self._writing, path, migrate=migrate)
            self._writing.execute("PRAGMA busy_timeout = 0")
            self._reading = connect(path)
        self._writer: GroupWriter[Write | None, Change] = GroupWriter(self)
        self._read_lock = threading.Lock()
        self._outcomes: list[Outcome | None] = []
        self._noted: list[Noted] = []
        self._cache: OrderedDict[str, Approval] = OrderedDict()
        self._notes: list[Noted] = []
        self._notes_lock = threading.Lock()
        self._terms_ids: dict[str, int] = {}
        self._terms: dict[int, Terms] = {}
        self._subscribers: list[Callable[[Changed], None]] = []
        self._commits = 0
        self._doorbell: Doorbell | None = None
        self._subscribed = threading.Lock()

    # -- writing ---------------------------------------------------------------------------

    def write(self, write: Write) -> Change:
        """Do one write; see `Store.write`."""
        change = self._writer.run(write)
        if change is None:
            raise StoreUnavailable(
                "the write came to nothing", hint="this is a defect in Sayso; please report it"
            )
        return settled(change)

    def write_many(self, writes: Sequence[Write]) -> list[Outcome]:
        """Do many writes; see `Store.write_many`."""
        return [outcome_of(outcome) for outcome in self._writer.run_many(writes)]

    def submit(self, write: Write, done: Callable[[Outcome], None], loop: EventLoop | None = None) -> None:
        """Do one write without waiting; see `Store.submit`."""
        self._writer.submit(write, lambda outcome: done(outcome_of(outcome)), loop)

    def note(self, event: Event, *, durable: bool = False) -> None:
        """Write down something about an action nobody was asked about; see `Store.note`.

        The text is made here, so that one that cannot be made fails its own caller and no other.
        """
        note = (event, self.clock.now(), sealed(event))
        with self._notes_lock:
            self._notes.append(note)
            full = len(self._notes) >= NOTES_HELD
        if durable or full:
            self.flush()

    def flush(self) -> None:
        """Write down what `note` still holds back."""
        if self._notes:
            self._writer.run(None)

    def delivered(self, notice: Notice) -> None:
        """Remember that everything up to this notice was told."""
        with self._writer.exclusive(), explain(self.path):
            self._undo_unfinished()
            begin(self._writing, wait=True)
            self._writing.execute(self._sql["move_cursor"], (OUTBOX, notice.seq))
            self._writing.execute("COMMIT")

    def start(self, jobs: Sequence[Job[Write | None, Change]], *, wait: bool) -> bool:
        """Begin a transaction and run a group's statements; see `Transactions.start`."""
        self._commits += 1
        try:
            self._undo_unfinished()
            if self._commits == SETTLED:
                presize_log(self._writing, self.path)
            if not begin(self._writing, wait=wait):
                return False
        except sqlite3.Error as error:
            for job in jobs:
                job.end(explained(error, self.path))
            return True
        self._noted = self._take_notes()
        try:
            self._outcomes = self._fill(jobs, self._noted)
        except BaseException as error:  # noqa: BLE001 - delivered to the caller it belongs to
            self._fail(jobs, error)
        return True

    def finish(self, jobs: Sequence[Job[Write | None, Change]]) -> None:
        """Commit a group and set its outcomes; see `Transactions.finish`."""
        if jobs[0].is_over:
            return  # it failed at the start, and every job has its outcome
        try:
            self._writing.execute("COMMIT")
        except sqlite3.Error as error:
            self._fail(jobs, error)
            return
        self._noted = []
        for job, outcome in zip(jobs, self._outcomes, strict=True):
            job.end(outcome)
            if isinstance(outcome, Change):
                self._remember(outcome.approval)

    def _fill(self, jobs: Sequence[Job[Write | None, Change]], notes: list[Noted]) -> list[Outcome | None]:
        transaction = Transaction(
            self._writing,
            self.clock.now(),
            known=self._cache,
            decode=self._decode,
            terms_ids=self._terms_ids,
        )
        for event, at, body in notes:
            transaction.append(event, at, body=body)
        outcomes: list[Outcome | None] = [transaction.apply(job.work) for job in jobs]
        transaction.finish()
        return outcomes

    def _fail(self, jobs: Sequence[Job[Write | None, Change]], error: BaseException) -> None:
        """Undo a group that failed; do each job alone, so that the fault finds its owner."""
        self._roll_back()
        self._give_back(self._noted)
        if len(jobs) == 1:
            jobs[0].end(explained(error, self.path) if isinstance(error, sqlite3.Error) else error)
            return
        for job in jobs:
            self.start([job], wait=True)
            self.finish([job])

    def _undo_unfinished(self) -> None:
        """Undo what an interrupt or a fault left open; nobody was told that it was saved."""
        if self._writing.in_transaction:
            self._roll_back()
            self._give_back(self._noted)
            self._noted = []

    def _roll_back(self) -> None:
        self._cache.clear()
        self._terms_ids.clear()
        self._terms.clear()
        if self._writing.in_transaction:
            self._writing.execute("ROLLBACK")

    def after(self, jobs: Sequence[Job[Write | None, Change]]) -> None:
        """Tell the callers, the waiting agents and other processes; see `Transactions.after`."""
        changed: dict[str, Approval | None] = {}
        for job in jobs:
            outcome = job.outcome
            if job.done and outcome is not None:
                job.done(outcome)
            if isinstance(outcome, Change) and outcome.events:
                changed[outcome.approval.id] = outcome.approval
                if outcome.opens is not None:
                    changed[outcome.opens.id] = outcome.opens
        if changed and self._subscribers:
            self._tell(changed)
        if changed:
            self._bell().ring(list(changed))

    def _take_notes(self) -> list[Noted]:
        if not self._notes:
            return []
        with self._notes_lock:
            notes, self._notes = self._notes, []
            return notes

    def _give_back(self, notes: list[Noted]) -> None:
        with self._notes_lock:
            self._notes[:0] = notes

    # -- reading ---------------------------------------------------------------------------

    def get(self, approval_id: str) -> Approval:
        """Return one approval; see `Store.get`."""
        approval = self.peek(approval_id)
        if approval is None:
            raise not_found(approval_id)
        return approval

    def peek(self, approval_id: str) -> Approval | None:
        """Return one approval, or None when there is none by this id."""
        known = self._cache.get(approval_id)
        with self._read_lock, explain(self.path):
            if known is not None:
                row = self._reading.execute(self._sql["version"], (approval_id,)).fetchone()
                if row is not None and row[0] == known.version:
                    return known
            row = self._reading.execute(self._sql["approval"], (approval_id,)).fetchone()
            return None if row is None else self._decode(Row._make(row), self._reading)

    def find(self, prefix: str) -> list[str]:
        """Return up to ten ids that start with `prefix`."""
        rows = self._read("ids_like", (prefix, prefix + "\U0010ffff", 10))
        return [row[0] for row in rows]

    def page(self, status: Status | None = Status.PENDING, *, after: str = "", limit: int = 50) -> Page:
        """Return a page; see `Store.page`."""
        check_limit(limit)
        rank, seq = read_cursor(after)
        with self._read_lock, explain(self.path):
            if status is None:
                rows = self._reading.execute(self._sql["page_all"], (seq or 2**63 - 1, limit)).fetchall()
            else:
                rows = self._reading.execute(self._sql["page"], (status.value, rank, seq, limit)).fetchall()
            found: list[Approval] = []
            damaged: list[str] = []
            for row in rows:
                try:
                    found.append(self._decode(Row._make(row[:-1]), self._reading))
                except StoreDamaged:
                    damaged.append(row[1])
        following = f"{rows[-1][-1]}-{rows[-1][0]}" if len(rows) == limit else None
        return Page(tuple(found), following, tuple(damaged))

    def counts(self) -> Mapping[Status, int]:
        """Return how many approvals are in each status."""
        return {Status(status): number for status, number in self._read("counts")}

    def due(self, now: Millis, limit: int = 500) -> list[str]:
        """Return the approvals that time alone changes by now, oldest first."""
        pending = self._read("due", (Status.PENDING.value, now, limit))
        running = self._read("due", (Status.RUNNING.value, now, limit))
        return [str(row[0]) for row in (*pending, *running)]

    def entries(self, *, after: int = 0) -> Iterator[Entry]:
        """Yield the audit in order, from after a number."""
        while rows := self._read("entries", (after, 5000)):
            yield from map(Entry._make, rows)
            after = rows[-1][0]

    def entries_of(self, approval_id: str) -> list[Entry]:
        """Return the audit entries of one approval."""
        return [Entry._make(row) for row in self._read("entries_of", (approval_id,))]

    def heads(self) -> Mapping[str, tuple[int, bytes]]:
        """Return the last number and hash of every chain."""
        return {thread: (n, head) for thread, n, head in self._read("chains")}

    def statuses(self) -> Mapping[str, str]:
        """Return the status of every approval."""
        return dict(self._read("statuses"))

    def notices(self, limit: int = 500) -> list[Notice]:
        """Return what is still to be told, oldest first."""
        rows = self._read("cursor", (OUTBOX,))
        told = rows[0][0] if rows else 0
        found = map(Entry._make, self._read("entries", (told, limit)))
        return [Notice(entry.seq, entry.approval_id, entry.kind, entry.at) for entry in found]

    def _read(self, name: str, parameters: tuple[object, ...] = ()) -> list[Any]:
        """Run a named query; its rows have the columns that the statement lists."""
        with self._read_lock, explain(self.path):
            return self._reading.execute(self._sql[name], parameters).fetchall()

    # -- telling and closing ---------------------------------------------------------------

    def subscribe(self, callback: Callable[[Changed], None]) -> None:
        """Call `callback` with the ids of approvals that changed, in any process."""
        with self._subscribed:
            self._subscribers.append(callback)
        self._bell().listen(self._tell, self._changes_since)

    def close(self) -> None:
        """Write down what is held back and let go of files and threads."""
        try:
            self.flush()
        finally:
            self._writer.close()
            if self._doorbell:
                self._doorbell.close()
            with self._read_lock:
                self._reading.close()
            self._writing.close()

    def _tell(self, changed: Changed) -> None:
        for callback in tuple(self._subscribers):
            callback(changed)

    def _bell(self) -> Doorbell:
        if self._doorbell is None:
            with self._subscribed:
                self._doorbell = self._doorbell or Doorbell(Path(self.path))
        return self._doorbell

    def _changes_since(self, seq: int) -> tuple[list[str], int]:
        """Return which approvals changed after an entry, and the newest entry's number."""
        last: int = self._read("last_entry")[0][0]
        changed = self._read("changed", (seq,)) if 0 <= seq < last else []
        return [str(row[0]) for row in changed], last

    # -- decoding --------------------------------------------------------------------------

    def _decode(self, row: Row, connection: sqlite3.Connection) -> Approval:
        known = self._cache.get(row.id)
        if known is not None and known.version == row.version:
            return known
        return read_approval(row, self._terms_of(row.terms, connection))

    def _remember(self, approval: Approval) -> None:
        if approval.status in _KEPT:
            self._cache[approval.id] = approval
            if len(self._cache) > CACHED:
                self._cache.popitem(last=False)
        else:
            self._cache.pop(approval.id, None)

    def _terms_of(self, number: int, connection: sqlite3.Connection) -> Terms:
        known = self._terms.get(number)
        if known is None:
            text = connection.execute(self._sql["terms_body"], (number,)).fetchone()[0]
            known = self._terms[number] = read_terms(text)
        return known


_KEPT = frozenset({Status.PENDING, Status.APPROVED, Status.RUNNING})
