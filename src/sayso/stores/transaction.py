"""The writes of one SQLite transaction. Chain heads are read once and written back once.

A refusal raised by a step becomes that write's outcome before anything of it was written, so
one refused decision never harms the others of its group.
"""

import sqlite3
from collections.abc import Callable, Mapping

from sayso.approvals import Approval, Terms, evolve
from sayso.audit import genesis, link, seal
from sayso.clock import Millis
from sayso.decisions import Change, Event, open_approval
from sayso.errors import ProofWrong, SaysoError, StoreLocked
from sayso.stores.base import Alter, Open, Write, not_found, spent_already
from sayso.stores.codec import Row, write_body, write_state, write_terms
from sayso.stores.sql import queries


class Transaction:
    """One open transaction.

    Args:
        connection: The connection that is inside BEGIN IMMEDIATE.
        now: The store's time for all of it, in milliseconds since the epoch.
        known: Approvals decoded before, by id; used when their version is still the stored one.
        decode: Turns a row into an approval.
        terms_ids: The ids of terms stored before; added to.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        now: Millis,
        *,
        known: Mapping[str, Approval],
        decode: Callable[[Row, sqlite3.Connection], Approval],
        terms_ids: dict[str, int],
    ) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._now = now
        self._known = known
        self._decode = decode
        self._terms_ids = terms_ids
        self._sql = queries()
        self._heads: dict[str, tuple[int, int, bytes]] = {}
        self._last_entry = -1
        self._newest: dict[int, int] = {}
        self._entries: list[tuple[object, ...]] = []

    def apply(self, write: Write | None) -> Change | SaysoError | None:
        """Do one write and return its change, or its refusal; None writes nothing."""
        match write:
            case None:
                return None
            case Open(approval=approval):
                return self._open(approval)
            case Alter(approval_id=approval_id, step=step):
                try:
                    before = self._read(approval_id)
                    change = step(before, self._now)
                except SaysoError as refusal:
                    return refusal
                return self._use_totp(change, before) or self._save(before, change)

    def append(self, event: Event, at: Millis, approval: int = 0, body: str | None = None) -> None:
        """Link one event into its thread's chain.

        Args:
            event: What happened.
            at: When, in milliseconds since the epoch.
            approval: The number of the approval it is about, 0 for none.
            body: Its sealed text, if that was made already.
        """
        thread = event.thread
        chain, n, previous = self._heads.get(thread) or self._chain(thread)
        if body is None:
            body = seal(event)
        digest = link(previous, n + 1, at, event.kind, event.approval_id, body)
        self._heads[thread] = (chain, n + 1, digest)
        seq = self._last_entry = self._last_entry + 1
        before = 0
        if approval:
            before = self._newest.get(approval, 0)
            self._newest[approval] = seq
        self._entries.append((seq, chain, n + 1, at, event.kind, approval, before, body, digest))

    def finish(self) -> None:
        """Write the entries and the chain heads; the caller commits."""
        if self._entries:
            many = self._connection.executemany
            many(self._sql["insert_entry"], self._entries)
            many(self._sql["update_chain"], [(n, head, chain) for chain, n, head in self._heads.values()])

    def _read(self, approval_id: str) -> Approval:
        """Return an approval; one decoded before needs only its version compared."""
        found = self._execute(self._sql["version"], (approval_id,)).fetchone()
        if found is None:
            raise not_found(approval_id)
        version, entry, chain, n, head, last = found
        approval = self._known.get(approval_id)
        if approval is None or approval.version != version:
            row = self._execute(self._sql["approval"], (approval_id,)).fetchone()
            approval = self._decode(Row._make(row), self._connection)
        self._heads.setdefault(approval.action.thread, (chain, n, head))
        self._newest.setdefault(approval.seq, entry)
        self._last_entry = max(self._last_entry, last)
        return approval

    def _open(self, approval: Approval) -> Change:
        thread = approval.action.thread
        head = self._heads.get(thread) or self._chain(thread)
        self._heads[thread] = head
        row = self._execute(
            self._sql["insert_approval"],
            (
                approval.id,
                approval.status.value,
                approval.rank,
                head[0],
                self._last_entry + 1,
                self._terms_id(approval.terms),
            ),
        ).fetchone()
        if row is None:
            return Change(approval=self._read(approval.id))
        stored = evolve(approval, seq=row[0], version=0)
        action = stored.action
        kept = (stored.seq, bytes.fromhex(action.digest), action.canonical_args, write_body(stored))
        self._execute(self._sql["insert_body"], kept)
        change = open_approval(stored)
        self._record(change, stored.seq)
        return change

    def _use_totp(self, change: Change, before: Approval) -> ProofWrong | None:
        """Spend a one-time password step, or refuse one that was spent already."""
        if change.totp is None or self._execute(self._sql["use_totp_step"], change.totp).rowcount == 1:
            return None
        return spent_already(change.totp[0], before.id)

    def _save(self, before: Approval, change: Change) -> Change:
        if change.approval is before and not change.events:
            return change
        self._record(change, before.seq)
        entry = self._newest[before.seq]
        after = change.approval
        if after is before:
            self._execute(self._sql["update_entry"], (entry, before.seq))
        else:
            after = evolve(after, version=before.version + 1)
            saved = (after.status.value, after.rank, entry, write_state(after), after.seq, before.version)
            if self._execute(self._sql["update_approval"], saved).rowcount != 1:
                raise StoreLocked(f"approval {after.id} changed under a lock", hint="try again")
            change = evolve(change, approval=after)
        if change.opens is not None:
            return evolve(change, opens=self._open(change.opens).approval)
        return change

    def _record(self, change: Change, approval: int) -> None:
        for event in change.events:
            self.append(event, self._now, approval)

    def _chain(self, thread: str) -> tuple[int, int, bytes]:
        """Return the chain of a thread, starting it if need be, and learn the newest entry."""
        row = self._execute(self._sql["chain"], (thread,)).fetchone()
        if row is not None:
            self._last_entry = max(self._last_entry, row[3])
            return row[:3]
        start = genesis(thread)
        number = self._execute(self._sql["insert_chain"], (thread, start)).fetchone()[0]
        if self._last_entry < 0:
            self._last_entry = self._execute(self._sql["last_entry"]).fetchone()[0]
        return number, 0, start

    def _terms_id(self, terms: Terms) -> int:
        text = write_terms(terms)
        known = self._terms_ids.get(text)
        if known is None:
            row = self._execute(self._sql["terms_id"], (text,)).fetchone()
            row = row or self._execute(self._sql["insert_terms"], (text,)).fetchone()
            known = self._terms_ids[text] = row[0]
        return known
