"""Conditions of a policy file: CEL, compiled and checked when the policy is built.

Variables: `args`, `tool`, `thread`, `agents`, `confidence` (a number or null), `origins`.
The functions besides those of CEL are in `functions`.

Comparisons mix whole and decimal numbers (`args.price > 400` holds for 1847 and 1847.5);
arithmetic does not: write `double(args.price) * 1.2`. As CEL defines it, `a || b` is true when
one side is true though the other fails, and `a && b` is false when one side is false. Every
other failure, such as a missing argument, is a fault, and a fault asks.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Protocol

from sayso.actions import Action
from sayso.errors import PolicyError
from sayso.policy.functions import FIELDS, FUNCTIONS, bound
from sayso.policy.predicates import Doubt, plain

_VARIABLES: Mapping[str, Callable[[Action], object]] = {
    "args": lambda action: plain(action.args),
    "tool": lambda action: action.tool,
    "thread": lambda action: action.thread,
    "agents": lambda action: list(action.agents),
    "confidence": lambda action: action.confidence,
    "origins": lambda action: {name: origin.value for name, origin in action.origins.items()},
}
_TYPE_NAMES = frozenset(
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"]
)
_STANDARD = frozenset(
    [
        "size",
        "contains",
        "startsWith",
        "endsWith",
        "matches",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "timestamp",
        "duration",
        "type",
        "dyn",
        "getFullYear",
        "getMonth",
        "getDate",
        "getDayOfMonth",
        "getDayOfWeek",
        "getDayOfYear",
        "getHours",
        "getMinutes",
        "getSeconds",
        "getMilliseconds",
    ]
)
_STRINGS = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
_BOUND = re.compile(r"\.(?:all|exists|exists_one|map|filter)\(\s*([A-Za-z_]\w*)\s*,")
_STRUCTURED = re.compile(rf"\b({'|'.join(FIELDS)})\(")
_LONGEST = 4096


class _Program(Protocol):
    """A compiled expression; safe to run from many threads, as each run has its own scope."""

    def execute(self, context: dict[str, object] | None = ..., /) -> object: ...
    def variables(self) -> list[str]: ...
    def functions(self) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Condition:
    """A CEL expression, compiled and checked.

    Args:
        source: The expression as it was written.
    """

    source: str
    _program: _Program = field(repr=False, compare=False)
    _variables: tuple[str, ...] = field(repr=False, compare=False)
    _functions: tuple[str, ...] = field(repr=False, compare=False)

    @classmethod
    def compile(cls, source: str) -> "Condition":
        """Compile an expression.

        Raises:
            PolicyError: It is not CEL, or names a variable, function or field there is not;
                every mistake is named.
        """
        import cel  # noqa: PLC0415 - loads a compiled extension that policies without CEL never need

        if len(source) > _LONGEST:
            raise PolicyError(
                f"the condition has {len(source):,} characters, at most {_LONGEST:,} are allowed"
            )
        try:
            program: _Program = cel.compile(source)  # pyright: ignore[reportAssignmentType] - its stub says Any
        except ValueError as error:
            raise PolicyError(f"`{source}` is not CEL: {_syntax(error)}") from None
        if problems := list(_problems(source, program)):
            raise PolicyError(f"`{source}`: {'; '.join(problems)}")
        names = tuple(name for name in program.variables() if name in _VARIABLES)
        return cls(source, program, names, tuple(name for name in program.functions() if name in FUNCTIONS))

    def value(self, action: Action) -> object:
        """Return what the expression is for this action.

        Raises:
            Doubt: A matcher met a value it cannot read in exactly one way.
            Exception: Whatever CEL raises for this action, such as KeyError.
        """
        doubts: list[str] = []
        scope: dict[str, object] = {name: _VARIABLES[name](action) for name in self._variables}
        scope.update(bound(self._functions, doubts))
        result = self._program.execute(scope)
        if doubts:
            raise Doubt(doubts[0])
        return result


def _syntax(error: ValueError) -> str:
    found = re.search(r"<input>:(\d+):(\d+): (?:Syntax error: )?(.*)", str(error))
    return f"{found.group(3)} (column {found.group(2)})" if found else "it cannot be parsed"


def _problems(source: str, program: _Program) -> Iterator[str]:
    code = _STRINGS.sub(lambda found: "'" + "_" * (len(found.group()) - 2) + "'", source)
    variables = {*_VARIABLES, *_TYPE_NAMES, *_BOUND.findall(code)}
    for name in program.variables():
        if name not in variables:
            yield f"there is no variable `{name}`{nearest(name, _VARIABLES)}"
    known = {*FUNCTIONS, *_STANDARD}
    for name in program.functions():
        if name.isidentifier() and not name.startswith("_") and name not in known:
            yield f"there is no function `{name}`{nearest(name, known)}"
    yield from _unknown_fields(code)
    if not program.variables() and not _STRUCTURED.search(code):
        yield "it names no variable, so it can never depend on the call"


def _unknown_fields(code: str) -> Iterator[str]:
    """Yield what is read from `sql(...)` or `shell(...)` and is not there."""
    for found in _STRUCTURED.finditer(code):
        rest = code[_closing(code, found.end()) :]
        name = re.match(r"\s*\.\s*([A-Za-z_]\w*)", rest)
        fields = FIELDS[found.group(1)]
        if not name:
            yield f"`{found.group(1)}(...)` is not a condition by itself; read one of {', '.join(fields)}"
        elif name.group(1) not in fields:
            yield f"`{found.group(1)}(...)` has no `{name.group(1)}`{nearest(name.group(1), fields)}"


def _closing(code: str, start: int) -> int:
    """Return where the parenthesis opened just before `start` ends."""
    depth = 1
    for place in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place + 1
    return len(code)


def nearest(name: str, known: "Mapping[str, object] | set[str] | frozenset[str] | tuple[str, ...]") -> str:
    """Return `; did you mean ...?` for the nearest known name, or nothing."""
    close = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""
