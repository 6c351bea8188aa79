"""What others do for the same work: holdpoint 0.2.0 and AgentBarrier 1.1.0, used as documented.

Neither holds an agent while people think, so their cycles have no waiting in them. holdpoint
ships with `synchronous=NORMAL`, which does not flush a commit to the disk; it is measured as
shipped and with the flush. Its audit is not chained; AgentBarrier's is.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from agentbarrier import Decision
from agentbarrier.errors import ApprovalRequired
from agentbarrier.models import JsonValue
from agentbarrier.runtime import (
    ArgumentCondition,
    ConditionOperator,
    PolicyEffect,
    PolicyRule,
    RuntimeBarrier,
    RuntimePolicy,
    SQLiteRuntimeStore,
)
from holdpoint import Action, HoldPoint, MemoryStore, SQLiteStore, Store

from bench.harness import Step
from bench.work import FREE_TOOL, TOOL, fresh_path, request
from sayso.actions import Json

WINDOW = timedelta(days=1)
"""How long people have: longer than any row takes."""


@dataclass(slots=True)
class _Time:
    """The machine's clock, which the bench can move ahead."""

    ahead: timedelta = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class Holdpoint:
    """holdpoint on a store, with one guarded function."""

    def __init__(self, store: Store) -> None:
        self.time = _Time()
        self.store = store
        self.point = HoldPoint(store=store, clock=self.time)
        self._guarded = self.point.guard(kind=TOOL, ttl=WINDOW)(_run)
        self._numbers = iter(range(10**9))

    def submit(self) -> Action[int]:
        """Ask for approval of one request."""
        return self._guarded(request(next(self._numbers)))

    def cycle(self) -> None:
        """Submit, approve and run one request."""
        self.point.approve(self.submit().id, actor="ann")

    def page(self) -> int:
        """Read the first page of fifty; holdpoint has no other page."""
        return len(self.point.pending(limit=50))

    def expire(self) -> int:
        """Expire what is due."""
        return len(self.point.expire_due())

    def pass_window(self) -> None:
        """Move the clock past every deadline."""
        self.time.ahead += WINDOW + timedelta(seconds=1)


@contextmanager
def holdpoint_on_file(path: Path, synchronous: str) -> Generator[Holdpoint]:
    """Open holdpoint on a SQLite file with the given `synchronous` setting."""
    store = SQLiteStore(path)
    set_synchronous(store, synchronous)
    yield Holdpoint(store)
    store.close()


def set_synchronous(store: SQLiteStore, setting: str) -> None:
    """Say how holdpoint flushes on this thread's connection; it has no setting for it."""
    store._conn().execute(f"PRAGMA synchronous = {setting}")  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - no other way to set it


@contextmanager
def holdpoint_memory_cycle() -> Generator[Step]:
    """One request in holdpoint's memory store."""
    yield Holdpoint(MemoryStore()).cycle


@contextmanager
def holdpoint_file_cycle(folder: Path, synchronous: str) -> Generator[Step]:
    """One request in holdpoint's SQLite store."""
    with fresh_path(folder, "holdpoint") as path, holdpoint_on_file(path, synchronous) as holdpoint:
        yield holdpoint.cycle


class AgentBarrier:
    """AgentBarrier on a SQLite file, flushing each commit as it ships."""

    def __init__(self, path: Path, rules: int = 1) -> None:
        self.store = SQLiteRuntimeStore(path)
        self._barrier = RuntimeBarrier(policy=_policy(rules), store=self.store, requested_by="agent")
        self._numbers = iter(range(10**9))

    def allow(self) -> object:
        """Run one call that needs nobody."""
        return self._execute(FREE_TOOL, next(self._numbers))

    def submit(self) -> tuple[int, str]:
        """Ask for approval of one request; return its number and its id."""
        number = next(self._numbers)
        try:
            self._execute(TOOL, number)
        except ApprovalRequired as held:
            return number, held.action.action_id
        raise RuntimeError("AgentBarrier let a call through that needs a person")

    def cycle(self) -> None:
        """Submit, approve and run one request."""
        number, action_id = self.submit()
        self.store.decide(action_id, Decision.APPROVE, decided_by="ann")
        self._execute(TOOL, number)

    def _execute(self, tool: str, number: int) -> object:
        return self._barrier.execute(
            tool_name=tool,
            arguments=cast("dict[str, JsonValue]", request(number)),
            idempotency_key=f"call-{number}",
            operation=lambda: 1,
        )


@contextmanager
def agentbarrier_on_file(folder: Path, rules: int = 1) -> Generator[AgentBarrier]:
    """Open AgentBarrier on a fresh SQLite file."""
    with fresh_path(folder, "agentbarrier") as path:
        barrier = AgentBarrier(path, rules)
        yield barrier
        barrier.store.close()


@contextmanager
def agentbarrier_step(folder: Path, step: Callable[[AgentBarrier], Step], rules: int = 1) -> Generator[Step]:
    """Open AgentBarrier for one of its steps."""
    with agentbarrier_on_file(folder, rules) as barrier:
        yield step(barrier)


def _run(call: dict[str, Json]) -> int:
    return len(call)


def _policy(rules: int) -> RuntimePolicy:
    never = (ArgumentCondition(path="amount", operator=ConditionOperator.EQ, value=0),)
    others = [
        PolicyRule(name=f"rule {number}", tool=f"tool_{number}", effect=PolicyEffect.DENY, conditions=never)
        for number in range(rules)
    ]
    ask = PolicyRule(name="ask", tool=TOOL, effect=PolicyEffect.REQUIRE_APPROVAL, approval_ttl_seconds=300)
    allow = PolicyRule(name="allow", tool=FREE_TOOL, effect=PolicyEffect.ALLOW)
    return RuntimePolicy(version="1", rules=(*others, ask, allow))
