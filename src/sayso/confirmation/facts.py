"""Facts: the person types a value of this very action, such as its price."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal

from sayso.actions import Action, Json, canonical
from sayso.approvals import ProofKind
from sayso.confirmation.attempt import LONGEST_GIVEN, Attempt, Failed, Proven, matches
from sayso.errors import ProofMissing, ProofWrong

_PLACE = re.compile(r"\{([^{}]*)\}")
_STEP = re.compile(r"[^.\[\]]+|\[[0-9]+\]")
_AMOUNT = re.compile(
    r"[+-]?(?:[0-9]{1,3}(?:([ ,'_\u00a0\u202f])[0-9]{3}(?:\1[0-9]{3})*)|[0-9]+)(?:\.[0-9]+)?"
)


def expected_text(template: str, action: Action) -> str:
    """Return what must be typed, or an empty text, which nothing matches, if an argument is missing or empty.

    Args:
        template: Text with `{price}` or `{customer.name}` or `{items[0].price}` for values of the action.
        action: Where the values come from; numbers are written as canonical JSON (1847, not 1847.0).
    """
    values = [_typeable(match[1], action.args) for match in _PLACE.finditer(template)]
    if not all(values) or set(_PLACE.sub("", template)) & set("{}"):
        return ""
    filled = iter(values)
    return _PLACE.sub(lambda _: next(filled), template).strip()


def check_fact(attempt: Attempt) -> Proven | Failed:
    """Check what was typed against what the action says."""
    action = attempt.approval.effective
    expected = expected_text(attempt.rule.template, action)
    if not expected:
        error = attempt.error(
            ProofMissing,
            f"nothing can be typed for `{attempt.rule.template}`: `{action.tool}` has no such argument, or it is empty",
            f"reject it, or correct `confirm` in the rule {attempt.approval.terms.rule or 'of this tool'}",
        )
        return Failed(error=error)
    typed = attempt.given.strip()
    if not typed:
        hint = f"type the text the rule asks for: {attempt.rule.template}"
        return Failed(error=attempt.error(ProofMissing, "nothing was typed", hint))
    number = _is_amount(attempt.rule.template, action)
    if len(typed) <= LONGEST_GIVEN and (
        matches(typed, expected) or (number and _equal_amounts(typed, expected))
    ):
        return Proven(kind=ProofKind.TYPE)
    hint = "look at the action again and type its own value"
    return Failed(error=attempt.error(ProofWrong, "what was typed is not what this action says", hint))


def _is_amount(template: str, action: Action) -> bool:
    place = _PLACE.fullmatch(template.strip())
    value = _find(place[1], action.args) if place else None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal_amounts(typed: str, expected: str) -> bool:
    bare = "".join(c for c in typed if unicodedata.category(c) != "Sc").strip()
    if not _AMOUNT.fullmatch(bare):
        return False
    return Decimal(re.sub(r"[ ,'_\u00a0\u202f]", "", bare)) == Decimal(expected)


def _typeable(path: str, args: Mapping[str, Json]) -> str:
    value = _find(path, args)
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, Mapping | Sequence):
        return ""
    return canonical(value).decode()


def _find(path: str, args: Mapping[str, Json]) -> Json:
    """Return the value at a path, or None, which nobody can type, when there is none."""
    value: Json = args
    steps = _STEP.findall(path)
    if not steps or "".join(steps) != path.replace(".", "") or ".." in path or path.strip(".") != path:
        return None
    for step in steps:
        value = _inside(value, step)
    return value


def _inside(value: Json, step: str) -> Json:
    if isinstance(value, Mapping):
        return None if step.startswith("[") else value.get(step)
    place = step.strip("[]")
    if isinstance(value, Sequence) and not isinstance(value, str) and place.isascii() and place.isdigit():
        return value[int(place)] if len(place) < 10 and int(place) < len(value) else None  # noqa: PLR2004 - no list is longer
    return None
