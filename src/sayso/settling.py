"""How an action is cleared to run, said once for threads and event loops alike.

The steps are generators that yield what they need (a write, a wait) and get it back; the
gates only carry those out. Fail closed: any fault leaves the generator as an error, and then
nothing may run.
"""

import itertools
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Protocol, TypeAlias, TypeVar, cast

from sayso.actions import Action, Json, canonical
from sayso.approvals import Approval, Cause, Status, Terms
from sayso.clock import SECOND, Millis
from sayso.decisions import Change, Event, claim, expire, release, supersede, withdraw
from sayso.errors import (
    ClaimRefused,
    Denied,
    SaysoError,
)
from sayso.policy import Context, Outcome, Verdict, stricter
from sayso.scanner import redact_text
from sayso.settlement import Settlement, refusal_of
from sayso.stores.base import Alter, Open, Write

ID_DIGITS = 20
"""How many hexadecimal digits name an approval: 80 bits, so that no two ever meet."""


class Place(Protocol):
    """A place among the waiting agents."""

    def wake_after(self, deadline: Millis) -> None:
        """Wake after this deadline instead, in milliseconds since the epoch."""
        ...

    def drop(self) -> None:
        """Give the place up."""
        ...


@dataclass(frozen=True, slots=True)
class Expect:
    """Take a place among the waiting agents; answered by that place.

    Args:
        approval_id: The approval that will be waited for, stored or about to be.
        deadline: When to wake without an answer, in milliseconds since the epoch.
        holder: Who would run it; a decision hands the permit over at once.
    """

    approval_id: str
    deadline: Millis
    holder: str


@dataclass(frozen=True, slots=True)
class Await:
    """Wait in a place until the approval changes or its deadline passes."""

    place: Place


@dataclass(frozen=True, slots=True)
class Read:
    """Read an approval as it is now."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class Note:
    """Write down something about an action nobody was asked about."""

    event: Event


Need: TypeAlias = Write | Expect | Await | Read | Note
Reply: TypeAlias = Change | Approval | Place | None
T = TypeVar("T")
Flow: TypeAlias = Generator[Need, Reply, T]

Judge: TypeAlias = Callable[[Action, Context | None], Verdict]
"""Says what policy thinks of an action."""

Observe: TypeAlias = Callable[[Action], Mapping[str, Json]]
"""Reads what an action relies on (a version, a balance, a hash); raises when it cannot."""


def approval_id(action: Action, replaces: str = "") -> str:
    """Return the name of an approval: the same request has the same name."""
    text = f"{action.digest} {action.call_id} {replaces}"
    return "ap" + sha256(text.encode()).hexdigest()[:ID_DIGITS]


def new_approval(action: Action, verdict: Verdict, terms: Terms, now: Millis, replaces: str = "") -> Approval:
    """Return the approval that asks people about an action."""
    return Approval(
        id=approval_id(action, replaces),
        action=action,
        terms=terms,
        why=verdict.why,
        description=redact_text(verdict.description) if verdict.description else "",
        opened_at=now,
        deadline=now + terms.window * SECOND,
        replaces=replaces,
    )


class Settling:
    """The steps from an action to the right to run it.

    Args:
        judge: Says what policy thinks of an action; never raises.
        name: The gate, as the audit names it.
        now: Tells the store's time.
        observe: What to read again before running, by tool.
    """

    def __init__(
        self, *, judge: Judge, name: str, now: Callable[[], Millis], observe: Mapping[str, Observe]
    ) -> None:
        self._judge = judge
        self.name = name
        self._now = now
        self._observe = observe
        self._numbers = itertools.count(1)
        self._nonce = secrets.token_hex(4)

    def ask(self, action: Action, verdict: Verdict, context: Context | None) -> Flow[Settlement]:
        """Open, wait, settle."""
        if verdict.terms is None:
            if verdict.outcome is Outcome.DENY:
                yield Note(_noted("denied", action, verdict))
            return Settlement(action=action, verdict=verdict)
        request = self._request(action, verdict, verdict.terms)
        return (yield from self._follow(request, Open(approval=request), verdict, context))

    def ask_again(self, known: Approval, context: Context | None) -> Flow[Settlement]:
        """Follow a request that was asked before, whatever policy would say about it today (G4)."""
        return (yield from self._follow(known, None, _asked(known), context))

    def _follow(
        self, approval: Approval, first: Open | None, verdict: Verdict, context: Context | None
    ) -> Flow[Settlement]:
        """Wait for an approval and for whatever takes its place, then take the permit."""
        holder = self._holder()
        approval = yield from self._waited(approval, holder, first)
        while True:
            if approval.status is Status.APPROVED or _is_held(approval, holder):
                starting = self._start(approval, holder, context)
                approval = yield from _undone_if_cancelled(starting, approval.id, _take_back(holder))
            successor = approval.resolution.successor if approval.resolution else ""
            if not successor:
                return _settled(approval, verdict, holder)
            approval = yield from _read(successor)
            approval = yield from self._waited(approval, holder, None)

    def open(self, action: Action, verdict: Verdict) -> Flow[Approval]:
        """Store the request; the same request again finds the one there is."""
        if verdict.terms is None:
            raise Denied(
                f"policy asks nobody about `{action.tool}`: it is {verdict.outcome}", hint=verdict.why
            )
        request = self._request(action, verdict, verdict.terms)
        return (yield from _write(Open(approval=request))).approval

    def settle(self, approval_id: str, verdict: Verdict | None = None) -> Flow[Settlement | None]:
        """Return how an approval ended, applying its deadline; None while it is pending."""
        approval = yield from _read(approval_id)
        if approval.status is Status.PENDING and self._now() > approval.deadline:
            approval = (yield from _write(Alter(approval_id=approval_id, step=expire))).approval
        if approval.status is Status.PENDING:
            return None
        return _settled(approval, verdict or _asked(approval), "")

    def claim(self, approval_id: str, action: Action | None, context: Context | None) -> Flow[Settlement]:
        """Take the permit of an approved action, judging it once more first."""
        approval = yield from _read(approval_id)
        holder = self._holder()
        if approval.status is Status.PENDING and self._now() > approval.deadline:
            approval = (yield from _write(Alter(approval_id=approval_id, step=expire))).approval
        if approval.status is not Status.APPROVED:
            raise refusal_of(approval)
        if action is not None and action.digest != approval.effective.digest:
            claim(approval, action.digest, holder, self._now())
        starting = self._start(approval, holder, context)
        approval = yield from _undone_if_cancelled(starting, approval_id, _let_go(holder))
        settlement = _settled(approval, _asked(approval), holder)
        if not settlement.may_run and approval.resolution and approval.resolution.successor:
            raise ClaimRefused(
                f"approval {approval_id} no longer covers it: {approval.resolution.message}",
                hint=f"approval {approval.resolution.successor} was opened instead",
                approval_id=approval_id,
            )
        return settlement.check()

    def _waited(self, approval: Approval, holder: str, first: Open | None) -> Flow[Approval]:
        """Open if need be, then wait for the answer or the deadline.

        The place is taken before the approval is stored or read, so that no answer is missed.
        A cancelled agent takes its request back.
        """
        answer = self._answer(approval, holder, first)
        return (yield from _undone_if_cancelled(answer, approval.id, _take_back(holder)))

    def _answer(self, approval: Approval, holder: str, first: Open | None) -> Flow[Approval]:
        place = yield from _place(approval, holder)
        try:
            if first is not None:
                approval = (yield from _write(first)).approval
            else:
                approval = yield from _read(approval.id)
            while approval.status is Status.PENDING:
                # An earlier run may have opened it, with a deadline of its own.
                place.wake_after(approval.deadline)
                woken = yield Await(place)
                if isinstance(woken, Approval):
                    approval = woken
                    continue
                approval = (yield from _write(Alter(approval_id=approval.id, step=expire))).approval
                if approval.status is Status.PENDING:
                    # A place wakes once: take another before reading what may have been missed.
                    place.drop()
                    place = yield from _place(approval, holder)
                    approval = yield from _read(approval.id)
        finally:
            place.drop()
        return approval

    def _start(self, approval: Approval, holder: str, context: Context | None) -> Flow[Approval]:
        """Ask policy and the world once more, then take the permit."""
        action = approval.effective
        verdict = self._judge(action, context)
        held = _is_held(approval, holder)
        problem, successor = self._drift(approval, verdict)
        if problem and successor is None:
            step = _stop(
                held, lambda a, now: withdraw(a, now, by=self.name, cause=Cause.POLICY, message=problem)
            )
        elif successor is not None:
            opened = successor
            step = _stop(
                held, lambda a, now: supersede(a, opened, now, by=self.name, via="gate", why=problem)
            )
        elif held:
            return approval
        else:
            step = _claiming(action.digest, holder)
        return (yield from _write(Alter(approval_id=approval.id, step=step))).approval

    def _drift(self, approval: Approval, verdict: Verdict) -> tuple[str, Approval | None]:
        """Return what changed since the pause, and the approval that must be asked for, if any."""
        action = approval.effective
        if verdict.outcome is Outcome.DENY:
            return verdict.why, None
        tightened = (
            verdict.terms if verdict.terms is not None and stricter(verdict.terms, approval.terms) else None
        )
        if action.tool in self._observe:
            try:
                facts = dict(self._observe[action.tool](action))
            except SaysoError as error:
                return f"its preconditions could not be read: {error}", None
            # What an edited action relies on was not read when the person chose its arguments.
            changed = "" if approval.edited and not action.facts else _fact_changes(action.facts, facts)
            if changed:
                why = redact_text(f"it was approved under other circumstances: {changed}")
                fresh = replace(action, facts=facts)
                renewed = new_approval(fresh, verdict, tightened or approval.terms, self._now(), approval.id)
                return why, replace(renewed, why=why)
        if tightened is not None:
            why = f"policy became stricter since it was approved: {verdict.why}"
            return why, replace(new_approval(action, verdict, tightened, self._now(), approval.id), why=why)
        return "", None

    def _request(self, action: Action, verdict: Verdict, terms: Terms) -> Approval:
        """Return the approval to open, with what the action relies on read now."""
        if not action.call_id:
            action = replace(action, call_id=secrets.token_hex(6))
        if action.tool in self._observe:
            action = replace(action, facts=self._observe[action.tool](action))
        return new_approval(action, verdict, terms, self._now())

    def _holder(self) -> str:
        """Return a name that no other run has: two agents that share one would both hold the permit."""
        return f"{self.name}/{self._nonce}-{next(self._numbers)}"


def _noted(kind: str, action: Action, verdict: Verdict) -> Event:
    data: dict[str, Json] = {"tool": action.tool, "digest": action.digest, "rule": verdict.rule}
    if verdict.reasons:
        data["reasons"] = [str(reason) for reason in verdict.reasons]
    return Event(kind=kind, thread=action.thread, by=action.requested_by, data=data)


def _asked(approval: Approval) -> Verdict:
    """Return the verdict an approval was opened with."""
    terms = approval.terms
    return Verdict(
        outcome=Outcome.ASK,
        effect=terms.effect,
        reasons=terms.reasons,
        rule=terms.rule,
        why=approval.why,
        description=approval.description,
        terms=terms,
    )


def _settled(approval: Approval, verdict: Verdict, holder: str) -> Settlement:
    permit = approval.permit if _is_held(approval, holder) else None
    return Settlement(action=approval.effective, verdict=verdict, approval=approval, permit=permit)


def _is_held(approval: Approval, holder: str) -> bool:
    permit = approval.permit
    return approval.status is Status.RUNNING and permit is not None and permit.holder == holder


def _claiming(digest: str, holder: str) -> Callable[[Approval, Millis], Change]:
    return lambda approval, now: claim(approval, digest, holder, now)


def _stop(held: bool, step: Callable[[Approval, Millis], Change]) -> Callable[[Approval, Millis], Change]:  # noqa: FBT001 - a private switch
    """Give the permit back first when it is held, in the same transaction."""

    def stopping(approval: Approval, now: Millis) -> Change:
        if not held or approval.permit is None:
            return step(approval, now)
        freed = release(approval, approval.permit, approval.permit.holder)
        stopped = step(freed.approval, now)
        return replace(stopped, events=freed.events + stopped.events)

    return stopping


def _undone_if_cancelled(
    flow: Flow[T], approval_id: str, undo: Callable[[Approval, Millis], Change]
) -> Flow[T]:
    """Go through a flow, and undo what it wrote when the agent is cancelled in the middle of it.

    A fault of the store is no cancellation: the request and its answer stay for the next try.
    """
    try:
        return (yield from flow)
    except (SaysoError, GeneratorExit):
        raise
    except BaseException:
        with suppress(SaysoError):
            yield Alter(approval_id=approval_id, step=undo)
        raise


def _let_go(holder: str) -> Callable[[Approval, Millis], Change]:
    def step(approval: Approval, _now: Millis) -> Change:
        if approval.permit is None or not _is_held(approval, holder):
            return Change(approval=approval)
        return release(approval, approval.permit, holder)

    return step


def _take_back(holder: str) -> Callable[[Approval, Millis], Change]:
    def step(approval: Approval, now: Millis) -> Change:
        held = _is_held(approval, holder)
        return _stop(
            held,
            lambda a, at: withdraw(a, at, by=holder, cause=Cause.CANCELLED, message="the run was cancelled"),
        )(approval, now)

    return step


def _fact_changes(before: Mapping[str, Json], after: Mapping[str, Json]) -> str:
    """Say what differs, in canonical form: a store may give a tuple back as a list."""
    was, now = ({name: canonical(fact).decode() for name, fact in facts.items()} for facts in (before, after))
    names = sorted(was.keys() | now.keys())
    changes = [
        f"{name} was {was.get(name, 'unknown')}, is {now.get(name, 'unknown')}"
        for name in names
        if was.get(name) != now.get(name)
    ]
    return "; ".join(changes)


def _place(approval: Approval, holder: str) -> Flow[Place]:
    return cast("Place", (yield Expect(approval.id, approval.deadline, holder)))


def _write(write: Write) -> Flow[Change]:
    change = yield write
    if not isinstance(change, Change):
        raise TypeError(f"a write must be answered by its change, got {change!r}")
    return change


def _read(approval_id: str) -> Flow[Approval]:
    approval = yield Read(approval_id)
    if not isinstance(approval, Approval):
        raise TypeError(f"a read must be answered by its approval, got {approval!r}")
    return approval
