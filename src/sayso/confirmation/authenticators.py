"""Authenticators: time-based digits (RFC 6238), each of them good once."""

from pyotp.totp import TOTP

from sayso.approvals import Challenge, ProofKind
from sayso.clock import SECOND, Millis
from sayso.confirmation.attempt import (
    CODE_WINDOW,
    TRIES,
    Attempt,
    Failed,
    Proven,
    after_last_try,
    as_code,
    matches,
    person_key,
    wrong,
)
from sayso.errors import ProofExpired, ProofMissing, ProofWrong

TOTP_STEP = 30
"""How long an authenticator shows the same digits, in seconds."""

_DIGITS = 6

_SHORTEST_SECRET = 23
"""The shortest secret, in base 32 characters: 112 bits (NIST SP 800-63B)."""


def check_totp(attempt: Attempt) -> Proven | Failed:
    """Check an authenticator's digits, one step early or late allowed."""
    secret = attempt.totp_secret.replace(" ", "").rstrip("=").upper()
    totp = _authenticator(secret)
    if totp is None:
        state = f"is not base 32 of at least {_SHORTEST_SECRET} characters" if secret else "is not set"
        where = f"set `[people.{attempt.person.id}] totp` in sayso.toml"
        return Failed(
            error=attempt.error(
                ProofMissing, f"the authenticator secret of `{attempt.person.id}` {state}", where
            )
        )
    counter = _totp_counter(attempt)
    if counter.tries >= TRIES:
        hint = after_last_try(counter)
        return Failed(
            error=attempt.error(ProofExpired, f"the authenticator code was wrong {TRIES} times", hint)
        )
    typed = as_code(attempt.given)
    if not typed:
        hint = "type the six digits your authenticator shows"
        return Failed(error=attempt.error(ProofMissing, "no authenticator code was typed", hint))
    step = _matching_step(totp, typed, attempt.now)
    if step is None:
        return wrong(attempt, counter, "the authenticator code is wrong")
    if step <= attempt.last_totp_step:
        hint = "wait for the next one"
        return Failed(error=attempt.error(ProofWrong, "this authenticator code was already used", hint))
    return Proven(kind=ProofKind.TOTP, totp_step=step)


def may_be_totp(attempt: Attempt) -> bool:
    """Return whether what was typed looks like this person's authenticator."""
    typed = as_code(attempt.given)
    return bool(attempt.totp_secret) and len(typed) == _DIGITS and typed.isascii() and typed.isdigit()


def _matching_step(totp: TOTP, typed: str, now: Millis) -> int | None:
    present = now // (TOTP_STEP * SECOND)
    found: int | None = None
    for step in (present - 1, present, present + 1):
        if step >= 0 and matches(typed, totp.generate_otp(step)):
            found = step
    return found


def _totp_counter(attempt: Attempt) -> Challenge:
    """Return how often this person guessed of late; it bears no hash, so no code ever matches it."""
    # Without a slash, so that no session of anybody bears this name.
    session = f"totp:{person_key(attempt.person)}"
    for one in reversed(attempt.approval.challenges):
        if one.session == session and not one.hash and attempt.now <= one.until:
            return one
    until = attempt.now + CODE_WINDOW * SECOND
    return Challenge(
        session=session, digest=attempt.approval.effective.digest, salt=f"{until:x}", hash="", until=until
    )


def _authenticator(secret: str) -> TOTP | None:
    """Return what makes the digits, or None for a secret that is not base 32 or too short to be safe."""
    try:
        totp = TOTP(secret)
        totp.generate_otp(0)
    except ValueError:
        return None
    return totp if len(secret) >= _SHORTEST_SECRET else None
