"""The person's door: what waits, what exactly would run, and the answers.

Every answer is checked whole before anything is saved, in one transaction: still pending, in
time, an allowed answer, a permitted person, enough proof, the very action they were shown.
It must never take an answer about something the person was not shown (G8).
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from sayso.actions import Action, Json
from sayso.approvals import (
    Approval,
    Decision,
    DecisionKind,
    Person,
    ProofKind,
    Status,
    Terms,
)
from sayso.audit import Entry
from sayso.clock import Millis
from sayso.confirmation import Proven, check, issue, make_code, record, session_key
from sayso.decisions import (
    Change,
    Event,
    check_digest,
    check_message,
    check_open,
    decide,
    may_decide,
    reconcile,
    supersede,
)
from sayso.errors import DigestMismatch, InvalidAction, InvalidEdit, NotFound, PartsUnopened, ProofMissing
from sayso.policy import Outcome, Policy, Verdict, stricter
from sayso.presentation import Presentation, present
from sayso.scanner import redact_text
from sayso.settling import new_approval
from sayso.stores.base import Alter, Page, Store
from sayso.waiting import send, waiting_on

NEEDS_PROOF = frozenset({DecisionKind.APPROVE, DecisionKind.EDIT})
"""The answers that let something run; a no needs no proof."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer as a person gives it, before it is a decision.

    Args:
        kind: Which answer.
        person: Who gives it.
        digest: The digest of the action they were shown.
        shown: The digest of the presentation they were shown, empty when a program decides.
        opened: The parts they opened.
        proof: What they typed as proof.
        message: The reason of a reject, the words of a respond.
        args: The new arguments of an edit.
        tool: The new tool of an edit, empty to keep it.
    """

    kind: DecisionKind
    person: Person
    digest: str
    shown: str = ""
    opened: frozenset[str] = frozenset()
    proof: str = ""
    message: str = ""
    args: Mapping[str, Json] | None = None
    tool: str = ""


class Inbox:
    """Lists, shows and decides.

    Args:
        store: What remembers.
        policy: Judges edits; without it no edit is taken.
        totp: The one-time password secrets of people, by id, in base 32.
    """

    def __init__(
        self, *, store: Store, policy: Policy | None = None, totp: Mapping[str, str] | None = None
    ) -> None:
        self.store = store
        self.policy = policy
        self._totp = totp or {}
        self._waiting = waiting_on(store)

    def page(self, *, status: Status | None = Status.PENDING, after: str = "", limit: int = 50) -> Page:
        """Return a page, the nearest deadline first; with `status` None, every status, newest first."""
        return self.store.page(status, after=after, limit=limit)

    def get(self, approval_id: str) -> Approval:
        """Return an approval by its id, or by the beginning of one.

        Raises:
            NotFound: No id, or more than one, starts like this.
        """
        if not approval_id.isascii():
            raise NotFound(
                f"there is no approval {approval_id!a}", hint="list the open ones with `sayso inbox`"
            )
        found = self.store.find(approval_id) if approval_id else []
        if approval_id in found or len(found) == 1:
            return self.store.get(approval_id if approval_id in found else found[0])
        if found:
            names = ", ".join(found[:5])
            raise NotFound(
                f"more than one approval starts with `{approval_id}`: {names}", hint="type more of it"
            )
        return self.store.get(approval_id)

    def show(self, approval_id: str, *, opened: frozenset[str] = frozenset()) -> Presentation:
        """Return what a person must be shown before they decide."""
        return present(self.get(approval_id), self.store.clock.now(), opened=opened)

    def history(self, approval_id: str) -> list[Entry]:
        """Return what happened to an approval, in order."""
        return self.store.entries_of(approval_id)

    def challenge(self, card: Presentation | Approval, person: Person) -> str:
        """Return a fresh confirmation code for this person, session and action; only its hash is kept.

        Raises:
            NotPermitted: This person may not decide it.
        """
        approval_id, digest, _, _ = _named(card)
        code = make_code(secrets.token_bytes(16))
        salt = secrets.token_bytes(16)

        def step(approval: Approval, now: Millis) -> Change:
            asked = Decision(kind=DecisionKind.APPROVE, person=person, digest=digest)
            late = check_open(approval, asked, now)
            if late:
                return late
            check_digest(approval, asked)
            fresh = issue(approval, session_key(person), code, salt, now)
            event = _event(approval, "code_issued", person, {"digest": digest, "until": fresh.until})
            others = tuple(each for each in approval.challenges if each.session != fresh.session)
            return Change(approval=replace(approval, challenges=(*others, fresh)), events=(event,))

        self.store.write(Alter(approval_id=approval_id, step=step))
        return code

    def approve(self, card: Presentation | Approval, person: Person, *, proof: str = "") -> Approval:
        """Approve what was shown.

        Args:
            card: What the person was shown; an approval itself when a program decides.
            person: Who decides.
            proof: The code, phrase or one-time password they typed.

        Raises:
            DecisionRefused: With the reason; nothing was saved and it can be given again.
        """
        return self._give(card, DecisionKind.APPROVE, person, proof=proof)

    def edit(
        self,
        card: Presentation | Approval,
        person: Person,
        args: Mapping[str, Json],
        *,
        tool: str = "",
        proof: str = "",
    ) -> Approval:
        """Change the arguments and approve that; a stricter action opens a new approval instead.

        Raises:
            InvalidEdit: The arguments do not fit the tool, or policy denies them.
            DecisionRefused: With the reason; nothing was saved and it can be given again.
        """
        return self._give(card, DecisionKind.EDIT, person, proof=proof, args=args, tool=tool)

    def reject(self, card: Presentation | Approval, person: Person, reason: str = "") -> Approval:
        """Say no; the agent is told the reason.

        Raises:
            DecisionRefused: With the reason; nothing was saved and it can be given again.
        """
        return self._give(card, DecisionKind.REJECT, person, message=reason)

    def respond(self, card: Presentation | Approval, person: Person, words: str) -> Approval:
        """Answer in the tool's place: the words become its result and nothing runs.

        Raises:
            DecisionRefused: With the reason; nothing was saved and it can be given again.
        """
        return self._give(card, DecisionKind.RESPOND, person, message=words)

    def decide(self, approval_id: str, answer: Answer) -> Approval:
        """Take an answer, or refuse it with the reason.

        Raises:
            DecisionRefused: With the reason; nothing was saved and it can be given again.
        """
        return self.store.write(self._alteration(approval_id, answer)).approval

    async def adecide(self, approval_id: str, answer: Answer) -> Approval:
        """Do as `decide`, without blocking the event loop."""
        return (await send(self.store, self._alteration(approval_id, answer))).approval

    def reconcile(self, approval_id: str, person: Person, *, ran: bool, note: str = "") -> Approval:
        """Say whether something of unknown outcome ran; it is never run again.

        Raises:
            DecisionRefused: Its outcome is not unknown.
        """

        def step(approval: Approval, now: Millis) -> Change:
            refusal = may_decide(replace(approval, decisions=()), person)
            if refusal:
                raise refusal
            return reconcile(approval, now, ran=ran, by=person.id, via=person.via, note=redact_text(note))

        return self.store.write(Alter(approval_id=approval_id, step=step)).approval

    def _give(
        self,
        card: Presentation | Approval,
        kind: DecisionKind,
        person: Person,
        *,
        proof: str = "",
        message: str = "",
        args: Mapping[str, Json] | None = None,
        tool: str = "",
    ) -> Approval:
        approval_id, digest, shown, opened = _named(card)
        answer = Answer(
            kind=kind,
            person=person,
            digest=digest,
            shown=shown,
            opened=opened,
            proof=proof,
            message=message,
            args=args,
            tool=tool,
        )
        return self.decide(approval_id, answer)

    def _alteration(self, approval_id: str, answer: Answer) -> Alter:
        """Do what is slow outside the transaction: look at the screen again and judge the edit."""
        person = answer.person
        decision = Decision(
            kind=answer.kind,
            person=person,
            digest=answer.digest,
            shown=answer.shown,
            message=answer.message,
            args=answer.args,
            tool=answer.tool,
        )
        seen = _Seen()
        if answer.shown or answer.kind is DecisionKind.EDIT:
            seen = self._look(self.store.get(approval_id), answer)

        def step(approval: Approval, now: Millis) -> Change:
            late = check_open(approval, decision, now)
            if late:
                return late
            proven = self._prove(approval, answer, now)
            if isinstance(proven, Change):
                return proven
            check_digest(approval, decision)
            _check_shown(approval, answer, seen)
            check_message(decision, approval.id)
            change = self._fold(approval, replace(decision, proof=proven.kind), now, seen)
            return replace(change, totp=(person.id, proven.totp_step)) if proven.totp_step >= 0 else change

        return Alter(approval_id=approval_id, step=step)

    def _prove(self, approval: Approval, answer: Answer, now: Millis) -> Proven | Change:
        """Check the proof; a wrong code costs a try, and that is saved."""
        if answer.kind not in NEEDS_PROOF:
            return Proven(kind=ProofKind.CLICK, totp_step=-1)
        person = answer.person
        proven = check(approval, person, answer.proof, now, totp_secret=self._totp.get(person.id, ""))
        if isinstance(proven, Proven):
            return proven
        if proven.challenge is None:
            raise proven.error
        event = _event(approval, "proof_failed", person, {"tries": proven.challenge.tries})
        after = replace(approval, challenges=record(approval.challenges, proven.challenge))
        return Change(approval=after, events=(event,), refusal=proven.error)

    def _look(self, approval: Approval, answer: Answer) -> "_Seen":
        """Work out what the person had on their screen, and where their edit leads."""
        shown, hidden = "", ()
        if answer.shown:
            card = present(approval, self.store.clock.now(), opened=answer.opened)
            shown, hidden = card.digest, card.hidden
        seen = _Seen(digest=approval.effective.digest, shown=shown, hidden=hidden)
        if answer.kind is not DecisionKind.EDIT or answer.args is None:
            return seen
        try:
            edited, stricter_terms = self._judge_edit(approval, answer.args, answer.tool)
        except InvalidEdit as refusal:
            return replace(seen, refusal=refusal)
        return replace(seen, edited=edited, stricter=stricter_terms)

    def _judge_edit(
        self, approval: Approval, args: Mapping[str, Json], tool: str
    ) -> tuple[Action, tuple[Terms, Verdict] | None]:
        """Return the edited action, with the terms it needs when they are stricter."""
        base = approval.effective
        try:
            edited = replace(base, args=args, tool=tool or base.tool, facts={})
        except InvalidAction as error:
            raise InvalidEdit(str(error), hint="nothing was saved", approval_id=approval.id) from error
        if self.policy is None:
            raise InvalidEdit(
                f"the edit of approval {approval.id} cannot be judged: no policy is at hand here",
                hint="name the policy in sayso.toml, or reject with a reason",
                approval_id=approval.id,
            )
        verdict = self.policy.judge(edited)
        if verdict.outcome is Outcome.DENY:
            raise InvalidEdit(
                f"policy denies the edited action: {verdict.why}",
                hint="change it further, or reject",
                approval_id=approval.id,
            )
        others = verdict.terms.args_schema if verdict.terms else None
        _check_schema(approval, approval.terms.args_schema if edited.tool == base.tool else others, args)
        if verdict.terms is not None and stricter(verdict.terms, approval.terms):
            return edited, (verdict.terms, verdict)
        return edited, None

    def _fold(self, approval: Approval, decision: Decision, now: Millis, seen: "_Seen") -> Change:
        holder = self._waiting.holder(approval.id)
        if decision.kind is not DecisionKind.EDIT:
            return decide(approval, decision, now, holder=holder)
        if seen.refusal:
            raise seen.refusal
        if seen.edited is None:
            raise InvalidEdit(f"the edit of approval {approval.id} was not judged", approval_id=approval.id)
        if seen.stricter is None:
            return decide(approval, decision, now, edited=seen.edited, holder=holder)
        terms, verdict = seen.stricter
        successor = new_approval(seen.edited, verdict, terms, now, approval.id)
        why = f"the edit needs a stricter approval: {verdict.why}"
        return supersede(approval, successor, now, by=decision.person.id, via=decision.person.via, why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What was worked out before the transaction, about the action of that moment."""

    digest: str = ""
    shown: str = ""
    hidden: tuple[str, ...] = ()
    edited: Action | None = None
    stricter: tuple[Terms, Verdict] | None = None
    refusal: InvalidEdit | None = None


def _named(card: Presentation | Approval) -> tuple[str, str, str, frozenset[str]]:
    """Return the approval, the action and the screen an answer is about."""
    if isinstance(card, Approval):
        return card.id, card.effective.digest, "", frozenset()
    return card.approval_id, card.action_digest, card.digest, card.opened


def _check_shown(approval: Approval, answer: Answer, seen: _Seen) -> None:
    """Check that the screen the person saw is what would be shown now, with every part opened.

    Raises:
        DigestMismatch: They saw something else.
        PartsUnopened: Something was not shown yet, and they would let it run.
        ProofMissing: The stakes ask for more than a click, and nothing was shown at all.
    """
    changed = seen.digest and seen.digest != approval.effective.digest
    if changed or answer.shown != seen.shown:
        raise DigestMismatch(
            f"what was shown is not what approval {approval.id} holds now",
            hint="look at it again, then decide",
            approval_id=approval.id,
        )
    if answer.kind not in NEEDS_PROOF:
        return
    if seen.hidden:
        raise PartsUnopened(
            f"parts of approval {approval.id} were not shown yet: {', '.join(seen.hidden)}",
            hint="open them, then decide",
            approval_id=approval.id,
        )
    if not answer.shown and approval.terms.proof.kind is not ProofKind.CLICK:
        raise ProofMissing(
            f"approval {approval.id} asks for proof, and a proof is about what was shown",
            hint="pass what `Inbox.show` returns",
            approval_id=approval.id,
        )


def _check_schema(approval: Approval, schema: Mapping[str, Json] | None, args: Mapping[str, Json]) -> None:
    """Check edited arguments against the tool's schema.

    Raises:
        InvalidEdit: With the path and the reason.
    """
    if schema is None:
        return
    import jsonschema  # noqa: PLC0415 - slow to import, and only edits need it

    checker = jsonschema.Draft202012Validator(cast("dict[str, object]", schema))
    for error in checker.iter_errors(args):  # pyright: ignore[reportUnknownMemberType] - jsonschema's own types
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
        raise InvalidEdit(
            f"`args{path}` does not fit the tool: {error.message}",
            hint="nothing was saved; mend it and give it again",
            approval_id=approval.id,
        )


def _event(approval: Approval, kind: str, person: Person, data: Mapping[str, Json]) -> Event:
    return Event(
        kind=kind,
        thread=approval.action.thread,
        approval_id=approval.id,
        by=person.id,
        via=person.via,
        data=data,
    )
