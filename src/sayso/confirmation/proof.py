"""Whether what a person gave proves what the approval asks for."""

from collections.abc import Callable, Mapping

from sayso.approvals import Approval, Person, ProofKind, ProofRule
from sayso.clock import Millis
from sayso.confirmation.attempt import Attempt, Failed, Proven
from sayso.confirmation.authenticators import check_totp, may_be_totp
from sayso.confirmation.codes import check_code
from sayso.confirmation.facts import check_fact

_CHECKS: Mapping[ProofKind, Callable[[Attempt], Proven | Failed]] = {
    ProofKind.CODE: check_code,
    ProofKind.TYPE: check_fact,
    ProofKind.TOTP: check_totp,
}


def check(
    approval: Approval,
    person: Person,
    given: str,
    now: Millis,
    *,
    rule: ProofRule | None = None,
    totp_secret: str = "",
    last_totp_step: int = -1,
) -> Proven | Failed:
    """Return whether what a person gave proves what the approval asks for; a stronger proof counts as well.

    From weak to strong: click, type, code, totp. An authenticator's digits count for every other
    proof, a code for a click; a code and a typed value never stand in for each other.

    Args:
        approval: What is to be approved.
        person: Who gives the proof.
        given: What they typed, empty for a click.
        now: The present, in milliseconds since the epoch.
        rule: The proof asked for, if not the approval's own.
        totp_secret: The person's authenticator secret in base 32, empty if they have none.
        last_totp_step: The last authenticator step this person used up, -1 for none.
    """
    asked = rule or approval.terms.proof
    attempt = Attempt(approval, person, given, now, asked, totp_secret, last_totp_step)
    if asked.kind is ProofKind.CLICK:
        return _stronger_than_click(attempt)
    result = _CHECKS[asked.kind](attempt)
    if isinstance(result, Proven) or asked.kind is ProofKind.TOTP or not may_be_totp(attempt):
        return result
    digits = check_totp(attempt)
    if isinstance(digits, Proven):
        return digits
    # Guessing an authenticator's digits where a weaker proof is asked must not be free.
    return Failed(error=result.error, challenge=digits.challenge or result.challenge)


def _stronger_than_click(attempt: Attempt) -> Proven:
    if attempt.given.strip():
        for stronger in (check_totp, check_code):
            result = stronger(attempt)
            if isinstance(result, Proven):
                return result
    return Proven(kind=ProofKind.CLICK)
