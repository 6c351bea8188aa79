"""The shapes of secrets: tokens that carry their vendor's prefix, and values that stand where secrets stand.

Every expression is linear: it starts at a literal or at a word boundary, repeats one class at a
time, and what could fail late is bounded. Whether a candidate is opaque enough is asked in
Python afterwards, so that prose and file names stay readable.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

MAX_NAME = 64
"""The longest argument name that is looked up as a name, in characters."""

_WEAK_PART = 8
_LONG = 20


def _any(_: str) -> bool:
    return True


def is_mixed(text: str) -> bool:
    """Return whether letters and digits, or capitals and small letters, are mixed as chance mixes them."""
    has_digit = any(c.isdigit() for c in text)
    has_upper = any(c.isupper() for c in text)
    has_lower = any(c.islower() for c in text)
    return (has_digit and (has_upper or has_lower)) or (has_upper and has_lower)


def is_opaque(text: str) -> bool:
    """Return whether a text has a part that reads like a key rather than like words."""
    if any(c.isspace() for c in text):
        return False
    parts = re.split(r"[-_.:/]", text)
    if any(len(p) >= _WEAK_PART and has_digit_and_letter(p) for p in parts):
        return True
    return len(text) >= _LONG and has_digit_and_letter(text) and text.lower() != text != text.upper()


def has_digit_and_letter(text: str) -> bool:
    """Return whether both digits and letters occur."""
    return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)


def _is_key_body(text: str) -> bool:
    runs = re.findall(r"[A-Za-z0-9]+", text)
    return has_digit_and_letter(text) and max(map(len, runs)) >= 16  # noqa: PLR2004 - shorter runs are words


def _is_basic(text: str) -> bool:
    try:
        decoded = b64decode(text + "=" * (-len(text) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return False
    return ":" in decoded and decoded.isprintable()


def _is_aws_secret(text: str) -> bool:
    return any(c.isdigit() for c in text) and text.lower() != text != text.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One shape of secret.

    Args:
        kind: What it finds, in words.
        markers: Lower-case pieces, one of which every match contains; the cheap test before the expression.
        regex: Its group `s` is the secret, its group `p` the vendor's public prefix.
        accept: Whether a candidate is opaque enough to be one.
    """

    kind: str
    markers: tuple[str, ...]
    regex: re.Pattern[str]
    accept: Callable[[str], bool] = _any


def _token(kind: str, markers: str, prefix: str, body: str, accept: Callable[[str], bool] = _any) -> Pattern:
    regex = re.compile(rf"(?<![A-Za-z0-9])(?P<s>(?P<p>{prefix}){body})")
    return Pattern(kind=kind, markers=tuple(markers.split()), regex=regex, accept=accept)


def _context(
    kind: str, markers: tuple[str, ...], regex: str, accept: Callable[[str], bool] = _any
) -> Pattern:
    return Pattern(kind=kind, markers=markers, regex=re.compile(regex), accept=accept)


_PEM_BREAK = r"(?:\s|\\[nr])*+"
# An atomic group, because before Python 3.11.5 `(...)*+` keeps what its last, failed turn had read.
_PEM = (
    r"(?P<s>-----BEGIN (?:[A-Z]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?>(?:{_PEM_BREAK}(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n\\]{{0,100}})*)"
    rf"(?>(?:{_PEM_BREAK}[A-Za-z0-9+/=]{{16,}}+)*)"
    rf"(?:{_PEM_BREAK}[A-Za-z0-9+/=]{{0,80}}{_PEM_BREAK}"
    r"-----END (?:[A-Z]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----)?)"
)

PATTERNS: tuple[Pattern, ...] = (
    _context("private key", ("private key",), _PEM),
    _token("Anthropic API key", "sk-ant-", r"sk-ant-", r"[A-Za-z0-9_-]{20,}"),
    _token(
        "OpenAI API key",
        "sk-",
        r"sk-(?!ant-)(?:proj-|svcacct-|admin-|or-v1-)?",
        r"[A-Za-z0-9_-]{20,}",
        _is_key_body,
    ),
    _token("NVIDIA API key", "nvapi- nvcf-", r"nvapi-|nvcf-", r"[A-Za-z0-9_-]{20,}"),
    _token("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_", r"[A-Za-z0-9]{36,}"),
    _token("GitHub token", "github_pat_", r"github_pat_", r"[A-Za-z0-9_]{36,}"),
    _token(
        "GitLab token", "glpat- gldt- glrt- glcbt- glptt-", r"gl(?:pat|dt|rt|cbt|ptt)-", r"[A-Za-z0-9_-]{20,}"
    ),
    _token("npm token", "npm_", r"npm_", r"[A-Za-z0-9]{36,}"),
    _token("PyPI token", "pypi-", r"pypi-", r"[A-Za-z0-9_-]{50,}"),
    _token("AWS access key", "akia asia", r"AKIA|ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9+/=])"),
    _token("Slack token", "xox xapp-", r"xox[abeoprs](?:\.xox[bp])?-|xapp-", r"[A-Za-z0-9-]{10,}"),
    _context(
        "Slack webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<s>[A-Za-z0-9_/-]{20,})",
    ),
    _token("Google API key", "aiza", r"AIza", r"[A-Za-z0-9_-]{35}"),
    _token("Google OAuth secret", "ya29. gocspx-", r"ya29\.|GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    _token("Stripe key", "sk_ rk_ whsec_", r"[sr]k_(?:live|test)_|whsec_", r"[A-Za-z0-9]{16,}"),
    _token("HuggingFace token", "hf_", r"hf_", r"[A-Za-z0-9]{20,}", is_mixed),
    _token("Groq API key", "gsk_", r"gsk_", r"[A-Za-z0-9]{20,}", is_mixed),
    _token("Tavily API key", "tvly-", r"tvly-", r"[A-Za-z0-9-]{20,}", has_digit_and_letter),
    _token("LangSmith API key", "lsv2_", r"lsv2_(?:pt|sk)_", r"[A-Za-z0-9_]{20,}"),
    _token("SendGrid API key", "sg.", r"SG\.", r"[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"),
    _token("Telegram bot token", ":aa", r"(?<![0-9])[0-9]{8,10}:", r"AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    _token(
        "JSON web token",
        "eyj",
        r"(?<![_-])eyJ",
        r"[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{4,}+\.[A-Za-z0-9_-]*+",
    ),
    _context(
        "Discord bot token",
        ("discord", "token", "authoriz"),
        r"(?i:discord|token|\bbot)\W{1,4}(?P<s>[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,})",
    ),
    _context(
        "AWS secret key",
        ("secret",),
        r"(?i:secret[_ -]?(?:access[_ -]?)?key)[\"'\\]{0,2}\s{0,3}[:=]\s{0,3}[\"'\\]{0,2}"
        r"(?P<s>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    # An access key is never alone for long: beside one, forty base64 characters are its secret.
    _context(
        "AWS secret key",
        ("akia", "asia"),
        r"(?<![A-Za-z0-9/+])(?P<s>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        _is_aws_secret,
    ),
    _context("bearer token", ("bearer",), r"(?i:\bbearer)\s{1,3}(?P<s>[A-Za-z0-9._~+/=-]{16,})", is_opaque),
    _context(
        "basic credentials", ("basic",), r"(?i:\bbasic)\s{1,3}(?P<s>[A-Za-z0-9+/]{8,}+={0,2})", _is_basic
    ),
)
"""In order of precedence: where two overlap, the first names the secret."""

NEEDS_ACCESS_KEY = PATTERNS[-3]
"""The pattern that counts only beside an AWS access key."""

URL_PASSWORD = re.compile(r"://[^\s/:@?#\"'<>]{0,256}:(?P<s>[^\s/@?#\"'<>]{1,256})@")
"""The password in `scheme://user:password@host`."""

_STRONG_WORDS = {
    "password": "password",
    "passwd": "password",
    "passphrase": "password",
    "passcode": "password",
    "apikey": "API key",
    "secretkey": "secret key",
    "secretaccesskey": "secret key",
    "accesskey": "access key",
    "privatekey": "private key",
    "signingkey": "signing key",
    "encryptionkey": "encryption key",
    "clientsecret": "client secret",
}
_WEAK_WORDS = {
    "pwd": "password",
    "secret": "secret",
    "token": "token",
    "credential": "credential",
    "authorization": "authorization",
    "cookie": "cookie",
    "connectionstring": "connection string",
}
_NOT_SECRET = (
    "pagetoken",
    "nexttoken",
    "continuationtoken",
    "synctoken",
    "canceltoken",
    "cancellationtoken",
    "stoptoken",
    "padtoken",
    "eostoken",
    "idempotencytoken",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What the name of an argument says about its value.

    Args:
        kind: What the value is, in words.
        strong: Whether any value under it is a secret, or only an opaque one.
    """

    kind: str
    strong: bool


@lru_cache(maxsize=1024)
def meaning_of(name: str) -> Named | None:
    """Return what an argument's name says of its value; only its last words count (`password_hint` is none)."""
    compact = re.sub(r"[^a-z]", "", name.lower()).removesuffix("s")
    if compact.endswith(_NOT_SECRET):
        return None
    for words, strong in ((_STRONG_WORDS, True), (_WEAK_WORDS, False)):
        for word, kind in words.items():
            if compact.endswith(word):
                return Named(kind=kind, strong=strong)
    return None


_ASSIGNED = (
    r"(?P<name>password|passwd|passphrase|passcode|api[_ -]?key|secret[_ -]?key|access[_ -]?key|private[_ -]?key|"
    r"signing[_ -]?key|encryption[_ -]?key|client[_ -]?secret|pwd|secret|token|credentials?|authorization|cookie)"
)
_VALUE = (
    r"(?:(?P<q>[\"'])(?P<quoted>[^\"'\n\\]{4,256})(?P=q)|\\?[\"']?(?P<bare>[^\s\"'`,;&<>(){}\[\]|\\]{6,}))"
)
ASSIGNMENT = re.compile(
    rf"(?i)(?P<query>[?&][a-z_-]{{0,20}})?{_ASSIGNED}(?:\\?[\"'])?\s{{0,3}}[:=]\s{{0,3}}(?:(?:bearer|basic|token|bot)\s{{1,3}})?{_VALUE}"
)
"""`password = "..."`, `API_KEY=...`, `{"token": "..."}` inside a text."""

OPTION = re.compile(rf"(?i)(?<![a-z0-9-])--(?P<query>)(?:[a-z]{{1,20}}-){{0,3}}{_ASSIGNED}\s{{1,3}}{_VALUE}")
"""`--api-key value` inside a command line."""

ASSIGNMENT_MARKERS = (
    "passw",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "credential",
    "authoriz",
    "cookie",
)
"""Lower-case pieces, one of which (or a `KEY_NAME`) every name of a secret contains."""

KEY_NAME = re.compile(r"(?:api|access|private|signing|encryption)[_ -]?key|connection[_ -]?string")
"""The names of secrets that end in a common word; searched only where that word occurs."""

SCHEME = re.compile(r"(?i)\s*(?:bearer|basic|token|bot|digest|negotiate)\s+")
"""The word before the secret in an authorization header."""

_REFERENCE = re.compile(
    r"(?i)\$\{?\w{1,80}\}?|\$\{\{[^{}]{0,80}\}\}|\{\{?[^{}]{0,80}\}\}?|<[^<>]{0,80}>|%\w{1,80}%|[*x.•-]+|"
    r"none|null|true|false|n/a|(?:\[|<)?(?:redacted|hidden|masked)(?:\]|>)?|env:\w{1,80}|"
    r"(?:op|vault|secret|ssm|awskms|gcp-?kms)://\S{1,200}|arn:aws:\S{1,200}|"
    r"\[secret: [A-Za-z -]{1,40}, [0-9,]{1,12} characters?\]"
)
_PATH = re.compile(r"(?:~|\.{1,2})?/[\w./@ -]{1,300}|[A-Za-z]:\\[\w.\\ -]{1,300}")


def is_reference(text: str) -> bool:
    """Return whether a value only points to a secret or stands in for one (`${TOKEN}`, `****`, a path)."""
    stripped = text.strip()
    return not stripped or bool(_REFERENCE.fullmatch(stripped)) or bool(_PATH.fullmatch(stripped))
