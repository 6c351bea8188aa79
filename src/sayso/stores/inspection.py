"""Looking a SQLite file over without changing it: its schema, its pages, its references, its plans."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sayso.approvals import Status
from sayso.stores.schema import explain, schema_version
from sayso.stores.sql import migrations, queries

PLANNED = ("page", "page_all", "due", "approval", "ids_like")
"""The statements that must never read a whole table, however many approvals there are."""

_PARAMETERS = {
    "page": (Status.PENDING.value, 0, 0, 50),
    "page_all": (2**63 - 1, 50),
    "due": (Status.PENDING.value, 0, 500),
    "approval": ("",),
    "ids_like": ("", "", 10),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What a look at a SQLite file found.

    Args:
        schema: The number of the last migration it went through, 0 for none.
        newest: The number of the last migration this Sayso knows.
        pages: What SQLite says about its pages and indexes; empty when they are sound.
        references: Rows that refer to something that is not there, as `table row number`.
        scans: Statements that would read a whole table, with SQLite's words.
    """

    schema: int
    newest: int
    pages: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    scans: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.schema == self.newest and not (self.pages or self.references or self.scans)


def inspect_file(path: Path) -> Inspection:
    """Look a SQLite file over; nothing in it is changed.

    Raises:
        StoreError: It cannot be opened, or is no SQLite file.
    """
    newest = migrations("sqlite")[-1][0]
    with _reading(path) as connection:
        schema = schema_version(connection)
        pages = tuple(str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok")
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        references = tuple(f"{table} {row} to {parent}" for table, row, parent, _ in broken)
        scans = _scans(connection) if schema == newest else ()
    return Inspection(schema=schema, newest=newest, pages=pages, references=references, scans=scans)


def _scans(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the statements whose plan walks through a table instead of an index."""
    found: list[str] = []
    for name in PLANNED:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {queries()[name]}", _PARAMETERS[name]).fetchall()
        found += [f"{name}: {row[3]}" for row in plan if str(row[3]).startswith(("SCAN", "USE TEMP"))]
    return tuple(found)


@contextmanager
def _reading(path: Path) -> Generator[sqlite3.Connection]:
    with explain(str(path)):
        uri = f"file:{quote(str(path.absolute()))}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            yield connection
