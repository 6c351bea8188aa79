"""Calling what the author of a policy wrote, without trusting it to behave.

`attempt` is the one place of the pure middle that catches whatever a rule raises. Its answer
is a `Fault`, and every fault becomes a question to a person.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from sayso.actions import Action, Json
from sayso.policy.verdicts import Context

Predicate: TypeAlias = Callable[..., object]
"""A function of the call, or the call and the state, or the call, the state and the runtime."""

_LONGEST_KEY = 60


class Doubt(Exception):  # noqa: N818 - a signal that becomes a question, not an error
    """A rule cannot tell; its words say why and never quote an argument."""


class Call(dict[str, object]):
    """The call a predicate looks at: a mapping and a request at once.

    `call["args"]`, `call["name"]` and `call["id"]` work, and so does everything written for a
    request object: `.tool_call["args"]`, `.state`, `.runtime`, `.tool`. The arguments are a
    copy, so a predicate cannot change what will run.
    """

    __slots__ = ("runtime", "state", "tool")

    def __init__(self, action: Action, context: Context) -> None:
        args = plain(action.args)
        super().__init__(name=action.tool, args=args, id=action.call_id, type="tool_call")
        self.state = context.state
        self.runtime = context.runtime
        self.tool = context.tool

    @property
    def tool_call(self) -> "Call":
        """The call itself."""
        return self


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong inside a rule, in words that quote no argument."""

    text: str


def plain(value: Json) -> object:
    """Return a deep copy made of plain dicts and lists."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def attempt(function: Callable[[], object], action: Action) -> object:
    """Return what the function returns, or the `Fault` it ended in.

    Args:
        function: What may do anything.
        action: The call it is about; nothing of its arguments gets into a fault.
    """
    try:
        result = function()
    except Doubt as doubt:
        return Fault(str(doubt))
    except KeyError as error:
        return Fault(f"it failed with KeyError{_missing(error, action)}")
    except Exception as error:  # noqa: BLE001 - a rule may raise anything, and every fault asks
        return Fault(f"it failed with {type(error).__name__}")
    if inspect.iscoroutine(result):
        result.close()
    if inspect.isawaitable(result):
        return Fault("it returned an awaitable, and rules are not awaited")
    return result


def answer(function: Callable[[], object], action: Action) -> bool | Fault:
    """Return the yes or no of a condition; anything else, even a truthy value, is a fault."""
    result = attempt(function, action)
    if result is True or result is False or isinstance(result, Fault):
        return result
    return Fault(f"it returned {type(result).__name__}, not a bool")


def count_parameters(function: object, least: int, most: int) -> int:
    """Return how many positional arguments the function wants.

    Raises:
        ValueError: It is not callable, is async, or wants fewer or more than it will get; the
            message reads on from the name of the function.
    """
    if not callable(function):
        raise ValueError(f"must be a function, got {type(function).__name__}")  # noqa: TRY004 - one kind to collect
    if _is_async(function):
        raise ValueError("is async, and a verdict is never awaited; make it a plain function")
    wanted = f"must take {least} to {most} positional arguments"
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}, and its signature cannot be read; wrap it in a lambda") from None
    if any(each.kind is each.KEYWORD_ONLY and each.default is each.empty for each in parameters):
        raise ValueError(f"{wanted}, and has a keyword argument without a default")
    positional = [
        each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    required = sum(each.default is each.empty for each in positional)
    room = most if any(each.kind is each.VAR_POSITIONAL for each in parameters) else len(positional)
    if required > most or room < least:
        raise ValueError(f"{wanted}, and takes {required or room}")
    return max(required, least)


def invoke(function: Callable[..., object], count: int, action: Action, context: Context) -> object:
    """Call a predicate or a description with the first `count` of call, state and runtime."""
    everything = (Call(action, context), context.state, context.runtime)
    return function(*everything[:count])


def name_of(function: object) -> str:
    """Return a name to print for a function."""
    return cast("str", getattr(function, "__name__", type(function).__name__))


def _is_async(function: Callable[..., object]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - an object may hide an async __call__
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    return any(kind(inspect.unwrap(each)) for kind in kinds for each in (function, call) if callable(each))


def _missing(error: KeyError, action: Action) -> str:
    """Name the key when it reads like a name and stands nowhere in the arguments."""
    key = error.args[0] if error.args else ""
    text = key.strip("'") if isinstance(key, str) else ""
    tells = not text.isidentifier() or len(text) > _LONGEST_KEY or text.encode() in action.canonical_args
    return "" if tells else f" '{text}'"
