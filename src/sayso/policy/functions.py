"""What conditions can call: the matchers, in the shapes CEL can carry.

CEL holds plain maps, so `path(x)` is a map that `inside` and `matches` know. A function never
raises: it notes a doubt, and the whole condition becomes a question.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, cast

from sayso.policy.matchers import email, host, path
from sayso.policy.shell import shell
from sayso.policy.sql import sql

Doubts: TypeAlias = list[str]
Map: TypeAlias = dict[str, object]

FIELDS: Mapping[str, tuple[str, ...]] = {
    "sql": ("destructive", "risk", "tables"),
    "shell": ("risk", "commands"),
}
"""What can be read from the functions that return a structure."""

_KIND = "__matcher__"
_DIALECTS = frozenset(
    [
        "bigquery",
        "clickhouse",
        "databricks",
        "duckdb",
        "hive",
        "mysql",
        "oracle",
        "postgres",
        "redshift",
        "snowflake",
    ]
) | {
    "spark",
    "sqlite",
    "trino",
    "tsql",
}


def bound(names: Sequence[str], doubts: Doubts) -> Map:
    """Return the named functions, each noting its doubts in `doubts`."""
    return {name: partial(FUNCTIONS[name], doubts) for name in names}


def _path(_doubts: Doubts, *values: object) -> Map:
    return {_KIND: "path", "value": values[0] if len(values) == 1 else None}


def _email(_doubts: Doubts, *values: object) -> Map:
    return {_KIND: "email", "value": values[0] if len(values) == 1 else None}


def _host(_doubts: Doubts, *values: object) -> Map:
    return {_KIND: "host", "value": values[0] if len(values) == 1 else None}


def _sql(doubts: Doubts, *values: object) -> Map:
    dialect = values[1] if len(values) == 2 else ""  # noqa: PLR2004 - the text and its dialect
    if not values or (dialect and dialect not in _DIALECTS):
        doubts.append("`sql` takes a text and the name of a dialect")
        return {"destructive": True, "risk": "unknown", "tables": []}
    found = sql(values[0], cast("str", dialect))
    return {"destructive": found.destructive, "risk": found.risk, "tables": list(found.tables)}


def _shell(_doubts: Doubts, *values: object) -> Map:
    found = shell(values[0] if len(values) == 1 else None)
    return {"risk": found.risk, "commands": list(found.commands)}


def _inside(doubts: Doubts, *values: object) -> bool:
    subject, base = _receiver(doubts, "path", "inside", values)
    if not isinstance(base, str) or not base:
        doubts.append("`inside` takes the path of one folder")
        return False
    found = path(subject)
    nearly = "only the case of letters keeps the path outside" if found.nearly_inside(base) else ""
    return _noting(doubts, found.doubt or nearly, answer=found.inside(base))


def _matches(doubts: Doubts, *values: object) -> bool:
    """Match a path against a glob, or, as CEL defines it, a text against a regular expression."""
    if len(values) == 2 and isinstance(values[0], str):  # noqa: PLR2004 - the text and the pattern
        return _matches_text(doubts, values[0], values[1])
    subject, pattern = _receiver(doubts, "path", "matches", values)
    if not isinstance(pattern, str):
        doubts.append("`matches` takes one pattern")
        return True
    found = path(subject)
    nearly = "the path matches only when case is ignored" if found.nearly_matches(pattern) else ""
    return _noting(doubts, found.doubt or nearly, answer=found.matches(pattern))


def _matches_text(doubts: Doubts, text: str, pattern: object) -> bool:
    """Match in CEL's own engine, which takes linear time whatever the pattern."""
    import cel  # noqa: PLC0415 - already loaded by whoever calls this

    try:
        return cast("bool", cel.evaluate("text.matches(pattern)", {"text": text, "pattern": pattern}))
    except (ValueError, TypeError, RuntimeError):
        doubts.append("`matches` got a pattern that is not a regular expression")
        return True


def _all_in(doubts: Doubts, *values: object) -> bool:
    subject, domains = _receiver(doubts, "email", "all_in", values)
    found = email(subject)
    return _noting(doubts, found.doubt, answer=found.all_in(_domains(doubts, "all_in", domains)))


def _in_domains(doubts: Doubts, *values: object) -> bool:
    subject, domains = _receiver(doubts, "host", "in_domains", values)
    found = host(subject)
    return _noting(doubts, found.doubt, answer=found.in_domains(_domains(doubts, "in_domains", domains)))


def _noting(doubts: Doubts, doubt: str, *, answer: bool) -> bool:
    if doubt:
        doubts.append(doubt)
    return answer


def _receiver(doubts: Doubts, kind: str, name: str, values: Sequence[object]) -> tuple[object, object]:
    """Return the value inside the matcher and the one argument."""
    receiver = cast("Map", values[0]) if values and isinstance(values[0], dict) else {}
    if len(values) != 2 or receiver.get(_KIND) != kind:  # noqa: PLR2004 - the receiver and one argument
        doubts.append(f"`{name}` belongs after `{kind}(...)` and takes one argument")
        return None, None
    return receiver.get("value"), values[1]


def _domains(doubts: Doubts, name: str, value: object) -> list[str]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    texts = [each for each in items if isinstance(each, str)]
    if not texts or len(texts) != len(items):
        doubts.append(f"`{name}` takes a list of domains")
        return []
    return texts


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "path": _path,
    "email": _email,
    "host": _host,
    "sql": _sql,
    "shell": _shell,
    "inside": _inside,
    "matches": _matches,
    "all_in": _all_in,
    "in_domains": _in_domains,
}
"""The functions of conditions, by name; each takes the list for doubts first."""
