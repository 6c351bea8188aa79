"""What can be wrong with a file: each has its own error, nothing is lost and nothing runs."""

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sayso import Gate, Inbox, ManualClock, open_store
from sayso.approvals import Approval, Status
from sayso.audit import verify
from sayso.clock import Millis
from sayso.decisions import Change
from sayso.errors import (
    ConfigError,
    SchemaTooNew,
    SchemaTooOld,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
)
from sayso.stores import Alter, Open, Store
from sayso.stores.sqlite import SqliteStore
from sayso.waiting import send
from sayso.worker import run_once
from tests.builders import ANN, POLICY, action, approval, asking, opened
from tests.guarantees import guarantee

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user of this machine can look into."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


@pytest.fixture
def path(folder: Path) -> Path:
    """The store's file."""
    return folder / "sayso.db"


@contextmanager
def as_nobody() -> Generator[None]:
    """Be a user without rights for a while; somebody who is not root has none to give up."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def filled(path: Path, count: int = 2) -> list[str]:
    store = open_store(path)
    made = [each.id for each in opened(store, count)]
    store.close()
    return made


def change(path: Path, statement: str, *parameters: object) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(statement, parameters)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the file as another program would."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as raw:
        raw.execute("BEGIN EXCLUSIVE")
        yield
        raw.execute("ROLLBACK")


# -- opening ---------------------------------------------------------------------------------


@guarantee("G10")
def test_what_is_no_sqlite_file_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("not a database, but a letter to the editor\n" * 50)
    with pytest.raises(StoreDamaged, match="is not a SQLite file") as caught:
        open_store(path)
    assert str(path) in caught.value.message
    assert path.read_text().startswith("not a database")


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    store = open_store(path)
    opened(store)
    store.close()


@guarantee("G10")
def test_a_store_of_a_newer_sayso_is_refused_and_left_alone(path: Path) -> None:
    filled(path)
    change(path, "PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match="has schema 99, this Sayso knows up to"):
        open_store(path)
    assert path.read_bytes() == before


def test_a_store_of_an_older_sayso_is_left_alone_unless_it_may_be_migrated(path: Path) -> None:
    filled(path)
    change(path, "PRAGMA user_version = -1")
    with pytest.raises(SchemaTooOld) as caught:
        open_store(path, migrate=False)
    assert "sayso store migrate" in caught.value.hint


@pytest.mark.parametrize("url", ["mysql://host/db", "sqlite:///", "", "redis://x"])
def test_a_store_that_sayso_does_not_have_is_named(url: str) -> None:
    with pytest.raises(ConfigError):
        open_store(url)


def test_a_url_and_a_path_open_the_same_file(path: Path) -> None:
    made = filled(path)
    store = open_store(f"sqlite:///{path}")
    assert sorted(store.statuses()) == made
    store.close()


def test_a_folder_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be opened") as caught:
        open_store(folder / "missing" / "sayso.db")
    assert "folder" in caught.value.hint


@guarantee("G10")
def test_a_file_and_folder_that_may_not_be_written_are_refused(path: Path, folder: Path) -> None:
    made = filled(path)
    path.chmod(0o444)
    folder.chmod(0o555)
    with as_nobody(), pytest.raises((StoreReadOnly, StoreUnavailable)) as caught:
        opened(open_store(path), thread="other")
    assert str(path) in caught.value.message
    assert caught.value.hint
    folder.chmod(0o755)
    path.chmod(0o644)
    store = open_store(path)
    assert sorted(store.statuses()) == made
    store.close()


@guarantee("G10")
def test_a_file_that_may_not_be_written_in_a_folder_that_may_is_refused(path: Path, folder: Path) -> None:
    made = filled(path)
    path.chmod(0o444)
    folder.chmod(0o777)
    with as_nobody(), pytest.raises((StoreReadOnly, StoreUnavailable)), closing(open_store(path)) as store:
        opened(store, thread="other")
    for left in folder.glob("sayso.db-*"):
        left.unlink()
    path.chmod(0o644)
    store = open_store(path)
    assert sorted(store.statuses()) == made
    store.close()


# -- while open ------------------------------------------------------------------------------


@guarantee("G9")
@guarantee("G10")
def test_a_full_disk_refuses_by_name_and_goes_on_once_there_is_room(path: Path) -> None:
    store = SqliteStore(str(path), clock=ManualClock())
    opened(store, 3)
    pages = store._writing.execute("PRAGMA page_count").fetchone()[0]  # pyright: ignore[reportPrivateUsage] - a disk of a size of its own
    store._writing.execute(f"PRAGMA max_page_count = {pages + 1}")  # pyright: ignore[reportPrivateUsage] - a disk of a size of its own
    stored = set(store.statuses())
    full: StoreError | None = None
    for number in range(2000):
        new = approval(action(args={"text": "x" * 500}, call_id=str(number)), id=f"apx{number:04}")
        try:
            store.write(Open(approval=new))
            stored.add(new.id)
        except StoreError as error:
            full = error
            break
    assert isinstance(full, StoreFull)
    assert "is full" in full.message
    gate = Gate(store=store, policy=POLICY)
    with pytest.raises(StoreError):
        gate.ask(action(args={"text": "x" * 9000}))
    outcomes = store.write_many(
        [
            Open(approval=approval(action(args={"text": "x" * 9000}, call_id=f"m{n}"), id=f"apm{n}"))
            for n in range(3)
        ]
    )
    assert [type(outcome) for outcome in outcomes] == [StoreFull] * 3
    assert set(store.statuses()) == stored
    store._writing.execute("PRAGMA max_page_count = 1000000")  # pyright: ignore[reportPrivateUsage] - a disk of a size of its own
    store.write(Open(approval=approval(id="apafter")))
    assert set(store.statuses()) == {*stored, "apafter"}
    assert verify(store.entries(), heads=store.heads(), statuses=store.statuses()).sound
    store.close()


@guarantee("G2")
def test_terms_that_were_not_stored_after_all_are_never_taken_for_others(path: Path) -> None:
    store = SqliteStore(str(path), clock=ManualClock())
    usual = opened(store)[0]
    loose = approval(action(args={"text": "x" * 60_000}), replace(usual.terms, rule="loose"), id="aploose")
    pages = store._writing.execute("PRAGMA page_count").fetchone()[0]  # pyright: ignore[reportPrivateUsage] - a disk of a size of its own
    store._writing.execute(f"PRAGMA max_page_count = {pages + 30}")  # pyright: ignore[reportPrivateUsage] - a disk of a size of its own
    big = approval(action(args={"text": "x" * 900_000}), usual.terms, id="apbig")

    def break_(before: Approval, now: Millis) -> Change:
        raise ValueError(before, now)

    touch = Alter(approval_id="aploose", step=break_)
    store.write_many([Open(approval=loose), touch, Open(approval=big)])
    strict = approval(action(call_id="s"), replace(usual.terms, rule="strict"), id="apstrict")
    store._writing.execute("PRAGMA max_page_count = 1000000")  # pyright: ignore[reportPrivateUsage] - a disk of a size of its own
    store.write(Open(approval=strict))
    other = open_store(path)
    for each in store.statuses():
        assert store.get(each).terms == other.get(each).terms
    other.close()
    store.close()


@guarantee("G10")
def test_a_file_another_program_holds_is_named_and_works_again_afterwards(path: Path) -> None:
    store = open_store(path)
    asked = opened(store)[0]
    with locked(path), pytest.raises(StoreLocked, match="another program held"):
        store.write(Open(approval=approval(id="apmore")))
    assert store.get(asked.id) == asked
    assert list(store.statuses()) == [asked.id]
    store.write(Open(approval=approval(id="apmore")))
    store.close()


def test_an_event_loop_goes_on_while_another_program_holds_the_file(path: Path) -> None:
    store = open_store(path)
    opened(store)

    async def agent() -> int:
        turns = 0
        with locked(path):
            writing = asyncio.ensure_future(send(store, Open(approval=approval(id="apmore"))))
            for _ in range(50):
                await asyncio.sleep(0.002)
                turns += 1
            assert not writing.done()
        await asyncio.wait_for(writing, 10)
        return turns

    assert asyncio.run(agent()) == 50
    assert "apmore" in store.statuses()
    store.close()


# -- changed behind Sayso's back -------------------------------------------------------------


def _columns(path: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(path)) as raw:
        return [row[1] for row in raw.execute(f"PRAGMA table_info({table})")]


def replace_in(path: Path, table: str, before: str, after: str, seq: int) -> None:
    """Replace a text in whichever column of a row holds it."""
    for column in _columns(path, table):
        with closing(sqlite3.connect(path)) as raw, raw:
            row = raw.execute(f"SELECT {column} FROM {table} WHERE seq = ?", (seq,)).fetchone()  # noqa: S608
            value = row[0]
            if isinstance(value, str) and before in value:
                new: str | bytes = value.replace(before, after)
            elif isinstance(value, bytes) and before.encode() in value:
                new = value.replace(before.encode(), after.encode())
            else:
                continue
            raw.execute(f"UPDATE {table} SET {column} = ? WHERE seq = ?", (new, seq))  # noqa: S608
            return
    pytest.fail(f"{table} does not hold {before}")


@guarantee("G2")
@guarantee("G8")
@guarantee("G10")
def test_a_row_whose_arguments_were_changed_is_named_and_runs_nothing(path: Path) -> None:
    store = open_store(path)
    gate, inbox = Gate(store=store, policy=POLICY), Inbox(store=store, policy=POLICY)
    bad, good = gate.open(action(call_id="bad")), gate.open(action(call_id="good"))
    inbox.approve(bad, ANN)
    store.close()
    replace_in(path, "bodies", "1847.5", "9847.5", bad.seq)
    store = open_store(path)
    gate, inbox = Gate(store=store, policy=POLICY), Inbox(store=store, policy=POLICY)
    calls = [lambda: gate.claim(bad.id), lambda: inbox.show(bad.id), lambda: gate.settle(bad.id)]
    for call in calls:
        with pytest.raises(StoreDamaged, match=bad.id):
            call()
    assert store.statuses()[bad.id] == "approved"
    inbox.approve(inbox.show(good.id), ANN)
    assert gate.claim(good.id).may_run
    store.close()


@guarantee("G10")
def test_a_damaged_row_is_named_and_hides_and_holds_up_nothing_else(path: Path) -> None:
    clock = ManualClock()
    store = open_store(path, clock=clock)
    gate = Gate(store=store, policy=POLICY)
    bad, good = gate.open(action(call_id="bad")), gate.open(action(call_id="good"))
    store.close()
    replace_in(path, "bodies", "1847.5", "9847.5", bad.seq)
    store = open_store(path, clock=clock)
    page = store.page()
    assert [each.id for each in page.approvals] == [good.id]
    assert page.damaged == (bad.id,)
    clock.advance(10_000)
    done = run_once(store)
    assert (done.expired, done.damaged) == (1, 1)
    assert store.get(good.id).status is Status.EXPIRED
    assert store.statuses()[bad.id] == "pending"
    store.close()


@guarantee("G2")
def test_a_row_that_is_changed_while_an_agent_waits_runs_nothing(path: Path) -> None:
    store = open_store(path)
    gate, inbox = Gate(store=store, policy=POLICY), Inbox(store=store, policy=POLICY)
    other = open_store(path)
    with asking(gate, action(), inbox) as (asked, outcomes):
        replace_in(path, "bodies", "1847.5", "9847.5", asked.seq)
        with pytest.raises(StoreDamaged):
            Inbox(store=other, policy=POLICY).approve(asked, ANN)
        assert outcomes == []
        inbox.reject(asked, ANN)
    other.close()
    store.close()


@guarantee("G1")
@guarantee("G4")
@pytest.mark.parametrize("status", [Status.PENDING, Status.REJECTED, Status.EXPIRED])
def test_a_status_that_was_set_to_approved_by_hand_runs_nothing_and_shows_in_the_audit(
    path: Path, status: Status
) -> None:
    clock = ManualClock()
    store = open_store(path, clock=clock)
    gate, inbox = Gate(store=store, policy=POLICY), Inbox(store=store, policy=POLICY)
    asked = gate.open(action())
    if status is Status.REJECTED:
        inbox.reject(asked, ANN)
    if status is Status.EXPIRED:
        clock.advance(301)
        gate.settle(asked.id)
    store.close()
    change(path, "UPDATE approvals SET status = 'approved' WHERE id = ?", asked.id)
    store = open_store(path, clock=clock)
    with pytest.raises(Exception, match="no decisions stand behind it"):
        Gate(store=store, policy=POLICY).claim(asked.id)
    report = verify(store.entries(), heads=store.heads(), statuses=store.statuses())
    assert not report.holds("completeness")
    store.close()


@guarantee("G3")
def test_a_row_that_was_put_back_from_done_does_not_run_again(path: Path) -> None:
    store = open_store(path)
    gate, inbox = Gate(store=store, policy=POLICY), Inbox(store=store, policy=POLICY)
    asked = gate.open(action())
    inbox.approve(asked, ANN)
    gate.complete(gate.claim(asked.id))
    store.close()
    change(path, "UPDATE approvals SET status = 'approved' WHERE id = ?", asked.id)
    store = open_store(path)
    with pytest.raises(Exception, match=r"gives no right|no decisions stand"):
        Gate(store=store, policy=POLICY).claim(asked.id)
    store.close()


@guarantee("G7")
@pytest.mark.parametrize("statement", ["UPDATE entries SET kind = 'approved'", "DELETE FROM entries"])
def test_the_file_itself_refuses_to_change_its_audit(path: Path, statement: str) -> None:
    filled(path)
    with pytest.raises(sqlite3.IntegrityError, match="audit entries are never"):
        change(path, statement)


@guarantee("G7")
@pytest.mark.parametrize(
    ("statement", "question"),
    [
        ("UPDATE entries SET kind = 'approved' WHERE seq = 2", "integrity"),
        ("UPDATE entries SET at = at - 1 WHERE seq = 2", "integrity"),
        ("UPDATE entries SET body = replace(body, 'assistant', 'somebody') WHERE seq = 2", "integrity"),
        ("UPDATE entries SET hash = zeroblob(32) WHERE seq = 2", "integrity"),
        ("UPDATE entries SET n = 5 - n WHERE seq IN (2, 3)", "integrity"),
        ("DELETE FROM entries WHERE seq = 2", "integrity"),
        ("DELETE FROM entries WHERE seq = 4", "completeness"),
        ("DELETE FROM approvals WHERE seq = 4", "integrity"),
        ("UPDATE chains SET n = 3", "completeness"),
    ],
)
def test_what_is_changed_in_spite_of_that_is_found(path: Path, statement: str, question: str) -> None:
    filled(path, 4)
    change(path, "DROP TRIGGER entries_never_change")
    change(path, "DROP TRIGGER entries_never_go")
    change(path, statement)
    store: Store = open_store(path)
    report = verify(store.entries(), heads=store.heads(), statuses=store.statuses())
    assert not report.holds(question), report.findings
    store.close()
