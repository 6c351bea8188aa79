"""What the other processes of these tests do; each function runs in a process of its own."""

import os
import resource
import signal
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from sayso import Gate, Inbox, Person
from sayso.clock import elapsed
from sayso.errors import SaysoError
from sayso.stores import Open, Store, open_store
from tests.builders import POLICY, action, approval

SPAWN = get_context("spawn")
"""Processes that share nothing but the file."""

_STARTED: list[tuple[BaseProcess, Connection]] = []


def start(target: object, *args: object) -> tuple[BaseProcess, Connection]:
    """Start a process and return it with the pipe it reports through."""
    here, there = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(there, *args), daemon=True)  # pyright: ignore[reportArgumentType]
    process.start()
    there.close()
    _STARTED.append((process, here))
    return process, here


def end_all() -> None:
    """End every process that was started, and close its pipe."""
    while _STARTED:
        process, pipe = _STARTED.pop()
        pipe.close()
        if process.is_alive():
            process.terminate()
        process.join(10)
        process.close()


def answer(pipe: Connection, seconds: float = 30.0) -> object:
    """Return what a process reports next.

    Raises:
        AssertionError: It reports nothing in time.
    """
    assert pipe.poll(seconds), "the other process says nothing"
    return pipe.recv()


def decide(pipe: Connection, path: str, approval_id: str, name: str) -> None:
    """Wait for the signal, then approve as `name`; report who won, or why not."""
    inbox = Inbox(store=open_store(path), policy=POLICY)
    asked = inbox.get(approval_id)
    pipe.send("ready")
    pipe.recv()
    try:
        inbox.approve(asked, Person(id=name))
        pipe.send("won")
    except SaysoError as error:
        pipe.send(type(error).__name__)
    inbox.store.close()


def claim(pipe: Connection, path: str, approval_id: str) -> None:
    """Wait for the signal, then claim; report `permit`, or why not."""
    gate = Gate(store=open_store(path), policy=POLICY)
    pipe.send("ready")
    pipe.recv()
    try:
        pipe.send("permit" if gate.claim(approval_id).permit else "nothing")
    except SaysoError as error:
        pipe.send(type(error).__name__)
    gate.store.close()


def wait(pipe: Connection, path: str, call_ids: list[str]) -> None:
    """Ask once for each call id; report when each was answered, on the clock all processes share."""
    gate = Gate(store=open_store(path), policy=POLICY)
    gate.store.subscribe(lambda _changed: None)
    for call_id in call_ids:
        pipe.send("asking")
        settlement = gate.ask(action(call_id=call_id))
        pipe.send((settlement.may_run, elapsed()))
    gate.store.close()


def run_and_die(pipe: Connection, path: str, approval_id: str) -> None:
    """Claim, say so, and be killed before reporting how it ended."""
    gate = Gate(store=open_store(path), policy=POLICY)
    gate.claim(approval_id)
    pipe.send("running")
    os.kill(os.getpid(), signal.SIGKILL)


def write_until_killed(pipe: Connection, path: str) -> None:
    """Open approvals without end, and say of each that it was stored only once it was."""
    store = open_store(path)
    for number in range(1_000_000):
        store.write(Open(approval=approval(action(call_id=str(number)), id=f"ap{number:07}")))
        pipe.send(f"ap{number:07}")


def write_without_room(pipe: Connection, path: str) -> None:
    """Write until no file may grow any more, then again with room; report both."""
    store: Store = open_store(path)
    stored = [
        store.write(Open(approval=approval(action(call_id=str(n)), id=f"ap{n:05}"))).approval.id
        for n in range(20)
    ]
    sizes = [Path(path + end).stat().st_size for end in ("", "-wal") if Path(path + end).exists()]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) + 8192, resource.RLIM_INFINITY))
    refused: SaysoError | None = None
    for number in range(20, 20_000):
        try:
            large = action(args={"text": "x" * 50_000}, call_id=str(number))
            stored.append(store.write(Open(approval=approval(large, id=f"ap{number:05}"))).approval.id)
        except SaysoError as error:
            refused = error
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    after = store.write(Open(approval=approval(action(call_id="after"), id="apafter"))).approval.id
    pipe.send((refused, [*stored, after]))
    store.close()
