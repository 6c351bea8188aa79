"""Guarding plain functions: every call becomes an action, bound by name, before it may run.

The arguments are digested again at the last moment; a call whose arguments changed while it
waited does not run (G2).
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import ParamSpec, Protocol, TypeVar, cast

from sayso.actions import Action, Json, Origin
from sayso.errors import ClaimRefused, InvalidAction, SaysoError, UsageError
from sayso.settlement import Settlement

P = ParamSpec("P")
R = TypeVar("R")

_NOT_RUN = "it was not run: its arguments changed or do not fit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is calling, for actions made from plain function calls.

    Args:
        thread: The conversation or run.
        agents: The agent path, outermost first.
        requested_by: Who asks.
        call_id: The id the model gave the call, if any.
        confidence: How sure the agent is, from 0 to 1.
        origins: Where arguments came from, by name.
    """

    thread: str = "main"
    agents: tuple[str, ...] = ()
    requested_by: str = "agent"
    call_id: str = ""
    confidence: float | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])


_CALLER: ContextVar[Caller] = ContextVar("sayso_caller", default=Caller())  # noqa: B039 - the default is frozen


@contextmanager
def acting(
    *,
    thread: str | None = None,
    agents: tuple[str, ...] | None = None,
    requested_by: str | None = None,
    call_id: str | None = None,
    confidence: float | None = None,
    origins: Mapping[str, Origin] | None = None,
) -> Generator[Caller]:
    """Say who is calling, for every guarded function called inside; what is left out is kept."""
    given: dict[str, object] = {
        "thread": thread,
        "agents": agents,
        "requested_by": requested_by,
        "call_id": call_id,
        "confidence": confidence,
        "origins": origins,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    caller = replace(_CALLER.get(), **changes)  # pyright: ignore[reportArgumentType] - the names above are its fields
    token = _CALLER.set(caller)
    try:
        yield caller
    finally:
        _CALLER.reset(token)


_RUNNING: ContextVar[Settlement | None] = ContextVar("sayso_running", default=None)


def running() -> Settlement | None:
    """Return what lets the guarded function run that is running now, to renew its lease."""
    return _RUNNING.get()


@contextmanager
def _running(settlement: Settlement) -> Generator[None]:
    token = _RUNNING.set(settlement)
    try:
        yield
    finally:
        _RUNNING.reset(token)


class SyncDoor(Protocol):
    """What guarding a plain function needs of a gate."""

    def ask(self, action: Action) -> Settlement:
        """Return what may run."""
        ...

    def complete(self, settlement: Settlement, *, error: str = "") -> None:
        """Report how it ended."""
        ...


class AsyncDoor(Protocol):
    """What guarding a coroutine function needs of a gate."""

    async def aask(self, action: Action) -> Settlement:
        """Return what may run."""
        ...

    async def acomplete(self, settlement: Settlement, *, error: str = "") -> None:
        """Report how it ended."""
        ...


def guard_function(function: Callable[P, R], door: SyncDoor, tool: str) -> Callable[P, R]:
    """Return a function that runs only what the gate lets run."""
    signature = _signature(function)

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = _bind(signature, tool, args, kwargs)
        settlement = door.ask(_action(tool, bound)).check()
        if settlement.response is not None:
            return cast("R", settlement.response)
        try:
            call = _last_look(settlement, signature, bound)
        except SaysoError:
            door.complete(settlement, error=_NOT_RUN)
            raise
        if settlement.permit is None:
            return function(*call.args, **call.kwargs)
        try:
            with _running(settlement):
                result = function(*call.args, **call.kwargs)
        except Exception as error:
            door.complete(settlement, error=_described(error))
            raise
        door.complete(settlement)
        return result

    return guarded


def guard_coroutine(
    function: Callable[P, Awaitable[R]], door: AsyncDoor, tool: str
) -> Callable[P, Awaitable[R]]:
    """Return a coroutine function that runs only what the gate lets run."""
    signature = _signature(function)

    @functools.wraps(function)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = _bind(signature, tool, args, kwargs)
        settlement = (await door.aask(_action(tool, bound))).check()
        if settlement.response is not None:
            return cast("R", settlement.response)
        try:
            call = _last_look(settlement, signature, bound)
        except SaysoError:
            await door.acomplete(settlement, error=_NOT_RUN)
            raise
        if settlement.permit is None:
            return await function(*call.args, **call.kwargs)
        try:
            with _running(settlement):
                result = await function(*call.args, **call.kwargs)
        except Exception as error:
            await door.acomplete(settlement, error=_described(error))
            raise
        await door.acomplete(settlement)
        return result

    return guarded


def _signature(function: Callable[..., object]) -> inspect.Signature:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"`{function.__qualname__}` is a generator, which runs after the call that would be approved",
            hint="guard a function that does the work and returns",
        )
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise UsageError(
                f"`{function.__qualname__}` takes *{parameter.name}, whose values have no names to show a person",
                hint="give every argument a name",
            )
    return signature


def _bind(
    signature: inspect.Signature, tool: str, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> inspect.BoundArguments:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidAction(
            f"`{tool}` cannot be called like this: {error}", hint="nothing was asked or run"
        ) from None
    bound.apply_defaults()
    return bound


def _named(bound: inspect.BoundArguments) -> dict[str, Json]:
    """Return the arguments by name, those of **kwargs beside the others."""
    named: dict[str, Json] = {}
    for name, value in bound.arguments.items():
        several = bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        for each, given in value.items() if several else ((name, value),):
            if each in named:
                raise InvalidAction(f"two arguments are called `{each}`", hint="nothing was asked or run")
            named[each] = given
    return named


def _action(tool: str, bound: inspect.BoundArguments) -> Action:
    caller = _CALLER.get()
    return Action(
        tool=tool,
        args=_named(bound),
        thread=caller.thread,
        call_id=caller.call_id,
        agents=caller.agents,
        requested_by=caller.requested_by,
        confidence=caller.confidence,
        origins=caller.origins,
    )


def _last_look(
    settlement: Settlement, signature: inspect.Signature, bound: inspect.BoundArguments
) -> inspect.BoundArguments:
    """Return the arguments to run with, after digesting them once more."""
    action = settlement.action
    if settlement.was_edited:
        if action.tool != (settlement.approval.action.tool if settlement.approval else action.tool):
            raise ClaimRefused(f"the approved tool is `{action.tool}`, which is not this function")
        edited = _bind(signature, action.tool, (), action.args)
    else:
        edited = bound
    live = replace(action, args=_named(edited))
    if live.digest != action.digest:
        raise ClaimRefused(
            f"the arguments of `{action.tool}` changed after they were approved",
            hint="it was not run; ask again with the new arguments",
            approval_id=settlement.approval.id if settlement.approval else "",
        )
    return edited


def _described(error: Exception) -> str:
    """Name the error without its text, which may hold arguments."""
    return type(error).__name__
