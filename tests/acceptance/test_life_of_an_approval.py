"""Random lives of approvals, held step by step to a ledger that shares no code with Sayso.

Agents, people, time, crashes and policy take turns in any order on one SQLite file that several
processes have open. When a life goes wrong, Hypothesis prints the shortest program that leads
there. To see the same lives again: `pytest tests/acceptance/test_life_of_an_approval.py
--hypothesis-seed=N`; the long run is `make prove`.
"""

import asyncio
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sayso import Action, Approval, DecisionKind, Person, ProofKind, Status
from sayso.approvals import Cause
from sayso.audit import verify
from sayso.decisions import release
from sayso.errors import ClaimRefused, Refused, SaysoError
from sayso.settlement import Settlement
from sayso.stores import Alter
from sayso.worker import run_once
from tests.acceptance.ledger import CODE_SECONDS, Code, Ledger, Life
from tests.acceptance.world import (
    CLOSED,
    LOOSE,
    PEOPLE,
    POLICIES,
    PROCESSES,
    STRICT,
    STRICTNESS,
    USUAL,
    Asking,
    World,
    strictness,
)
from tests.builders import soon

CRASHES = 4
"""How many crashes one example has at most, beside those right after a decision."""

processes = st.integers(0, PROCESSES - 1)
people = st.sampled_from(PEOPLE)
numbers = st.sampled_from([1, 499, 501])
calls = st.sampled_from(["1", "2"])
tools = st.sampled_from(sorted(STRICTNESS))


def made(*lives: Life | None) -> object:
    """Add approvals to the bundle."""
    return cast("object", multiple(*(life for life in lives if life is not None)))


class Lives(World, RuleBasedStateMachine):
    """What agents, people, time and crashes do, in any order."""

    approvals = Bundle("approvals")

    def teardown(self) -> None:
        """Let go of what this example made."""
        self.end()

    # -- agents ----------------------------------------------------------------------------

    @initialize(
        target=approvals,
        first=st.lists(
            st.tuples(processes, tools, numbers, st.booleans()),
            min_size=2,
            max_size=5,
            unique_by=lambda each: each[1:3],
        ),
    )
    def begin(self, first: list[tuple[int, str, int, bool]]) -> object:
        """Some agents ask before anything else happens, and some of them wait."""
        for number, tool, n, waits in first:
            (self.ask if waits else self.open)(number, tool, n, "1")
        return made(*self.requests.values())

    @rule(target=approvals, number=processes, tool=tools, n=numbers, call=calls)
    def open(self, number: int, tool: str, n: int, call: str) -> object:
        """An agent asks and comes back later."""
        gate = self.living[number].gate
        return made(self._request(tool, n, call, gate.open))

    @rule(target=approvals, number=processes, tool=tools, n=numbers, call=calls)
    def ask(self, number: int, tool: str, n: int, call: str) -> object:
        """An agent asks and waits."""
        if self._asks_already(tool, n, call):
            return made()
        process, tasks = self.living[number], list[asyncio.Task[Settlement]]()

        def start(action: Action) -> Approval:
            tasks.append(process.loop.create_task(process.gate.aask(action)))
            if strictness(self.level, tool, n) == Ledger.DENY:
                process.until(tasks[0].done)
                tasks.pop().result().check()
            return self._appeared(process, tasks[0], action)

        life = self._request(tool, n, call, start)
        if tasks and (tool, n, call) in self.requests:
            begun = self.requests[tool, n, call]
            self.asking.append(Asking(process=number, task=tasks[0], life=begun))
            self._settle_agents()
        return made(life)

    @rule(
        target=approvals,
        life=approvals,
        number=processes,
        about=st.sampled_from(["it", "nothing", "another"]),
    )
    def claim(self, life: Life, number: int, about: str) -> object:
        """An agent comes back to run what it asked for, or something else."""
        gate = self.living[number].gate
        action = None if about == "nothing" else self._action(life, n=life.n + (about == "another"))
        self.ledger.expire(life, self.clock.now())
        if life.status is not Status.APPROVED or about == "another":
            with pytest.raises(SaysoError):
                gate.claim(life.id, action)
            return made()
        outcome = self.ledger.claim(life, number, strictness(self.level, life.tool, life.n), self.clock.now())
        if outcome == "run":
            self.settlements[life.id] = settlement = gate.claim(life.id, action)
            assert settlement.may_run
            assert settlement.action.digest == life.effective
            return made()
        with pytest.raises(SaysoError) as refused:
            gate.claim(life.id, action)
        assert isinstance(refused.value, Refused) == (outcome == "deny")
        return made(self._succeed(life, life.tool, life.n) if outcome == "again" else None)

    @rule(life=approvals)
    def run(self, life: Life) -> None:
        """An agent does what its permit allows, soon or long after its lease was lost."""
        held = self._held(life)
        if held and not held.ran:
            assert self.settlements[life.id].action.digest == held.digest
            self.ledger.run(life)

    @rule(life=approvals, failed=st.booleans())
    def complete(self, life: Life, failed: bool) -> None:
        """An agent reports how it went; the first report stands."""
        held = self._held(life)
        if held and held.ran:
            gate = self.living[held.process].gate
            refusal = self.ledger.complete(life, failed=failed)
            error = "it broke" if failed else ""
            self._expect(refusal, lambda: gate.complete(self.settlements[life.id], error=error))

    @rule(life=approvals)
    def give_back(self, life: Life) -> None:
        """An agent gives a permit back that it did not use."""
        held = self._held(life)
        if held and not held.ran:
            permit = self.settlements[life.id].permit
            assert permit is not None
            step = Alter(
                approval_id=life.id, step=lambda approval, _: release(approval, permit, permit.holder)
            )
            refusal = self.ledger.release(life)
            if refusal is None:
                self.returned.append(self.settlements[life.id])
            self._expect(refusal, lambda: self.living[held.process].store.write(step))

    @precondition(lambda self: bool(cast("Lives", self).returned))
    @rule(which=st.integers(0, 9), number=processes, failed=st.booleans())
    def report_on_nothing(self, which: int, number: int, failed: bool) -> None:
        """An agent reports under a permit that it gave back, or wants it for longer."""
        gate, settlement = self.living[number].gate, self.returned[which % len(self.returned)]
        with pytest.raises(ClaimRefused):
            gate.complete(settlement, error="it broke" if failed else "")
        with pytest.raises(ClaimRefused):
            gate.renew(settlement)

    @rule(life=approvals)
    def renew(self, life: Life) -> None:
        """An agent asks for more time."""
        held = self._held(life)
        if held:
            gate, settlement = self.living[held.process].gate, self.settlements[life.id]
            if life.status is not Status.RUNNING:
                self._expect(SaysoError, lambda: gate.renew(settlement))
            else:
                gate.renew(settlement)
                life.until = self.clock.now() + life.terms.lease * 1000

    @rule(life=approvals, number=processes)
    def withdraw(self, life: Life, number: int) -> None:
        """A run is called off."""
        gate = self.living[number].gate
        self._expect(self.ledger.withdraw(life), lambda: gate.withdraw(life.id))
        self._settle_agents()

    @precondition(lambda self: bool(cast("Lives", self).asking))
    @rule(which=st.integers(0, 9))
    def cancel(self, which: int) -> None:
        """An agent that waits is cancelled."""
        agent = self.asking.pop(which % len(self.asking))
        process = self.living[agent.process]
        self.ledger.withdraw(agent.life)
        agent.task.cancel()
        process.until(agent.task.done)
        assert agent.task.cancelled()
        soon(lambda: process.store.get(agent.life.id).status is not Status.PENDING)

    # -- people ----------------------------------------------------------------------------

    @rule(
        target=approvals,
        life=approvals,
        number=processes,
        person=people,
        kind=st.sampled_from(DecisionKind),
        n=numbers,
        proof=st.sampled_from(["right", "right", "right", "wrong", "none"]),
        sees=st.sampled_from(["it", "it", "it", "first", "nothing"]),
        dearer=st.booleans(),
        dies=st.sampled_from([False] * 7 + [True]),
    )
    def decide(
        self,
        life: Life,
        number: int,
        person: Person,
        kind: DecisionKind,
        n: int,
        proof: str,
        sees: str,
        dearer: bool,
        dies: bool,
    ) -> object:
        """A person answers, rightly or wrongly; sometimes the process dies before any agent wakes."""
        inbox, now = self.living[number].inbox, self.clock.now()
        typed = self._proof(life, person, proof)
        tool = "dear" if dearer and life.tool == "book" else ""
        answer = self._answer(life, inbox, kind, person, typed, sees)
        edit = self._edit(life, tool or life.tool, n) if kind is DecisionKind.EDIT else None
        if edit:
            answer = replace(answer, args={"n": n}, tool=tool)
        before = life.status
        refusal = self.ledger.decide(life, kind, person, answer.digest, typed, now, edit)
        self._expect(refusal, lambda: inbox.decide(life.id, answer))
        stricter = life.status is Status.WITHDRAWN and before is Status.PENDING
        successor = self._succeed(life, edit.tool, edit.n) if edit and stricter else None
        if dies:
            self._die(number)
        self._settle_agents()
        return made(successor)

    @precondition(lambda self: bool(cast("Lives", self)._open()))
    @rule(
        target=approvals,
        which=st.integers(0, 99),
        number=processes,
        person=people,
        kind=st.sampled_from([DecisionKind.APPROVE] * 3 + [DecisionKind.EDIT]),
        n=numbers,
        sees=st.sampled_from(["it"] * 4 + ["first", "nothing"]),
        dearer=st.booleans(),
        dies=st.booleans(),
    )
    def agree(
        self,
        which: int,
        number: int,
        person: Person,
        kind: DecisionKind,
        n: int,
        sees: str,
        dearer: bool,
        dies: bool,
    ) -> object:
        """Somebody who may approve does, code and all, as it is or changed; not always what they saw."""
        life = self._open()[which % len(self._open())]
        may = [each for each in PEOPLE if self.ledger.may_approve(life, each)]
        if not may:
            return made()
        person = person if person in may else may[which % len(may)]
        if life.terms.proof.kind is ProofKind.CODE:
            self.show_code(life, number, person)
        return self.decide(life, number, person, kind, n, "right", sees, dearer, dies and which % 5 == 0)

    @precondition(lambda self: any(each.tool == "wire" for each in cast("Lives", self)._open()))
    @rule(
        which=st.integers(0, 99),
        number=processes,
        person=people,
        times=st.integers(1, 6),
        seconds=st.sampled_from([0, 200]),
    )
    def guess(self, which: int, number: int, person: Person, times: int, seconds: int) -> None:
        """Somebody is shown a code and types another, again and again, then the right one."""
        lives = [each for each in self._open() if each.tool == "wire"]
        life = lives[which % len(lives)]
        self.show_code(life, number, person)
        for _ in range(times):
            self.decide(life, number, person, DecisionKind.APPROVE, 0, "wrong", "it", False, False)
        self.clock.advance(seconds)
        self._settle_agents()
        self.decide(life, number, person, DecisionKind.APPROVE, 0, "right", "it", False, False)

    @precondition(lambda self: bool(cast("Lives", self)._startable()))
    @rule(
        target=approvals,
        which=st.integers(0, 99),
        number=processes,
        ends=st.sampled_from(["well", "badly", "never", "by another"]),
    )
    def work(self, which: int, number: int, ends: str) -> object:
        """An agent takes a permit and does what it allows."""
        life = self._startable()[which % len(self._startable())]
        successor = self.claim(life, number, "it") if life.status is Status.APPROVED else made()
        if ends == "by another" and life.held and not life.held.ran:
            self.give_back(life)
            return self.claim(life, 1 - number, "it")
        self.run(life)
        if ends != "never":
            self.complete(life, ends == "badly")
        return successor

    @rule(life=approvals, number=processes, person=people)
    def show_code(self, life: Life, number: int, person: Person) -> None:
        """A person asks for a confirmation code."""
        inbox, now = self.living[number].inbox, self.clock.now()
        card, texts = inbox.show(life.id), list[str]()
        refusal = self.ledger.show_code(life, person, now)
        self._expect(refusal, lambda: texts.append(inbox.challenge(card, person)))
        if refusal is None:
            until = min(life.deadline, now + CODE_SECONDS * 1000)
            life.codes[person.id] = Code(text=texts[0], digest=life.effective, until=until)
        self._settle_agents()

    @rule(life=approvals, number=processes, person=people, ran=st.booleans())
    def reconcile(self, life: Life, number: int, person: Person, ran: bool) -> None:
        """A person says whether something of unknown outcome ran."""
        refusal = self.ledger.reconcile(life, person, ran=ran)
        inbox = self.living[number].inbox
        self._expect(refusal, lambda: inbox.reconcile(life.id, person, ran=ran))

    @rule(number=processes)
    def verify_outcomes(self, number: int) -> None:
        """A check finds out whether what is unknown ran; it cannot tell while the holder lives."""
        ran = {each for each, _ in self.ledger.effects}
        unknown = {life.id: life for life in self.ledger.lives.values() if life.status is Status.UNKNOWN}

        def check(approval: Approval) -> bool | None:
            assert approval.id in unknown
            return True if approval.id in ran else (None if approval.id in self.settlements else False)

        settled = self.living[number].gate.reconcile(check)
        told = {each for each in unknown if each in ran or each not in self.settlements}
        assert {each.id for each in settled} == told
        for each in told:
            unknown[each].status = Status.DONE if each in ran else Status.FAILED
            unknown[each].cause = Cause.RECONCILED

    # -- time, crashes, policy -------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.001, 1, 60, 150, 299.999, 300, 601, 900, 2000]))
    def wait(self, seconds: float) -> None:
        """Time goes by."""
        self.clock.advance(seconds)
        self._settle_agents()

    @rule(life=approvals, after=st.sampled_from([0, 0, 1]))
    def wait_for_deadline(self, life: Life, after: int) -> None:
        """Time stops at a deadline or at the end of a lease, or one millisecond after it."""
        moment = (life.until if life.status is Status.RUNNING else life.deadline) + after
        if moment > self.clock.now():
            self.clock.advance((moment - self.clock.now()) / 1000)
            assert self.clock.now() == moment
            self._settle_agents()

    @rule(number=processes)
    def sweep(self, number: int) -> None:
        """A worker does what is due."""
        now, lives = self.clock.now(), self.ledger.lives.values()
        expired = sum(self.ledger.expire(life, now) for life in lives)
        unknown = sum(self.ledger.lapse(life, now) for life in lives)
        done = run_once(self.living[number].store)
        assert (done.expired, done.unknown) == (expired, unknown)

    @rule(life=approvals, number=processes)
    def settle(self, life: Life, number: int) -> None:
        """An agent asks how it stands."""
        self.ledger.expire(life, self.clock.now())
        settlement = self.living[number].gate.settle(life.id)
        assert (settlement is None) == (life.status is Status.PENDING)
        assert settlement is None or not settlement.may_run

    @precondition(lambda self: len(cast("Lives", self).dead) < CRASHES)
    @rule(number=processes)
    def crash(self, number: int) -> None:
        """A process dies, with whatever waited or held a permit in it, and another takes its place."""
        self._die(number)

    @rule(level=st.sampled_from([LOOSE, USUAL, STRICT, CLOSED]))
    def replace_policy(self, level: int) -> None:
        """Somebody changes the policy while approvals are pending."""
        self.level = level
        for each in self.living:
            each.obey(POLICIES[level])

    # -- what must hold --------------------------------------------------------------------

    @invariant()
    def every_process_sees_what_the_ledger_says(self) -> None:
        """No approval or decision is lost, and nothing changed that nothing changed (G4, G5, G9)."""
        for process in self.living:
            assert {
                each: str(life.status) for each, life in self.ledger.lives.items()
            } == process.store.statuses()
            for life in self.ledger.lives.values():
                self._compare(life, process.store.get(life.id))

    @invariant()
    def nobody_decided_their_own(self) -> None:
        """The agent, its agents and whoever asked for it decide nothing (G6)."""
        for life in self.ledger.lives.values():
            assert not life.requesters & {each.person.id for each in life.given}

    @invariant()
    def the_audit_is_sound(self) -> None:
        """Every transition is in the audit, and every late decision (G5, G7)."""
        store = self.living[0].store
        report = verify(store.entries(), heads=store.heads(), statuses=store.statuses())
        assert report.sound, report.findings
        late = [entry.approval_id for entry in store.entries() if entry.kind == "late"]
        assert {each: late.count(each) for each in late} == {
            each.id: each.late for each in self.ledger.lives.values() if each.late
        }


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=120,
    stateful_step_count=60,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@pytest.mark.prove
@pytest.mark.parametrize("part", range(10))
def test_thousands_of_long_lives_go_as_the_ledger_says(part: int) -> None:
    run_state_machine_as_test(
        Lives, settings=settings(TestLives.settings, max_examples=400, stateful_step_count=80)
    )
