"""Opening a SQLite file: settings, migrations, and errors in words.

Never changes a file that a newer Sayso wrote.
"""

import os
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from sayso.clock import elapsed
from sayso.errors import (
    SchemaTooNew,
    SchemaTooOld,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
)
from sayso.stores.sql import migrations

BUSY_SECONDS = 10.0
"""How long a write waits for another process before it gives up."""

PAUSE_SECONDS = 0.01
"""How long to wait before trying again where SQLite does not wait by itself."""

PAGE_BYTES = 2048
"""How large a page of a new file is; every commit writes whole pages, so smaller ones are faster."""

WAL_BYTES = 4 * 1024 * 1024
"""How large the write-ahead log is made at once; overwriting is faster than growing."""


def connect(path: str, *, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open a connection with Sayso's settings.

    Args:
        path: The file, or `:memory:`.
        busy_seconds: How long its statements wait for another program's write.

    Raises:
        StoreError: The file cannot be opened.
    """
    with explain(path):
        connection = sqlite3.connect(
            path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        with closed_on_failure(connection):
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            _keep_log(connection, busy_seconds)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
        return connection


@contextmanager
def closed_on_failure(*connections: sqlite3.Connection) -> Generator[None]:
    """Let go of connections when what is done with them fails."""
    try:
        yield
    except BaseException:
        for connection in connections:
            connection.close()
        raise


def _keep_log(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch to a write-ahead log; SQLite itself does not wait here for another program that does the same."""
    end = elapsed() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or elapsed() > end:
                raise
            sleep(PAUSE_SECONDS)
        else:
            return


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the number of the last migration that was run."""
    return connection.execute("PRAGMA user_version").fetchone()[0]


def prepare(connection: sqlite3.Connection, path: str, *, migrate: bool) -> int:
    """Bring the schema up to date and return how many migrations were run.

    Raises:
        SchemaTooNew: A newer Sayso wrote the file.
        SchemaTooOld: It is older, and `migrate` is False.
    """
    steps = migrations("sqlite")
    newest = steps[-1][0]
    with explain(path):
        version = schema_version(connection)
        if version > newest:
            raise SchemaTooNew(
                f"the store `{path}` has schema {version}, this Sayso knows up to {newest}",
                hint="use the newer Sayso that wrote it",
            )
        if version == newest:
            return 0
        if not migrate and version:
            raise SchemaTooOld(
                f"the store `{path}` has schema {version}, this Sayso needs {newest}",
                hint="run `sayso store migrate`",
            )
        return _run(connection, steps)


def _run(connection: sqlite3.Connection, steps: tuple[tuple[int, str, str], ...]) -> int:
    """Run the missing migrations in one transaction; another process may have been faster."""
    connection.execute("BEGIN IMMEDIATE")
    version = schema_version(connection)
    missing = [step for step in steps if step[0] > version]
    script = "\n".join(text for _, _, text in missing)
    try:
        for statement in _statements(script):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {steps[-1][0]}")
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return len(missing)


def _statements(script: str) -> Iterator[str]:
    held = ""
    for line in script.splitlines(keepends=True):
        held += line
        if sqlite3.complete_statement(held):
            yield held
            held = ""


def begin(connection: sqlite3.Connection, *, wait: bool) -> bool:
    """Take the write lock; return False when another program holds it and `wait` is not set.

    Raises:
        sqlite3.OperationalError: It was held for longer than `BUSY_SECONDS`.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        if not wait:
            return False
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")
        try:
            connection.execute("BEGIN IMMEDIATE")
        finally:
            connection.execute("PRAGMA busy_timeout = 0")
    return True


def presize_log(connection: sqlite3.Connection, path: str) -> None:
    """Fill the write-ahead log with zeros up to the size it is kept at.

    Safe beside other processes: it holds the write lock, and SQLite takes zeros after the
    last frame for the end of the log.
    """
    log = Path(path + "-wal")
    if not begin(connection, wait=False):
        return  # somebody is writing, so speed is not what is missing
    try:
        if log.exists() and (size := log.stat().st_size) < WAL_BYTES:
            descriptor = os.open(log, os.O_WRONLY)
            try:
                os.pwrite(descriptor, bytes(WAL_BYTES - size), size)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError:
        return  # only speed is lost; a full disk shows at the next write
    finally:
        connection.execute("ROLLBACK")


@contextmanager
def explain(path: str) -> Generator[None]:
    """Turn what SQLite raises into errors that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise explained(error, path) from error


def explained(error: sqlite3.Error, path: str) -> StoreError:
    """Return the error that says in words what SQLite could not do, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_FULL:
            return StoreFull(
                f"the disk that holds `{path}` is full, nothing was saved",
                hint="free some space, then try again",
            )
        case sqlite3.SQLITE_READONLY:
            return StoreReadOnly(
                f"the store `{path}` cannot be written, nothing was saved",
                hint="check who owns the file and its folder",
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreLocked(
                f"another program held the store `{path}` for {BUSY_SECONDS:.0f} s, nothing was saved",
                hint="find the program that holds it, then try again",
            )
        case sqlite3.SQLITE_CANTOPEN:
            return StoreUnavailable(
                f"the store `{path}` cannot be opened", hint="check that its folder exists and can be written"
            )
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return StoreDamaged(
                f"`{path}` is not a SQLite file, or it is damaged", hint="restore it from a backup"
            )
        case _:
            return StoreUnavailable(
                f"the store `{path}` failed: {error}", hint="nothing was saved; try again"
            )
