"""Making every character of a text visible, so that nothing can hide from a reviewer.

Whatever has no ink of its own is written as its code and name, `U+202E RIGHT-TO-LEFT OVERRIDE`,
between single angle quotation marks. Those marks are written the same way when a text holds
them, so no text can forge a marker, and two different texts never look the same.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from unicodedata import bidirectional, category, combining, is_normalized, name

OPEN, CLOSE = "\u2039", "\u203a"
"""What stands around everything Sayso itself writes inside a text."""

LONGEST_BLANK = 16
"""The longest run of spaces left as it is, in characters: indentation, not padding."""

_MOST_EMPTY_LINES = 2
_MOST_MARKS = 3
_PADDING = " " * (LONGEST_BLANK + 1)
_NO_INK = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_ORDINARY_CONTROL = frozenset("\n\r\t")
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_IGNORABLE = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0, 0xFFFC),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0000, 0xE1000),
        ),
    )
)
_CONTROL_NAMES = [
    "NULL",
    "START OF HEADING",
    "START OF TEXT",
    "END OF TEXT",
    "END OF TRANSMISSION",
    "ENQUIRY",
    "ACKNOWLEDGE",
    "BELL",
    "BACKSPACE",
    "TAB",
    "LINE FEED",
    "LINE TABULATION",
    "FORM FEED",
    "CARRIAGE RETURN",
    "SHIFT OUT",
    "SHIFT IN",
    "DATA LINK ESCAPE",
    "DEVICE CONTROL ONE",
    "DEVICE CONTROL TWO",
    "DEVICE CONTROL THREE",
    "DEVICE CONTROL FOUR",
    "NEGATIVE ACKNOWLEDGE",
    "SYNCHRONOUS IDLE",
    "END OF TRANSMISSION BLOCK",
    "CANCEL",
    "END OF MEDIUM",
    "SUBSTITUTE",
    "ESCAPE",
    "FILE SEPARATOR",
    "GROUP SEPARATOR",
    "RECORD SEPARATOR",
    "UNIT SEPARATOR",
]
_CATEGORY_NAMES = {"Cc": "CONTROL", "Co": "PRIVATE USE", "Cs": "SURROGATE", "Cn": "UNASSIGNED"}


def visible(text: str, *, lines: bool = False) -> str:
    """Return the text with every character that has no ink, and every run of padding, spelled out.

    Args:
        text: Any text, lone surrogates included.
        lines: Whether line feeds stay as they are.
    """
    if text.isascii() and text.isprintable() and _PADDING not in text:
        return text
    expression = _expression(
        frozenset(c for c in set(text) if not c.isascii() or not c.isprintable()), lines=lines
    )
    return expression.sub(_spelled, text)


def hazards(text: str) -> tuple[str, ...]:
    """Return what a reviewer should know about a text that tries to hide something."""
    if text.isascii() and text.isprintable() and _PADDING not in text:
        return ()
    distinct = set(text)
    hidden = {c for c in distinct if _is_hidden(c) and c not in _ORDINARY_CONTROL and c not in (OPEN, CLOSE)}
    direction = hidden & _DIRECTION
    control = {c for c in hidden if category(c) == "Cc"}
    blanks = {c for c in hidden if category(c) == "Zs"}
    counted = (
        (_count(text, direction), "that would change the reading direction"),
        (_count(text, control), "that would control the terminal"),
        (_count(text, blanks), "made to look like a space"),
        (_count(text, hidden - direction - control - blanks), "that cannot be seen"),
    )
    notes = [f"{count:,} character{'s' if count > 1 else ''} {what}" for count, what in counted if count]
    if _PADDING in text or re.search(r"\n{4,}|\t{9,}|\r(?!\n)", text):
        notes.append("padding that would push text out of sight")
    if any(bidirectional(c) in {"R", "AL"} for c in distinct - hidden):
        notes.append("right-to-left letters: parts may appear in another order than they are stored")
    if any(combining(c) for c in distinct) and not is_normalized(
        "NFC", text.encode("utf-8", "replace").decode()
    ):
        notes.append("letters put together from parts, which look the same as other letters")
    return tuple(notes)


def clip(text: str, limit: int) -> tuple[str, int]:
    """Return the head and tail of an already visible text with the gap spelled out, and the size of the gap.

    Args:
        text: What `visible` returned.
        limit: How many characters may stay; a text within it comes back whole.
    """
    limit = max(0, limit)
    if len(text) <= limit:
        return text, 0
    head = limit * 2 // 3
    if text.rfind(OPEN, 0, head) > text.rfind(CLOSE, 0, head):
        head = text.rfind(OPEN, 0, head)
    tail = len(text) - (limit - limit * 2 // 3)
    closing, opening = text.find(CLOSE, tail), text.find(OPEN, tail)
    if closing != -1 and (opening == -1 or closing < opening):
        tail = closing + 1
    while tail < len(text) and combining(text[tail]):
        tail += 1
    gap = tail - head
    return f"{text[:head]}{OPEN}{gap:,} characters not shown{CLOSE}{text[tail:]}", gap


@lru_cache(maxsize=256)
def _expression(distinct: frozenset[str], *, lines: bool) -> re.Pattern[str]:
    hidden = {c for c in distinct if _is_hidden(c) and not (lines and c == "\n")}
    marks = {c for c in distinct - hidden if category(c) in {"Mn", "Me"}}
    parts = [rf" {{{LONGEST_BLANK + 1},}}"]
    if hidden:
        parts.append(rf"(?P<hidden>[{_class_of(hidden)}])(?P=hidden)*")
    if marks:
        parts.append(rf"[{_class_of(marks)}]+")
    if lines:
        parts += [r" +(?=\n)", rf"\n{{{_MOST_EMPTY_LINES + 2},}}"]
    return re.compile("|".join(parts))


def _class_of(characters: Iterable[str]) -> str:
    return "".join(f"\\U{ord(c):08x}" for c in sorted(characters))


def _spelled(match: re.Match[str]) -> str:
    run = match[0]
    first = run[0]
    if first == " ":
        return f"{OPEN}{len(run):,} space{'s' if len(run) > 1 else ''}{CLOSE}"
    if first == "\n" and not match.groupdict().get("hidden"):
        return f"\n{OPEN}{len(run) - 1:,} empty lines{CLOSE}\n"
    if _is_hidden(first):
        return _marker(first, len(run))
    # Marks sit on the letter before them; without one they would sit on, and cover, what Sayso writes.
    before = match.string[match.start() - 1 : match.start()]
    kept = 0 if not before or before.isspace() or _is_hidden(before) else _MOST_MARKS
    return run[:kept] + "".join(_marker(c, 1) for c in run[kept:])


def _marker(character: str, count: int) -> str:
    times = f" \u00d7{count:,}" if count > 1 else ""
    return f"{OPEN}U+{ord(character):04X} {_name_of(character)}{times}{CLOSE}"


def _name_of(character: str) -> str:
    if ord(character) < len(_CONTROL_NAMES):
        return _CONTROL_NAMES[ord(character)]
    return name(character, "") or _CATEGORY_NAMES.get(category(character), "UNNAMED")


@lru_cache(maxsize=4096)
def _is_hidden(character: str) -> bool:
    if character == " ":
        return False
    return character in (OPEN, CLOSE) or category(character) in _NO_INK or character in _IGNORABLE


def _count(text: str, characters: Iterable[str]) -> int:
    return sum(text.count(c) for c in characters)
