"""What the audit says about the work of approving: how often agents are stopped, and how people decide.

A pure fold over the entries, in one pass; it keeps one number for each open approval and each
decision, never an entry.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import cast

import orjson

from sayso.audit.chain import Entry
from sayso.clock import SECOND, Millis

HASTY = 2
"""Under how many seconds from the opening an approval counts as given without reading."""

_SETTLES = frozenset({"approved", "edited", "rejected", "responded"})
_AGREES = frozenset({"approved", "edited"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """How often one tool was called, and what policy said.

    Args:
        tool: The tool.
        allowed: How often it ran without asking.
        asked: How often people were asked.
        denied: How often policy denied it.
    """

    tool: str
    allowed: int = 0
    asked: int = 0
    denied: int = 0

    @property
    def interrupt_rate(self) -> float:
        """The share of calls that people were asked about, from 0 to 1."""
        calls = self.allowed + self.asked + self.denied
        return self.asked / calls if calls else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonLoad:
    """What one person decided.

    Args:
        person: Who.
        decisions: How many decisions they gave.
        hasty: How many of their approvals came in under two seconds.
        late: How many of their decisions came after the deadline.
    """

    person: str
    decisions: int = 0
    hasty: int = 0
    late: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What the audit says, summed up.

    Args:
        entries: How many entries were read.
        tools: By tool, the most asked first.
        people: By person, the busiest first.
        decisions: How many decisions people gave, by kind.
        median_seconds: Half of the decisions took no longer than this, in seconds; None without any.
        approvals: How many decisions let something run.
        hasty: How many of those came in under two seconds.
        expired: How many approvals nobody answered in time.
        late: How many decisions came after the deadline.
        wrong_proofs: How many wrong codes and passwords were typed.
    """

    entries: int
    tools: tuple[ToolUse, ...]
    people: tuple[PersonLoad, ...]
    decisions: Mapping[str, int]
    median_seconds: float | None
    approvals: int
    hasty: int
    expired: int
    late: int
    wrong_proofs: int

    @property
    def hasty_share(self) -> float:
        """The share of approvals that came in under two seconds, from 0 to 1."""
        return self.hasty / self.approvals if self.approvals else 0.0

    @property
    def interrupt_rate(self) -> float:
        """The share of all calls that people were asked about, from 0 to 1."""
        asked = sum(tool.asked for tool in self.tools)
        calls = sum(tool.allowed + tool.asked + tool.denied for tool in self.tools)
        return asked / calls if calls else 0.0


@dataclass(slots=True)
class _Tally:
    """What has been counted so far."""

    entries: int = 0
    tools: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    people: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    kinds: dict[str, int] = field(default_factory=dict[str, int])
    opened: dict[str, Millis] = field(default_factory=dict[str, Millis])
    waits: list[Millis] = field(default_factory=list[Millis])
    approvals: int = 0
    hasty: int = 0


def summarise(entries: Iterable[Entry]) -> Statistics:
    """Fold the entries of an audit, in order, into statistics."""
    tally = _Tally()
    for entry in entries:
        tally.entries += 1
        _add(tally.kinds, entry.kind)
        _count(tally, entry)
    tools = (ToolUse(tool=name, **counts) for name, counts in tally.tools.items())
    people = (PersonLoad(person=name, **counts) for name, counts in tally.people.items())
    return Statistics(
        entries=tally.entries,
        tools=tuple(sorted(tools, key=lambda each: (-each.asked, -each.allowed, each.tool))),
        people=tuple(sorted(people, key=lambda each: (-each.decisions, each.person))),
        decisions={kind: tally.kinds[kind] for kind in sorted(_SETTLES & tally.kinds.keys())},
        median_seconds=median(tally.waits) / SECOND if tally.waits else None,
        approvals=tally.approvals,
        hasty=tally.hasty,
        expired=tally.kinds.get("expired", 0),
        late=tally.kinds.get("late", 0),
        wrong_proofs=tally.kinds.get("proof_failed", 0),
    )


_USES = {"allowed": "allowed", "opened": "asked", "denied": "denied"}


def _count(tally: _Tally, entry: Entry) -> None:
    kind = entry.kind
    if kind in _USES:
        tool = str(_data(entry).get("tool", ""))
        _add(tally.tools.setdefault(tool, {}), _USES[kind])
        if kind == "opened":
            tally.opened[entry.approval_id] = entry.at
    elif kind in _SETTLES:
        _count_decision(tally, entry)
    elif kind == "late":
        _add(tally.people.setdefault(_by(entry), {}), "late")
    elif kind in {"expired", "withdrawn", "superseded"}:
        tally.opened.pop(entry.approval_id, None)


def _count_decision(tally: _Tally, entry: Entry) -> None:
    """Count a decision; what a quorum still misses keeps the approval open for the next one."""
    person = tally.people.setdefault(_by(entry), {})
    _add(person, "decisions")
    opened = tally.opened.get(entry.approval_id)
    wait = None if opened is None else entry.at - opened
    if wait is not None:
        tally.waits.append(wait)
    if entry.kind in _AGREES:
        tally.approvals += 1
        if wait is not None and wait < HASTY * SECOND:
            tally.hasty += 1
            _add(person, "hasty")
    if "missing" not in _data(entry):
        tally.opened.pop(entry.approval_id, None)


def _body(entry: Entry) -> Mapping[str, object]:
    """Return the body of an entry; one that cannot be read counts as empty, and `verify` names it."""
    try:
        found = orjson.loads(entry.body)
    except orjson.JSONDecodeError:
        return {}
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}


def _data(entry: Entry) -> Mapping[str, object]:
    found = _body(entry).get("data")
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}


def _by(entry: Entry) -> str:
    return str(_body(entry).get("by", ""))


def _add(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1
