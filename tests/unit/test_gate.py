"""The agent's door: what may run, once, and that every fault stops the action."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sayso import Action, Effect, Gate, Inbox, ManualClock, Outcome, Policy, Rule, Silence, open_store
from sayso.actions import Json
from sayso.approvals import Approval, DecisionKind, ProofKind, ProofRule, Status
from sayso.errors import (
    ClaimRefused,
    Denied,
    Expired,
    Late,
    NotFound,
    OutcomeUnknown,
    Rejected,
    StoreError,
    Withdrawn,
)
from sayso.policy import Context, Verdict
from sayso.settlement import Settlement
from sayso.stores import Store
from sayso.waiting import waiting_on
from sayso.worker import run_once
from tests.builders import ANN, BEN, BOOKING, LOOKUP, POLICY, T0, WINDOW, action, asking, soon
from tests.guarantees import guarantee


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> Iterator[Store]:
    """A store in memory."""
    made = open_store(":memory:", clock=clock)
    yield made
    with suppress(StoreError):  # a test may have closed it
        made.close()


@pytest.fixture
def gate(store: Store) -> Gate:
    """The agent's door."""
    return Gate(store=store, policy=POLICY, name="gate")


@pytest.fixture
def inbox(store: Store) -> Inbox:
    """The person's door."""
    return Inbox(store=store, policy=POLICY)


def settled(outcomes: list[Settlement | BaseException]) -> Settlement:
    assert len(outcomes) == 1
    assert isinstance(outcomes[0], Settlement), outcomes[0]
    return outcomes[0]


def kinds(store: Store) -> list[str]:
    return [entry.kind for entry in store.entries()]


# -- judging ---------------------------------------------------------------------------------


def test_judging_changes_nothing_and_asks_nobody(gate: Gate, store: Store) -> None:
    for tool in ("book_flight", "search_flights", "drop_table", "unheard_of"):
        assert gate.judge(action(tool)) == gate.judge(action(tool))
    gate.close()
    assert kinds(store) == []
    assert store.counts() == {}


class BrokenPolicy(Policy):
    """A policy with a defect."""

    def judge(self, action: Action, context: Context | None = None) -> Verdict:
        """Break."""
        raise RuntimeError(action.tool, context)


@guarantee("G10")
def test_a_policy_that_breaks_denies(store: Store) -> None:
    gate = Gate(store=store, policy=BrokenPolicy([LOOKUP]), name="gate")
    assert gate.judge(action("search_flights")).outcome is Outcome.DENY
    settlement = gate.ask(action("search_flights"))
    assert not settlement.may_run
    with pytest.raises(Denied, match="could not be asked: RuntimeError"):
        settlement.check()


def test_an_allowed_action_may_run_and_is_written_down_without_its_arguments(
    gate: Gate, store: Store
) -> None:
    settlement = gate.ask(action("search_flights", {"card": "4111"}))
    assert settlement.check().may_run
    assert settlement.permit is None
    gate.complete(settlement)
    gate.close()
    assert kinds(store) == ["allowed"]
    assert "4111" not in next(store.entries()).body


def test_allowed_actions_can_be_left_out_of_the_audit(store: Store) -> None:
    gate = Gate(store=store, policy=POLICY, name="gate", audit_allowed=False)
    assert gate.ask(action("search_flights")).may_run
    gate.close()
    assert kinds(store) == []


@guarantee("G7")
def test_a_denied_action_may_not_run_and_is_written_down_at_once(gate: Gate, store: Store) -> None:
    settlement = gate.ask(action("drop_table"))
    assert not settlement.may_run
    assert settlement.response is None
    assert kinds(store) == ["denied"]
    with pytest.raises(Denied, match="policy denies `drop_table`"):
        settlement.check()
    with pytest.raises(Denied, match="asks nobody"):
        gate.open(action("search_flights"))


# -- asking ----------------------------------------------------------------------------------


@guarantee("G1")
@guarantee("G3")
def test_an_approved_action_gets_one_permit_which_is_spent_by_completing(
    gate: Gate, inbox: Inbox, store: Store
) -> None:
    with asking(gate, action(), inbox) as (asked, outcomes):
        assert outcomes == []
        inbox.approve(inbox.show(asked.id), ANN)
    settlement = settled(outcomes).check()
    assert settlement.permit is not None
    assert settlement.action.args == action().args
    gate.complete(settlement)
    with pytest.raises(ClaimRefused):
        gate.complete(settlement)
    assert kinds(store) == ["opened", "approved", "claimed", "done"]
    assert gate.open(action()).id == asked.id
    again = gate.ask(action())
    assert not again.may_run
    with pytest.raises(ClaimRefused, match="started already"):
        again.check()


@guarantee("G4")
def test_a_rejected_action_stays_rejected_when_it_is_asked_again(gate: Gate, inbox: Inbox) -> None:
    with asking(gate, action(), inbox) as (asked, outcomes):
        inbox.reject(asked, ANN, "too dear")
    with pytest.raises(Rejected, match="too dear"):
        settled(outcomes).check()
    assert gate.open(action()).id == asked.id
    with pytest.raises(Rejected):
        gate.ask(action()).check()
    with pytest.raises(Rejected):
        gate.claim(asked.id)


@guarantee("G4")
def test_a_rejected_action_stays_rejected_when_policy_becomes_looser(
    gate: Gate, inbox: Inbox, store: Store
) -> None:
    with asking(gate, action(), inbox) as (asked, _):
        inbox.reject(asked, ANN)
    looser = Gate(
        store=store, policy=Policy([Rule(tool="book_flight", when="args.price > 1000000")]), name="g2"
    )
    with pytest.raises(Rejected):
        looser.claim(asked.id)


@guarantee("G5")
def test_silence_denies_at_the_deadline_and_a_late_yes_changes_nothing(
    gate: Gate, inbox: Inbox, clock: ManualClock
) -> None:
    with asking(gate, action(), inbox) as (asked, outcomes):
        clock.advance(WINDOW + 1)
    with pytest.raises(Expired, match="within 300 s"):
        settled(outcomes).check()
    with pytest.raises(Late, match=r"came 1\.0 s after its deadline"):
        inbox.approve(asked, ANN)
    with pytest.raises(Expired):
        gate.claim(asked.id)


def test_silence_lets_the_reversible_run_where_policy_says_so(
    store: Store, clock: ManualClock, inbox: Inbox
) -> None:
    rule = Rule(tool="book_flight", effect=Effect.REVERSIBLE, silence=Silence.ALLOW)
    gate = Gate(store=store, policy=Policy([rule]), name="gate")
    with asking(gate, action(), inbox) as (_, outcomes):
        clock.advance(WINDOW + 1)
    assert settled(outcomes).may_run
    assert kinds(store) == ["opened", "expired", "claimed"]


def test_words_are_the_result_and_nothing_may_run(gate: Gate, inbox: Inbox) -> None:
    with asking(gate, action(), inbox) as (asked, outcomes):
        inbox.respond(asked, ANN, "take the train")
    settlement = settled(outcomes).check()
    assert settlement.response == "take the train"
    assert not settlement.may_run


def test_an_edited_action_is_what_may_run(gate: Gate, inbox: Inbox) -> None:
    with asking(gate, action(), inbox) as (asked, outcomes):
        inbox.edit(asked, ANN, {"flight": "TP 1", "price": 310.5})
    settlement = settled(outcomes)
    assert settlement.was_edited
    assert settlement.action.args == {"flight": "TP 1", "price": 310.5}
    assert settlement.permit is not None
    assert settlement.permit.digest == settlement.action.digest


@guarantee("G3")
def test_of_two_agents_that_wait_for_one_approval_only_one_may_run(gate: Gate, inbox: Inbox) -> None:
    outcomes: list[Settlement] = []
    agents = [
        threading.Thread(target=lambda: outcomes.append(gate.ask(action())), daemon=True) for _ in range(2)
    ]
    for agent in agents:
        agent.start()
    soon(lambda: inbox.page().approvals)
    asked = inbox.page().approvals[0]
    inbox.approve(asked, ANN)
    for agent in agents:
        agent.join(10)
    assert sorted(each.may_run for each in outcomes) == [False, True]


@guarantee("G2")
def test_what_the_agent_changes_while_it_waits_is_not_what_may_run(gate: Gate, inbox: Inbox) -> None:
    args: dict[str, Json] = {"price": 1}
    with asking(gate, action(args=args), inbox) as (asked, outcomes):
        args["price"] = 9999
        assert "9999" not in repr(inbox.show(asked.id))
        inbox.approve(asked, ANN)
    assert settled(outcomes).action.args == {"price": 1}


def test_calls_without_an_id_are_different_requests(gate: Gate) -> None:
    first, second = gate.open(action(call_id="")), gate.open(action(call_id=""))
    assert first.id != second.id


class Counting:
    """A store that counts what is written through it."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.writes = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def write(self, write: object) -> object:
        self.writes += 1
        return self._inner.write(write)  # pyright: ignore[reportArgumentType] - passed on


def test_an_agent_that_comes_with_a_shorter_deadline_waits_quietly_for_the_stored_one(
    store: Store, inbox: Inbox, clock: ManualClock
) -> None:
    asked = Gate(store=store, policy=POLICY, name="earlier").open(action())
    counting = Counting(store)
    hasty = Gate(store=counting, policy=Policy([replace(BOOKING, window=60)]), name="later")  # pyright: ignore[reportArgumentType] - passes everything on
    outcomes: list[Settlement] = []
    agent = threading.Thread(target=lambda: outcomes.append(hasty.ask(action())), daemon=True)
    agent.start()
    soon(lambda: counting.writes == 1)
    clock.advance(61)
    soon(lambda: counting.writes == 2)
    threading.Event().wait(0.1)
    assert counting.writes == 2
    inbox.reject(asked, ANN)
    agent.join(10)
    assert len(outcomes) == 1
    assert isinstance(outcomes[0].refusal, Rejected)


# -- open, settle, claim, complete -----------------------------------------------------------


def test_an_open_request_is_settled_and_claimed_later(gate: Gate, inbox: Inbox) -> None:
    asked = gate.open(action())
    assert gate.open(action()) == asked
    assert gate.settle(asked.id) is None
    with pytest.raises(ClaimRefused, match="still waits"):
        gate.claim(asked.id)
    inbox.approve(asked, ANN)
    before = gate.settle(asked.id)
    assert before is not None
    assert not before.may_run
    settlement = gate.claim(asked.id, action())
    assert settlement.may_run
    gate.complete(settlement, error="LookupError")
    assert inbox.get(asked.id).status is Status.FAILED


@guarantee("G2")
@pytest.mark.parametrize(
    "other",
    [
        action(args={"price": 1}),
        action("cancel_booking"),
        action(thread="another"),
        replace(action(), agents=()),
    ],
)
def test_a_claim_for_another_action_is_refused_and_the_approval_stays(
    gate: Gate, inbox: Inbox, other: Action
) -> None:
    asked = gate.open(action())
    inbox.approve(asked, ANN)
    with pytest.raises(ClaimRefused, match="is not what was approved"):
        gate.claim(asked.id, other)
    assert gate.claim(asked.id, action()).may_run


@guarantee("G3")
def test_an_approval_is_claimed_once(gate: Gate, inbox: Inbox, store: Store) -> None:
    asked = gate.open(action())
    inbox.approve(asked, ANN)
    settlement = gate.claim(asked.id)
    for other in (gate, Gate(store=store, policy=POLICY, name="other")):
        with pytest.raises(ClaimRefused, match="started already"):
            other.claim(asked.id)
    gate.complete(settlement)
    with pytest.raises(ClaimRefused):
        gate.claim(asked.id)


@guarantee("G5")
def test_settling_and_claiming_apply_a_deadline_no_sweep_has_seen(gate: Gate, clock: ManualClock) -> None:
    first, second = gate.open(action(call_id="1")), gate.open(action(call_id="2"))
    clock.advance(WINDOW + 1)
    settlement = gate.settle(first.id)
    assert settlement is not None
    with pytest.raises(Expired):
        settlement.check()
    with pytest.raises(Expired):
        gate.claim(second.id)


def test_an_approval_nobody_opened_is_named(gate: Gate) -> None:
    for call in (gate.settle, gate.claim, gate.withdraw):
        with pytest.raises(NotFound, match="apnone"):
            call("apnone")


def test_a_withdrawn_request_lets_nothing_run(gate: Gate, inbox: Inbox) -> None:
    with asking(gate, action(), inbox) as (asked, outcomes):
        gate.withdraw(asked.id, "the run was stopped")
    with pytest.raises(Withdrawn, match="the run was stopped"):
        settled(outcomes).check()
    with pytest.raises(ClaimRefused):
        gate.withdraw(asked.id)


def test_an_approved_request_can_be_withdrawn_until_it_is_claimed(gate: Gate, inbox: Inbox) -> None:
    asked = gate.open(action())
    inbox.approve(asked, ANN)
    gate.withdraw(asked.id)
    with pytest.raises(Withdrawn):
        gate.claim(asked.id)


# -- the lease -------------------------------------------------------------------------------


@guarantee("G3")
def test_a_lost_lease_leaves_the_outcome_unknown_and_nothing_runs_again(
    gate: Gate, inbox: Inbox, store: Store, clock: ManualClock
) -> None:
    asked = gate.open(action())
    inbox.approve(asked, ANN)
    settlement = gate.claim(asked.id)
    clock.advance(900)
    assert run_once(store).unknown == 0
    gate.renew(settlement)
    clock.advance(900)
    assert run_once(store).unknown == 0
    clock.advance(1)
    assert run_once(store).unknown == 1
    assert gate.open(action()).id == asked.id
    for call in (lambda: gate.claim(asked.id), lambda: gate.ask(action()).check()):
        with pytest.raises(OutcomeUnknown):
            call()
    with pytest.raises(ClaimRefused):
        gate.renew(settlement)
    gate.complete(settlement)
    assert inbox.get(asked.id).status is Status.DONE


@pytest.mark.parametrize(
    ("ran", "status"), [(True, Status.DONE), (False, Status.FAILED), (None, Status.UNKNOWN)]
)
def test_an_unknown_outcome_is_settled_by_finding_out(
    gate: Gate, inbox: Inbox, store: Store, clock: ManualClock, *, ran: bool | None, status: Status
) -> None:
    asked = gate.open(action())
    inbox.approve(asked, ANN)
    settlement = gate.claim(asked.id)
    clock.advance(901)
    run_once(store)
    found = gate.reconcile(lambda approval: ran if approval.id == asked.id else None)
    assert [each.id for each in found] == ([] if ran is None else [asked.id])
    assert inbox.get(asked.id).status is status
    if ran is not None:
        with pytest.raises(ClaimRefused):
            gate.complete(settlement)


# -- what changed since ----------------------------------------------------------------------

CODE = ProofRule(kind=ProofKind.CODE)


class ChangingPolicy:
    """Rules that somebody replaces while an approval waits."""

    def __init__(self, *rules: Rule) -> None:
        self.now = Policy(rules)

    def judge(self, action: Action, context: Context | None = None) -> Verdict:
        return self.now.judge(action, context)


@pytest.fixture
def changing() -> ChangingPolicy:
    """Rules that can be replaced."""
    return ChangingPolicy(BOOKING)


@pytest.fixture
def drifting(store: Store, changing: ChangingPolicy) -> Gate:
    """A gate whose rules can be replaced."""
    return Gate(store=store, policy=changing, name="gate")  # pyright: ignore[reportArgumentType] - judges as a policy does


@guarantee("G4")
def test_a_denial_since_then_stops_the_run(drifting: Gate, changing: ChangingPolicy, inbox: Inbox) -> None:
    with asking(drifting, action(), inbox) as (asked, outcomes):
        changing.now = Policy([replace(BOOKING, outcome=Outcome.DENY)])
        inbox.approve(asked, ANN)
    with pytest.raises(Denied, match="policy now denies `book_flight`"):
        settled(outcomes).check()
    assert inbox.get(asked.id).status is Status.WITHDRAWN
    assert inbox.get(asked.id).permit is None


@guarantee("G10")
def test_a_policy_that_breaks_since_then_stops_the_run(
    drifting: Gate, changing: ChangingPolicy, inbox: Inbox
) -> None:
    with asking(drifting, action(), inbox) as (asked, outcomes):
        changing.now = BrokenPolicy([BOOKING])
        inbox.approve(asked, ANN)
    with pytest.raises(Denied):
        settled(outcomes).check()
    assert inbox.get(asked.id).permit is None


def test_a_stricter_rule_since_then_asks_again_and_the_agent_follows(
    drifting: Gate, changing: ChangingPolicy, inbox: Inbox
) -> None:
    stricter = replace(BOOKING, approvers={"finance": 1})
    with asking(drifting, action(), inbox) as (asked, outcomes):
        changing.now = Policy([stricter])
        inbox.approve(asked, ANN)
        soon(lambda: inbox.page().approvals)
        successor = inbox.page().approvals[0]
        assert successor.replaces == asked.id
        assert successor.terms.quorum == (("finance", 1),)
        assert "stricter" in successor.why
        inbox.approve(successor, replace(BEN, groups=frozenset({"finance"})))
    settlement = settled(outcomes)
    assert settlement.may_run
    assert settlement.approval is not None
    assert settlement.approval.id == successor.id


def test_a_claim_under_a_stricter_rule_names_the_approval_that_was_opened_instead(
    drifting: Gate, changing: ChangingPolicy, inbox: Inbox
) -> None:
    asked = drifting.open(action())
    inbox.approve(asked, ANN)
    changing.now = Policy([replace(BOOKING, window=60)])
    with pytest.raises(ClaimRefused) as caught:
        drifting.claim(asked.id)
    successor = inbox.page().approvals[0]
    assert successor.id in caught.value.hint
    with pytest.raises(Withdrawn):
        drifting.claim(asked.id)


def test_a_looser_rule_since_then_changes_nothing(
    drifting: Gate, changing: ChangingPolicy, inbox: Inbox
) -> None:
    with asking(drifting, action(), inbox) as (asked, outcomes):
        changing.now = Policy([replace(LOOKUP, tool="book_flight")])
        assert inbox.get(asked.id).status is Status.PENDING
        inbox.approve(asked, ANN)
    assert settled(outcomes).may_run


class Seats:
    """Something an action relies on."""

    def __init__(self) -> None:
        self.facts: dict[str, Json] = {"seats": 3, "at": (1, 2)}
        self.broken = False

    def __call__(self, action: Action) -> Mapping[str, Json]:
        if self.broken:
            raise ConnectionError(action.tool)
        return self.facts


@pytest.fixture
def seats() -> Seats:
    """The seats of a flight."""
    return Seats()


@pytest.fixture
def watching(store: Store, seats: Seats) -> Gate:
    """A gate that looks at the seats before it lets a booking run."""
    return Gate(store=store, policy=POLICY, name="gate", observe={"book_flight": seats})


def test_what_an_action_relies_on_is_kept_with_it(watching: Gate, inbox: Inbox) -> None:
    with asking(watching, action(), inbox) as (asked, outcomes):
        assert inbox.get(asked.id).action.facts["seats"] == 3
        assert any("seats" in field.path for field in inbox.show(asked.id).fields)
        inbox.approve(inbox.show(asked.id), ANN)
    assert settled(outcomes).may_run


def test_what_changed_since_is_shown_in_a_new_approval(watching: Gate, seats: Seats, inbox: Inbox) -> None:
    with asking(watching, action(), inbox) as (asked, outcomes):
        seats.facts = {"seats": 1, "at": (1, 2)}
        inbox.approve(asked, ANN)
        soon(lambda: inbox.page().approvals)
        successor = inbox.page().approvals[0]
        assert successor.replaces == asked.id
        assert "seats was 3, is 1" in successor.why
        assert successor.action.facts["seats"] == 1
        assert successor.deadline == T0 + WINDOW * 1000
        inbox.approve(successor, ANN)
    assert settled(outcomes).may_run
    assert inbox.get(asked.id).status is Status.WITHDRAWN


@guarantee("G10")
def test_preconditions_that_cannot_be_read_stop_the_action(
    watching: Gate, seats: Seats, inbox: Inbox
) -> None:
    seats.broken = True
    with pytest.raises(Denied, match="could not be read: ConnectionError"):
        watching.ask(action())
    assert inbox.page(status=None).approvals == ()
    seats.broken = False
    with asking(watching, action(), inbox) as (asked, outcomes):
        seats.broken = True
        inbox.approve(asked, ANN)
    with pytest.raises(Denied):
        settled(outcomes).check()


# -- faults ----------------------------------------------------------------------------------


@guarantee("G10")
def test_without_its_store_nothing_that_needs_people_may_run(tmp_path: Path) -> None:
    store = open_store(tmp_path / "sayso.db")
    gate = Gate(store=store, policy=POLICY, name="gate")
    store.close()
    calls = [
        lambda: gate.ask(action()),
        lambda: gate.ask(action("drop_table")),
        lambda: gate.open(action()),
        lambda: gate.settle("ap1"),
        lambda: gate.claim("ap1"),
    ]
    for call in calls:
        with pytest.raises(StoreError):
            call()


class FailingOnce:
    """A store that fails one write and then works again."""

    def __init__(self, inner: Store, error: BaseException, at: int) -> None:
        self._inner = inner
        self._error = error
        self._left = at

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def write(self, write: object) -> object:
        self._left -= 1
        if self._left == 0:
            raise self._error
        return self._inner.write(write)  # pyright: ignore[reportArgumentType] - passed on


@guarantee("G9")
def test_a_store_that_fails_for_a_moment_loses_neither_request_nor_decision(
    store: Store, inbox: Inbox
) -> None:
    flaky = FailingOnce(store, StoreError("the disk hiccuped"), at=2)
    gate = Gate(store=flaky, policy=POLICY, name="gate")  # pyright: ignore[reportArgumentType] - passes everything on
    other = Inbox(store=store, policy=POLICY)
    asked = gate.open(action())
    other.approve(asked, ANN)
    with pytest.raises(StoreError):
        gate.ask(action())
    assert inbox.get(asked.id).status is Status.APPROVED
    assert gate.open(action()).id == asked.id
    assert gate.ask(action()).may_run


@pytest.mark.parametrize("at", [1, 2])
def test_an_interrupted_agent_takes_its_request_back(store: Store, inbox: Inbox, at: int) -> None:
    interrupted = FailingOnce(store, KeyboardInterrupt(), at=at)
    gate = Gate(store=interrupted, policy=POLICY, name="gate")  # pyright: ignore[reportArgumentType] - passes everything on
    plain = Gate(store=store, policy=POLICY, name="gate")
    asked = plain.open(action())
    inbox.approve(asked, ANN)
    with pytest.raises(KeyboardInterrupt):
        gate.ask(action())
    left = inbox.get(asked.id)
    assert left.status is Status.WITHDRAWN
    assert left.permit is None


def test_decisions_of_every_kind_end_the_wait(gate: Gate, inbox: Inbox) -> None:
    for kind in DecisionKind:
        with asking(gate, action(call_id=str(kind)), inbox) as (asked, outcomes):
            match kind:
                case DecisionKind.APPROVE:
                    inbox.approve(asked, ANN)
                case DecisionKind.EDIT:
                    inbox.edit(asked, ANN, asked.action.args)
                case DecisionKind.REJECT:
                    inbox.reject(asked, ANN)
                case DecisionKind.RESPOND:
                    inbox.respond(asked, ANN, "no")
        assert outcomes


def test_an_approval_names_itself_by_digest_and_call(gate: Gate) -> None:
    one = gate.open(action())
    assert one.id.startswith("ap")
    assert gate.open(action(call_id="call-2")).id != one.id
    assert gate.open(action(args={"price": 2})).id != one.id
    assert isinstance(one, Approval)


@guarantee("G11")
def test_a_secret_among_the_arguments_is_kept_nowhere_but_in_the_action(tmp_path: Path) -> None:
    secret = "sk-ant-" + "a1B2" * 12
    store = open_store(tmp_path / "sayso.db")
    gate = Gate(store=store, policy=Policy.from_interrupt_on({"pay": True}))
    asked = gate.open(Action(tool="pay", args={"api_key": secret, "to": "acme"}, thread="trip"))
    store.close()
    assert "acme" in asked.description
    assert secret not in asked.description
    with closing(sqlite3.connect(tmp_path / "sayso.db")) as raw:
        tables = ("SELECT * FROM approvals", "SELECT * FROM bodies", "SELECT * FROM entries")
        kept = [row for table in tables for row in raw.execute(table)]
    holders = [value for row in kept for value in row if secret in str(value)]
    assert holders == [asked.action.canonical_args]


@guarantee("G4")
@pytest.mark.parametrize("url", [":memory:", "sayso.db"])
def test_a_rejected_call_stays_rejected_when_policy_allows_it_afterwards(url: str, tmp_path: Path) -> None:
    store = open_store(url if url == ":memory:" else tmp_path / url)
    strict = Gate(store=store, policy=POLICY, name="strict")
    lax = Gate(store=store, policy=Policy([Rule(tool="book_flight", outcome=Outcome.ALLOW)]), name="lax")
    asked = strict.open(action())
    Inbox(store=store).reject(asked, ANN, "no")
    for settlement in (lax.ask(action()), asyncio.run(lax.aask(action()))):
        assert not settlement.may_run
        assert isinstance(settlement.refusal, Rejected)
    assert lax.ask(action(call_id="another")).may_run
    store.close()


@guarantee("G4")
def test_a_call_that_still_waits_keeps_waiting_when_policy_allows_it_meanwhile(
    gate: Gate, store: Store, inbox: Inbox
) -> None:
    asked = gate.open(action())
    lax = Gate(store=store, policy=Policy([Rule(tool="book_flight", outcome=Outcome.ALLOW)]), name="lax")
    outcomes: list[Settlement] = []
    agent = threading.Thread(target=lambda: outcomes.append(lax.ask(action())), daemon=True)
    agent.start()
    soon(lambda: waiting_on(store).holder(asked.id))
    assert outcomes == []
    inbox.approve(inbox.show(asked.id), ANN)
    agent.join(10)
    assert [outcome.may_run for outcome in outcomes] == [True]


def test_reconciling_goes_through_every_page(
    gate: Gate, store: Store, inbox: Inbox, clock: ManualClock
) -> None:
    count = 60
    for number in range(count):
        asked = gate.open(action(call_id=str(number)))
        inbox.approve(asked, ANN)
        gate.claim(asked.id)
    clock.advance(10_000)
    run_once(store)
    assert len(gate.reconcile(lambda _: True)) == count
