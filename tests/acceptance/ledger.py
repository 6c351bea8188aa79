"""What must be true of every approval, worked out again without any code of Sayso's.

A `Ledger` is told what agents and people try, says how each try must end, and keeps what may
therefore run. The acceptance tests hold Sayso to it.
"""

import json
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import permutations

from sayso.approvals import Cause, DecisionKind, Effect, Person, ProofKind, Silence, Status, Terms
from sayso.errors import (
    AlreadyDecided,
    ClaimRefused,
    DecisionRefused,
    DigestMismatch,
    InvalidEdit,
    Late,
    NotAllowed,
    NotPermitted,
    ProofExpired,
    ProofMissing,
    ProofWrong,
    SaysoError,
)

AGREEING = (DecisionKind.APPROVE, DecisionKind.EDIT)
WRONG_CODES = 5
CODE_SECONDS = 600


@dataclass(kw_only=True)
class Given:
    """A decision that was taken."""

    kind: DecisionKind
    person: Person
    digest: str
    at: int


@dataclass(kw_only=True)
class Code:
    """A confirmation code that one person was shown."""

    text: str
    digest: str
    until: int
    tries: int = 0


@dataclass(kw_only=True)
class Held:
    """A permit, who holds it and whether what it permits was run."""

    process: int
    digest: str
    until: int
    ran: bool = False


@dataclass(kw_only=True)
class Life:
    """One approval as it must be.

    Attributes:
        strictness: How strict the terms are; policy is compared with it at an edit and at the claim.
        requesters: Who may never decide it.
        effective: The digest that may run.
        left: Permits that nobody will report on any more.
    """

    id: str
    tool: str
    n: int
    thread: str
    terms: Terms
    strictness: float
    requesters: frozenset[str]
    deadline: int
    first: str
    effective: str
    status: Status = Status.PENDING
    cause: Cause | None = None
    successor: str = ""
    given: list[Given] = field(default_factory=list[Given])
    codes: dict[str, Code] = field(default_factory=dict[str, Code])
    held: Held | None = None
    until: int = 0
    late: int = 0

    def agreed(self) -> list[Given]:
        """Return the approvals that are about what would run now."""
        return [each for each in self.given if each.kind in AGREEING and each.digest == self.effective]

    def has_quorum(self) -> bool:
        """Return whether every seat of the quorum can be taken by another person who approved."""
        seats = [group for group, needed in self.terms.quorum for _ in range(needed)]
        people = {each.person.id: each.person for each in self.agreed()}.values()
        if not seats:
            return bool(people)
        return any(
            all(group in person.groups for group, person in zip(seats, order, strict=True))
            for order in permutations(people, len(seats))
        )


def digest_of(tool: str, n: int, thread: str, agents: tuple[str, ...]) -> str:
    """Return the digest of an action whose arguments are `{"n": n}`."""
    whole = {"agents": agents, "args": {"n": n}, "thread": thread, "tool": tool, "v": 1}
    return sha256(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(kw_only=True)
class Edit:
    """Where an edit leads: the tool and its argument, their digest and how strict policy is about them."""

    tool: str
    n: int
    digest: str
    strictness: float


class Ledger:
    """Every approval as it must be, and everything that was run.

    Attributes:
        DENY: The strictness of a policy that denies.
    """

    DENY = 2.0

    def __init__(self) -> None:
        self.lives: dict[str, Life] = {}
        self.effects: list[tuple[str, str]] = []

    # -- what people do --------------------------------------------------------------------

    def decide(
        self,
        life: Life,
        kind: DecisionKind,
        person: Person,
        digest: str,
        proof: str,
        now: int,
        edit: Edit | None,
    ) -> type[DecisionRefused] | None:
        """Take a decision; return the refusal it must meet, or None. A stricter edit leaves `withdrawn`."""
        if self._is_late(life, now):
            self.expire(life, now)
            life.late += 1
            return Late
        refusal = self._stranger(life, kind, person) or (
            self._unproven(life, person, proof, now) if kind in AGREEING else None
        )
        if refusal or digest != life.effective:
            return refusal or DigestMismatch
        if edit is not None:
            if edit.strictness == self.DENY:
                return InvalidEdit
            if edit.strictness > life.strictness:
                life.status, life.cause = Status.WITHDRAWN, Cause.SUPERSEDED
                return None
            life.tool, life.n, life.effective = edit.tool, edit.n, edit.digest
        life.given.append(Given(kind=kind, person=person, digest=life.effective, at=now))
        if kind is DecisionKind.REJECT:
            life.status, life.cause = Status.REJECTED, Cause.DECISION
        elif kind is DecisionKind.RESPOND:
            life.status, life.cause = Status.RESPONDED, Cause.DECISION
        elif life.has_quorum():
            life.status, life.cause = Status.APPROVED, Cause.DECISION
        return None

    def show_code(self, life: Life, person: Person, now: int) -> type[DecisionRefused] | None:
        """Return how asking for a code must be refused, or None."""
        if self._is_late(life, now):
            self.expire(life, now)
            life.late += 1
            return Late
        return self._stranger(life, DecisionKind.APPROVE, person)

    def reconcile(self, life: Life, person: Person, *, ran: bool) -> type[DecisionRefused] | None:
        """Settle an unknown outcome; return the refusal it must meet, or None."""
        if self._may_not(life, person):
            return NotPermitted
        if life.status is not Status.UNKNOWN:
            return DecisionRefused
        life.status, life.cause = Status.DONE if ran else Status.FAILED, Cause.RECONCILED
        return None

    def may_approve(self, life: Life, person: Person) -> bool:
        """Return whether this person's approval counts now."""
        return self._stranger(life, DecisionKind.APPROVE, person) is None

    def _is_late(self, life: Life, now: int) -> bool:
        return now > life.deadline and (life.status is Status.PENDING or life.cause is Cause.SILENCE)

    def _stranger(self, life: Life, kind: DecisionKind, person: Person) -> type[DecisionRefused] | None:
        if life.status is not Status.PENDING:
            return AlreadyDecided
        if kind not in life.terms.decisions:
            return NotAllowed
        twice = kind in AGREEING and person.id in {each.person.id for each in life.agreed()}
        return NotPermitted if twice or self._may_not(life, person) else None

    def _may_not(self, life: Life, person: Person) -> bool:
        groups = {group for group, _ in life.terms.quorum}
        return person.id in life.requesters or (bool(groups) and not person.groups & groups)

    def _unproven(self, life: Life, person: Person, proof: str, now: int) -> type[DecisionRefused] | None:
        if life.terms.proof.kind is ProofKind.CLICK:
            return None
        code = life.codes.get(person.id)
        if code is None:
            return ProofMissing
        if code.digest != life.effective or now > code.until or code.tries >= WRONG_CODES:
            return ProofExpired
        if not proof:
            return ProofMissing
        if proof == code.text:
            return None
        code.tries += 1
        return ProofExpired if code.tries == WRONG_CODES else ProofWrong

    # -- what time does --------------------------------------------------------------------

    def expire(self, life: Life, now: int) -> bool:
        """Let silence count once the deadline has passed; return whether it did."""
        if life.status is not Status.PENDING or now <= life.deadline:
            return False
        allowed = life.terms.silence is Silence.ALLOW
        life.status, life.cause = Status.APPROVED if allowed else Status.EXPIRED, Cause.SILENCE
        return True

    def lapse(self, life: Life, now: int) -> bool:
        """Call the outcome unknown once the lease is over; return whether it was."""
        if life.status is not Status.RUNNING or now <= life.until:
            return False
        life.status = Status.UNKNOWN
        return True

    # -- what agents do --------------------------------------------------------------------

    def claim(self, life: Life, process: int, strictness: float, now: int) -> str:
        """Start an approved action; return `run`, `deny` or `again`, what policy makes of it now."""
        if life.status is not Status.APPROVED:
            raise AssertionError(f"{life.id} is {life.status}, so nothing may start")
        if strictness == self.DENY:
            life.status, life.cause = Status.WITHDRAWN, Cause.POLICY
            return "deny"
        if strictness > life.strictness:
            life.status, life.cause = Status.WITHDRAWN, Cause.SUPERSEDED
            return "again"
        self.start(life, process, now)
        return "run"

    def start(self, life: Life, process: int, now: int) -> None:
        """Hand the permit out."""
        life.status = Status.RUNNING
        life.until = now + life.terms.lease * 1000
        life.held = Held(process=process, digest=life.effective, until=life.until)

    def run(self, life: Life) -> None:
        """Run what is permitted, after checking everything that has to stand behind it (G1 to G4)."""
        held = life.held
        assert held is not None
        assert not held.ran
        assert life.id not in {each for each, _ in self.effects}, f"{life.id} runs a second time"
        assert held.digest == life.effective, f"{life.id} runs what was not approved"
        backing = [each for each in life.agreed() if each.at <= life.deadline]
        silent = life.terms.silence is Silence.ALLOW and life.terms.effect is not Effect.IRREVERSIBLE
        assert silent or (life.has_quorum() and len(backing) == len(life.agreed())), (
            f"{life.id} runs on nobody's word"
        )
        assert not any(each.kind not in AGREEING for each in life.given), f"{life.id} was refused"
        held.ran = True
        self.effects.append((life.id, held.digest))

    def complete(self, life: Life, *, failed: bool) -> type[SaysoError] | None:
        """Report how a run ended; return the refusal it must meet, or None."""
        if life.status not in {Status.RUNNING, Status.UNKNOWN}:
            return ClaimRefused
        life.status, life.cause = Status.FAILED if failed else Status.DONE, Cause.EXECUTION
        return None

    def release(self, life: Life) -> type[SaysoError] | None:
        """Give a permit back that was not used; return the refusal it must meet, or None."""
        if life.status is not Status.RUNNING:
            return ClaimRefused
        life.status, life.held, life.until = Status.APPROVED, None, 0
        return None

    def withdraw(self, life: Life) -> type[SaysoError] | None:
        """Take a request back; return the refusal it must meet, or None."""
        if life.status not in {Status.PENDING, Status.APPROVED}:
            return ClaimRefused
        life.status, life.cause = Status.WITHDRAWN, Cause.CANCELLED
        return None
