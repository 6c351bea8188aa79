# pyright: reportUnnecessaryTypeIgnoreComment=true
"""The types a user of the public API sees. `make check` lets pyright read it; it is never run.

Lines that must be refused carry an ignore; pyright reports an ignore that nothing needs.
"""

from collections.abc import Mapping
from typing import assert_type

from sayso import (
    Action,
    Answer,
    Approval,
    AsyncGate,
    Clock,
    Context,
    Decision,
    DecisionKind,
    Effect,
    Gate,
    Inbox,
    Json,
    ManualClock,
    Money,
    Origin,
    Outcome,
    Permit,
    Person,
    Policy,
    Presentation,
    ProofKind,
    ProofRule,
    Reason,
    Resolution,
    Rule,
    Settlement,
    Silence,
    Status,
    Store,
    SystemClock,
    Terms,
    Verdict,
    acting,
    open_store,
    present,
    running,
)
from sayso.audit import Entry
from sayso.clock import Millis
from sayso.errors import Late, Refused, SaysoError


def an_action(action: Action) -> None:
    """An action is made by keyword, from JSON values, and never changes."""
    assert_type(action.tool, str)
    assert_type(action.args, Mapping[str, Json])
    assert_type(action.digest, str)
    assert_type(action.canonical_args, bytes)
    assert_type(action.confidence, float | None)
    assert_type(action.origins, Mapping[str, Origin])
    Action(tool="pay", args={"to": ["ann"], "cents": 12, "memo": None}, thread="t1")
    Action("pay", {}, "t1")  # pyright: ignore[reportCallIssue]
    Action(tool="pay", args={"when": object()}, thread="t1")  # pyright: ignore[reportArgumentType]
    action.tool = "other"  # pyright: ignore[reportAttributeAccessIssue]


def a_policy(action: Action, context: Context) -> None:
    """A policy is its rules; its verdict is a value."""
    rule = Rule(tool="pay", effect=Effect.IRREVERSIBLE, confirm=ProofRule(kind=ProofKind.CODE))
    policy = Policy([rule], unlisted=Outcome.DENY)
    assert_type(Policy.from_file("sayso.yaml"), Policy)
    assert_type(Policy.from_text("tools: {}"), Policy)
    assert_type(Policy.from_interrupt_on({"pay": True}), Policy)
    verdict = policy.judge(action, context)
    assert_type(verdict, Verdict)
    assert_type(verdict.outcome, Outcome)
    assert_type(verdict.reasons, tuple[Reason, ...])
    assert_type(verdict.terms, Terms | None)
    assert_type(policy.judge_batch([action]), tuple[Verdict, ...])
    assert_type(Money(1250, "EUR").minor, int)
    Money(12.5, "EUR")  # pyright: ignore[reportArgumentType]


def a_store(clock: Clock) -> None:
    """Opening a store says nothing about its kind."""
    assert_type(open_store(), Store)
    assert_type(open_store("sqlite:///a.db", clock=clock), Store)
    assert_type(open_store(":memory:", clock=SystemClock()), Store)
    assert_type(ManualClock().advance(1.5), Millis)


def the_agents_door(gate: Gate, action: Action) -> None:
    """A gate blocks until what may run is known."""
    settlement = gate.ask(action)
    assert_type(settlement, Settlement)
    assert_type(settlement.action, Action)
    assert_type(settlement.permit, Permit | None)
    assert_type(settlement.response, str | None)
    assert_type(settlement.refusal, SaysoError | None)
    assert_type(settlement.check(), Settlement)
    gate.complete(settlement, error="")
    gate.renew(settlement)
    assert_type(gate.open(action), Approval)
    assert_type(gate.settle("a1"), Settlement | None)
    assert_type(gate.claim("a1"), Settlement)
    assert_type(gate.reconcile(lambda _: True), list[Approval])


def guarded_functions(gate: Gate) -> None:
    """Guarding a function keeps its signature, and what it returns."""

    @gate.guard
    def book(flight: str, *, seats: int = 1) -> bool:
        return bool(flight) and seats > 0

    @gate.guard(tool="book_flight")
    def book_named(flight: str) -> None: ...

    assert_type(book("UA 212", seats=2), bool)
    book(212)  # pyright: ignore[reportArgumentType]
    book_named(seats=2)  # pyright: ignore[reportCallIssue]
    book("UA 212", 2)  # pyright: ignore[reportCallIssue]
    assert_type(running(), Settlement | None)
    with acting(thread="t1", agents=("assistant", "booker"), origins={"flight": Origin.WEB}):
        book("UA 212")


async def guarded_coroutines(gate: AsyncGate) -> None:
    """A guarded coroutine function is awaited as before."""

    @gate.guard
    async def book(flight: str) -> list[str]:
        return [flight]

    assert_type(await book("UA 212"), list[str])
    await book(212)  # pyright: ignore[reportArgumentType]


async def the_agents_door_for_event_loops(
    gate: AsyncGate, inbox: Inbox, action: Action, answer: Answer
) -> None:
    """The same verbs, awaited."""
    settlement = await gate.ask(action)
    assert_type(settlement, Settlement)
    assert_type(await gate.open(action), Approval)
    assert_type(await gate.settle("a1"), Settlement | None)
    assert_type(await gate.claim("a1"), Settlement)
    await gate.complete(settlement)
    assert_type(await inbox.adecide("a1", answer), Approval)
    gate.ask(action).check()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def the_persons_door(inbox: Inbox, person: Person) -> None:
    """Every answer is about what was shown."""
    card = inbox.show("a1")
    assert_type(card, Presentation)
    assert_type(card.decisions, tuple[DecisionKind, ...])
    assert_type(inbox.challenge(card, person), str)
    assert_type(inbox.approve(card, person, proof="K7Q2"), Approval)
    assert_type(inbox.reject(card, person, "too expensive"), Approval)
    assert_type(inbox.respond(card, person, "take the train"), Approval)
    assert_type(inbox.history("a1"), list[Entry])
    assert_type(inbox.page().approvals, tuple[Approval, ...])
    inbox.approve("a1", person)  # pyright: ignore[reportArgumentType]


def an_approval(approval: Approval) -> None:
    """An approval tells what waits, what was decided and how it ended."""
    assert_type(approval.status, Status)
    assert_type(approval.effective, Action)
    assert_type(approval.deadline, Millis)
    assert_type(approval.terms.silence, Silence)
    assert_type(approval.decisions, tuple[Decision, ...])
    assert_type(approval.resolution, Resolution | None)
    assert_type(present(approval, 0), Presentation)


def errors(gate: Gate, action: Action) -> str:
    """Refusals are caught by family, and carry words and a code."""
    try:
        gate.ask(action).check()
    except Refused as refused:
        return f"{refused.code}: {refused.message} {refused.hint} {refused.approval_id}"
    return Late.code
