"""The floor: the same commits and steps with no product around them.

These prototypes have no identities, no redaction, no checks and were never crash-tested. They
bound what is possible on this machine and in this language; no product reaches them.
"""

import asyncio
import queue
import sqlite3
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha256
from pathlib import Path
from time import time_ns
from typing import TypeAlias

import orjson

from bench.harness import WALL, Step
from bench.work import FREE_TOOL, fresh_path, request
from sayso.actions import Json

PENDING, RUNNING, DONE, EXPIRED, APPROVED = range(5)

WAL_BYTES = 4 * 1024 * 1024
"""How far the write-ahead log is grown before anything is measured."""

Write: TypeAlias = Callable[[sqlite3.Connection], object]

SCHEMA = """
CREATE TABLE approvals (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, status INTEGER NOT NULL, due INTEGER, holder TEXT
);
CREATE INDEX by_status ON approvals (status, seq);
CREATE INDEX by_due ON approvals (due) WHERE due IS NOT NULL;
CREATE TABLE bodies (seq INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE entries (
  seq INTEGER PRIMARY KEY, approval TEXT NOT NULL, body BLOB NOT NULL, hash BLOB NOT NULL
);
CREATE TABLE raw (seq INTEGER PRIMARY KEY, body BLOB NOT NULL);
"""


class Chain:
    """A hash chain over audit entries that say what any audit must: what, when, who, about what."""

    def __init__(self) -> None:
        self.head = bytes(32)
        self._n = 0

    def add(self, body: bytes) -> bytes:
        """Append an entry and return its hash."""
        self.head = sha256(self.head + body).digest()
        return self.head

    def record(self, kind: str, named: str) -> tuple[bytes, bytes]:
        """Write an entry, append it and return it with its hash."""
        self._n += 1
        body = orjson.dumps(
            {
                "about": named,
                "at": time_ns() // 1_000_000,
                "by": "ann",
                "kind": kind,
                "n": self._n,
                "thread": "t-1",
            }
        )
        return body, self.add(body)


def digest(args: Mapping[str, Json]) -> tuple[bytes, str]:
    """Return the canonical arguments and their digest."""
    body = orjson.dumps(args, option=orjson.OPT_SORT_KEYS)
    return body, sha256(body).hexdigest()


class JudgeFloor:
    """Policy indexed by tool, a digest and a chained record in memory."""

    def __init__(self) -> None:
        self._rules: dict[str, Callable[[Mapping[str, Json]], bool]] = {
            FREE_TOOL: lambda args: args.get("amount") == 0
        }
        self._chain = Chain()
        self._entries: list[tuple[bytes, bytes]] = []
        self._numbers = iter(range(10**9))

    def judge(self) -> None:
        """Judge a call that needs nobody, and write that down."""
        args = request(next(self._numbers))
        held = self._rules[FREE_TOOL](args)
        self._entries.append(self._chain.record("held" if held else "allowed", digest(args)[1]))


class MemoryFloor:
    """The whole life of an approval in a dictionary."""

    def __init__(self) -> None:
        self._chain = Chain()
        self._entries: list[tuple[bytes, bytes]] = []
        self._status: dict[str, int] = {}
        self._waiting: dict[str, Future[None]] = {}
        self._numbers = iter(range(10**9))

    def cycle(self) -> None:
        """Open, decide, claim and complete one request; nobody waits."""
        named = self._open()
        self._move(named, PENDING, APPROVED, "approved")
        self._move(named, APPROVED, RUNNING, "claimed")
        self._move(named, RUNNING, DONE, "done")

    async def held_cycle(self, loop: AbstractEventLoop) -> None:
        """Open, wait, be decided by somebody else on the loop, claim and complete."""
        named = self._open()
        self._waiting[named] = loop.create_future()
        loop.call_soon(self._decide, named)
        await self._waiting[named]
        del self._waiting[named]
        self._move(named, APPROVED, RUNNING, "claimed")
        self._move(named, RUNNING, DONE, "done")

    def _open(self) -> str:
        _, named = digest(request(next(self._numbers)))
        self._status[named] = PENDING
        self._entries.append(self._chain.record("opened", named))
        return named

    def _decide(self, named: str) -> None:
        self._move(named, PENDING, APPROVED, "approved")
        self._waiting[named].set_result(None)

    def _move(self, named: str, before: int, after: int, kind: str) -> None:
        if self._status[named] != before:
            raise RuntimeError(named)
        self._status[named] = after
        self._entries.append(self._chain.record(kind, named))


class FileFloor:
    """The same on a SQLite file: WAL grown beforehand, a flush to the disk at each commit."""

    def __init__(self, path: Path) -> None:
        self.db = connect(path)
        self.chain = Chain()
        self._numbers = iter(range(10**9))
        if not self.db.execute("SELECT 1 FROM sqlite_master").fetchone():
            self.db.executescript(SCHEMA)
            grow_log(self.db)

    def commit(self, write: Write) -> None:
        """Run one write in a transaction of its own."""
        self.db.execute("BEGIN IMMEDIATE")
        write(self.db)
        self.db.execute("COMMIT")

    def opened(self, number: int, due: int) -> tuple[str, Write]:
        """Return the id of a new request and the write that stores it."""
        body, whole = digest(request(number))
        named = whole[:16]

        def write(db: sqlite3.Connection) -> None:
            row = db.execute("INSERT INTO approvals (id, status, due) VALUES (?, 0, ?)", (named, due))
            db.execute("INSERT INTO bodies VALUES (?, ?)", (row.lastrowid, body))
            self.record(db, "opened", named)

        return named, write

    def decided(self, named: str) -> Write:
        """Return the write that approves and hands out the lease in one transaction."""

        def write(db: sqlite3.Connection) -> None:
            self._swap(db, "UPDATE approvals SET status = 1, holder = 'g' WHERE id = ? AND status = 0", named)
            self.record(db, "approved", named)
            self.record(db, "claimed", named)

        return write

    def approved(self, named: str) -> Write:
        """Return the write that approves and leaves the lease to whoever waits."""

        def write(db: sqlite3.Connection) -> None:
            self._swap(db, "UPDATE approvals SET status = 4 WHERE id = ? AND status = 0", named)
            self.record(db, "approved", named)

        return write

    def claimed(self, named: str) -> Write:
        """Return the write that takes the lease of something approved."""

        def write(db: sqlite3.Connection) -> None:
            self._swap(db, "UPDATE approvals SET status = 1, holder = 'g' WHERE id = ? AND status = 4", named)
            self.record(db, "claimed", named)

        return write

    def completed(self, named: str) -> Write:
        """Return the write that completes a run."""

        def write(db: sqlite3.Connection) -> None:
            self._swap(db, "UPDATE approvals SET status = 2, due = NULL WHERE id = ? AND status = 1", named)
            self.record(db, "done", named)

        return write

    def record(self, db: sqlite3.Connection, kind: str, named: str) -> None:
        """Append one chained audit entry."""
        db.execute(
            "INSERT INTO entries (approval, body, hash) VALUES (?, ?, ?)",
            (named, *self.chain.record(kind, named)),
        )

    def cycle(self) -> None:
        """Open, decide with the lease, complete: three transactions."""
        named, write = self.opened(next(self._numbers), 0)
        self.commit(write)
        self.commit(self.decided(named))
        self.commit(self.completed(named))

    def populate(self, count: int, due: int) -> None:
        """Store many pending requests in a few transactions."""
        for first in range(0, count, 1000):
            writes = [self.opened(number, due)[1] for number in range(first, min(first + 1000, count))]
            self.commit(lambda db, writes=writes: [write(db) for write in writes])

    def page(self, after: int) -> list[tuple[int, str, dict[str, Json]]]:
        """Return a page of fifty pending requests, bodies read."""
        rows = self.db.execute(
            "SELECT a.seq, a.id, b.body FROM approvals a JOIN bodies b ON b.seq = a.seq "
            "WHERE a.status = 0 AND a.seq > ? ORDER BY a.seq LIMIT 50",
            (after,),
        )
        return [(seq, named, orjson.loads(body)) for seq, named, body in rows]

    def due(self, now: int, limit: int = 500) -> list[tuple[int, str]]:
        """Return what is due, oldest first."""
        found = self.db.execute(
            "SELECT seq, id FROM approvals WHERE due IS NOT NULL AND due < ? ORDER BY due LIMIT ?",
            (now, limit),
        )
        return found.fetchall()

    def sweep(self, now: int) -> int:
        """Expire everything that is due, five hundred in a transaction, each with its entry."""
        swept = 0
        while due := self.due(now):
            self.commit(lambda db, due=due: self._expire(db, due))
            swept += len(due)
        return swept

    def append(self, count: int = 1000) -> None:
        """Append a batch of audit entries in one flushed commit."""
        names = [f"{next(self._numbers):032d}" for _ in range(count)]
        self.commit(lambda db: [self.record(db, "allowed", named) for named in names])

    def verify(self) -> None:
        """Follow the chain from the first entry to the last."""
        chain = Chain()
        for body, kept in self.db.execute("SELECT body, hash FROM entries ORDER BY seq"):
            if chain.add(body) != kept:
                raise RuntimeError("the chain is broken")

    def close(self) -> None:
        """Close the file."""
        self.db.close()

    def _expire(self, db: sqlite3.Connection, due: list[tuple[int, str]]) -> None:
        for seq, named in due:
            db.execute("UPDATE approvals SET status = 3, due = NULL WHERE seq = ? AND status = 0", (seq,))
            self.record(db, "expired", named)

    @staticmethod
    def _swap(db: sqlite3.Connection, statement: str, named: str) -> None:
        if db.execute(statement, (named,)).rowcount != 1:
            raise RuntimeError(named)


class GroupWriter:
    """One thread that commits whatever is waiting together, then wakes all that waited."""

    def __init__(self, floor: FileFloor, loop: AbstractEventLoop) -> None:
        self._floor, self._loop = floor, loop
        self._queue: queue.SimpleQueue[tuple[Write, Future[None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    async def commit(self, write: Write) -> None:
        """Return once the write is on the disk."""
        done: Future[None] = self._loop.create_future()
        self._queue.put((write, done))
        await done

    def close(self) -> None:
        """Stop the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while first := self._queue.get():
            batch = [first]
            while not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    self._queue.put(None)
                    break
                batch.append(following)
            self._floor.commit(lambda db, batch=batch: [write(db) for write, _ in batch])
            self._loop.call_soon_threadsafe(_wake, [done for _, done in batch])


def _wake(waiting: list[Future[None]]) -> None:
    for done in waiting:
        done.set_result(None)


def connect(path: Path, *, flush: bool = True) -> sqlite3.Connection:
    """Open a SQLite file in WAL mode, flushing each commit to the disk unless told otherwise."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {'FULL' if flush else 'OFF'}")
    return db


def grow_log(db: sqlite3.Connection) -> None:
    """Grow the write-ahead log once, so that later commits overwrite instead of append."""
    db.execute("CREATE TABLE filler (body BLOB)")
    db.execute("INSERT INTO filler VALUES (zeroblob(?))", (WAL_BYTES,))
    db.execute("DROP TABLE filler")
    db.execute("PRAGMA wal_checkpoint(RESTART)")


@contextmanager
def raw_commit(folder: Path) -> Generator[Step]:
    """Insert one row of a request's size in a transaction of its own."""
    with fresh_path(folder, "raw") as path:
        floor = FileFloor(path)
        body = orjson.dumps(request(0))
        yield lambda: floor.db.execute("INSERT INTO raw (body) VALUES (?)", (body,))
        floor.close()


@contextmanager
def sqlite_memory_cycle() -> Generator[Step]:
    """One agent on a SQLite database in memory: the same three transactions, nothing flushed."""
    floor = FileFloor(Path(":memory:"))
    yield floor.cycle
    floor.close()


@contextmanager
def file_cycle(folder: Path) -> Generator[Step]:
    """One agent: open, decide with the lease, complete; three commits."""
    with fresh_path(folder, "floor") as path:
        floor = FileFloor(path)
        yield floor.cycle
        floor.close()


@asynccontextmanager
async def held_task() -> AsyncGenerator[Callable[[], Awaitable[object]]]:
    """One agent and one person on the same loop, in memory."""
    floor, loop = MemoryFloor(), asyncio.get_running_loop()
    yield lambda: floor.held_cycle(loop)


async def crowd(folder: Path, agents: int, waves: int) -> float:
    """Run many agents at once over one group writer; return seconds per cycle after a warm-up wave."""
    with fresh_path(folder, "crowd") as path:
        floor = FileFloor(path)
        writer = GroupWriter(floor, asyncio.get_running_loop())
        numbers = iter(range(10**9))

        async def cycle() -> None:
            named, write = floor.opened(next(numbers), 0)
            await writer.commit(write)
            await asyncio.create_task(writer.commit(floor.decided(named)))
            await writer.commit(floor.completed(named))

        await asyncio.gather(*(cycle() for _ in range(agents)))
        start = WALL()
        for _ in range(waves):
            await asyncio.gather(*(cycle() for _ in range(agents)))
        took = (WALL() - start) / 1e9
        writer.close()
        floor.close()
    return took / agents / waves


@contextmanager
def append(folder: Path) -> Generator[Step]:
    """Append audit entries in batches."""
    with fresh_path(folder, "floor") as path:
        floor = FileFloor(path)
        yield floor.append
        floor.close()
