"""Group commit: everybody's write is done once, in order, whoever leads and whatever breaks."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from sayso.stores.writer import GroupWriter, Job
from tests.builders import soon


class Ledger:
    """Transactions that only note down what was committed, and break where they are told to."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.told: list[int] = []
        self.slow = threading.Event()
        self.slow.set()
        self.begun = threading.Event()
        self.breaks_after = 0
        self.busy = 0

    def start(self, jobs: Sequence[Job[int, str]], *, wait: bool) -> bool:
        if self.busy and not wait:
            self.busy -= 1
            return False
        self.begun.set()
        assert self.slow.wait(10)
        self.groups.append([job.work for job in jobs])
        return True

    def finish(self, jobs: Sequence[Job[int, str]]) -> None:
        for job in jobs:
            job.end(ValueError(job.work) if job.work < 0 else f"did {job.work}")

    def after(self, jobs: Sequence[Job[int, str]]) -> None:
        if self.breaks_after:
            self.breaks_after -= 1
            raise RuntimeError("a subscriber broke")
        for job in jobs:
            self.told.append(job.work)
            if job.done and job.outcome is not None:
                job.done(job.outcome)


@pytest.fixture
def ledger() -> Ledger:
    """What is committed."""
    return Ledger()


@pytest.fixture
def writer(ledger: Ledger) -> GroupWriter[int, str]:
    """A writer on it."""
    return GroupWriter(ledger)


def test_a_lone_write_is_done_in_its_own_thread(writer: GroupWriter[int, str], ledger: Ledger) -> None:
    before = threading.active_count()
    assert writer.run(1) == "did 1"
    assert ledger.groups == [[1]]
    assert threading.active_count() <= before
    writer.close()


def test_a_write_that_fails_raises_what_it_failed_with(writer: GroupWriter[int, str]) -> None:
    with pytest.raises(ValueError, match="-1"):
        writer.run(-1)
    outcomes = writer.run_many([1, -2, 3])
    assert [type(outcome) for outcome in outcomes] == [str, ValueError, str]


def test_writes_that_arrive_during_a_commit_share_the_next(
    writer: GroupWriter[int, str], ledger: Ledger
) -> None:
    ledger.slow.clear()
    results: list[str | None] = []

    def write(number: int) -> None:
        results.append(writer.run(number))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(20)]
    threads[0].start()
    assert ledger.begun.wait(5)
    for thread in threads[1:]:
        thread.start()
    soon(lambda: len(writer._queue) == 19)  # pyright: ignore[reportPrivateUsage] - when all of them have arrived
    ledger.slow.set()
    for thread in threads:
        thread.join(10)
    assert sorted(results, key=str) == sorted((f"did {n}" for n in range(20)), key=str)
    assert len(ledger.groups) == 2
    assert sorted(n for group in ledger.groups for n in group) == list(range(20))


def test_submitted_writes_keep_their_order_and_report(writer: GroupWriter[int, str], ledger: Ledger) -> None:
    outcomes: list[str | BaseException] = []
    for number in range(1000):
        writer.submit(number, outcomes.append)
    writer.close()
    assert [n for group in ledger.groups for n in group] == list(range(1000))
    assert len(outcomes) == 1000


def test_what_is_submitted_after_closing_is_still_answered(writer: GroupWriter[int, str]) -> None:
    outcomes: list[str | BaseException] = []
    writer.submit(1, outcomes.append)
    writer.close()
    writer.submit(2, outcomes.append)
    soon(lambda: len(outcomes) == 2)
    writer.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_subscriber_that_breaks_stops_no_later_write(writer: GroupWriter[int, str], ledger: Ledger) -> None:
    outcomes: list[str | BaseException] = []
    ledger.breaks_after = 1
    writer.submit(1, outcomes.append)
    soon(lambda: ledger.breaks_after == 0)
    soon(
        lambda: (
            threading.active_count() == 1 or not any(t.name == "sayso-writer" for t in threading.enumerate())
        )
    )
    writer.submit(2, outcomes.append)
    soon(lambda: outcomes)
    writer.close()


def test_in_an_event_loop_no_thread_is_needed_while_the_disk_is_fast(
    writer: GroupWriter[int, str], ledger: Ledger
) -> None:
    outcomes: list[str | BaseException] = []

    async def agent() -> None:
        for number in range(200):
            writer.submit(number, outcomes.append, asyncio.get_running_loop())
        while len(outcomes) < 200:  # noqa: ASYNC110 - the writer is what is waited for
            await asyncio.sleep(0)

    before = threading.active_count()
    asyncio.run(asyncio.wait_for(agent(), 10))
    assert threading.active_count() <= before
    assert [n for group in ledger.groups for n in group] == list(range(200))
    writer.close()


def test_an_event_loop_is_not_held_up_by_another_program(
    writer: GroupWriter[int, str], ledger: Ledger
) -> None:
    outcomes: list[str | BaseException] = []

    async def agent() -> int:
        ledger.busy = 1
        ledger.slow.clear()
        writer.submit(1, outcomes.append, asyncio.get_running_loop())
        turns = 0
        while not ledger.begun.is_set():  # noqa: ASYNC110 - set from a thread
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
            turns += 1
        ledger.slow.set()
        while not outcomes:  # noqa: ASYNC110 - the writer is what is waited for
            await asyncio.sleep(0.001)
        return turns

    assert asyncio.run(asyncio.wait_for(agent(), 10)) == 100
    writer.close()


def test_whoever_was_refused_the_lock_is_woken_when_it_is_free(writer: GroupWriter[int, str]) -> None:
    outcomes: list[str | BaseException] = []

    async def agent() -> None:
        with writer.exclusive():
            writer.submit(1, outcomes.append, asyncio.get_running_loop())
            writer.submit(2, outcomes.append)
            for _ in range(5):
                await asyncio.sleep(0.002)
            assert outcomes == []
        while len(outcomes) < 2:  # noqa: ASYNC110 - the writer is what is waited for
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(agent(), 10))
    writer.close()


def test_threads_and_loops_together_lose_nothing(writer: GroupWriter[int, str], ledger: Ledger) -> None:
    done: list[str | BaseException] = []

    def plain(start: int) -> None:
        for number in range(start, start + 100):
            writer.run(number)
            writer.submit(number + 10_000, done.append)

    async def loop(start: int) -> None:
        for number in range(start, start + 100):
            writer.submit(number, done.append, asyncio.get_running_loop())
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)

    threads = [threading.Thread(target=plain, args=(n * 100,)) for n in range(4)]
    threads += [threading.Thread(target=asyncio.run, args=(loop(n * 100),)) for n in range(4, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    soon(lambda: len(done) == 800)
    writer.close()
    committed = sorted(n for group in ledger.groups for n in group)
    assert committed == sorted([*range(800), *range(10_000, 10_400)])
