"""Several processes on one file: one winner, one permit, and nobody left waiting."""

import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import pytest

from sayso import Gate, Inbox, ManualClock, open_store
from sayso.approvals import Status
from sayso.audit import verify
from sayso.clock import elapsed
from sayso.errors import ClaimRefused, OutcomeUnknown, StoreError
from sayso.stores import Store
from sayso.worker import run_once
from tests.builders import ANN, POLICY, T0, action, soon
from tests.guarantees import guarantee
from tests.integration.processes import (
    answer,
    claim,
    decide,
    end_all,
    run_and_die,
    start,
    wait,
    write_until_killed,
    write_without_room,
)

RACERS = 5


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The file all processes share."""
    return str(tmp_path / "sayso.db")


@pytest.fixture(autouse=True)
def processes() -> Iterator[None]:
    """End whatever a test started."""
    yield
    end_all()


@pytest.fixture
def store(path: str) -> Iterator[Store]:
    """This process's opening of it."""
    made = open_store(path)
    yield made
    made.close()


def is_sound(store: Store) -> bool:
    report = verify(store.entries(), heads=store.heads(), statuses=store.statuses())
    assert report.sound, report.findings
    return True


@guarantee("G3")
def test_of_deciders_in_several_processes_exactly_one_wins(store: Store, path: str) -> None:
    asked = Gate(store=store, policy=POLICY).open(action())
    racers = [start(decide, path, asked.id, f"p{number}") for number in range(RACERS)]
    assert {answer(pipe) for _, pipe in racers} == {"ready"}
    for _, pipe in racers:
        pipe.send("go")
    results = sorted(str(answer(pipe)) for _, pipe in racers)
    assert results == ["AlreadyDecided"] * (RACERS - 1) + ["won"]
    assert len(store.get(asked.id).decisions) == 1
    assert is_sound(store)


@guarantee("G3")
def test_of_claims_in_several_processes_exactly_one_gets_the_permit(store: Store, path: str) -> None:
    asked = Gate(store=store, policy=POLICY).open(action())
    Inbox(store=store, policy=POLICY).approve(asked, ANN)
    racers = [start(claim, path, asked.id) for _ in range(RACERS)]
    assert {answer(pipe) for _, pipe in racers} == {"ready"}
    for _, pipe in racers:
        pipe.send("go")
    assert sorted(str(answer(pipe)) for _, pipe in racers) == ["ClaimRefused"] * (RACERS - 1) + ["permit"]
    assert [entry.kind for entry in store.entries_of(asked.id)] == ["opened", "approved", "claimed"]


def _approve_what_waits(store: Store, rounds: int, pipe: Connection) -> list[float]:
    inbox = Inbox(store=store, policy=POLICY)
    took: list[float] = []
    for number in range(rounds):
        assert answer(pipe) == "asking"
        soon(lambda: inbox.page().approvals, 20)
        asked = inbox.page().approvals[0]
        assert asked.action.call_id == str(number)
        before = elapsed()
        inbox.approve(asked, ANN)
        may_run, at = cast("tuple[bool, float]", answer(pipe))
        assert may_run
        took.append(at - before)
    return took


def test_an_agent_in_another_process_is_woken_at_once(store: Store, path: str) -> None:
    rounds = 8
    _, pipe = start(wait, path, [str(number) for number in range(rounds)])
    took = _approve_what_waits(store, rounds, pipe)
    assert sorted(took)[rounds // 2] < 0.1, took
    assert sorted(took)[-2] < 0.5, took


def test_without_sockets_an_agent_in_another_process_is_still_woken(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_long = tmp_path / ("x" * 120)
    too_long.mkdir()
    monkeypatch.setenv("TMPDIR", str(too_long))
    _, pipe = start(wait, path, ["0"])
    store = open_store(path)
    try:
        (took,) = _approve_what_waits(store, 1, pipe)
        assert took < 10
    finally:
        store.close()


@guarantee("G3")
@guarantee("G9")
def test_what_was_running_when_its_process_was_killed_is_unknown_and_never_runs_again(path: str) -> None:
    clock = ManualClock(T0)
    store = open_store(path, clock=clock)
    gate, inbox = Gate(store=store, policy=POLICY), Inbox(store=store, policy=POLICY)
    asked = gate.open(action())
    inbox.approve(asked, ANN)
    process, pipe = start(run_and_die, path, asked.id)
    assert answer(pipe) == "running"
    process.join(10)
    assert process.exitcode == -signal.SIGKILL
    with pytest.raises(ClaimRefused):
        gate.claim(asked.id)
    permit = inbox.get(asked.id).permit
    assert permit is not None
    clock.advance((permit.until - clock.now()) / 1000 + 1)
    assert run_once(store).unknown == 1
    with pytest.raises(OutcomeUnknown):
        gate.claim(asked.id)
    assert is_sound(store)
    store.close()


@guarantee("G9")
def test_nothing_that_was_stored_is_lost_when_its_process_is_killed(path: str) -> None:
    process, pipe = start(write_until_killed, path)
    told = [str(answer(pipe)) for _ in range(150)]
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(10)
    while pipe.poll(0):
        try:
            told.append(str(pipe.recv()))
        except EOFError:
            break
    store = open_store(path)
    kept = store.statuses()
    assert set(told) <= kept.keys()
    assert len(kept) <= len(told) + 1
    assert is_sound(store)
    store.close()


@guarantee("G9")
@guarantee("G10")
def test_a_store_that_cannot_grow_refuses_loses_nothing_and_goes_on_once_it_can(path: str) -> None:
    process, pipe = start(write_without_room, path)
    refused, stored = cast("tuple[StoreError | None, list[str]]", answer(pipe, 60))
    process.join(10)
    assert isinstance(refused, StoreError)
    assert "nothing was saved" in str(refused)
    store = open_store(path)
    assert sorted(store.statuses()) == sorted(stored)
    assert {store.get(each).status for each in stored} == {Status.PENDING}
    assert is_sound(store)
    store.close()
