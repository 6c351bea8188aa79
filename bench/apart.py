"""Measures that need a fresh process for each figure."""

import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TypeAlias

from bench import floors
from bench.harness import Measure, Step
from bench.work import fresh_path

SETTLE = 0.003
"""How long an agent gets to fall asleep before it is woken, in seconds."""

Approver: TypeAlias = Callable[[Path], AbstractContextManager[Callable[[str], Step]]]
"""Opens a person's side of a file; given an id it looks at the request and returns the decision."""


def waiters(kind: str, figure: str, folder: Path, count: int) -> Measure:
    """Return a measure of `bytes` per waiting agent, or of the seconds to `wake` them all."""

    def measure() -> float:
        command = _child("waiters", kind, str(folder), str(count))
        done = subprocess.run(command, check=True, capture_output=True, timeout=600)  # noqa: S603 - our own script
        return float(json.loads(done.stdout)[figure])

    return measure


def woken(kind: str, folder: Path, approver: Approver, cycles: int) -> Measure:
    """Return a measure of the median seconds from a decision to the agent in another process."""

    def measure() -> float:
        with fresh_path(folder, "bell") as path:
            command = _child("listen", kind, str(path), str(cycles))
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603 - our own script
                assert child.stdout is not None
                times = _rounds(child.stdout, path, approver, cycles)
        return statistics.median(times[cycles // 3 :]) / 1e9

    return measure


def _rounds(said: IO[str], path: Path, approver: Approver, cycles: int) -> list[int]:
    times: list[int] = []
    named = said.readline().strip()
    with approver(path) as look:
        for _ in range(cycles):
            decide = look(named)
            time.sleep(SETTLE)
            start = time.perf_counter_ns()
            decide()
            times.append(int(said.readline()) - start)
            named = said.readline().strip()
    return times


@contextmanager
def floor_approver(path: Path) -> Generator[Callable[[str], Step]]:
    """Decide in one flushed commit, then ring with one datagram."""
    floor = floors.FileFloor(path)
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def decide(named: str) -> None:
        floor.commit(floor.approved(named))
        bell.sendto(b"1", str(path.with_suffix(".bell")))

    yield lambda named: partial(decide, named)
    bell.close()
    floor.close()


def _child(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bench.children", *arguments]
