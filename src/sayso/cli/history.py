"""Audit entries as people read them: when, what, who and the facts that say something."""

from collections.abc import Iterator, Mapping

from sayso.actions import Json
from sayso.audit import Entry
from sayso.cli.printing import Column
from sayso.cli.records import body_of
from sayso.clock import clock_text
from sayso.presentation import visible

HISTORY = (
    Column(title="when", width=23),
    Column(title="what", width=12),
    Column(title="who", width=24),
    Column(title="facts"),
)
"""The columns of what happened to one approval."""

_FIRST = ("tool", "decision", "outcome", "ran", "error", "rule", "reasons")
_DIGESTS = frozenset({"digest", "shown", "from"})
_MOMENTS = frozenset({"deadline", "until"})


def history_row(entry: Entry) -> tuple[str, ...]:
    """Return what happened as a row: when, what, who and the facts."""
    return (clock_text(entry.at), entry.kind, who_did(entry), facts_of(entry))


def who_did(entry: Entry) -> str:
    """Say who did it and through which door; nobody is time itself."""
    body = body_of(entry)
    by, via = visible(str(body.get("by", ""))), visible(str(body.get("via", "")))
    return f"{by} ({via})" if by and via else by or "time"


def facts_of(entry: Entry) -> str:
    """Say the facts of an entry on one line, what matters first; digests are for programs."""
    data = body_of(entry).get("data")
    if not isinstance(data, Mapping):
        return ""
    return visible(", ".join(f"{name} {_said(name, value)}" for name, value in _ordered(data)))


def _ordered(data: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    names = [*(name for name in _FIRST if name in data), *(name for name in data if name not in _FIRST)]
    return ((name, data[name]) for name in names if name not in _DIGESTS)


def _said(name: str, value: Json) -> str:
    match value:
        case int() if name in _MOMENTS:
            return clock_text(value)
        case str():
            return value
        case list():
            return " + ".join(_said(name, each) for each in value)
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return " ".join(f"{count} from {group}" for group, count in value.items())
        case _:
            return str(value)
