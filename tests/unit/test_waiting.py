"""How agents wait: woken by decisions and deadlines, in threads and loops, and never left behind."""

import asyncio
import gc
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
import trio

from sayso import ManualClock, open_store
from sayso.approvals import Approval, DecisionKind, Status
from sayso.clock import SystemClock
from sayso.stores import Alter, Store
from sayso.stores.base import Changed
from sayso.waiting import LONGEST_SLEEP, Hand, LoopWaiter, ThreadWaiter, Ticket, flag, waiting_on
from tests.builders import WINDOW, decision, opened, soon


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> Iterator[Store]:
    """A store in memory."""
    made = open_store(":memory:", clock=clock)
    yield made
    made.close()


class Woken:
    """A waiter that remembers with what it was woken."""

    holder = "gate"

    def __init__(self) -> None:
        self.with_: list[Approval | None] = []

    def wake(self, approval: Approval | None) -> None:
        self.with_.append(approval)


def reject(store: Store, approval: Approval) -> None:
    from sayso.decisions import decide  # noqa: PLC0415 - the only use

    given = decision(DecisionKind.REJECT, about=approval)
    store.write(Alter(approval_id=approval.id, step=lambda before, now: decide(before, given, now)))


def test_a_decision_wakes_everybody_who_waits_for_it_and_nobody_else(store: Store) -> None:
    first, second = opened(store, 2)
    waiting = waiting_on(store)
    one, two, other = Woken(), Woken(), Woken()
    for waiter in (one, two):
        waiting.add(first.id, first.deadline, waiter)
    waiting.add(second.id, second.deadline, other)
    assert waiting.holder(first.id) == "gate"
    reject(store, first)
    assert [each.status for each in one.with_ if each] == [Status.REJECTED]
    assert len(two.with_) == 1
    assert other.with_ == []
    assert waiting.holder(first.id) == ""


def test_there_is_one_registry_for_a_store(store: Store) -> None:
    assert waiting_on(store) is waiting_on(store)


def test_who_gave_the_place_up_is_not_woken(store: Store) -> None:
    asked = opened(store)[0]
    waiter = ThreadWaiter("gate")
    place = Ticket(waiting_on(store), asked.id, asked.deadline, waiter)
    place.drop()
    place.drop()
    assert waiting_on(store).holder(asked.id) == ""


def test_the_deadline_wakes_without_an_answer_one_millisecond_after_it(
    store: Store, clock: ManualClock
) -> None:
    first, second = opened(store, 2)
    one, two = Woken(), Woken()
    waiting_on(store).add(second.id, second.deadline, two)
    waiting_on(store).add(first.id, first.deadline, one)
    clock.advance(WINDOW)
    clock.advance(0.001)
    soon(lambda: one.with_)
    assert one.with_ == [None]
    assert two.with_ == []
    clock.advance(1)
    soon(lambda: two.with_)


def test_deadlines_are_kept_by_a_real_clock_too() -> None:
    store = open_store(":memory:", clock=SystemClock())
    try:
        woken = Woken()
        waiting_on(store).add("ap1", store.clock.now() + 30, woken)
        soon(lambda: woken.with_, 5)
        assert woken.with_ == [None]
    finally:
        store.close()


def test_a_deadline_far_away_keeps_nobody_from_being_woken_by_one_that_is_near() -> None:
    store = open_store(":memory:", clock=SystemClock())
    try:
        far, near = Woken(), Woken()
        waiting_on(store).add("far", 2**62, far)
        waiting_on(store).add("near", store.clock.now() + 20, near)
        soon(lambda: near.with_, 5)
        assert far.with_ == []
        assert LONGEST_SLEEP <= 60
    finally:
        store.close()


def test_ten_thousand_agents_wait_on_one_thread(store: Store, clock: ManualClock) -> None:
    before = threading.active_count()
    waiters = [Woken() for _ in range(10_000)]
    for number, waiter in enumerate(waiters):
        waiting_on(store).add(f"ap{number}", clock.now() + 1000, waiter)
    assert threading.active_count() <= before + 1
    clock.advance(2)
    soon(lambda: all(waiter.with_ for waiter in waiters), 20)


def test_a_loop_that_is_gone_wakes_nobody_and_breaks_nothing(store: Store, clock: ManualClock) -> None:
    first, second = opened(store, 2)

    async def leave() -> None:
        waiting_on(store).add(first.id, first.deadline, LoopWaiter("gone"))

    asyncio.run(leave())
    trio.run(leave)
    other = Woken()
    waiting_on(store).add(first.id, first.deadline, other)
    reject(store, first)
    assert len(other.with_) == 1
    late = Woken()

    async def leave_again() -> None:
        waiting_on(store).add(second.id, second.deadline, LoopWaiter("gone"))

    trio.run(leave_again)
    asyncio.run(leave_again())
    waiting_on(store).add(second.id, second.deadline, late)
    clock.advance(WINDOW + 5)
    soon(lambda: late.with_)


@pytest.mark.parametrize("framework", ["asyncio", "trio"])
def test_a_flag_is_set_from_another_thread(framework: str) -> None:
    async def wait() -> str:
        raised = flag()
        setter = threading.Timer(0.01, raised.set)
        setter.start()
        await raised.wait()
        raised.set()
        return "set"

    assert (asyncio.run(wait()) if framework == "asyncio" else trio.run(wait)) == "set"


def test_many_wakes_are_carried_into_a_loop_in_one_hop() -> None:
    hops: list[object] = []
    carried: list[int] = []
    hand = Hand(hops.append)
    for number in range(100):
        hand.give(lambda number=number: carried.append(number))
    assert len(hops) == 1
    assert carried == []
    take = hops[0]
    assert callable(take)
    take()
    assert carried == list(range(100))
    hand.give(lambda: None)
    assert len(hops) == 2


def test_loops_that_are_over_are_not_kept(store: Store) -> None:
    import weakref  # noqa: PLC0415 - the only use

    async def reference() -> "weakref.ref[asyncio.AbstractEventLoop]":
        flag()
        return weakref.ref(asyncio.get_running_loop())

    left = [asyncio.run(reference()) for _ in range(3)]
    gc.collect()
    assert store is not None
    assert [each() for each in left] == [None] * 3


def test_changes_that_leave_an_approval_pending_wake_nobody(store: Store) -> None:
    heard: list[Changed] = []
    store.subscribe(heard.append)
    asked = opened(store)[0]
    waiter = Woken()
    waiting_on(store).add(asked.id, asked.deadline, waiter)
    from sayso.decisions import Change, Event  # noqa: PLC0415 - the only use

    event = Event(kind="code_issued", thread=asked.action.thread, approval_id=asked.id, by="ann", via="cli")
    store.write(
        Alter(
            approval_id=asked.id,
            step=lambda before, _: Change(approval=replace(before, description="x"), events=(event,)),
        )
    )
    assert heard
    assert waiter.with_ == []
