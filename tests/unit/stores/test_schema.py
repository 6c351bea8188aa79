"""Migrations: the schema is their sum, and no statement goes without a name."""

import sqlite3
import threading
from pathlib import Path

import pytest

from sayso.errors import StoreError
from sayso.stores import open_store
from sayso.stores.schema import connect, prepare, schema_version
from sayso.stores.sql import migrations, queries
from tests.builders import opened
from tests.guarantees import guarantee


def schema(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    return sorted(connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall())


def test_the_schema_is_the_sum_of_its_migrations_whatever_the_start(tmp_path: Path) -> None:
    steps = migrations("sqlite")
    whole = connect(str(tmp_path / "whole.db"))
    prepare(whole, "whole.db", migrate=True)
    for start in range(len(steps)):
        path = str(tmp_path / f"{start}.db")
        part = connect(path)
        for number, _, script in steps[:start]:
            part.executescript(script)
            part.execute(f"PRAGMA user_version = {number}")
        assert prepare(part, path, migrate=True) == len(steps) - start
        assert schema(part) == schema(whole)
        assert schema_version(part) == steps[-1][0]
        assert prepare(part, path, migrate=True) == 0
        part.close()
    whole.close()


def test_migrations_are_numbered_without_a_gap_and_named() -> None:
    steps = migrations("sqlite")
    assert [number for number, _, _ in steps] == list(range(1, len(steps) + 1))
    assert all(name for _, name, _ in steps)


def test_a_migration_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    raw = sqlite3.connect(tmp_path / "sayso.db", isolation_level=None)
    raw.execute("CREATE TABLE totp_steps (other INTEGER)")
    before = schema(raw)
    with pytest.raises(StoreError, match="totp_steps"):
        open_store(tmp_path / "sayso.db")
    assert schema(raw) == before
    raw.close()


def test_stores_that_are_made_at_once_are_made_once(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    start = threading.Barrier(6)

    def make(number: int) -> None:
        start.wait()
        try:
            store = open_store(tmp_path / "sayso.db")
            opened(store, 3, thread=f"t{number}")
            store.close()
        except BaseException as error:  # noqa: BLE001 - handed to the test
            errors.append(error)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    store = open_store(tmp_path / "sayso.db")
    assert len(store.statuses()) == 18
    store.close()


def test_every_statement_runs_and_the_hot_ones_scan_no_table(tmp_path: Path) -> None:
    connection = connect(str(tmp_path / "sayso.db"))
    prepare(connection, "sayso.db", migrate=True)
    plans: dict[str, str] = {}
    for name, text in queries().items():
        rows = connection.execute(f"EXPLAIN QUERY PLAN {text}", (0,) * text.count("?")).fetchall()
        plans[name] = "; ".join(str(row[3]) for row in rows)
    for name in (
        "version",
        "approval",
        "page",
        "page_all",
        "due",
        "chain",
        "entries",
        "entries_of",
        "ids_like",
    ):
        assert "SCAN a" not in plans[name], plans[name]
        assert "SCAN e" not in plans[name], plans[name]
        assert "TEMP B-TREE" not in plans[name] or name == "entries_of", plans[name]
    connection.close()


@guarantee("G9")
def test_every_connection_waits_for_the_disk_at_each_commit(tmp_path: Path) -> None:
    connection = connect(str(tmp_path / "sayso.db"))
    settings = ("journal_mode", "synchronous", "foreign_keys", "trusted_schema")
    found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in settings]
    connection.close()
    assert found == ["wal", 2, 1, 0]
