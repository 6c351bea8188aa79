"""Stores filled beforehand: kept for all rounds of a row, or weighed and swept once per round."""

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from holdpoint import SQLiteStore

from bench import floors, peers, subject
from bench.harness import Measure, Step, timed
from bench.work import fresh_path, stored_bytes
from sayso import Action, ManualClock

T = TypeVar("T")
NEVER = 10**15
"""A deadline that no clock reaches, in milliseconds since the epoch."""


class Kept(Generic[T]):
    """Something slow to build: built at its first use, kept for all rounds, closed with the row.

    Args:
        kept: What closes it.
        opener: What builds it.
    """

    def __init__(self, kept: ExitStack, opener: Callable[[], AbstractContextManager[T]]) -> None:
        self._kept = kept
        self._opener = opener
        self._opened: list[T] = []

    def timed(self, step: Callable[[T], Step], count: int) -> Measure:
        """Return a measure of one of its steps."""
        return timed(partial(self._step, step), count=count)

    @contextmanager
    def _step(self, step: Callable[[T], Step]) -> Generator[Step]:
        if not self._opened:
            self._opened.append(self._kept.enter_context(self._opener()))
        yield step(self._opened[0])


@contextmanager
def sayso(folder: Path, pending: int, entries: int = 0) -> Generator[subject.Doors]:
    """Open Sayso on a file with so many pending requests or audit entries, opened again once filled."""
    with fresh_path(folder, "sayso") as path:
        filling = subject.Doors(path)
        filling.fill(pending)
        for _ in range(entries // 1000):
            filling.append()
        filling.close()
        doors = subject.Doors(path)
        yield doors
        doors.close()


@contextmanager
def floor(folder: Path, pending: int, entries: int = 0) -> Generator[floors.FileFloor]:
    """Open the floor on a file with so many pending requests or audit entries."""
    with fresh_path(folder, "floor") as path:
        filled = floors.FileFloor(path)
        filled.populate(pending, NEVER)
        for _ in range(entries // 1000):
            filled.append()
        yield filled
        filled.close()


@contextmanager
def holdpoint(folder: Path, pending: int) -> Generator[peers.Holdpoint]:
    """Open holdpoint on a file with so many pending requests, filled without flushing."""
    with fresh_path(folder, "holdpoint") as path:
        store = SQLiteStore(path)
        peers.set_synchronous(store, "OFF")
        filled = peers.Holdpoint(store)
        for _ in range(pending):
            filled.submit()
        peers.set_synchronous(store, "NORMAL")
        yield filled
        store.close()


@contextmanager
def agentbarrier(folder: Path, receipts: int) -> Generator[peers.AgentBarrier]:
    """Open AgentBarrier with so many receipts; a call that is allowed leaves three."""
    with peers.agentbarrier_on_file(folder) as barrier:
        for _ in range(receipts // 3):
            barrier.allow()
        yield barrier


def sweep_sayso(folder: Path, count: int) -> float:
    """Return seconds per expired request in a worker's sweep, each with its audit entry."""
    clock = ManualClock()
    with fresh_path(folder, "sweep") as path:
        doors = subject.Doors(path, clock=clock)
        doors.fill(count)
        clock.advance(subject.WINDOW + 1)
        took = _once(doors.sweep, count)
        doors.close()
    return took


def sweep_floor(folder: Path, count: int) -> float:
    """Return the same for the floor."""
    with fresh_path(folder, "sweep") as path:
        filled = floors.FileFloor(path)
        filled.populate(count, 1)
        took = _once(lambda: filled.sweep(2), count)
        filled.close()
    return took


def sweep_holdpoint(folder: Path, count: int) -> float:
    """Return the same for holdpoint as it ships."""
    with holdpoint(folder, count) as filled:
        filled.pass_window()
        return _once(filled.expire, count)


def bytes_sayso(folder: Path, count: int, messages: int) -> float:
    """Return stored bytes per pending request that came at the end of a conversation."""
    with fresh_path(folder, "size") as path:
        doors = subject.Doors(path)
        empty = stored_bytes(path)
        for number in range(count):
            doors.gate.open(_last_call(number, messages))
        doors.close()
        return (stored_bytes(path) - empty) / count


def bytes_floor(folder: Path, count: int) -> float:
    """Return the same for the floor."""
    with fresh_path(folder, "size") as path:
        filled = floors.FileFloor(path)
        empty = stored_bytes(path)
        filled.populate(count, NEVER)
        filled.close()
        return (stored_bytes(path) - empty) / count


def bytes_holdpoint(folder: Path, count: int) -> float:
    """Return the same for holdpoint."""
    with fresh_path(folder, "size") as path, peers.holdpoint_on_file(path, "OFF") as filled:
        empty = stored_bytes(path)
        for _ in range(count):
            filled.submit()
        return (stored_bytes(path) - empty) / count


def bytes_agentbarrier(folder: Path, count: int) -> float:
    """Return the same for AgentBarrier."""
    with peers.agentbarrier_on_file(folder) as barrier:
        path = Path(barrier.store.path)
        empty = stored_bytes(path)
        for _ in range(count):
            barrier.submit()
        return (stored_bytes(path) - empty) / count


def _last_call(number: int, messages: int) -> Action:
    """Return the call at the end of a conversation, as an adapter passes it on."""
    talk: list[str | Action] = [f"message {each}" for each in range(messages - 1)]
    talk.append(subject.action(number))
    last = talk[-1]
    assert isinstance(last, Action)
    return last


def _once(step: Callable[[], int], count: int) -> float:
    start = time.perf_counter()
    done = step()
    took = time.perf_counter() - start
    if done != count:
        raise RuntimeError(f"{done} of {count} were due")
    return took / count
