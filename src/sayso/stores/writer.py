"""Group commit: whoever gets the lock commits for everybody who waits.

A writer that is alone commits in its own thread, with no hop. Writers that arrive while a
commit is under way queue up, and the next one to get the lock commits all of them in one
transaction, so groups grow exactly as far as the disk is slow.

In an event loop the statements run in the loop's own thread, because a thread beside it would
fight it for the interpreter at every statement. Only the wait for the disk is handed to a
thread, and only where the disk is slow enough to be worth the hop.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Generic, Protocol, TypeVar

from sayso.errors import StoreUnavailable

Work = TypeVar("Work")
Result = TypeVar("Result")

MAX_GROUP = 512
"""How many writes one transaction takes at most, so that none waits for an endless group."""

LOOP_GROUP = 64
"""How many writes one transaction takes at most when its statements run in an event loop."""

WORTH_A_HOP = 0.001
"""A wait for the disk of more than this, in seconds, is not done in an event loop's thread."""


class EventLoop(Protocol):
    """The two calls of an asyncio event loop that a writer needs."""

    def call_soon(self, callback: Callable[[], None], /) -> object:
        """Run something in the loop, called from within it."""
        ...

    def call_soon_threadsafe(self, callback: Callable[[], None], /) -> object:
        """Run something in the loop, called from any thread."""
        ...


class Job(Generic[Work, Result]):
    """One write on its way: what to do, and what came of it."""

    __slots__ = ("done", "is_over", "outcome", "work")

    def __init__(self, work: Work, done: "Callable[[Result | BaseException], None] | None" = None) -> None:
        self.work = work
        self.done = done
        self.outcome: Result | BaseException | None = None
        self.is_over = False

    def end(self, outcome: "Result | BaseException | None") -> None:
        """Set what came of it."""
        self.outcome = outcome
        self.is_over = True


class Transactions(Protocol[Work, Result]):
    """What the writer drives: one transaction at a time, for a group of jobs."""

    def start(self, jobs: Sequence[Job[Work, Result]], *, wait: bool) -> bool:
        """Begin and run every statement; False when another program is writing and `wait` is not set."""
        ...

    def finish(self, jobs: Sequence[Job[Work, Result]]) -> None:
        """Commit, and set every job's outcome; never raises."""
        ...

    def after(self, jobs: Sequence[Job[Work, Result]]) -> None:
        """Tell whoever waits; called outside the lock."""
        ...


class GroupWriter(Generic[Work, Result]):
    """Runs transactions over groups of jobs, never two at once.

    Args:
        transactions: What runs them.

    Attributes:
        lock: Held from the start of a transaction to its end.
    """

    def __init__(self, transactions: Transactions[Work, Result]) -> None:
        self._transactions = transactions
        self._queue: deque[Job[Work, Result]] = deque()
        self.lock = threading.Lock()
        self._handed: deque[tuple[list[Job[Work, Result]], bool]] = deque()
        self._wanted = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._closed = False
        self._scheduled: set[EventLoop] = set()
        self._refused: set[EventLoop] = set()
        self._thread_refused = False
        self._disk_wait = 0.0

    def run(self, work: Work) -> Result | None:
        """Do one write, alone or with whoever else waits, and return its result.

        Raises:
            BaseException: Whatever the write ended with.
        """
        job: Job[Work, Result] = Job(work)
        self._queue.append(job)
        while not job.is_over:
            self._lead()
        return _result(job.outcome)

    def run_many(self, works: Sequence[Work]) -> list[Result | BaseException]:
        """Do many writes and return what came of each."""
        jobs: list[Job[Work, Result]] = [Job(work) for work in works]
        self._queue.extend(jobs)
        for job in jobs:
            while not job.is_over:
                self._lead()
        return [job.outcome for job in jobs if job.outcome is not None]

    def submit(
        self, work: Work, done: "Callable[[Result | BaseException], None]", loop: EventLoop | None = None
    ) -> None:
        """Queue one write and return at once.

        Args:
            work: The write.
            done: Called with its result, from the event loop or from the writer thread.
            loop: The event loop this is called from, where it is asyncio's.
        """
        self._queue.append(Job(work, done))
        if loop is None:
            self._wake_thread()
        else:
            self._lead_soon(loop)
        if self._closed:
            self._drain()

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Hold the lock for something else, and wake whoever was refused it meanwhile."""
        try:
            with self.lock:
                yield
        finally:
            self._pass_on()

    def close(self) -> None:
        """Finish what is queued and stop the writer thread."""
        self._closed = True
        self._drain()
        thread = self._thread
        if thread is not None:
            self._wanted.release()
            thread.join()
        self._drain()

    def _drain(self) -> None:
        while self._queue:
            self._lead()

    def _lead(self) -> None:
        """Take the lock, then commit everything that is queued by now, up to one group."""
        group: list[Job[Work, Result]] = []
        try:
            with self.lock:
                group = self._take(MAX_GROUP)
                if group:
                    self._transactions.start(group, wait=True)
                    self._transactions.finish(group)
        finally:
            _end_interrupted(group)
            self._pass_on()
            if group:
                self._transactions.after(group)

    def _lead_soon(self, loop: EventLoop) -> None:
        """Lead in an event loop once it gets round to it; each loop for itself, as another may stand still."""
        if loop not in self._scheduled:
            self._scheduled.add(loop)
            loop.call_soon(partial(self._lead_in_loop, loop))

    def _lead_in_loop(self, loop: EventLoop) -> None:
        """Do the same from an event loop's thread, never waiting for a lock, a program or a slow disk."""
        self._refused.add(loop)  # said before the attempt, so that no release in between is missed
        if not self.lock.acquire(blocking=False):
            return
        self._refused.discard(loop)
        self._scheduled.discard(loop)
        group = self._take(LOOP_GROUP)
        if not group:
            self.lock.release()
            self._pass_on()
        elif not self._transactions.start(group, wait=False):
            self._hand_over(group, started=False)
        elif self._disk_wait > WORTH_A_HOP:
            self._hand_over(group, started=True)
        else:
            self._finish(group)
        if self._queue:
            self._lead_soon(loop)

    def _finish(self, group: list[Job[Work, Result]]) -> None:
        """Commit a started group, let go of the lock and tell; remember how slow the disk is."""
        before = perf_counter()
        try:
            self._transactions.finish(group)
        finally:
            self.lock.release()
        self._disk_wait += (perf_counter() - before - self._disk_wait) / 8
        self._pass_on()
        self._transactions.after(group)

    def _pass_on(self) -> None:
        """After the lock was released, wake whoever was refused it and cannot block."""
        while self._refused:
            loop = self._refused.pop()
            try:
                loop.call_soon_threadsafe(partial(self._lead_in_loop, loop))
            except RuntimeError:  # that loop is closed; what it queued is still to be done
                self._scheduled.discard(loop)
                self._wake_thread()
        if self._thread_refused:
            self._thread_refused = False
            self._wanted.release()

    def _take(self, most: int) -> list[Job[Work, Result]]:
        return [self._queue.popleft() for _ in range(min(len(self._queue), most))]

    def _hand_over(self, group: list[Job[Work, Result]], *, started: bool) -> None:
        """Leave a group, and with it the lock, to the writer thread."""
        self._handed.append((group, started))
        self._wake_thread()

    def _wake_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name="sayso-writer", daemon=True)
            self._thread.start()
        self._wanted.release()

    def _serve(self) -> None:
        """Finish what is handed over, else lead; never block on the lock, which may be handed over next."""
        while True:
            self._wanted.acquire()
            if self._handed:
                group, started = self._handed.popleft()
                if not started:
                    self._transactions.start(group, wait=True)
                self._finish(group)
            elif self._queue:
                self._lead_in_thread()
            elif self._closed:
                return

    def _lead_in_thread(self) -> None:
        self._thread_refused = True
        if not self.lock.acquire(blocking=False):
            return
        self._thread_refused = False
        group = self._take(MAX_GROUP)
        if group:
            self._transactions.start(group, wait=True)
            self._finish(group)
        else:
            self.lock.release()
            self._pass_on()
        if self._queue:
            self._wanted.release()


def _end_interrupted(group: Sequence[Job[Work, Result]]) -> None:
    """End what an interrupt left in the middle, such as Ctrl-C, so that no other thread waits for ever."""
    for job in group:
        if not job.is_over:
            job.end(
                StoreUnavailable(
                    "the write was interrupted", hint="look whether it was saved before you try again"
                )
            )


def _result(outcome: "Result | BaseException | None") -> Result | None:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
