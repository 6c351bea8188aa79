"""One attempt at a proof, what came of it, and how tries are counted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hmac import compare_digest

from sayso.approvals import Approval, Challenge, Person, ProofKind, ProofRule
from sayso.clock import Millis
from sayso.errors import DecisionRefused, ProofExpired, ProofWrong

TRIES = 5
"""How many wrong codes may be typed."""

CODE_WINDOW = 600
"""How long a code works, in seconds."""

LONGEST_GIVEN = 4096
"""How much of what was typed is looked at, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """The proof was given.

    Args:
        kind: What was proven, as asked or stronger.
        totp_step: The authenticator's step that is now used up, or -1.
    """

    kind: ProofKind
    totp_step: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The proof was not given; nothing was approved.

    Args:
        error: Why, and what to do next.
        challenge: The challenge with this try counted, to be saved with `record`; None when no try counts.
    """

    error: DecisionRefused
    challenge: Challenge | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is approved, by whom, with what, and when."""

    approval: Approval
    person: Person
    given: str
    now: Millis
    rule: ProofRule
    totp_secret: str
    last_totp_step: int

    def error(self, kind: type[DecisionRefused], message: str, hint: str) -> DecisionRefused:
        """Make a refusal about this approval."""
        return kind(message, hint=hint, approval_id=self.approval.id)


def session_key(person: Person) -> str:
    """Return the name of a person's session; no two people or sessions share one."""
    return f"{person_key(person)}/{person.session}"


def person_key(person: Person) -> str:
    """Return a person's id without the sign that separates it from a session."""
    return person.id.replace("%", "%25").replace("/", "%2F")


def record(challenges: Sequence[Challenge], challenge: Challenge) -> tuple[Challenge, ...]:
    """Return the challenges with one added as the newest; it takes the place of its session's earlier one."""
    return (*(one for one in challenges if one.session != challenge.session), challenge)


def wrong(attempt: Attempt, challenge: Challenge, message: str) -> Failed:
    """Count a wrong try and say how many are left."""
    counted = replace(challenge, tries=challenge.tries + 1)
    left = TRIES - counted.tries
    if left <= 0:
        error = attempt.error(
            ProofExpired, f"{message}, and that was the last try", after_last_try(challenge)
        )
    else:
        hint = f"{left} {'try is' if left == 1 else 'tries are'} left"
        error = attempt.error(ProofWrong, message, hint)
    return Failed(error=error, challenge=counted)


def after_last_try(challenge: Challenge) -> str:
    """Say what to do once the tries are used up."""
    return "ask for a new code" if challenge.hash else f"try again in {CODE_WINDOW // 60} minutes"


def as_code(text: str) -> str:
    """Return what was typed with case, spaces and dashes evened out."""
    return re.sub(r"[\s-]", "", text[:LONGEST_GIVEN]).upper()


def matches(typed: str, expected: str) -> bool:
    """Compare in a time that tells nothing about where the two differ."""
    return compare_digest(typed.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass"))
