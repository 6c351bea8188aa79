"""Finding secrets in texts and JSON values, and writing `[secret: ...]` in their place.

Pure and linear in the size of the value. A secret cut up with invisible characters is found
as if they were not there.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from sayso.actions import Json
from sayso.scanner.findings import Finding, Hit, child, item
from sayso.scanner.patterns import (
    ASSIGNMENT,
    ASSIGNMENT_MARKERS,
    KEY_NAME,
    MAX_NAME,
    NEEDS_ACCESS_KEY,
    OPTION,
    PATTERNS,
    SCHEME,
    URL_PASSWORD,
    Named,
    Pattern,
    has_digit_and_letter,
    is_opaque,
    is_reference,
    meaning_of,
)

_MARKERS = tuple(dict.fromkeys(m for p in PATTERNS for m in p.markers)) + ASSIGNMENT_MARKERS

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4"
    "\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

_SHORTEST_PASSWORD = 4


def scan(value: Json, where: str = "args") -> tuple[Finding, ...]:
    """Return the secrets in a JSON value, in its keys as in its values.

    Args:
        value: What to look through.
        where: The name of `value` in the paths of the findings.
    """
    if not _may_hold_secret(value):
        return ()
    return tuple(_scan(value, where, ""))


def redact(value: Json) -> Json:
    """Return the value with every secret replaced by what it was; the same object if there is none."""
    if not _may_hold_secret(value):
        return value
    return _redact(value, "")


def redact_text(text: str) -> str:
    """Return the text with only its secrets replaced: `[secret: GitHub token, 40 characters]`."""
    return _replace(text, find_secrets(text))


def find_secrets(text: str, name: str = "") -> tuple[Hit, ...]:
    """Return the secrets in one text, in order and without overlap.

    Args:
        text: What to look through.
        name: The argument it is the value of, which may say that all of it is a secret.
    """
    if not _may_hold_secret(text) and not (0 < len(name) <= MAX_NAME and meaning_of(name)):
        return ()
    plain, places = _without_invisible(text)
    lowered = plain.lower()
    found = [*_tokens(plain, lowered), *_assigned(plain, lowered), *_by_name(plain, name)]
    if not found:
        return ()
    hits = _merged(found)
    if places is None:
        return tuple(hits)
    return tuple(
        Hit(start=places[h.start], end=places[h.end - 1] + 1, kind=h.kind, prefix=h.prefix) for h in hits
    )


def _may_hold_secret(value: Json) -> bool:
    if isinstance(value, str):
        blob = value.lower()
    else:
        parts: list[str] = []
        _collect(value, parts)
        blob = " ".join(parts).lower()
    if not _is_plain(blob):
        blob = _INVISIBLE.sub("", blob)
    for marker in _MARKERS:
        if marker in blob:
            return True
    return ("://" in blob and "@" in blob) or _has_key_name(blob)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.replace("\n", " ").replace("\t", " ").isprintable()


def _has_key_name(lowered: str) -> bool:
    return ("key" in lowered or "string" in lowered) and bool(KEY_NAME.search(lowered))


def _collect(value: Json, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            parts.append(key)
            if inner is not None and not isinstance(inner, bool | int | float):
                _collect(inner, parts)
    elif isinstance(value, Sequence):
        for inner in value:
            _collect(inner, parts)


def _scan(value: Json, path: str, name: str) -> Iterator[Finding]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            hits = find_secrets(key)
            yield from (Finding.of(path, hit) for hit in hits)
            yield from _scan(inner, child(path, _replace(key, hits)), key)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for place, inner in enumerate(value):
            yield from _scan(inner, item(path, place), name)
    else:
        text = _leaf_text(value)
        if text:
            yield from (Finding.of(path, hit) for hit in find_secrets(text, name))


def _redact(value: Json, name: str) -> Json:
    if isinstance(value, Mapping):
        clean: dict[str, Json] = {}
        for key, inner in value.items():
            clean[_unused(_replace(key, find_secrets(key)), clean)] = _redact(inner, key)
        return clean
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_redact(inner, name) for inner in value]
    text = _leaf_text(value)
    hits = find_secrets(text, name) if text else ()
    return _replace(text, hits) if hits else value


def _unused(key: str, taken: Mapping[str, Json]) -> str:
    """Keep two keys apart that held different secrets of the same kind and length."""
    count, candidate = 1, key
    while candidate in taken:
        count += 1
        candidate = f"{key} ({count})"
    return candidate


def _leaf_text(value: Json) -> str:
    """Return what can be a secret: text, and numbers (a numeric password) as JSON writes them."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | Mapping | Sequence):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _replace(text: str, hits: Sequence[Hit]) -> str:
    if not hits:
        return text
    pieces: list[str] = []
    done = 0
    for hit in hits:
        pieces += (text[done : hit.start], f"[secret: {hit.label}]")
        done = hit.end
    return "".join((*pieces, text[done:]))


def _without_invisible(text: str) -> tuple[str, Sequence[int] | None]:
    """Return the text as a reader sees it, and where each character stood, if any were dropped."""
    if _is_plain(text) or not _INVISIBLE.search(text):
        return text, None
    dropped = {m.start() for m in _INVISIBLE.finditer(text)}
    places = [place for place in range(len(text)) if place not in dropped]
    return "".join([text[place] for place in places]), places


def _tokens(plain: str, lowered: str) -> Iterator[tuple[int, Hit]]:
    seen: set[str] = set()
    for rank, pattern in enumerate(PATTERNS):
        if not any(marker in lowered for marker in pattern.markers):
            continue
        if pattern is NEEDS_ACCESS_KEY and "AWS access key" not in seen:
            continue
        for match in pattern.regex.finditer(plain):
            if pattern.accept(match["s"]):
                seen.add(pattern.kind)
                yield rank, _hit(match, pattern)
    if "://" in plain and "@" in plain:
        for match in URL_PASSWORD.finditer(plain):
            if not is_reference(match["s"]):
                yield len(PATTERNS), Hit(start=match.start("s"), end=match.end("s"), kind="password in URL")


def _hit(match: re.Match[str], pattern: Pattern) -> Hit:
    prefix = match["p"] if "p" in pattern.regex.groupindex else ""
    # A Telegram token's prefix is the bot's own number, not a vendor's.
    shown = "" if prefix[:1].isdigit() else prefix
    return Hit(start=match.start("s"), end=match.end("s"), kind=pattern.kind, prefix=shown)


def _assigned(plain: str, lowered: str) -> Iterator[tuple[int, Hit]]:
    if not any(marker in lowered for marker in ASSIGNMENT_MARKERS) and not _has_key_name(lowered):
        return
    rank = len(PATTERNS) + 1
    for regex in (ASSIGNMENT, OPTION):
        for match in regex.finditer(plain):
            named = meaning_of(match["name"])
            group = "quoted" if match["quoted"] is not None else "bare"
            value = match[group]
            literal = group == "quoted" or bool(match["query"])
            if named and not is_reference(value) and _looks_assigned(value, named, literal=literal):
                yield rank, Hit(start=match.start(group), end=match.end(group), kind=named.kind)


def _looks_assigned(value: str, named: Named, *, literal: bool) -> bool:
    if not named.strong:
        return is_opaque(value)
    return literal or has_digit_and_letter(value)


def _by_name(plain: str, name: str) -> Iterator[tuple[int, Hit]]:
    named = meaning_of(name) if 0 < len(name) <= MAX_NAME else None
    if named is None or is_reference(plain):
        return
    scheme = SCHEME.match(plain)
    start = scheme.end() if scheme else 0
    secret = plain[start:]
    if len(secret) >= _SHORTEST_PASSWORD and (named.strong or is_opaque(secret)):
        yield len(PATTERNS) + 2, Hit(start=start, end=len(plain), kind=named.kind)


def _merged(found: list[tuple[int, Hit]]) -> list[Hit]:
    """Join overlapping hits: all that any of them covers, under the name of the most specific."""
    merged: list[tuple[int, Hit]] = []
    for rank, hit in sorted(found, key=lambda one: (one[1].start, -one[1].end, one[0])):
        if merged and hit.start < merged[-1][1].end:
            other_rank, other = merged[-1]
            best_rank, best = min((other_rank, other), (rank, hit), key=lambda one: one[0])
            end = max(other.end, hit.end)
            merged[-1] = (best_rank, Hit(start=other.start, end=end, kind=best.kind, prefix=best.prefix))
        else:
            merged.append((rank, hit))
    return [hit for _, hit in merged]
