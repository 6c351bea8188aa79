"""An agent's process is killed before any line of a run, and nothing is lost or done twice (G3, G9).

The fault is exact: the process counts the lines it executes in Sayso's stores and doors, and
kills itself with SIGKILL right before the chosen one. `make prove` takes every line.
"""

import multiprocessing
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import pytest

from sayso import Approval, DecisionKind, ManualClock, Status, open_store
from sayso.audit import verify
from sayso.settlement import Settlement
from sayso.stores import Store
from sayso.worker import run_once
from tests.acceptance.agent_run import BOB, CALLS, CYD, LEASE, SHORT, Fact, Run, effects, run_in_child
from tests.builders import T0

POINTS = 60
PARTS = 40
"""In how many tests the long proofs are cut, so that several workers share them."""

PATIENCE = 60
"""How long a process may take that nobody kills, in seconds."""

LATER = T0 + (SHORT + 2) * 1000
"""When the crash is found: after the short window, within the others and every lease."""

BEGUN = {Status.RUNNING, Status.DONE, Status.UNKNOWN}

multi = multiprocessing.get_context("forkserver")
multi.set_forkserver_preload(["tests.acceptance.agent_run"])


@dataclass(kw_only=True)
class Ended:
    """How a process ended: its exit code, what Sayso acknowledged to it, the lines it executed."""

    code: int | None
    facts: list[Fact]
    lines: list[tuple[str, int]]


class Child:
    """A process that makes the runs of some threads, killed before a line of that number."""

    def __init__(self, folder: Path, threads: Sequence[str], kill_at: int = 0) -> None:
        self._pipe, theirs = multi.Pipe(duplex=False)
        self._process = multi.Process(target=run_in_child, args=(folder, threads, T0, kill_at, theirs))
        self._process.start()
        theirs.close()

    def wait(self) -> Ended:
        """Wait for its end."""
        received = list(_received(self._pipe))
        self._process.join(PATIENCE)
        code = self._process.exitcode
        if code is None:
            self._process.kill()
            self._process.join()
        self._process.close()
        self._pipe.close()
        last = received[-1] if received else None
        lines = cast("list[tuple[str, int]]", received.pop()) if isinstance(last, list) else []
        return Ended(code=code, facts=cast("list[Fact]", received), lines=lines)


def _received(pipe: Connection) -> Iterator[object]:
    while pipe.poll(PATIENCE):
        try:
            yield pipe.recv()
        except EOFError:
            return


def is_sound(store: Store) -> bool:
    report = verify(store.entries(), heads=store.heads(), statuses=store.statuses())
    assert report.sound, report.findings
    return True


def every_approval(store: Store) -> dict[str, Approval]:
    return {each: store.get(each) for each in store.statuses()}


def check_nothing_is_lost(found: dict[str, Approval], facts: Sequence[Fact], done: dict[str, str]) -> None:
    """Compare what was acknowledged with what is stored."""
    for kind, name, *rest in facts:
        approval = found[name]
        match kind:
            case "decided":
                stricter = approval.resolution is not None and approval.resolution.successor
                given = [(each.person.id, str(each.kind)) for each in approval.decisions]
                assert stricter or tuple(rest) in given, f"a decision on {name} is lost"
            case "claimed":
                assert approval.status in BEGUN, f"the start of {name} is lost"
            case "ran":
                assert name in done
            case "completed":
                assert approval.status is Status.DONE, f"the end of {name} is lost"
            case _:
                assert kind == "opened"


def check_effects(found: dict[str, Approval], done: list[tuple[str, str]]) -> None:
    """Compare what was done with what people decided."""
    assert not [each for each, times in Counter(name for name, _ in done).items() if times > 1], "done twice"
    for name, digest in done:
        approval = found[name]
        assert digest == approval.effective.digest
        assert approval.status in BEGUN
        needed = sum(count for _, count in approval.terms.quorum) or 1
        agreed = [each for each in approval.decisions if each.digest == digest]
        assert len(agreed) >= needed or approval.action.tool == "memo", f"{name} ran on nobody's word"
        assert DecisionKind.REJECT not in {each.kind for each in approval.decisions}


def check_recovery(folder: Path, threads: Sequence[str], facts: Sequence[Fact]) -> None:
    """Open what a crash left, go on, let the leases lapse, find out what ran; nothing may run twice."""
    clock = ManualClock(LATER)
    runs = [Run(folder, thread, lambda _: None, clock) for thread in threads]
    store = runs[0].store
    try:
        assert is_sound(store)
        left = every_approval(store)
        check_nothing_is_lost(left, facts, dict(effects(folder)))
        check_effects(left, effects(folder))
        started = {name for name, each in left.items() if each.status is Status.RUNNING}
        for run in runs:
            run.go()
        check_unknown(runs, clock, started, folder)
        assert is_sound(store)
    finally:
        for run in runs:
            run.store.close()


def check_unknown(runs: Sequence[Run], clock: ManualClock, started: set[str], folder: Path) -> None:
    """Let the leases of what was running lapse: it is listed as unknown and never run again."""
    store, done = runs[0].store, effects(folder)
    check_effects(every_approval(store), done)
    clock.advance(LEASE + 1)
    assert run_once(store).unknown == len(started)
    assert {each.id for each in store.page(Status.UNKNOWN).approvals} == started
    for run in runs:
        run.go()
    ran = {name for name, _ in done}
    runs[0].gate.reconcile(lambda approval: approval.id in ran)
    for run in runs:
        run.go()
    assert effects(folder) == done, "something ran again"
    ended = every_approval(store)
    for name in started:
        assert ended[name].status is (Status.DONE if name in ran else Status.FAILED)
    assert {each.status for name, each in ended.items() if name not in started} == {
        Status.DONE,
        Status.REJECTED,
        Status.WITHDRAWN,
    }
    runs_of = Counter(ended[name].action.thread for name in ran | started)
    assert set(runs_of.values()) == {6}, "an agent's run is not whole"


def first_and_last(lines: Sequence[tuple[str, int]]) -> list[int]:
    """Return the numbers at which each distinct line was executed first and last."""
    first = {line: number for number, line in reversed(list(enumerate(lines, start=1)))}
    last = {line: number for number, line in enumerate(lines, start=1)}
    return sorted({*first.values(), *last.values()})


def thinned(points: Sequence[int], count: int) -> list[int]:
    """Return some of the points, evenly."""
    return [points[place * len(points) // count] for place in range(min(count, len(points)))]


def kill_at_each(folder: Path, points: Sequence[int], lines: Sequence[tuple[str, int]]) -> None:
    for point in points:
        place = folder / str(point)
        place.mkdir()
        ended = Child(place, ["trip"], point).wait()
        assert ended.code == -signal.SIGKILL
        try:
            check_recovery(place, ["trip"], ended.facts)
        except BaseException as error:
            file, line = lines[point - 1]
            error.add_note(f"killed before line {line} of {file}, number {point} of {len(lines)}")
            raise
        shutil.rmtree(place)


@pytest.fixture
def lines(tmp_path: Path) -> list[tuple[str, int]]:
    """Every line that a whole run executes."""
    place = tmp_path / "whole"
    place.mkdir()
    ended = Child(place, ["trip"]).wait()
    assert ended.code == 0
    assert [fact[0] for fact in ended.facts].count("completed") == 6
    return ended.lines


@pytest.mark.guarantee("G3")
@pytest.mark.guarantee("G9")
def test_a_run_killed_at_any_moment_loses_nothing_and_does_nothing_twice(
    tmp_path: Path, lines: list[tuple[str, int]]
) -> None:
    kill_at_each(tmp_path, thinned(first_and_last(lines), POINTS), lines)


@pytest.mark.prove
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.guarantee("G3")
@pytest.mark.guarantee("G9")
def test_a_run_killed_before_every_single_line_loses_nothing(
    tmp_path: Path, lines: list[tuple[str, int]], part: int
) -> None:
    kill_at_each(tmp_path, range(1 + part, len(lines) + 1, PARTS), lines)


def kill_one_of_three(folder: Path, points: Sequence[int]) -> None:
    for point in points:
        place = folder / str(point)
        place.mkdir()
        victim = Child(place, ["shared", "first"], point)
        others = [Child(place, ["shared", "second"]), Child(place, ["shared", "third"])]
        ended = [each.wait() for each in (victim, *others)]
        assert [each.code for each in ended[1:]] == [0, 0], "a process died with another, or hung"
        facts = [fact for each in ended for fact in each.facts]
        check_recovery(place, ["shared", "first", "second", "third"], facts)
        shutil.rmtree(place)


@pytest.mark.guarantee("G3")
@pytest.mark.guarantee("G9")
def test_processes_on_one_file_go_on_when_one_of_them_is_killed(
    tmp_path: Path, lines: list[tuple[str, int]]
) -> None:
    kill_one_of_three(tmp_path, thinned(first_and_last(lines), 12))


@pytest.mark.prove
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.guarantee("G3")
@pytest.mark.guarantee("G9")
def test_processes_on_one_file_go_on_wherever_one_of_them_is_killed(
    tmp_path: Path, lines: list[tuple[str, int]], part: int
) -> None:
    kill_one_of_three(tmp_path, first_and_last(lines)[part::PARTS])


CUT = 997
"""How many bytes lie between two cuts: pages, frames and their headers are cut in every place."""


@dataclass(kw_only=True)
class Left:
    """The two files of a store, as a power cut would leave them."""

    main: bytes
    log: bytes

    @classmethod
    def of(cls, folder: Path) -> "Left":
        """Read them from an open store that nobody writes to."""
        return cls(main=(folder / "sayso.db").read_bytes(), log=(folder / "sayso.db-wal").read_bytes())

    def cut(self, before: "Left", at: int) -> "Left":
        """Return what is left when only the first bytes of the newest write got to the disk."""
        return Left(main=self.main, log=self.log[:at] + before.log[at:])

    def found(self, folder: Path) -> tuple[int, dict[str, Approval]]:
        """Open them as a new process does; return how many audit entries there are, and every approval."""
        folder.mkdir()
        (folder / "sayso.db").write_bytes(self.main)
        (folder / "sayso.db-wal").write_bytes(self.log)
        store = open_store(folder / "sayso.db", clock=ManualClock(LATER))
        assert is_sound(store)
        found = len(list(store.entries())), every_approval(store)
        store.close()
        shutil.rmtree(folder)
        return found


def changed_bytes(before: bytes, after: bytes) -> range:
    """Return where the first and the last byte differ."""
    longer = before.ljust(len(after), b"\0")
    differ = [
        place for place in range(0, len(after), 8) if longer[place : place + 8] != after[place : place + 8]
    ]
    return range(differ[0], differ[-1] + 8)


@pytest.mark.guarantee("G7")
@pytest.mark.guarantee("G9")
def test_a_write_cut_off_at_any_byte_is_there_whole_with_its_audit_or_not_at_all(tmp_path: Path) -> None:
    run = Run(tmp_path, "trip", lambda _: None, ManualClock(T0))
    action = run.action(CALLS[1])
    approval = run.gate.open(action)
    settlements: list[Settlement] = []
    steps: list[Callable[[], object]] = [
        lambda: run.gate.open(run.action(CALLS[0])),
        lambda: run.inbox.approve(approval, BOB),
        lambda: run.inbox.approve(approval, CYD),
        lambda: settlements.append(run.gate.claim(approval.id)),
        lambda: run.gate.complete(settlements[0]),
    ]
    cut_here = 0
    for step in steps:
        before = Left.of(tmp_path)
        step()
        after = Left.of(tmp_path)
        assert after.main == before.main
        whole = after.found(tmp_path / "whole")
        nothing = before.found(tmp_path / "nothing")
        assert whole != nothing
        for at in changed_bytes(before.log, after.log)[::CUT]:
            found = after.cut(before, at).found(tmp_path / "cut")
            assert found in (whole, nothing)
            cut_here += found == nothing
    run.store.close()
    assert cut_here > len(steps)
