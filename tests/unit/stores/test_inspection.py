"""Looking a SQLite file over without changing it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sayso.errors import StoreDamaged, StoreUnavailable
from sayso.stores.inspection import inspect_file
from tests.builders import file_store, opened


def test_a_store_in_use_is_sound_and_stays_as_it_is(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    opened(store, 20)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith("-shm")}
    found = inspect_file(tmp_path / "sayso.db")
    after = {file.name: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith("-shm")}
    store.close()
    assert found.sound, found
    assert after == before


def test_a_row_that_refers_to_nothing_is_named(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    opened(store)
    store.close()
    with closing(sqlite3.connect(tmp_path / "sayso.db")) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM terms")
    found = inspect_file(tmp_path / "sayso.db")
    assert not found.sound
    assert any("to terms" in reference for reference in found.references)


def test_an_older_schema_is_not_sound_and_its_plans_are_not_asked_for(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "old.db").execute("PRAGMA user_version = 0").connection.close()
    found = inspect_file(tmp_path / "old.db")
    assert (found.schema, found.scans, found.sound) == (0, (), False)


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        inspect_file(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is a text, and it is longer than one hundred bytes " * 4)
    with pytest.raises(StoreDamaged):
        inspect_file(tmp_path / "text.db")
