"""Group commit: whoever gets the lock commits for everybody who waits.

A writer that is alone commits in its own thread, with no hop. Writers that arrive while a
commit is under way queue up, and the next one to get the lock commits all of them in one
transaction, so groups grow exactly as far as the disk is slow.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Work = TypeVar("Work")
Result = TypeVar("Result")

MAX_GROUP = 512
"""How many writes one transaction takes at most, so that none waits for an endless group."""


class Job(Generic[Work, Result]):
    """One write on its way: what to do, and what came of it."""

    __slots__ = ("done", "outcome", "work")

    def __init__(self, work: Work, done: "Callable[[Result | BaseException], None] | None" = None) -> None:
        self.work = work
        self.done = done
        self.outcome: Result | BaseException | None = None


class GroupWriter(Generic[Work, Result]):
    """Runs `commit` over groups of jobs, never two groups at once.

    Args:
        commit: Does a group in one transaction and sets every job's outcome; never raises.
        after: Called after each group, outside the lock.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Job[Work, Result]]], None],
        after: Callable[[Sequence[Job[Work, Result]]], None],
    ) -> None:
        self._commit = commit
        self._after = after
        self._queue: deque[Job[Work, Result]] = deque()
        self._lock = threading.Lock()
        self._wanted = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, work: Work) -> Result:
        """Do one write, alone or with whoever else waits, and return its result.

        Raises:
            BaseException: Whatever the write ended with.
        """
        job: Job[Work, Result] = Job(work)
        self._queue.append(job)
        while job.outcome is None:
            self._lead()
        return _result(job.outcome)

    def run_many(self, works: Sequence[Work]) -> list[Result | BaseException]:
        """Do many writes and return what came of each."""
        jobs: list[Job[Work, Result]] = [Job(work) for work in works]
        self._queue.extend(jobs)
        for job in jobs:
            while job.outcome is None:
                self._lead()
        return [job.outcome for job in jobs if job.outcome is not None]

    def submit(self, work: Work, done: "Callable[[Result | BaseException], None]") -> None:
        """Queue one write for the writer thread; `done` is called from there."""
        self._queue.append(Job(work, done))
        if self._thread is None:
            self._start()
        self._wanted.release()

    def close(self) -> None:
        """Finish what is queued and stop the writer thread."""
        self._closed = True
        if self._thread is not None:
            self._wanted.release()
            self._thread.join()
            self._thread = None
        while self._queue:
            self._lead()

    def _lead(self) -> None:
        """Take the lock, then commit everything that is queued by now, up to one group."""
        with self._lock:
            group = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_GROUP))]
            if group:
                self._commit(group)
        if group:
            self._after(group)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._serve, name="sayso-writer", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while True:
            self._wanted.acquire()
            if self._queue:
                self._lead()
            elif self._closed:
                return


def _result(outcome: "Result | BaseException") -> Result:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
