"""Telling what only looks like something else: hosts, addresses, and words of mixed scripts."""

import re
from collections.abc import Iterator
from functools import lru_cache
from unicodedata import name, normalize

from sayso.presentation.visible import CLOSE, OPEN

MOST = 8
"""How many look-alikes of one text are named; the rest is counted."""

_AUTHORITY = re.compile(r"://([^\s/?#\\\"'<>]{1,300})")
_MAIL_HOST = re.compile(r"(?<=@)[\w.-]{1,300}")
_DOTTED = re.compile(r"[\w.-]+")
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_HOST = 253
_LONGEST_LABEL = 63
_LONGEST_SPELLED = 60

# Scripts whose letters are drawn like each other's; Chinese, Japanese and Korean beside Latin deceive nobody.
_ALIKE = frozenset(
    {"LATIN", "CYRILLIC", "GREEK", "COPTIC", "ARMENIAN", "CHEROKEE", "LISU", "DESERET", "GEORGIAN"}
)
_LOOKS = dict(
    zip(
        "аеорсухіјѕһԁԛԝӏѵгкАВЕКМНОРСТХУІЈЅԌԚԜ"
        "οανριτυχγκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"
        "օոսհցզյլՕՍ"
        "ɑɡıɩʏᴏᴄᴠᴡᴢꞮΙӀⅼ"
        "ᎪᎬᎳᎡᎷᎻᏒᎥᏚᏟᏢ∕⁄։꞉ː․‐‑‒–−",  # noqa: RUF001 - Cherokee and signs on purpose
        "aeopcyxijshdqwlvrkABEKMHOPCTXYIJSGQW"
        "oavpituxykABEZHIKMNOPTYX"
        "onuhgqjlOU"
        "agiiyocvwzIIIl"
        "AEWRMHRiSCP//:::.-----",
        strict=True,
    )
)


def lookalikes(text: str, *, is_name: bool = False) -> tuple[str, ...]:
    """Return a note for each host, address or word that is drawn like another.

    Args:
        text: What to look through, its secrets already taken out.
        is_name: Whether it is the name of a tool or an agent, where a whole word of another script deceives too.
    """
    if text.isascii() and "@" not in text and "xn--" not in text.lower():
        return ()
    notes = tuple(dict.fromkeys((*_hosts(text), *_words(text, is_name=is_name))))
    if len(notes) <= MOST:
        return notes
    return (*notes[:MOST], f"and {len(notes) - MOST:,} more look-alikes")


def _hosts(text: str) -> Iterator[str]:
    for match in _AUTHORITY.finditer(text):
        before, at, host = match[1].rpartition("@")
        host = re.sub(r":[0-9]*$", "", host)
        if at and "." in before:
            yield f'what stands before "@" is not the host: this goes to {_spelled(host)}'
        yield from _host(host)
    for match in _MAIL_HOST.finditer(text):
        yield from _host(match[0].strip(".-"))
    for match in _DOTTED.finditer(text):
        token = match[0]
        if "." in token and (
            not token.isascii() or token.lower().startswith("xn--") or ".xn--" in token.lower()
        ):
            yield from _host(token.strip(".-"), certain=False)


def _host(host: str, *, certain: bool = True) -> Iterator[str]:
    if len(host) > _LONGEST_HOST:
        if certain:
            yield f"host {_spelled(host)} is longer than any host name can be"
        return
    looks = skeleton(host)
    if host.isascii():
        if "xn--" in host.lower():
            yield f"host {_spelled(host)} is displayed as {_spelled(_displayed(host))}"
    elif looks is not None:
        yield f"host {_spelled(host)} is really {punycode(host)} and looks like {looks}"
    elif certain:
        yield f"host {_spelled(host)} is really {punycode(host)}"


def _words(text: str, *, is_name: bool) -> Iterator[str]:
    if text.isascii():
        return
    for word in dict.fromkeys(_WORD.findall(text)):
        if word.isascii():
            continue
        looks = skeleton(word)
        like = f"; it looks like {looks[:_LONGEST_SPELLED]}" if looks is not None else ""
        scripts = sorted({_script(c) for c in set(word)} & _ALIKE)
        if len(scripts) > 1:
            names = " and ".join(script.capitalize() for script in scripts)
            yield f"{_spelled(word)} mixes {names} letters{like}"
        elif looks is not None and (is_name or normalize("NFKC", word).isascii()):
            yield f"{_spelled(word)} is not written in plain letters{like}"


def skeleton(text: str) -> str | None:
    """Return the plain ASCII text this one is drawn like, or None if it is not drawn like any."""
    if text.isascii():
        return None
    drawn = "".join(_LOOKS.get(c, c) for c in normalize("NFKC", "".join(_LOOKS.get(c, c) for c in text)))
    return drawn if drawn.isascii() and drawn.isprintable() else None


def punycode(host: str) -> str:
    """Return a host as it is asked for on the wire: `xn--...` for each label outside ASCII."""
    labels = re.split(r"[.\u3002\uff0e\uff61]", host)
    return ".".join(_wire_label(label) for label in labels)


def _wire_label(label: str) -> str:
    folded = normalize("NFKC", label).casefold()
    if not folded.isprintable() or len(folded) > _LONGEST_LABEL:
        return "?"
    return folded if folded.isascii() else "xn--" + folded.encode("punycode").decode("ascii")


def _displayed(host: str) -> str:
    return ".".join(_displayed_label(label) for label in host.lower().split("."))


def _displayed_label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except (ValueError, OverflowError):
        return label


def _spelled(text: str) -> str:
    """Return the text with each letter outside ASCII as its code, so that the note itself cannot deceive."""
    short = text[:_LONGEST_SPELLED]
    spelled = "".join(c if c.isascii() and c.isprintable() else f"{OPEN}U+{ord(c):04X}{CLOSE}" for c in short)
    return (
        spelled if len(text) <= _LONGEST_SPELLED else f"{spelled}{OPEN}{len(text) - len(short):,} more{CLOSE}"
    )


@lru_cache(maxsize=4096)
def _script(character: str) -> str:
    if character.isascii():
        return "LATIN"
    plain = normalize("NFKC", character)
    if plain.isascii():
        return "LATIN"
    return name(plain[0], "").partition(" ")[0]
