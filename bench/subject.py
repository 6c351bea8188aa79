"""Sayso doing the work of the rows, through its two doors and as a user would.

Only filling a store with very many requests goes to the store itself, many in one transaction.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Event as Signal
from threading import Thread, get_ident

from bench.harness import WALL, Step
from bench.work import FREE_TOOL, TOOL, fresh_path, request
from sayso import (
    Action,
    Approval,
    AsyncGate,
    Clock,
    Effect,
    Gate,
    Inbox,
    Outcome,
    Person,
    Policy,
    Rule,
    Status,
    Store,
    SystemClock,
    open_store,
)
from sayso.approvals import Decision, DecisionKind
from sayso.audit import verify
from sayso.clock import Millis
from sayso.decisions import Change, Event, decide
from sayso.inbox import Answer
from sayso.settling import approval_id, new_approval
from sayso.stores import Alter, Open
from sayso.worker import sweep

ANN = Person(id="ann")
THREAD_SIZE = 20
"""How many requests come from one thread."""

WINDOW = 86_400
"""How long people have, in seconds: longer than any row takes."""

PATIENCE = 120
"""How long a wave of agents may take before something must be wrong, in seconds."""


def policy(rules: int = 2, *, predicate: bool = False, window: int = WINDOW) -> Policy:
    """Return a policy of about so many rules: others, one that asks, one that needs nobody."""
    others = [Rule(tool=f"tool_{number}", effect=Effect.IRREVERSIBLE) for number in range(rules - 2)]
    ask = Rule(tool=TOOL, effect=Effect.IRREVERSIBLE, window=window)
    free = Rule(tool=FREE_TOOL, effect=Effect.READ, outcome=Outcome.ALLOW)
    if predicate:
        free = Rule(tool=FREE_TOOL, effect=Effect.READ, when=_costs_nothing)
    return Policy((*others, ask, free))


def action(number: int, tool: str = TOOL) -> Action:
    """Return the call an agent makes."""
    return Action(tool=tool, args=request(number), thread=f"t-{number // THREAD_SIZE}", call_id=f"c-{number}")


def _costs_nothing(call: Mapping[str, Mapping[str, object]]) -> bool:
    return call["args"]["amount"] == 0


class Doors:
    """A store with its gate and its inbox."""

    def __init__(self, url: str | Path, *, clock: Clock | None = None, rules: Policy | None = None) -> None:
        self.store: Store = open_store(url, clock=clock or SystemClock())
        self.policy = rules or policy()
        self.gate = Gate(store=self.store, policy=self.policy)
        self.inbox = Inbox(store=self.store, policy=self.policy)
        self.numbers = iter(range(10**9))

    def judge(self) -> None:
        """Ask about one call that needs nobody."""
        if not self.gate.ask(action(next(self.numbers), FREE_TOOL)).may_run:
            raise RuntimeError("a call that needs nobody was held")

    def cycle(self) -> None:
        """Open, decide, claim and complete one request in this thread; nobody waits."""
        approval = self.gate.open(action(next(self.numbers)))
        self.inbox.approve(approval, ANN)
        self.gate.complete(self.gate.claim(approval.id))

    def fill(self, count: int) -> None:
        """Store many pending requests in a few transactions."""
        for first in range(0, count, 500):
            writes = [
                Open(approval=self._pending(number)) for number in range(first, min(first + 500, count))
            ]
            self.store.write_many(writes)

    def middle(self, size: int) -> str:
        """Return the cursor of the page in the middle of so many requests of one rank."""
        cursor = self.inbox.page(limit=1).next or ""
        return f"{cursor.partition('-')[0]}-{size // 2}"

    def page(self, after: str = "") -> None:
        """Read a page of fifty."""
        if not self.inbox.page(after=after, limit=50).approvals:
            raise RuntimeError("the page is empty")

    def sweep(self) -> int:
        """Expire what is due."""
        return sweep(self.store)[0]

    def append(self, count: int = 1000) -> None:
        """Write down many calls that needed nobody, durably."""
        for _ in range(count):
            number = next(self.numbers)
            data = {"tool": FREE_TOOL, "digest": f"{number:064d}", "rule": FREE_TOOL}
            self.store.note(Event(kind="allowed", thread=f"t-{number // THREAD_SIZE}", by="agent", data=data))
        self.store.flush()

    def verify(self) -> None:
        """Verify the whole audit against itself and the store."""
        report = verify(self.store.entries(), heads=self.store.heads(), statuses=self.store.statuses())
        if report.findings:
            raise RuntimeError(report.findings[0].message)

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def _pending(self, number: int) -> Approval:
        call = action(number)
        verdict = self.policy.judge(call)
        if verdict.terms is None:
            raise RuntimeError(verdict.why)
        return new_approval(call, verdict, verdict.terms, self.store.clock.now())


class HeldAgent:
    """An agent that waits in its thread for each answer, and a person who decides from another."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._opened = Signal()
        self._approval_id = ""
        self._closed = False
        doors.store.subscribe(self._changed)
        self._person = Thread(target=self._decide, daemon=True)
        self._person.start()

    def step(self) -> None:
        """Ask, be decided meanwhile, run and complete."""
        gate = self._doors.gate
        gate.complete(gate.ask(action(next(self._doors.numbers))).check())

    def close(self) -> None:
        """Send the person home."""
        self._closed = True
        self._opened.set()
        self._person.join()

    def _changed(self, changed: Mapping[str, Approval | None]) -> None:
        for approval in changed.values():
            if approval is not None and approval.status is Status.PENDING:
                self._approval_id = approval.id
                self._opened.set()

    def _decide(self) -> None:
        while True:
            self._opened.wait()
            self._opened.clear()
            if self._closed:
                return
            self._doors.inbox.approve(self._doors.store.get(self._approval_id), ANN)


@contextmanager
def memory(step: Callable[[Doors], Step], rules: Policy | None = None) -> Generator[Step]:
    """Open Sayso in memory for one of its steps."""
    doors = Doors(":memory:", rules=rules)
    yield step(doors)
    doors.close()


@contextmanager
def on_file(folder: Path, step: Callable[[Doors], Step], clock: Clock | None = None) -> Generator[Step]:
    """Open Sayso on a fresh SQLite file for one of its steps."""
    with fresh_path(folder, "sayso") as path:
        doors = Doors(path, clock=clock)
        yield step(doors)
        doors.close()


@contextmanager
def held(folder: Path) -> Generator[Step]:
    """Open Sayso on a fresh SQLite file with an agent that waits."""
    with fresh_path(folder, "sayso") as path:
        doors = Doors(path, rules=policy(window=PATIENCE))
        agent = HeldAgent(doors)
        yield agent.step
        agent.close()
        doors.close()


class Crowd:
    """Many agents on one event loop, and people who decide on the same loop."""

    def __init__(self, url: str | Path) -> None:
        rules = policy()
        self.store = open_store(url)
        self._gate = AsyncGate(store=self.store, policy=rules)
        self._inbox = Inbox(store=self.store, policy=rules)
        self._loop = asyncio.get_running_loop()
        self._wave = asyncio.TaskGroup()
        self._numbers = iter(range(10**9))
        self.store.subscribe(self._changed)

    async def wave(self, agents: int = 1) -> None:
        """Let so many agents ask at once, be decided meanwhile, run and complete; any fault ends it."""
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as self._wave:
            for _ in range(agents):
                self._wave.create_task(self._cycle())

    async def _cycle(self) -> None:
        settlement = await self._gate.ask(action(next(self._numbers)))
        await self._gate.complete(settlement.check())

    def _changed(self, changed: Mapping[str, Approval | None]) -> None:
        """Tell the people of what was opened, as live events do; called from any thread."""
        opened = [each for each in changed.values() if each is not None and each.status is Status.PENDING]
        if opened:
            self._loop.call_soon_threadsafe(self._decide, opened)

    def _decide(self, opened: Sequence[Approval]) -> None:
        for approval in opened:
            answer = Answer(kind=DecisionKind.APPROVE, person=ANN, digest=approval.effective.digest)
            self._wave.create_task(self._inbox.adecide(approval.id, answer))


@asynccontextmanager
async def held_task(url: str) -> AsyncGenerator[Callable[[], Awaitable[object]]]:
    """One agent that waits on an event loop, one person on the same loop."""
    crowd = Crowd(url)
    yield crowd.wave
    crowd.store.close()


async def crowd_rate(folder: Path, agents: int, waves: int) -> float:
    """Run many agents at once; return seconds per cycle after a warm-up wave."""
    with fresh_path(folder, "crowd") as path:
        crowd = Crowd(path)
        await crowd.wave(agents)
        start = WALL()
        for _ in range(waves):
            await crowd.wave(agents)
        took = (WALL() - start) / 1e9
        crowd.store.close()
    return took / agents / waves


async def waiters(folder: Path, count: int, resident: Callable[[], int]) -> dict[str, float]:
    """Weigh agents that wait for people, then reject them all and time their waking.

    What saving the decisions costs is left out: counted are the time the store spends telling
    the agents, and the time from the last save until every agent has its answer.
    """
    with fresh_path(folder, "waiters") as path:
        store = open_store(path)
        here, marks = get_ident(), list[float]()
        store.subscribe(lambda _: marks.append(-time.perf_counter()) if get_ident() == here else None)
        gate = AsyncGate(store=store, policy=policy())
        store.subscribe(lambda _: marks.append(time.perf_counter()) if get_ident() == here else None)
        await _wait_a_little(gate)
        before = resident()
        tasks = [asyncio.create_task(gate.ask(action(number))) for number in range(count)]
        await _all_pending(store, count)
        after = resident()
        marks.clear()
        saved = _reject_all(store, count)
        told = sum(marks)
        await asyncio.gather(*tasks)
        woken = time.perf_counter() - saved + told
        store.close()
    return {"bytes": (after - before) / count, "wake": woken}


async def _all_pending(store: Store, count: int) -> None:
    """Return once so many requests are stored and their agents have fallen asleep."""
    while store.counts().get(Status.PENDING, 0) < count:  # noqa: ASYNC110 - the agents know nothing of the bench
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)


async def _wait_a_little(gate: AsyncGate) -> None:
    """Let one agent wait and give up, so that threads and caches exist before anything is weighed."""
    task = asyncio.create_task(gate.ask(action(10**6)))
    await asyncio.sleep(0.2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0.2)


def _reject_all(store: Store, count: int) -> float:
    """Reject everything on the loop's thread, so that no agent runs meanwhile; return when it was saved."""

    def step(approval: Approval, now: Millis) -> Change:
        no = Decision(kind=DecisionKind.REJECT, person=ANN, digest=approval.action.digest)
        return decide(approval, no, now)

    named = [approval_id(action(number)) for number in range(count)]
    for outcome in store.write_many([Alter(approval_id=each, step=step) for each in named]):
        if isinstance(outcome, BaseException):
            raise outcome
    return time.perf_counter()


def listen(path: Path, cycles: int, say: Callable[[str], None]) -> None:
    """Open a request and wait for the permit; say the id, then the instant the permit was there."""
    doors = Doors(path)
    for number in range(cycles):
        call = action(number)
        say(doors.gate.open(call).id)
        settlement = doors.gate.ask(call).check()
        say(str(time.perf_counter_ns()))
        doors.gate.complete(settlement)
    doors.close()


@contextmanager
def approver(path: Path) -> Generator[Callable[[str], Step]]:
    """Look at a request, then decide it, as a person in this process."""
    doors = Doors(path)

    def look(named: str) -> Step:
        shown = doors.store.get(named)
        return lambda: doors.inbox.approve(shown, ANN)

    yield look
    doors.close()
