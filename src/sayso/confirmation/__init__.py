"""Proof that a person saw this action and is who they say: codes, typed facts, authenticators.

Pure: randomness and time are handed in. A code confirms one digest in one session for a few
minutes, and only a slow hash of it is kept. What cannot be checked is never proven.
"""

from sayso.confirmation.attempt import CODE_WINDOW, TRIES, Failed, Proven, record, session_key
from sayso.confirmation.authenticators import TOTP_STEP
from sayso.confirmation.codes import ALPHABET, CODE_LENGTH, issue, make_code
from sayso.confirmation.facts import expected_text
from sayso.confirmation.proof import check

__all__ = [
    "ALPHABET",
    "CODE_LENGTH",
    "CODE_WINDOW",
    "TOTP_STEP",
    "TRIES",
    "Failed",
    "Proven",
    "check",
    "expected_text",
    "issue",
    "make_code",
    "record",
    "session_key",
]
