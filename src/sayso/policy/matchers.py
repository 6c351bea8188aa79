"""Matching parsed values: paths, mailboxes and hosts; never substrings.

Each matcher has `doubt`: empty, or why the value cannot be read in exactly one way. A
value in doubt is inside nothing, in no domain, and matches every pattern; a condition in a
policy file that meets a doubt asks.

`path` resolves symbolic links with `os.path.realpath`: the one read of the file system that
policy makes, because a link is the easiest way out of a folder.
"""

import ipaddress
import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_LONGEST = 4096
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?"
_HOSTNAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_MAILBOX = re.compile(r"[A-Za-z0-9_'+=&-]+(?:\.[A-Za-z0-9_'+=&-]+)*@([A-Za-z0-9.-]+)")
_NAMED_MAILBOX = re.compile(r'(?:[^"<>@,;:()\\]*|"[^"<>@\\]*")\s*<([^<>]*)>')
_URL = re.compile(r"(?:https?|wss?|ftp)://([^/?#]*)(?:[/?#].*)?", re.IGNORECASE)
_NUMERIC_LABEL = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)")


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A path, normalised and with its links resolved.

    Args:
        text: The path as it was given.
        doubt: Why it cannot be trusted, or empty.
    """

    text: str
    doubt: str = ""

    def inside(self, base: str) -> bool:
        """Return whether the path is `base` or below it; a relative path is relative to `base`."""
        return not self.doubt and _is_below(self._real(base), os.path.realpath(base))

    def nearly_inside(self, base: str) -> bool:
        """Return whether only the case of letters keeps the path from being inside `base`."""
        if self.doubt:
            return False
        return not self.inside(base) and _is_below(
            self._real(base).casefold(), os.path.realpath(base).casefold()
        )

    def matches(self, pattern: str) -> bool:
        """Return whether the path, or where its links lead, matches a glob.

        `**` crosses folders, `*` and `?` do not. Case is ignored, as some file systems do.
        """
        return bool(self.doubt) or self._matches(pattern, re.IGNORECASE)

    def nearly_matches(self, pattern: str) -> bool:
        """Return whether it matches only because case is ignored."""
        return not self.doubt and self.matches(pattern) and not self._matches(pattern, 0)

    def _matches(self, pattern: str, flags: int) -> bool:
        glob = _glob(pattern, flags)
        spellings = (os.path.normpath(self.text), os.path.realpath(self.text))
        return any(glob.fullmatch(form) for each in spellings for form in (each, each.lstrip("/")))

    def _real(self, base: str) -> str:
        return os.path.realpath(self.text if self.text.startswith("/") else f"{base}/{self.text}")


@dataclass(frozen=True, slots=True)
class EmailMatch:
    """The recipients of a message.

    Args:
        domains: The domain of each mailbox, in lower case.
        doubt: Why they cannot be trusted, or empty.
    """

    domains: tuple[str, ...]
    doubt: str = ""

    def all_in(self, domains: Sequence[str]) -> bool:
        """Return whether there is a mailbox and each is in one of the domains.

        `company.com` is that domain alone; `*.company.com` is every domain below it.
        """
        if self.doubt or not self.domains:
            return False
        return all(any(_mail_domain_in(domain, each.lower()) for each in domains) for domain in self.domains)


@dataclass(frozen=True, slots=True)
class HostMatch:
    """The host a URL leads to, as a browser reads it.

    Args:
        name: The host in lower case, international names in their ASCII form.
        doubt: Why it cannot be trusted, or empty.
    """

    name: str
    doubt: str = ""

    def in_domains(self, domains: Sequence[str]) -> bool:
        """Return whether the host is one of the domains or below one; an address must be equal."""
        return not self.doubt and any(_host_in(self.name, each) for each in domains)


def path(value: object) -> PathMatch:
    """Read a path; what is not plain text naming one file is in doubt."""
    if not isinstance(value, str):
        return PathMatch("", "the path is not text")
    # POSIX lets `//` mean something else, and no system here does.
    text = "/" + value.lstrip("/") if value.startswith("//") else value
    return PathMatch(text, _path_doubt(text))


def email(value: object) -> EmailMatch:
    """Read a mailbox or a list of mailboxes, one in each text."""
    entries: list[object] = list(value) if isinstance(value, (list, tuple)) else [value]  # pyright: ignore[reportUnknownArgumentType] - of what, is looked at next
    if not entries:
        return EmailMatch((), "there is no recipient")
    domains = tuple(_mail_domain(each) for each in entries)
    doubt = "a recipient is not exactly one plain mailbox" if "" in domains else ""
    return EmailMatch(domains, doubt)


def host(value: object) -> HostMatch:
    """Read the host of an `http`, `https`, `ws`, `wss` or `ftp` URL, or a bare host name."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        return HostMatch("", "the address is not text")
    if "\\" in value or any(char.isspace() or not char.isprintable() for char in value):
        return HostMatch("", "the address holds characters that programs read differently")
    url = _URL.fullmatch(value)
    authority = url.group(1) if url else value
    name = _host_name(authority)
    return HostMatch(name, "" if name else "the host cannot be read in exactly one way")


def _path_doubt(text: str) -> str:
    if not text or len(text) > _LONGEST:
        return "the path is empty or too long"
    if any(unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") for char in text):
        return "the path holds invisible characters"
    if (
        "\\" in text
        or text.startswith("~")
        or "$" in text
        or "%" in text
        or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text)
    ):
        return "the path holds characters that programs expand or read differently"
    folded = unicodedata.normalize("NFKC", text)
    if folded.count("/") != text.count("/") or folded.count(".") != text.count("."):
        return "the path holds look-alikes of `/` or `.`"
    return ""


def _is_below(real: str, base: str) -> bool:
    return real == base or real.startswith(base.rstrip("/") + "/")


@lru_cache(maxsize=512)
def _glob(pattern: str, flags: int) -> re.Pattern[str]:
    """Translate a path glob; a trailing `/**` also matches the folder itself."""
    body, tail = (pattern[:-3], "(?:/.*)?") if pattern.endswith("/**") else (pattern, "")
    pieces = re.split(r"(\*\*/|\*+|\?)", body)
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(
        "".join(meaning.get(piece, re.escape(piece)) for piece in pieces) + tail, flags | re.DOTALL
    )


def _mail_domain(entry: object) -> str:
    """Return the domain of one mailbox, empty when it is not exactly one plain mailbox."""
    if not isinstance(entry, str) or len(entry) > _LONGEST or not entry.isprintable():
        return ""
    text = entry.strip(" ")
    named = _NAMED_MAILBOX.fullmatch(text)
    found = _MAILBOX.fullmatch(named.group(1) if named else text)
    domain = found.group(1).lower() if found else ""
    return domain if "." in domain and _HOSTNAME.fullmatch(domain) else ""


def _mail_domain_in(domain: str, allowed: str) -> bool:
    if allowed.startswith("*."):
        return domain.endswith(allowed[1:]) and "." in allowed[2:]
    return domain == allowed.removeprefix("@")


def _host_name(authority: str) -> str:
    if authority.startswith("["):
        return _ipv6(authority)
    if "@" in authority or "%" in authority:
        return ""
    name, colon, port = authority.partition(":")
    if colon and not (port == "" or (port.isascii() and port.isdigit())):
        return ""
    name = name.lower() if name.isascii() else _punycode(name)
    if not _HOSTNAME.fullmatch(name):
        return ""
    if _NUMERIC_LABEL.fullmatch(name.rpartition(".")[2]):
        return _ipv4(name)
    return name


def _ipv4(text: str) -> str:
    """Return a dotted address only in its one canonical spelling."""
    try:
        return text if str(ipaddress.IPv4Address(text)) == text else ""
    except ValueError:
        return ""


def _ipv6(authority: str) -> str:
    found = re.fullmatch(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]*)?", authority)
    try:
        address = ipaddress.IPv6Address(found.group(1)) if found else None
    except ValueError:
        return ""
    return f"[{address}]" if address and not address.ipv4_mapped else ""


def _punycode(name: str) -> str:
    """Return the ASCII form of an international name, empty when programs disagree about it."""
    import idna  # noqa: PLC0415 - only for names outside ASCII

    lowered = name.lower()
    if unicodedata.normalize("NFKC", lowered) != lowered or "\u3002" in lowered:
        return ""
    try:
        return idna.encode(lowered).decode()
    except (idna.IDNAError, UnicodeError):
        return ""


def _host_in(name: str, entry: str) -> bool:
    if entry.startswith("["):
        return name == _ipv6(entry)
    allowed = _host_name(entry.removeprefix("*."))
    if not allowed:
        return False
    if "." not in allowed or _NUMERIC_LABEL.fullmatch(allowed.rpartition(".")[2]):
        return name == allowed
    below = name.endswith("." + allowed)
    return below or (name == allowed and not entry.startswith("*."))
