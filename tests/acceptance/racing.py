"""Two who do something to the same approvals at the same moment, as threads or as processes."""

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol, cast

from sayso import Gate, Inbox, ManualClock, Person, open_store
from sayso.errors import SaysoError
from sayso.stores import Store
from sayso.worker import sweep
from tests.builders import POLICY, action

ANN = Person(id="ann", session="s1")
BEN = Person(id="ben", session="s2")

multi = multiprocessing.get_context("forkserver")
multi.set_forkserver_preload(["tests.acceptance.racing"])


class Barrier(Protocol):
    """Where all racers wait for each other."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait until all are there."""
        ...


class Racer:
    """Somebody on a store who does one thing to each approval in turn.

    Args:
        store: The store.
        deed: What they do: the name of a method.
    """

    def __init__(self, store: Store, deed: str) -> None:
        self.store = store
        self.gate = Gate(store=store, policy=POLICY, name=f"gate of a {deed}")
        self.inbox = Inbox(store=store, policy=POLICY)
        self._deed: Callable[[str], object] = getattr(self, deed)

    def run(self, names: Sequence[str], barrier: Barrier) -> list[str]:
        """Do it to each, all racers at once; return `ok` or the error's name for each."""
        return [self._once(name, barrier) for name in names]

    def _once(self, name: str, barrier: Barrier) -> str:
        barrier.wait(30)
        try:
            self._deed(name)
        except SaysoError as error:
            return type(error).__name__
        return "ok"

    def approve(self, name: str) -> None:
        """Say yes."""
        self.inbox.approve(self.inbox.get(name), ANN)

    def reject(self, name: str) -> None:
        """Say no."""
        self.inbox.reject(self.inbox.get(name), BEN, "no")

    def withdraw(self, name: str) -> None:
        """Take the request back."""
        self.gate.withdraw(name)

    def expire(self, name: str) -> None:
        """Let silence count, if the deadline has passed."""
        sweep(self.store)

    def lapse(self, name: str) -> None:
        """Call the outcome unknown, if the lease is over."""
        sweep(self.store)

    def claim(self, name: str) -> None:
        """Take the permit and hand it back as used."""
        self.gate.claim(name, action(call_id="any"))

    def complete(self, name: str) -> None:
        """Report a run that was started before the race."""
        approval = self.store.get(name)
        assert approval.permit is not None
        settlement = self.gate.settle(name)
        assert settlement is not None
        self.gate.complete(replace(settlement, permit=approval.permit))

    def reconcile(self, name: str) -> None:
        """Say that it did not run."""
        self.inbox.reconcile(name, BEN, ran=False)


@dataclass(frozen=True, kw_only=True)
class Course:
    """Where and when a race is run."""

    folder: Path
    now: int

    def opened(self) -> Store:
        """Open the store, as each process of a race does."""
        return open_store(self.folder / "sayso.db", clock=ManualClock(self.now))


def by_threads(stores: Sequence[Store], deeds: Sequence[str], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Race in threads, each on its own of the stores; return the outcomes of each approval."""
    barrier = threading.Barrier(len(deeds))
    outcomes: list[list[str]] = [[] for _ in deeds]

    def run(place: int) -> None:
        outcomes[place] = Racer(stores[place], deeds[place]).run(names, barrier)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(deeds))]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    return list(zip(*outcomes, strict=True))


def by_processes(course: Course, deeds: Sequence[str], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Race in processes; return the outcomes of each approval."""
    barrier = multi.Barrier(len(deeds))
    pipes = [multi.Pipe(duplex=False) for _ in deeds]
    racers = [
        multi.Process(target=_in_process, args=(course, deed, names, barrier, pipe[1]))
        for deed, pipe in zip(deeds, pipes, strict=True)
    ]
    for each in racers:
        each.start()
    outcomes = [_received(pipe[0]) for pipe in pipes]
    for each in racers:
        each.join(10)
        each.close()
    for ours, theirs in pipes:
        ours.close()
        theirs.close()
    return list(zip(*outcomes, strict=True))


def _received(pipe: Connection) -> list[str]:
    return cast("list[str]", pipe.recv()) if pipe.poll(60) else []


def _in_process(course: Course, deed: str, names: Sequence[str], barrier: Barrier, pipe: Connection) -> None:
    store = course.opened()
    pipe.send(Racer(store, deed).run(names, barrier))
    store.close()
