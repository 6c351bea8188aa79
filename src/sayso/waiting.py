"""How agents wait: one registry and one deadline heap per store, however many wait.

A waiting agent is an entry here and nothing more; no thread, no timer. It is woken when its
approval changes, in any process, or when its deadline passes. Nothing is decided here.
"""

import asyncio
import heapq
import itertools
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from sayso.approvals import Approval, Status
from sayso.clock import Clock, Millis
from sayso.decisions import Change
from sayso.errors import SaysoError
from sayso.stores.base import Changed, Store, Write

LONGEST_SLEEP = 60.0
"""How long to sleep at most for a deadline, in seconds."""


class Waiter(Protocol):
    """One agent that waits for one approval, ready to run it the moment it is approved."""

    holder: str

    def wake(self, approval: Approval | None) -> None:
        """Let the agent go on."""
        ...


W = TypeVar("W", bound=Waiter)


class Waiting:
    """Everybody who waits on one store."""

    def __init__(self, store: Store) -> None:
        self._store = weakref.ref(store)
        self._clock: Clock = store.clock
        self._waiters: dict[str, list[Waiter]] = {}
        self._heap: list[tuple[Millis, int, str]] = []
        self._count = itertools.count()
        self._moved = threading.Condition()
        self._thread: threading.Thread | None = None
        store.subscribe(self._changed)
        self._clock.on_change(self._stir)

    def add(self, approval_id: str, deadline: Millis, waiter: Waiter) -> None:
        """Register an agent until it is woken or removed."""
        with self._moved:
            self._waiters.setdefault(approval_id, []).append(waiter)
            self._push(approval_id, deadline)

    def wake_after(self, approval_id: str, deadline: Millis) -> None:
        """Wake whoever waits for this approval after another deadline than they came with."""
        with self._moved:
            self._push(approval_id, deadline)

    def _push(self, approval_id: str, deadline: Millis) -> None:
        heapq.heappush(self._heap, (deadline, next(self._count), approval_id))
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name="sayso-deadlines", daemon=True)
            self._thread.start()
        elif self._heap[0][2] == approval_id:
            self._moved.notify()

    def remove(self, approval_id: str, waiter: Waiter) -> None:
        """Forget an agent that no longer waits."""
        with self._moved:
            waiters = self._waiters.get(approval_id, [])
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters:
                self._waiters.pop(approval_id, None)

    def holder(self, approval_id: str) -> str:
        """Return who waits for this approval in this process and would run it, or nothing."""
        waiters = self._waiters.get(approval_id)
        return waiters[0].holder if waiters else ""

    def _changed(self, changed: Changed) -> None:
        for approval_id, approval in changed.items():
            if approval_id not in self._waiters:
                continue
            found = approval or self._look(approval_id)
            if found is not None and found.status is Status.PENDING:
                continue
            self._wake(approval_id, found)

    def _look(self, approval_id: str) -> Approval | None:
        """Read what another process changed: an agent is woken once, so never for half a quorum."""
        store = self._store()
        with suppress(SaysoError):  # the agent finds the fault itself
            return store.get(approval_id) if store else None
        return None

    def _wake(self, approval_id: str, approval: Approval | None) -> None:
        with self._moved:
            waiters = self._waiters.pop(approval_id, [])
        for waiter in waiters:
            waiter.wake(approval)

    def _stir(self) -> None:
        with self._moved:
            self._moved.notify()

    def _serve(self) -> None:
        """Wake whoever's deadline has passed; sleep until the next one otherwise."""
        while True:
            with self._moved:
                while self._heap and self._heap[0][2] not in self._waiters:
                    heapq.heappop(self._heap)
                due: list[str] = []
                # A decision at the deadline itself still counts, so wake one millisecond later.
                while self._heap and self._clock.seconds_until(self._heap[0][0] + 1) == 0:
                    due.append(heapq.heappop(self._heap)[2])
                if not self._heap and not due:
                    self._thread = None
                    return
                if not due:
                    self._moved.wait(_capped(self._clock.seconds_until(self._heap[0][0] + 1)))
                    continue
            for approval_id in due:
                self._wake(approval_id, None)


def _capped(seconds: float | None) -> float | None:
    """Look at the clock again now and then: it may be set forward, or the machine may have slept."""
    return None if seconds is None else min(seconds, LONGEST_SLEEP)


_ALL: "weakref.WeakKeyDictionary[Store, Waiting]" = weakref.WeakKeyDictionary()
_ALL_LOCK = threading.Lock()


def waiting_on(store: Store) -> Waiting:
    """Return the one registry of a store in this process."""
    found = _ALL.get(store)
    if found is None:
        with _ALL_LOCK:
            found = _ALL.get(store)
            if found is None:
                found = _ALL[store] = Waiting(store)
    return found


class Ticket(Generic[W]):
    """A place in the registry, taken before the approval is stored so that no answer is missed.

    Args:
        waiting: The registry.
        approval_id: The approval waited for.
        deadline: When to wake without an answer, in milliseconds since the epoch.
        waiter: Who waits.
    """

    __slots__ = ("_approval_id", "_deadline", "_waiting", "waiter")

    def __init__(self, waiting: Waiting, approval_id: str, deadline: Millis, waiter: W) -> None:
        self._waiting = waiting
        self._approval_id = approval_id
        self._deadline = deadline
        self.waiter = waiter
        waiting.add(approval_id, deadline, waiter)

    def wake_after(self, deadline: Millis) -> None:
        """Wake after this deadline instead."""
        if deadline != self._deadline:
            self._deadline = deadline
            self._waiting.wake_after(self._approval_id, deadline)

    def drop(self) -> None:
        """Give the place up."""
        self._waiting.remove(self._approval_id, self.waiter)


class ThreadWaiter:
    """An agent that waits in its own thread."""

    __slots__ = ("_approval", "_event", "holder")

    def __init__(self, holder: str) -> None:
        self.holder = holder
        self._event = threading.Event()
        self._approval: Approval | None = None

    def wake(self, approval: Approval | None) -> None:
        """Let the thread go on."""
        self._approval = approval
        self._event.set()

    def wait(self) -> Approval | None:
        """Block until woken."""
        self._event.wait()
        return self._approval


class LoopWaiter:
    """An agent that waits in an event loop."""

    __slots__ = ("_approval", "_flag", "holder")

    def __init__(self, holder: str) -> None:
        self.holder = holder
        self._flag = flag()
        self._approval: Approval | None = None

    def wake(self, approval: Approval | None) -> None:
        """Let the task go on."""
        self._approval = approval
        self._flag.set()

    async def wait(self) -> Approval | None:
        """Suspend the task until woken."""
        await self._flag.wait()
        return self._approval


async def send(store: Store, write: Write) -> Change:
    """Queue a write and suspend the task until it is on disk.

    Raises:
        BaseException: Whatever the write ended with.
    """
    landed = flag()
    outcomes: list[Change | BaseException] = []

    def done(outcome: Change | BaseException) -> None:
        outcomes.append(outcome)
        landed.set()

    store.submit(write, done, landed.loop)
    await landed.wait()
    outcome = outcomes[0]
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


class Flag(Protocol):
    """Set once from any thread, awaited once in the loop that made it.

    Attributes:
        loop: That loop, where it is asyncio's.
    """

    loop: asyncio.AbstractEventLoop | None

    def set(self) -> None:
        """Let the waiting task go on."""
        ...

    async def wait(self) -> None:
        """Suspend until set."""
        ...


def flag() -> Flag:
    """Return a flag for the running event loop, asyncio's or trio's."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return _TrioFlag()
    return _AsyncioFlag(loop)


class _AsyncioFlag:
    __slots__ = ("_future", "_hand", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._future: asyncio.Future[None] = loop.create_future()
        self.loop: asyncio.AbstractEventLoop | None = loop
        hand = _HANDS.get(loop)
        if hand is None:
            hand = _HANDS[loop] = Hand(_call_soon_in(weakref.ref(loop)))
        self._hand = hand

    def set(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            if self._hand.is_here():
                self._resolve()
            else:
                self._hand.give(self._resolve)

    def _resolve(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self) -> None:
        await self._future


class _TrioFlag:
    __slots__ = ("_event", "_finished", "_token", "loop")

    def __init__(self) -> None:
        import trio  # noqa: PLC0415 - only where trio is what runs

        self.loop: asyncio.AbstractEventLoop | None = None

        self._event = trio.Event()
        self._token = trio.lowlevel.current_trio_token()
        self._finished = trio.RunFinishedError

    def set(self) -> None:
        with suppress(self._finished):  # the run is over, so nobody waits
            self._token.run_sync_soon(self._event.set)

    async def wait(self) -> None:
        await self._event.wait()


class Hand:
    """Carries wakes from other threads into one event loop, many in one hop.

    Calling a loop costs a system call, so everything that arrives before the loop gets round
    to it is carried at once.
    """

    __slots__ = ("_call_soon", "_items", "_lock", "_pending", "_thread")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._thread = threading.get_ident()
        self._items: list[Callable[[], None]] = []
        self._pending = False
        self._lock = threading.Lock()

    def is_here(self) -> bool:
        """Return whether this is the loop's own thread."""
        return self._thread == threading.get_ident()

    def give(self, item: Callable[[], None]) -> None:
        """Run `item` in the loop soon."""
        with self._lock:
            self._items.append(item)
            if self._pending:
                return
            self._pending = True
        self._call_soon(self._take)

    def _take(self) -> None:
        with self._lock:
            items, self._items = self._items, []
            self._pending = False
        for item in items:
            item()


def _call_soon_in(
    reference: "weakref.ref[asyncio.AbstractEventLoop]",
) -> Callable[[Callable[[], None]], object]:
    """Return how to call a loop that is not kept alive by it."""

    def call_soon(item: Callable[[], None]) -> None:
        loop = reference()
        if loop is not None:
            loop.call_soon_threadsafe(item)

    return call_soon


_HANDS: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hand]" = weakref.WeakKeyDictionary()
