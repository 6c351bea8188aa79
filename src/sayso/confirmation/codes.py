"""Codes: shown once, good for one digest in one session, kept only as a slow hash."""

from hashlib import scrypt
from hmac import compare_digest

from sayso.actions import canonical
from sayso.approvals import Approval, Challenge, ProofKind
from sayso.clock import SECOND, Millis
from sayso.confirmation.attempt import (
    CODE_WINDOW,
    TRIES,
    Attempt,
    Failed,
    Proven,
    as_code,
    session_key,
    wrong,
)
from sayso.errors import DecisionRefused, ProofExpired, ProofMissing

ALPHABET = "ACDEFGHJKMNPQRTWXY34679"
"""Capitals and digits that nobody takes for another: none of 0 O, 1 I L, U V, 2 Z, 5 S, 8 B."""

CODE_LENGTH = 6
"""How many characters a code has."""

_ENOUGH_ENTROPY = 16
_ENOUGH_SALT = 8
_COST, _BLOCK, _LANES = 2**11, 8, 1


def make_code(entropy: bytes) -> str:
    """Return a code made from random bytes, every code as likely as any other.

    Args:
        entropy: At least 16 random bytes: so many that the remainder favours no code by more than 2^-100.

    Raises:
        ValueError: There are fewer bytes than that.
    """
    if len(entropy) < _ENOUGH_ENTROPY:
        message = f"a code needs at least {_ENOUGH_ENTROPY} random bytes, got {len(entropy)}"
        raise ValueError(message)
    number = int.from_bytes(entropy)
    letters: list[str] = []
    for _ in range(CODE_LENGTH):
        number, place = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[place])
    return "".join(letters)


def issue(approval: Approval, session: str, code: str, salt: bytes, now: Millis) -> Challenge:
    """Return the challenge that remembers a code shown to one session.

    Args:
        approval: What the code confirms: its digest of this moment and no other.
        session: The session it is shown to, from `session_key`.
        code: The code, from `make_code`.
        salt: At least 8 random bytes.
        now: The present, in milliseconds since the epoch.

    Raises:
        ValueError: The salt is too short.
    """
    if len(salt) < _ENOUGH_SALT:
        message = f"a salt needs at least {_ENOUGH_SALT} random bytes, got {len(salt)}"
        raise ValueError(message)
    digest = approval.effective.digest
    return Challenge(
        session=session,
        digest=digest,
        salt=salt.hex(),
        hash=_slow_hash(approval.id, digest, session, as_code(code), salt),
        until=min(approval.deadline, now + CODE_WINDOW * SECOND),
    )


def check_code(attempt: Attempt) -> Proven | Failed:
    """Check a code against the newest one shown in this session."""
    challenge = _newest(attempt)
    if isinstance(challenge, DecisionRefused):
        return Failed(error=challenge)
    typed = as_code(attempt.given)
    if not typed:
        return Failed(
            error=attempt.error(ProofMissing, "no code was typed", "type the code shown in this session")
        )
    session = session_key(attempt.person)
    expected = _slow_hash(
        attempt.approval.id, challenge.digest, session, typed, bytes.fromhex(challenge.salt)
    )
    if compare_digest(expected, challenge.hash):
        return Proven(kind=ProofKind.CODE)
    return wrong(attempt, challenge, "the code is wrong")


def _newest(attempt: Attempt) -> Challenge | DecisionRefused:
    """Return the code that counts, or why there is none: only the newest of this session does."""
    session, digest = session_key(attempt.person), attempt.approval.effective.digest
    mine = [one for one in attempt.approval.challenges if one.session == session and one.hash]
    current = [one for one in mine if one.digest == digest]
    again = "ask for a new code"
    if not mine:
        return attempt.error(
            ProofMissing,
            f"approving `{attempt.approval.id}` takes a code, and none was shown in this session",
            "ask for a code first; it is shown once and good for this action only",
        )
    if not current:
        return attempt.error(ProofExpired, "the code was shown for an earlier version, before an edit", again)
    if attempt.now > current[-1].until:
        return attempt.error(ProofExpired, "the code is too old", again)
    if current[-1].tries >= TRIES:
        return attempt.error(ProofExpired, f"the code was tried {TRIES} times", again)
    return current[-1]


def _slow_hash(approval_id: str, digest: str, session: str, code: str, salt: bytes) -> str:
    secret = canonical([approval_id, digest, session, code.encode("utf-8", "backslashreplace").decode()])
    return scrypt(secret, salt=salt, n=_COST, r=_BLOCK, p=_LANES, dklen=32).hex()
