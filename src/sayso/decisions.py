"""What may happen to an approval, as functions from one record to the next.

Each step takes an approval, what somebody wants and the store's time, and returns a `Change`
or raises the refusal. Nothing here reads a clock, a store or a policy, and nothing is saved
unless the whole step is valid. The letters A to I are the edges of the life of an approval
in `docs/explanation/life-of-an-approval.md`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sayso.actions import Action, Json, nothing
from sayso.approvals import (
    Approval,
    Cause,
    Decision,
    DecisionKind,
    Permit,
    Person,
    Resolution,
    Silence,
    Status,
    evolve,
)
from sayso.clock import SECOND, Millis, clock_text
from sayso.errors import (
    AlreadyDecided,
    ClaimRefused,
    DecisionRefused,
    DigestMismatch,
    InvalidEdit,
    Late,
    NotAllowed,
    NotPermitted,
    SaysoError,
)
from sayso.quorum import AGREES, counted, missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, on its way into the audit.

    Args:
        kind: What happened, one word.
        thread: The thread whose chain it belongs to.
        approval_id: The approval, empty for an action nobody was asked about.
        by: Who did it: a person, a gate, or empty for time itself.
        via: The door they came through.
        data: The facts, without any argument in clear.
    """

    kind: str
    thread: str
    approval_id: str = ""
    by: str = ""
    via: str = ""
    data: Mapping[str, Json] = field(default_factory=nothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one step does: the next record and what to write down.

    Args:
        approval: The record after the step.
        events: What goes into the audit with it.
        refusal: An error to raise once the events are saved.
        opens: An approval that takes this one's place.
        totp: The person whose one-time password step is spent with it, and the step.
    """

    approval: Approval
    events: tuple[Event, ...] = ()
    refusal: SaysoError | None = None
    opens: Approval | None = None
    totp: tuple[str, int] | None = None


def open_approval(approval: Approval) -> Change:
    """Edge A: an action starts to wait for people."""
    action, terms = approval.action, approval.terms
    data: dict[str, Json] = {
        "digest": action.digest,
        "tool": action.tool,
        "rule": terms.rule,
        "reasons": [str(reason) for reason in terms.reasons],
        "deadline": approval.deadline,
    }
    if action.agents:
        data["agents"] = list(action.agents)
    if approval.replaces:
        data["replaces"] = approval.replaces
    event = _event(approval, "opened", by=action.requested_by, data=data)
    return Change(approval=approval, events=(event,))


def check_open(approval: Approval, decision: Decision, now: Millis) -> Change | None:
    """Check, in this order: a person, still pending, in time, an allowed kind, a permitted person.

    Returns:
        The change that records a decision as late, or None when the decision may go on.

    Raises:
        DecisionRefused: The decision cannot be taken; nothing is to be saved.
    """
    person = decision.person
    if not person.id or not person.via:
        raise NotPermitted(
            "a decision needs a person and the door they came through",
            hint="sign in first",
            approval_id=approval.id,
        )
    if _is_late(approval, now):
        return late(approval, decision, now)
    if approval.status is not Status.PENDING:
        raise AlreadyDecided(
            f"approval {approval.id} was {already(approval)}",
            hint="nothing is left to decide",
            approval_id=approval.id,
        )
    if decision.kind not in approval.terms.decisions:
        allowed = ", ".join(approval.terms.decisions)
        raise NotAllowed(
            f"`{decision.kind}` is not allowed for approval {approval.id}",
            hint=f"choose one of: {allowed}",
            approval_id=approval.id,
        )
    refusal = may_decide(approval, person, decision.kind)
    if refusal:
        raise refusal
    return None


def check_digest(approval: Approval, decision: Decision) -> None:
    """Check that the action the person was shown is the action that is stored.

    Raises:
        DigestMismatch: It is another, or none was named.
    """
    if decision.digest != approval.effective.digest:
        raise DigestMismatch(
            f"the decision is about {decision.digest[:12] or 'no digest'}, "
            f"but approval {approval.id} now holds {approval.effective.digest[:12]}",
            hint="look at it again, then decide",
            approval_id=approval.id,
        )


def may_decide(
    approval: Approval, person: Person, kind: DecisionKind = DecisionKind.APPROVE
) -> NotPermitted | None:
    """Return why this person may not decide this approval, or None when they may (G6).

    Who approved once cannot approve again, but may still say no while others are asked.
    """
    action = approval.action
    name = person.id or "nobody"
    hint = "ask somebody else to decide"
    if not person.id:
        return NotPermitted("a decision needs a person", hint="sign in first", approval_id=approval.id)
    if person.id == action.requested_by or person.id in action.agents:
        problem = f"`{name}` asked for approval {approval.id}, and nobody approves their own request"
        return NotPermitted(problem, hint=hint, approval_id=approval.id)
    quorum = dict(approval.terms.quorum)
    if quorum and not person.groups & quorum.keys():
        groups = " or ".join(f"`{group}`" for group in quorum)
        problem = f"`{name}` may not decide approval {approval.id}: it needs somebody from {groups}"
        return NotPermitted(problem, hint=hint, approval_id=approval.id)
    if kind in AGREES and any(given.person.id == person.id for given in counted(approval)):
        problem = f"`{name}` has approved {approval.id} already, and each approval needs another person"
        return NotPermitted(problem, hint=hint, approval_id=approval.id)
    return None


def decide(
    approval: Approval, decision: Decision, now: Millis, *, edited: Action | None = None, holder: str = ""
) -> Change:
    """Edges B, E and F: take a decision that passed every check, and fold it in.

    Args:
        approval: The approval as stored.
        decision: The decision, already checked by `check_open`, the proof and `check_digest`.
        now: The store's time.
        edited: The action an edit leads to, already judged by policy.
        holder: The gate that waits for this approval right now; it gets the permit at once.
    """
    taken = evolve(decision, at=now, digest=(edited or approval.effective).digest)
    after = evolve(approval, decisions=(*approval.decisions, taken), edited=edited or approval.edited)
    data: dict[str, Json] = {"digest": taken.digest, "proof": str(taken.proof)}
    if taken.shown:
        data["shown"] = taken.shown
    if edited:
        data["from"] = approval.effective.digest
    resolution = resolve(after, now)
    if resolution is None:
        data["missing"] = missing(after)
    event = _event(approval, _PAST[decision.kind], by=decision.person.id, via=decision.person.via, data=data)
    if resolution is None:
        return Change(approval=after, events=(event,))
    after = evolve(after, status=resolution.status, resolution=resolution, challenges=())
    change = Change(approval=after, events=(event,))
    if after.status is Status.APPROVED and holder:
        return _and_then(change, claim(after, after.effective.digest, holder, now))
    return change


def resolve(approval: Approval, now: Millis) -> Resolution | None:
    """Fold the decisions so far into how the approval ends, or None when more are needed.

    One reject or respond settles it; approvals count when they are about the action as it
    now stands, each person for one group only.
    """
    for given in approval.decisions:
        if given.kind in _FINAL_KINDS:
            return Resolution(
                status=_FINAL_KINDS[given.kind],
                cause=Cause.DECISION,
                at=now,
                by=given.person.id,
                message=given.message,
            )
    agreed = counted(approval)
    if not agreed or missing(approval):
        return None
    return Resolution(status=Status.APPROVED, cause=Cause.DECISION, at=now, by=agreed[-1].person.id)


def late(approval: Approval, decision: Decision, now: Millis) -> Change:
    """Record a decision that came after the deadline; it changes nothing (G5)."""
    base = expire(approval, now) if approval.status is Status.PENDING else Change(approval=approval)
    seconds = (now - approval.deadline) / SECOND
    event = _event(
        approval,
        "late",
        by=decision.person.id,
        via=decision.person.via,
        data={"decision": str(decision.kind), "digest": decision.digest},
    )
    refusal = Late(
        f"the decision on approval {approval.id} came {seconds:.1f} s after its deadline; "
        f"it was {already(base.approval)} and that stands",
        hint="the late decision is on record; ask the agent to request it again",
        approval_id=approval.id,
    )
    return evolve(base, events=(*base.events, event), refusal=refusal)


def expire(approval: Approval, now: Millis) -> Change:
    """Edge G: nobody decided in time. Denied, or allowed when the frozen terms say so."""
    if approval.status is not Status.PENDING or now <= approval.deadline:
        return Change(approval=approval)
    allowed = approval.terms.silence is Silence.ALLOW
    status = Status.APPROVED if allowed else Status.EXPIRED
    resolution = Resolution(status=status, cause=Cause.SILENCE, at=now, message="nobody answered in time")
    after = evolve(approval, status=status, resolution=resolution, challenges=())
    data: dict[str, Json] = {"deadline": approval.deadline, "outcome": "allowed" if allowed else "denied"}
    return Change(approval=after, events=(_event(approval, "expired", data=data),))


def claim(approval: Approval, digest: str, holder: str, now: Millis) -> Change:
    """Edge C: hand out the permit, once, for exactly this digest (G2, G3).

    Raises:
        ClaimRefused: It is not approved, already claimed, or about another action.
    """
    if approval.status is not Status.APPROVED:
        raise ClaimRefused(
            f"approval {approval.id} gives no right to run: it {_standing(approval)}",
            hint=_CLAIM_HINTS.get(approval.status, "ask again with a new request"),
            approval_id=approval.id,
        )
    if not _is_backed(approval):
        raise ClaimRefused(
            f"approval {approval.id} says approved, but no decisions stand behind it",
            hint="its row in the store was changed; run `sayso audit verify`",
            approval_id=approval.id,
        )
    if digest != approval.effective.digest:
        raise ClaimRefused(
            f"what is about to run ({digest[:12]}) is not what was approved "
            f"({approval.effective.digest[:12]}) in {approval.id}",
            hint="nothing was run; ask for approval of the new arguments",
            approval_id=approval.id,
        )
    until = now + approval.terms.lease * SECOND
    permit = Permit(approval_id=approval.id, digest=digest, holder=holder, until=until)
    after = evolve(approval, status=Status.RUNNING, permit=permit)
    event = _event(approval, "claimed", by=holder, data={"digest": digest, "until": until})
    return Change(approval=after, events=(event,))


def release(approval: Approval, permit: Permit, by: str) -> Change:
    """Give an unused permit back: the holder knows that nothing was started.

    Raises:
        ClaimRefused: The permit is not the one held.
    """
    _check_holder(approval, permit)
    after = evolve(approval, status=Status.APPROVED, permit=None)
    return Change(approval=after, events=(_event(approval, "released", by=by),))


def renew(approval: Approval, permit: Permit, now: Millis) -> Change:
    """Extend the lease of a running action.

    Raises:
        ClaimRefused: The lease was lost, or the permit is not the one held.
    """
    _check_holder(approval, permit)
    longer = evolve(permit, until=now + approval.terms.lease * SECOND)
    event = _event(approval, "renewed", by=permit.holder, data={"until": longer.until})
    return Change(approval=evolve(approval, permit=longer), events=(event,))


def complete(approval: Approval, permit: Permit, now: Millis, *, error: str = "") -> Change:
    """Edge D: the holder reports how the run ended, also after the lease was lost.

    Raises:
        ClaimRefused: Somebody else reported or settled it, or the permit is not the one held.
    """
    held = approval.permit
    if approval.status not in {Status.RUNNING, Status.UNKNOWN} or not _same_permit(held, permit):
        raise ClaimRefused(
            f"approval {approval.id} is not being run under this permit: it {_standing(approval)}",
            hint="the first report stands",
            approval_id=approval.id,
        )
    status = Status.FAILED if error else Status.DONE
    resolution = Resolution(status=status, cause=Cause.EXECUTION, at=now, by=permit.holder, message=error)
    after = evolve(approval, status=status, resolution=resolution)
    data: dict[str, Json] = {"digest": permit.digest}
    if error:
        data["error"] = error
    return Change(approval=after, events=(_event(approval, str(status), by=permit.holder, data=data),))


def lapse(approval: Approval, now: Millis) -> Change:
    """Edge H: the lease ended without a report, so nobody knows whether it ran."""
    if approval.status is not Status.RUNNING or not approval.permit or now <= approval.permit.until:
        return Change(approval=approval)
    after = evolve(approval, status=Status.UNKNOWN)
    data: dict[str, Json] = {"digest": approval.permit.digest, "holder": approval.permit.holder}
    return Change(approval=after, events=(_event(approval, "unknown", data=data),))


def reconcile(
    approval: Approval, now: Millis, *, ran: bool, by: str, via: str = "", note: str = ""
) -> Change:
    """Settle an unknown outcome after a person or a check found out. It is never run again.

    Raises:
        DecisionRefused: The outcome is not unknown.
    """
    if approval.status is not Status.UNKNOWN:
        raise DecisionRefused(
            f"the outcome of approval {approval.id} is not unknown: it {_standing(approval)}",
            hint="only approvals listed by `sayso reconcile` need settling",
            approval_id=approval.id,
        )
    status = Status.DONE if ran else Status.FAILED
    message = note or ("it ran" if ran else "it did not run")
    resolution = Resolution(status=status, cause=Cause.RECONCILED, at=now, by=by, message=message)
    after = evolve(approval, status=status, resolution=resolution)
    event = _event(approval, "reconciled", by=by, via=via, data={"ran": ran, "note": note})
    return Change(approval=after, events=(event,))


def withdraw(approval: Approval, now: Millis, *, by: str, cause: Cause, message: str) -> Change:
    """Edge I: the request is taken back before anything ran.

    Raises:
        ClaimRefused: It is running or over already.
    """
    if approval.status not in {Status.PENDING, Status.APPROVED}:
        raise ClaimRefused(
            f"approval {approval.id} cannot be withdrawn: it {_standing(approval)}", approval_id=approval.id
        )
    resolution = Resolution(status=Status.WITHDRAWN, cause=cause, at=now, by=by, message=message)
    after = evolve(approval, status=Status.WITHDRAWN, resolution=resolution, permit=None, challenges=())
    event = _event(approval, "withdrawn", by=by, data={"cause": str(cause)})
    return Change(approval=after, events=(event,))


def supersede(approval: Approval, successor: Approval, now: Millis, *, by: str, via: str, why: str) -> Change:
    """Withdraw an approval in favour of a stricter one that must be decided afresh."""
    resolution = Resolution(
        status=Status.WITHDRAWN,
        cause=Cause.SUPERSEDED,
        at=now,
        by=by,
        message=why,
        successor=successor.id,
    )
    after = evolve(approval, status=Status.WITHDRAWN, resolution=resolution, permit=None, challenges=())
    event = _event(approval, "superseded", by=by, via=via, data={"successor": successor.id, "why": why})
    return Change(approval=after, events=(event,), opens=evolve(successor, replaces=approval.id))


def check_message(decision: Decision, approval_id: str) -> None:
    """Check that a respond carries words and an edit carries arguments.

    Raises:
        InvalidEdit: An edit without arguments.
        NotAllowed: A respond without words.
    """
    if decision.kind is DecisionKind.EDIT and decision.args is None:
        raise InvalidEdit(
            f"an edit of approval {approval_id} needs the new arguments",
            hint="pass all arguments, changed or not",
            approval_id=approval_id,
        )
    if decision.kind is DecisionKind.RESPOND and not decision.message.strip():
        raise NotAllowed(
            f"a respond to approval {approval_id} needs words: they become the tool's result",
            hint="write the answer, or reject",
            approval_id=approval_id,
        )


def already(approval: Approval) -> str:
    """Say in a few words what became of an approval, by whom and when."""
    resolution = approval.resolution
    if resolution is None:
        return f"left {approval.status}"
    if resolution.cause is Cause.SILENCE:
        outcome = "allowed" if resolution.status is Status.APPROVED else "denied"
        return f"already {outcome} by silence at {clock_text(resolution.at)}"
    by = f" by {resolution.by}" if resolution.by else ""
    return f"already {resolution.status}{by} at {clock_text(resolution.at)}"


_PAST = {
    DecisionKind.APPROVE: "approved",
    DecisionKind.EDIT: "edited",
    DecisionKind.REJECT: "rejected",
    DecisionKind.RESPOND: "responded",
}
_FINAL_KINDS = {DecisionKind.REJECT: Status.REJECTED, DecisionKind.RESPOND: Status.RESPONDED}
_CLAIM_HINTS = {
    Status.PENDING: "wait until somebody decides",
    Status.RUNNING: "it was started once and is not started again",
    Status.DONE: "it ran once and does not run again",
    Status.UNKNOWN: "find out whether it ran, then settle it with `sayso reconcile`",
}


def _event(
    approval: Approval, kind: str, *, by: str = "", via: str = "", data: Mapping[str, Json] | None = None
) -> Event:
    thread = approval.action.thread
    return Event(kind=kind, thread=thread, approval_id=approval.id, by=by, via=via, data=data or {})


def _and_then(first: Change, second: Change) -> Change:
    return evolve(first, approval=second.approval, events=first.events + second.events)


def _is_late(approval: Approval, now: Millis) -> bool:
    by_silence = approval.resolution is not None and approval.resolution.cause is Cause.SILENCE
    return now > approval.deadline and (approval.status is Status.PENDING or by_silence)


def _standing(approval: Approval) -> str:
    if approval.resolution and approval.status is approval.resolution.status:
        return f"was {already(approval)}"
    return f"is {approval.status}"


def _same_permit(held: Permit | None, given: Permit) -> bool:
    return held is not None and (held.holder, held.digest) == (given.holder, given.digest)


def _check_holder(approval: Approval, permit: Permit) -> None:
    if approval.status is not Status.RUNNING or not _same_permit(approval.permit, permit):
        raise ClaimRefused(
            f"the permit for approval {approval.id} is no longer held: it {_standing(approval)}",
            hint="stop; do not run it",
            approval_id=approval.id,
        )


def _is_backed(approval: Approval) -> bool:
    """Return whether decisions, or silence that the frozen terms let count, led to this approval.

    One that carries a permit or an outcome already ran: its row was put back.
    """
    ended = approval.resolution
    if ended is None or ended.status is not Status.APPROVED or approval.permit is not None:
        return False
    if ended.cause is Cause.SILENCE:
        return approval.terms.silence is Silence.ALLOW
    return not missing(approval)
