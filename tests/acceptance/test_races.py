"""Whatever two do at the same moment, one order of the two explains what came of it (G1, G3, G4, G5).

The racers meet at a barrier before each approval: two threads on one store, two openings of one
file, two processes.
"""

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from sayso import (
    Answer,
    Approval,
    AsyncGate,
    DecisionKind,
    Gate,
    Inbox,
    ManualClock,
    Person,
    Policy,
    Rule,
    Status,
)
from sayso.audit import verify
from sayso.errors import AlreadyDecided
from sayso.settlement import Settlement
from sayso.settling import approval_id
from sayso.stores import Store, open_store
from sayso.waiting import waiting_on
from sayso.worker import sweep
from tests.acceptance.racing import ANN, Course, by_processes, by_threads
from tests.builders import POLICY, T0, WINDOW, action, soon

ROUNDS = 40
DEADLINE = T0 + WINDOW * 1000
LEASE_ENDS = T0 + 900 * 1000

Outcomes = Sequence[tuple[Approval, tuple[str, ...]]]
Race = Callable[[Sequence[str], int, str], Outcomes]


def is_sound(store: Store) -> bool:
    report = verify(store.entries(), heads=store.heads(), statuses=store.statuses())
    assert report.sound, report.findings
    return True


def prepared(store: Store, status: str) -> list[str]:
    """Store approvals that are pending, approved or running, and return their names."""
    names: list[str] = []
    gate, inbox = Gate(store=store, policy=POLICY), Inbox(store=store, policy=POLICY)
    for number in range(ROUNDS):
        made = gate.open(action(call_id=f"call-{number}"))
        if status != "pending":
            inbox.approve(made, ANN)
        if status in {"running", "unknown"}:
            gate.claim(made.id)
        names.append(made.id)
    return names


@pytest.fixture(params=["threads", "openings", "processes", "memory"])
def race(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Race]:
    """Let some do something to the same approvals at a moment, and return what came of each."""
    stores: list[Store] = []

    def run(deeds: Sequence[str], now: int, status: str) -> Outcomes:
        clock = ManualClock(T0)
        place = ":memory:" if request.param == "memory" else tmp_path / "sayso.db"
        store = open_store(place, clock=clock)
        stores.append(store)
        names = prepared(store, status)
        clock.advance((now - T0) / 1000)
        if status == "unknown":
            sweep(store)
        if request.param == "processes":
            outcomes = by_processes(Course(folder=tmp_path, now=now), deeds, names)
        elif request.param == "openings":
            stores.extend(open_store(place, clock=clock) for _ in deeds)
            outcomes = by_threads(stores[1:], deeds, names)
        else:
            outcomes = by_threads([store] * len(deeds), deeds, names)
        assert len(outcomes) == ROUNDS
        assert is_sound(store)
        return [(store.get(name), outcome) for name, outcome in zip(names, outcomes, strict=True)]

    yield run
    for each in stores:
        each.close()


@pytest.mark.guarantee("G5")
def test_a_decision_at_the_very_deadline_counts_whatever_expires_it(race: Race) -> None:
    for found, outcomes in race(["approve", "expire"], DEADLINE, "pending"):
        assert outcomes == ("ok", "ok")
        assert found.status is Status.APPROVED
        assert found.decisions[0].at == DEADLINE


@pytest.mark.guarantee("G1")
@pytest.mark.guarantee("G5")
def test_a_decision_a_millisecond_after_the_deadline_never_counts(race: Race) -> None:
    for found, outcomes in race(["approve", "expire"], DEADLINE + 1, "pending"):
        assert outcomes == ("Late", "ok")
        assert found.status is Status.EXPIRED
        assert found.decisions == ()


@pytest.mark.guarantee("G1")
@pytest.mark.guarantee("G4")
def test_of_a_yes_and_a_no_the_first_counts_and_the_other_is_told(race: Race) -> None:
    for found, outcomes in race(["approve", "reject"], T0 + 1, "pending"):
        first: dict[tuple[str, ...], Status] = {
            ("ok", "AlreadyDecided"): Status.APPROVED,
            ("AlreadyDecided", "ok"): Status.REJECTED,
        }
        assert found.status is first[outcomes]
        assert len(found.decisions) == 1


def test_of_two_who_say_yes_one_counts(race: Race) -> None:
    for found, outcomes in race(["approve", "approve"], T0 + 1, "pending"):
        assert sorted(outcomes) == ["AlreadyDecided", "ok"]
        assert len(found.decisions) == 1


@pytest.mark.guarantee("G4")
def test_what_is_withdrawn_while_somebody_decides_never_starts(race: Race) -> None:
    for found, outcomes in race(["approve", "withdraw"], T0 + 1, "pending"):
        assert found.status is Status.WITHDRAWN
        assert outcomes in {("ok", "ok"), ("AlreadyDecided", "ok")}
        assert (outcomes[0] == "ok") == bool(found.decisions)


@pytest.mark.guarantee("G3")
def test_of_three_who_claim_one_gets_the_permit(race: Race) -> None:
    for found, outcomes in race(["claim", "claim", "claim"], T0 + 1, "approved"):
        assert sorted(outcomes) == ["ClaimRefused", "ClaimRefused", "ok"]
        assert found.status is Status.RUNNING


@pytest.mark.guarantee("G3")
@pytest.mark.guarantee("G4")
def test_a_request_is_either_claimed_or_withdrawn(race: Race) -> None:
    for found, outcomes in race(["claim", "withdraw"], T0 + 1, "approved"):
        ended: dict[tuple[str, ...], Status] = {
            ("ok", "ClaimRefused"): Status.RUNNING,
            ("Withdrawn", "ok"): Status.WITHDRAWN,
        }
        ended["ClaimRefused", "ok"] = Status.WITHDRAWN
        assert found.status is ended[outcomes]
        assert (found.permit is not None) == (outcomes[0] == "ok")


@pytest.mark.guarantee("G3")
def test_a_report_counts_also_when_the_lease_lapses_at_that_moment(race: Race) -> None:
    for found, outcomes in race(["complete", "lapse"], LEASE_ENDS + 1, "running"):
        assert outcomes == ("ok", "ok")
        assert found.status is Status.DONE


@pytest.mark.guarantee("G3")
def test_of_two_reports_of_one_run_the_first_counts(race: Race) -> None:
    for found, outcomes in race(["complete", "complete"], T0 + 1, "running"):
        assert sorted(outcomes) == ["ClaimRefused", "ok"]
        assert found.status is Status.DONE


@pytest.mark.guarantee("G3")
def test_an_unknown_outcome_is_settled_once_by_a_report_or_by_a_person(race: Race) -> None:
    for found, outcomes in race(["complete", "reconcile"], LEASE_ENDS + 1, "unknown"):
        settled: dict[tuple[str, ...], Status] = {
            ("ok", "DecisionRefused"): Status.DONE,
            ("ClaimRefused", "ok"): Status.FAILED,
        }
        assert found.status is settled[outcomes]


# -- agents in an event loop -----------------------------------------------------------------


class Crowd:
    """Agents in an event loop, and people, on one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.gate = AsyncGate(store=store, policy=POLICY)
        self.inbox = Inbox(store=store, policy=POLICY)

    def ask(self, number: int = 0) -> asyncio.Task[Settlement]:
        """Let an agent ask."""
        return asyncio.get_running_loop().create_task(self.gate.ask(action(call_id=f"call-{number}")))

    async def waits(self, count: int = 1) -> list[Approval]:
        """Go on until so many agents wait; return what they wait for."""
        while True:
            await asyncio.sleep(0)
            found = self.store.page(limit=count).approvals
            if len(found) == count and all(waiting_on(self.store).holder(each.id) for each in found):
                return list(found)


@pytest.fixture(params=["file", "memory"])
def crowd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Crowd]:
    """Agents and people on one store."""
    place = tmp_path / "sayso.db" if request.param == "file" else ":memory:"
    store = open_store(place, clock=ManualClock(T0))
    yield Crowd(store)
    store.close()


async def turns(count: int) -> None:
    """Let the event loop go round."""
    for _ in range(count):
        await asyncio.sleep(0)


async def ended(task: asyncio.Task[Settlement]) -> Settlement | None:
    """Cancel an agent; return what it had already been given, if anything."""
    task.cancel()
    await asyncio.wait({task}, timeout=10)
    assert task.done()
    return None if task.cancelled() else task.result()


@pytest.mark.parametrize("early", range(12))
def test_an_agent_cancelled_while_it_asks_leaves_nothing_pending(crowd: Crowd, early: int) -> None:
    async def scene() -> None:
        task = crowd.ask()
        await turns(early)
        assert await ended(task) is None

    asyncio.run(scene())
    crowd.store.flush()
    soon(lambda: set(crowd.store.statuses().values()) <= {"withdrawn"})
    soon(lambda: not crowd.store.page().approvals)
    assert is_sound(crowd.store)


def runs_or_gives_back(store: Store, name: str, given: Settlement | None) -> bool:
    """Check that an agent that was cancelled has the permit, or nobody ever will."""
    if given is not None:
        assert given.may_run
        assert store.get(name).permit == given.permit
        assert store.get(name).status is Status.RUNNING
    else:
        soon(lambda: store.get(name).status is Status.WITHDRAWN)
        assert store.get(name).permit is None
    return is_sound(store)


def yes(about: Approval) -> Answer:
    return Answer(kind=DecisionKind.APPROVE, person=ANN, digest=about.effective.digest)


@pytest.mark.guarantee("G3")
@pytest.mark.parametrize("after", range(10))
@pytest.mark.parametrize("person", ["in a call", "in a task"])
def test_an_agent_cancelled_as_it_is_approved_runs_or_gives_the_permit_back_never_both(
    crowd: Crowd, person: str, after: int
) -> None:
    async def scene() -> tuple[str, Settlement | None]:
        task = crowd.ask()
        waiting = (await crowd.waits())[0]
        if person == "in a call":
            crowd.inbox.decide(waiting.id, yes(waiting))
            await turns(after)
            return waiting.id, await ended(task)
        deciding = asyncio.create_task(crowd.inbox.adecide(waiting.id, yes(waiting)))
        await turns(after)
        given = await ended(task)
        await asyncio.wait({deciding})
        assert isinstance(deciding.exception(), AlreadyDecided | None)
        return waiting.id, given

    assert runs_or_gives_back(crowd.store, *asyncio.run(scene()))


@pytest.mark.guarantee("G3")
@pytest.mark.parametrize("after", range(10))
def test_an_agent_cancelled_as_another_process_approves_runs_or_gives_the_permit_back(
    tmp_path: Path, after: int
) -> None:
    async def scene(crowd: Crowd, elsewhere: Inbox) -> tuple[str, Settlement | None]:
        task = crowd.ask()
        waiting = (await crowd.waits())[0]
        elsewhere.decide(waiting.id, yes(waiting))
        for _ in range(after):
            await asyncio.sleep(0.0003)
        return waiting.id, await ended(task)

    here, there = (open_store(tmp_path / "sayso.db", clock=ManualClock(T0)) for _ in range(2))
    assert runs_or_gives_back(here, *asyncio.run(scene(Crowd(here), Inbox(store=there, policy=POLICY))))
    here.close()
    there.close()


@pytest.mark.guarantee("G3")
def test_an_agent_cancelled_while_a_thread_approves_runs_or_gives_the_permit_back(crowd: Crowd) -> None:
    async def scene(number: int) -> tuple[str, Settlement | None]:
        task = crowd.ask(number)
        waiting = (await crowd.waits())[0]
        barrier, told = threading.Barrier(2), threading.Event()

        def decide() -> None:
            barrier.wait(10)
            with suppress(AlreadyDecided):
                crowd.inbox.approve(waiting, ANN)
            told.set()

        threading.Thread(target=decide).start()
        barrier.wait(10)
        given = await ended(task)
        await asyncio.to_thread(told.wait, 10)
        return waiting.id, given

    for number in range(ROUNDS):
        name, given = asyncio.run(scene(number))
        expected = Status.WITHDRAWN if given is None else Status.RUNNING
        soon(lambda name=name, expected=expected: crowd.store.get(name).status is expected)
    assert is_sound(crowd.store)


class Probe:
    """A waiting agent that only counts how often it is woken, and by what."""

    def __init__(self) -> None:
        self.holder = ""
        self.woken: list[Status | None] = []

    def wake(self, approval: Approval | None) -> None:
        """Note it down."""
        self.woken.append(approval.status if approval else None)


def test_an_agent_is_not_woken_by_half_a_quorum_or_a_code_from_another_process(tmp_path: Path) -> None:
    clock = ManualClock(T0)
    here, there = (open_store(tmp_path / "sayso.db", clock=clock) for _ in range(2))
    policy = Policy([Rule(tool="book_flight", approvers={"ops": 2})])
    waiting = Gate(store=here, policy=policy).open(action())
    inbox, probe = Inbox(store=there, policy=policy), Probe()
    waiting_on(here).add(waiting.id, waiting.deadline, probe)
    people = [Person(id=name, groups=frozenset({"ops"})) for name in ("ann", "ben")]
    inbox.challenge(inbox.show(waiting.id), people[0])
    inbox.approve(inbox.show(waiting.id), people[0])
    inbox.approve(inbox.show(waiting.id), people[1])
    soon(lambda: probe.woken)
    here.close()  # waits for the thread that hears of other processes
    there.close()
    assert probe.woken == [Status.APPROVED]


def test_an_agent_that_asks_again_after_a_crash_is_woken_by_the_deadline_of_the_first_time(
    tmp_path: Path,
) -> None:
    clock = ManualClock(T0)
    store = open_store(tmp_path / "sayso.db", clock=clock)
    gate = Gate(store=store, policy=POLICY)
    gate.open(action())
    clock.advance(WINDOW - 1)
    outcomes: list[Settlement] = []
    agent = threading.Thread(target=lambda: outcomes.append(gate.ask(action())), daemon=True)
    agent.start()
    soon(lambda: waiting_on(store).holder(approval_id(action())))
    clock.advance(2)
    agent.join(10)
    assert outcomes
    assert outcomes[0].approval is not None
    assert outcomes[0].approval.status is Status.EXPIRED
    store.close()


MANY = 10_000


def test_ten_thousand_waiting_agents_are_each_woken_once_with_their_own_permit(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    store = open_store(tmp_path / "sayso.db", clock=ManualClock(T0))
    crowd = Crowd(store)

    async def scene() -> list[Settlement]:
        before = resident_bytes()
        tasks = [crowd.ask(number) for number in range(MANY)]
        while store.counts().get(Status.PENDING, 0) < MANY:  # noqa: ASYNC110 - nothing tells when all wait
            await asyncio.sleep(0.01)
        await turns(100)
        each = (resident_bytes() - before) // MANY
        record_property("bytes for each waiting agent", each)
        sys.stdout.write(f"{MANY:,} agents wait, at {each:,} bytes each\n")
        people = [
            asyncio.create_task(crowd.inbox.adecide(one.id, yes(one))) for one in await crowd.waits(MANY)
        ]
        await asyncio.wait(people)
        return await asyncio.wait_for(asyncio.gather(*tasks), 60)

    settlements = asyncio.run(scene())
    assert len({each.permit.approval_id for each in settlements if each.permit}) == MANY
    assert {each.action.call_id for each in settlements} == {f"call-{number}" for number in range(MANY)}
    kinds = Counter(entry.kind for entry in store.entries())
    assert kinds == {"opened": MANY, "approved": MANY, "claimed": MANY}
    store.close()


def resident_bytes() -> int:
    """Return how much memory this process holds, 0 where that cannot be told."""
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[1]) * 4096 if told.exists() else 0
