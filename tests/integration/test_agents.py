"""Agents in threads, in asyncio and in trio: all answered, each once, and gone ones leave nothing behind."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from sayso import AsyncGate, Gate, Inbox, ManualClock, open_store
from sayso.approvals import Approval, DecisionKind, Person, Status
from sayso.audit import verify
from sayso.errors import SaysoError, Withdrawn
from sayso.settlement import Settlement
from sayso.stores import Store
from tests.builders import ANN, POLICY, WINDOW, action, soon
from tests.guarantees import guarantee

AGENTS = 32


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    """A store in a file and one in memory."""
    made = open_store(":memory:" if request.param == "memory" else tmp_path / "sayso.db", clock=clock)
    yield made
    report = verify(made.entries(), heads=made.heads(), statuses=made.statuses())
    made.close()
    assert report.sound, report.findings


@pytest.fixture
def inbox(store: Store) -> Inbox:
    """The person's door."""
    return Inbox(store=store, policy=POLICY)


@pytest.fixture
def gate(store: Store) -> AsyncGate:
    """The agent's door in an event loop."""
    return AsyncGate(store=store, policy=POLICY, name="gate")


def answer(inbox: Inbox, asked: Approval) -> None:
    """Answer by the number of the call, every kind in turn."""
    number = int(asked.action.call_id)
    match list(DecisionKind)[number % 4]:
        case DecisionKind.APPROVE:
            inbox.approve(asked, ANN)
        case DecisionKind.EDIT:
            inbox.edit(asked, ANN, {"price": number})
        case DecisionKind.REJECT:
            inbox.reject(asked, ANN, "no")
        case DecisionKind.RESPOND:
            inbox.respond(asked, ANN, f"answer {number}")


def check(number: int, settlement: Settlement) -> None:
    """Check that an agent got the answer to its own call."""
    assert settlement.approval is not None
    assert settlement.approval.action.call_id == str(number)
    match list(DecisionKind)[number % 4]:
        case DecisionKind.APPROVE:
            assert settlement.may_run
        case DecisionKind.EDIT:
            assert settlement.may_run
            assert settlement.action.args == {"price": number}
        case DecisionKind.REJECT:
            assert not settlement.may_run
        case DecisionKind.RESPOND:
            assert settlement.response == f"answer {number}"


def test_thirty_two_threads_each_get_the_answer_to_their_own_call(store: Store, inbox: Inbox) -> None:
    gate = Gate(store=store, policy=POLICY, name="gate")
    settled: dict[int, Settlement] = {}

    def agent(number: int) -> None:
        settlement = gate.ask(action(call_id=str(number), thread=f"t{number % 5}"))
        gate.complete(settlement)
        settled[number] = settlement

    threads = [threading.Thread(target=agent, args=(number,), daemon=True) for number in range(AGENTS)]
    for thread in threads:
        thread.start()
    soon(lambda: len(inbox.page(limit=99).approvals) == AGENTS)
    people = [threading.Thread(target=answer, args=(inbox, each)) for each in inbox.page(limit=99).approvals]
    for person in people:
        person.start()
    for thread in (*people, *threads):
        thread.join(20)
    for number in range(AGENTS):
        check(number, settled[number])


def test_two_hundred_tasks_each_get_the_answer_to_their_own_call(gate: AsyncGate, inbox: Inbox) -> None:
    count = 200

    async def agent(number: int) -> None:
        settlement = await gate.ask(action(call_id=str(number), thread=f"t{number % 7}"))
        check(number, settlement)
        await gate.complete(settlement)

    async def all_of_them() -> None:
        agents = [asyncio.ensure_future(agent(number)) for number in range(count)]
        while inbox.store.counts().get(Status.PENDING, 0) < count:  # noqa: ASYNC110 - the store is waited for
            await asyncio.sleep(0.001)
        page = inbox.page(limit=count).approvals
        await asyncio.to_thread(lambda: [answer(inbox, each) for each in page])
        await asyncio.gather(*agents)

    before = threading.active_count()
    asyncio.run(asyncio.wait_for(all_of_them(), 60))
    assert threading.active_count() <= before + 5
    assert inbox.store.counts() == {Status.DONE: 100, Status.REJECTED: 50, Status.RESPONDED: 50}


def test_agents_in_trio_are_answered_alike(gate: AsyncGate, inbox: Inbox) -> None:
    count = 20

    async def agent(number: int) -> None:
        settlement = await gate.ask(action(call_id=str(number)))
        check(number, settlement)
        await gate.complete(settlement)

    async def all_of_them() -> None:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                for number in range(count):
                    nursery.start_soon(agent, number)
                while inbox.store.counts().get(Status.PENDING, 0) < count:  # noqa: ASYNC110 - as above
                    await trio.sleep(0.001)
                page = inbox.page(limit=count).approvals
                await trio.to_thread.run_sync(lambda: [answer(inbox, each) for each in page])

    trio.run(all_of_them)
    assert inbox.store.counts() == {Status.DONE: 10, Status.REJECTED: 5, Status.RESPONDED: 5}


def test_the_async_door_has_the_verbs_of_the_other(gate: AsyncGate, inbox: Inbox, clock: ManualClock) -> None:
    async def agent() -> None:
        asked = await gate.open(action())
        assert await gate.settle(asked.id) is None
        inbox.approve(asked, ANN)
        settlement = await gate.claim(asked.id, action())
        await gate.renew(settlement)
        await gate.complete(settlement)
        second = await gate.open(action(call_id="2"))
        await gate.withdraw(second.id, "stopped")
        ended = await gate.settle(second.id)
        assert ended is not None
        with pytest.raises(Withdrawn, match="stopped"):
            ended.check()
        third = await gate.open(action(call_id="3"))
        clock.advance(WINDOW + 1)
        silent = await gate.settle(third.id)
        assert silent is not None
        assert silent.approval is not None
        assert silent.approval.status is Status.EXPIRED

    asyncio.run(agent())


@guarantee("G5")
def test_silence_ends_the_wait_of_every_task(gate: AsyncGate, inbox: Inbox, clock: ManualClock) -> None:
    async def all_of_them() -> list[Settlement]:
        agents = [asyncio.ensure_future(gate.ask(action(call_id=str(number)))) for number in range(20)]
        while inbox.store.counts().get(Status.PENDING, 0) < 20:  # noqa: ASYNC110 - the store is waited for
            await asyncio.sleep(0.001)
        clock.advance(WINDOW + 1)
        return await asyncio.gather(*agents)

    settled = asyncio.run(asyncio.wait_for(all_of_them(), 30))
    assert not any(each.may_run for each in settled)
    assert inbox.store.counts() == {Status.EXPIRED: 20}


@guarantee("G4")
def test_a_cancelled_task_takes_its_request_back(gate: AsyncGate, inbox: Inbox) -> None:
    async def agent() -> None:
        task = asyncio.ensure_future(gate.ask(action()))
        while not inbox.page().approvals:  # noqa: ASYNC110 - the store is waited for
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(agent())
    soon(lambda: inbox.store.counts() == {Status.WITHDRAWN: 1})
    with pytest.raises(SaysoError, match="withdrawn"):
        inbox.approve(inbox.page(status=Status.WITHDRAWN).approvals[0], ANN)


def test_a_task_that_is_cancelled_at_any_moment_leaves_nothing_waiting(gate: AsyncGate, inbox: Inbox) -> None:
    async def agent(turns: int) -> None:
        task = asyncio.ensure_future(gate.ask(action(call_id=str(turns))))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    for turns in range(12):
        asyncio.run(agent(turns))
    soon(lambda: Status.PENDING not in inbox.store.counts())
    assert set(inbox.store.counts()) <= {Status.WITHDRAWN}


@guarantee("G3")
def test_a_task_that_is_cancelled_while_it_is_approved_never_holds_the_permit(
    gate: AsyncGate, inbox: Inbox
) -> None:
    async def agent(turns: int) -> None:
        task = asyncio.ensure_future(gate.ask(action(call_id=str(turns))))
        while not inbox.page().approvals and not task.done():  # noqa: ASYNC110 - the store is waited for
            await asyncio.sleep(0)
        inbox.approve(inbox.page().approvals[0], ANN)
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        settled = (await asyncio.gather(task, return_exceptions=True))[0]
        if isinstance(settled, Settlement):
            await gate.complete(settled)

    for turns in range(6):
        asyncio.run(agent(turns))
    soon(lambda: not inbox.store.counts().keys() & {Status.RUNNING, Status.PENDING, Status.APPROVED})


def test_a_cancelled_scope_of_trio_takes_its_request_back(gate: AsyncGate, inbox: Inbox) -> None:
    async def agent() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(gate.ask, action())
            while not inbox.page().approvals:  # noqa: ASYNC110 - the store is waited for
                await trio.sleep(0.001)
            nursery.cancel_scope.cancel()

    trio.run(agent)
    soon(lambda: inbox.store.counts() == {Status.WITHDRAWN: 1})


@guarantee("G3")
def test_of_many_people_at_once_one_decides_and_the_agent_runs_once(gate: AsyncGate, inbox: Inbox) -> None:
    won: list[str] = []

    def decide(asked: Approval, name: str, start: threading.Barrier) -> None:
        start.wait()
        try:
            inbox.approve(asked, Person(id=name))
            won.append(name)
        except SaysoError:
            pass

    async def agent() -> Settlement:
        task = asyncio.ensure_future(gate.ask(action()))
        while not inbox.page().approvals:  # noqa: ASYNC110 - the store is waited for
            await asyncio.sleep(0.001)
        asked = inbox.page().approvals[0]
        start = threading.Barrier(8)
        people = [threading.Thread(target=decide, args=(asked, f"p{number}", start)) for number in range(8)]
        for person in people:
            person.start()
        settlement = await task
        for person in people:
            person.join(10)
        return settlement

    settlement = asyncio.run(asyncio.wait_for(agent(), 30))
    assert settlement.may_run
    assert len(won) == 1
