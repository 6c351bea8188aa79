"""Faults in the middle of a write: an interrupt, a refused statement, a file that is being made.

The write fails; the store goes on, and what others wait for comes about.
"""

import sqlite3
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TypeAlias

import pytest

import sayso
from sayso import Approval, Gate, Inbox, ManualClock, Status
from sayso.audit import verify
from sayso.errors import StoreError, StoreUnavailable
from sayso.stores import Store, open_store
from sayso.stores.writer import GroupWriter, Job
from sayso.worker import run_once
from tests.builders import ANN, POLICY, T0, action

STORES = f"{Path(sayso.__file__).parent}/stores/"
Trace: TypeAlias = Callable[[FrameType, str, object], "Trace | None"]


class Interrupt:
    """Raises KeyboardInterrupt, as Ctrl-C does, before one line of the stores is executed.

    Args:
        line: Which one, from 1; 0 never.
    """

    def __init__(self, line: int) -> None:
        self._line = line
        self.lines: list[tuple[str, int]] = []

    def around(self, work: Callable[[], object]) -> None:
        """Do some work, interrupted."""
        sys.settrace(self._enter)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, argument: object) -> Trace | None:
        return self._step if frame.f_code.co_filename.startswith(STORES) else None

    def _step(self, frame: FrameType, event: str, argument: object) -> Trace:
        if event == "line":
            self.lines.append((frame.f_code.co_filename, frame.f_lineno))
            if len(self.lines) == self._line:
                raise KeyboardInterrupt
        return self._step


def whole_run(store: Store, call_id: str) -> Approval:
    gate, inbox = Gate(store=store, policy=POLICY), Inbox(store=store, policy=POLICY)
    asked = gate.open(action(call_id=call_id))
    inbox.approve(asked, ANN)
    gate.complete(gate.claim(asked.id))
    return store.get(asked.id)


def interrupted(folder: Path, line: int) -> list[tuple[str, int]]:
    """Interrupt one run before a line, then check that the next one goes through."""
    store = open_store(folder / f"{line}.db", clock=ManualClock(T0))
    whole_run(store, "first")
    interrupt = Interrupt(line)
    interrupt.around(lambda: whole_run(store, "second"))
    assert whole_run(store, "third").status is Status.DONE
    assert verify(store.entries(), heads=store.heads(), statuses=store.statuses()).sound
    store.close()
    return interrupt.lines


@pytest.mark.guarantee("G9")
@pytest.mark.guarantee("G10")
def test_an_interrupt_before_any_line_of_a_write_leaves_a_store_that_goes_on(tmp_path: Path) -> None:
    lines = interrupted(tmp_path, 0)
    # Each line the first time: Python traces a `with` again as it is left, where no interrupt can come.
    first = {line: number for number, line in reversed(list(enumerate(lines, start=1)))}
    for line, number in first.items():
        try:
            interrupted(tmp_path, number)
        except BaseException as error:
            error.add_note(f"interrupted before line {line[1]} of {line[0]}")
            raise


class Stopped:
    """Transactions whose commit is interrupted."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def start(self, jobs: Sequence[Job[str, str]], *, wait: bool) -> bool:
        """Begin."""
        return True

    def finish(self, jobs: Sequence[Job[str, str]]) -> None:
        """Commit, and never get that far."""
        raise KeyboardInterrupt

    def after(self, jobs: Sequence[Job[str, str]]) -> None:
        """Tell."""
        self.told += [job.outcome for job in jobs if job.is_over]


def test_an_interrupt_of_the_thread_that_commits_leaves_no_other_waiting() -> None:
    stopped = Stopped()
    with pytest.raises(KeyboardInterrupt):
        GroupWriter(stopped).run_many(["mine", "another's"])
    assert [type(each) for each in stopped.told] == [StoreUnavailable, StoreUnavailable]


def test_a_notice_that_cannot_be_marked_as_told_stops_no_later_write(tmp_path: Path) -> None:
    store = open_store(tmp_path / "sayso.db", clock=ManualClock(T0))
    gate = Gate(store=store, policy=POLICY)
    gate.open(action(call_id="before"))
    with sqlite3.connect(tmp_path / "sayso.db") as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON cursors BEGIN SELECT RAISE (ABORT, 'no'); END")
    with pytest.raises(StoreError):
        run_once(store)
    assert gate.open(action(call_id="after")).status is Status.PENDING
    other.close()
    store.close()


def test_a_store_waits_for_another_program_that_makes_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "sayso.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    timer = threading.Timer(0.2, lambda: other.execute("ROLLBACK"))
    timer.start()
    open_store(path, clock=ManualClock(T0)).close()
    timer.join()
    other.close()
