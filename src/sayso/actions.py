"""What an agent wants to do, in exactly one form.

An `Action` is canonical JSON (RFC 8785) and the SHA-256 digest over it. Whatever has no
canonical form is refused here, so nothing can be approved that could be read in two ways.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any, TypeAlias, cast

import orjson
import rfc8785

from sayso.errors import InvalidAction

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that JSON can hold."""

MAX_DEPTH = 64
"""How deep arguments may nest."""

MAX_BYTES = 1_048_576
"""How many bytes the canonical arguments may take."""

MAX_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exact (RFC 8785, section 3.2.2.3)."""

MAX_NAME = 512
"""How many characters a tool, thread, agent or call id may have."""


class Origin(StrEnum):
    """Where an argument came from."""

    USER = "user"
    CONFIG = "config"
    MODEL = "model"
    TOOL = "tool"
    WEB = "web"


UNTRUSTED = frozenset({Origin.TOOL, Origin.WEB})
"""Origins that somebody outside may have written."""


def nothing() -> dict[str, Json]:
    """Return a mapping of nothing."""
    return {}


def no_origins() -> dict[str, Origin]:
    """Return a mapping of no argument to its origin."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One call an agent wants to make.

    Args:
        tool: The tool's name.
        args: The arguments, JSON values by name.
        thread: The conversation or run it belongs to.
        call_id: The id the model gave the call; the same id and digest is the same request.
        agents: The agent path, outermost first: `("assistant", "researcher")`.
        requested_by: Who asks: an agent's or a person's id. They can never decide it.
        confidence: How sure the agent is, from 0 to 1, or None when it does not say.
        origins: Where arguments came from, by argument name.
        facts: What was true when the action was proposed (a version, a balance, a hash),
            read again before it runs.

    Raises:
        InvalidAction: A field has no canonical form; the message names its path.
    """

    tool: str
    args: Mapping[str, Json]
    thread: str
    call_id: str = ""
    agents: tuple[str, ...] = ()
    requested_by: str = "agent"
    confidence: float | None = None
    origins: Mapping[str, Origin] = field(default_factory=no_origins)
    facts: Mapping[str, Json] = field(default_factory=nothing)
    canonical_args: bytes = field(init=False, repr=False, compare=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        """Compute the canonical form and the digest, refusing what has none.

        The arguments are copied: what people are shown must not change with the caller's own.
        """
        _check_names(self)
        args = canonical(self.args, "args")
        if not args.startswith(b"{"):
            raise InvalidAction(
                f"`args` must be an object with named arguments, got {type(self.args).__name__}",
                hint="pass the arguments by name",
            )
        object.__setattr__(self, "args", orjson.loads(orjson.dumps(self.args)))
        object.__setattr__(self, "canonical_args", args)
        object.__setattr__(self, "digest", digest_of(self.tool, args, self.thread, self.agents))

    @classmethod
    def stored(cls, canonical_args: bytes, digest: str, fields: Mapping[str, object]) -> "Action":
        """Return an action that was built before, as a store kept it.

        What was checked then is not checked again; the digest over the stored bytes shows that
        they are the same.

        Args:
            canonical_args: The canonical arguments.
            digest: The digest it had, in hexadecimal.
            fields: Every other field by name.

        Raises:
            ValueError: The bytes do not have that digest.
        """
        action = object.__new__(cls)
        put = object.__setattr__
        for name, value in fields.items():
            put(action, name, value)
        found = digest_of(action.tool, canonical_args, action.thread, action.agents)
        if found != digest:
            raise ValueError(f"the digest of the action is {found[:12]}, and {digest[:12]} was stored")
        put(action, "args", orjson.loads(canonical_args))
        put(action, "canonical_args", canonical_args)
        put(action, "digest", digest)
        return action

    @classmethod
    def from_json(cls, text: str | bytes, *, tool: str, thread: str, call_id: str = "") -> "Action":
        """Build an action from arguments in JSON text, refusing duplicate keys.

        Raises:
            InvalidAction: The text is not JSON, repeats a key, or has no canonical form.
        """
        return cls(tool=tool, args=parse_args(text), thread=thread, call_id=call_id)


def digest_of(tool: str, canonical_args: bytes, thread: str, agents: Sequence[str]) -> str:
    """Return the SHA-256 digest, in hexadecimal, of the canonical form of an action.

    The canonical form is the RFC 8785 object `{"agents", "args", "thread", "tool", "v": 1}`.
    """
    whole = b'{"agents":%b,"args":%b,"thread":%b,"tool":%b,"v":1}' % (
        orjson.dumps(tuple(agents)) if agents else b"[]",
        canonical_args,
        orjson.dumps(thread),
        orjson.dumps(tool),
    )
    return sha256(whole).hexdigest()


def canonical(value: object, where: str = "value", limit: int = MAX_BYTES) -> bytes:
    """Return the RFC 8785 form of a JSON value.

    Args:
        value: What to write.
        where: The name used for it in error messages.
        limit: The largest size allowed, in bytes.

    Raises:
        InvalidAction: The value is not JSON, is too deep or too large; names the path.
    """
    try:
        plain = _is_plain(value, MAX_DEPTH)
        data = orjson.dumps(value, option=_PLAIN)
        if not plain or not (data.isascii() or _has_plain_keys(value)):
            data = rfc8785.dumps(cast("dict[str, str]", value))
    except (_NotJson, orjson.JSONEncodeError, rfc8785.CanonicalizationError, RecursionError, UnicodeError):
        raise _explain(value, where) from None
    if len(data) > limit:
        raise InvalidAction(
            f"`{where}` takes {len(data):,} bytes, and at most {limit:,} are allowed",
            hint="pass a reference to large content instead of the content",
        )
    return bytes(memoryview(data))  # orjson's own result keeps a buffer of 8 KiB


def parse_args(text: str | bytes) -> dict[str, Json]:
    """Read an object from JSON text, refusing duplicate keys and numbers JSON does not have.

    Raises:
        InvalidAction: With what is wrong in the text.
    """
    import json  # noqa: PLC0415 - the only reader that shows duplicate keys; not on the hot path

    def pairs(items: list[tuple[str, Json]]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for key, item in items:
            if key in found:
                raise InvalidAction(f"`args` has the key `{key}` twice", hint="keep one of the two")
            found[key] = item
        return found

    def constant(name: str) -> Json:
        raise InvalidAction(f"`args` holds {name}, which JSON does not have", hint="use null or text")

    try:
        parsed = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise InvalidAction(f"`args` is not valid JSON: {error}", hint="pass one JSON object") from None
    if not isinstance(parsed, dict):
        raise InvalidAction("`args` must be a JSON object", hint='write {"name": value, ...}')
    return cast("dict[str, Json]", parsed)


_PLAIN = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_EXACT_LOW, _EXACT_HIGH = 1e-3, 1e15
_EXPONENT_FROM = 1e21  # below it, RFC 8785 writes whole floats as integers


_LEAVES: frozenset[type] = frozenset({str, int, bool, type(None)})
_CONTAINERS: frozenset[type] = frozenset({dict, list, tuple})


class _NotJson(Exception):  # noqa: N818 - a signal to explain, never leaves this module
    pass


def _is_plain(value: Any, room: int) -> bool:  # noqa: ANN401 - whatever a caller passed; a cast here costs time
    """Return whether orjson writes the numbers of this as RFC 8785 does; raise when it is not JSON at all."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType] - any type at all
    if kind in _LEAVES:
        return True
    if kind is float:
        return _is_plain_float(value)
    if room <= 0 or kind not in _CONTAINERS:
        raise _NotJson
    items = value.values() if kind is dict else value
    if _LEAVES.issuperset(map(type, items)):
        return True
    plain = True
    for item in items:
        if type(item) not in _LEAVES and not _is_plain(item, room - 1):
            plain = False
    return plain


def _has_plain_keys(value: object) -> bool:
    """Return whether sorting keys by code point, as orjson does, is sorting them as RFC 8785 does."""
    if type(value) is dict:
        keyed = cast("dict[str, object]", value)
        return all(map(str.isascii, keyed)) and all(map(_has_plain_keys, keyed.values()))
    return type(value) not in _CONTAINERS or all(map(_has_plain_keys, cast("list[object]", value)))


def _is_plain_float(value: float) -> bool:
    if not math.isfinite(value) or MAX_INTEGER < abs(value) < _EXPONENT_FROM:
        raise _NotJson
    return _EXACT_LOW <= abs(value) < _EXACT_HIGH and not value.is_integer()


def _check_names(action: Action) -> None:
    if not action.tool or not action.thread:
        empty = "tool" if not action.tool else "thread"
        raise InvalidAction(f"`{empty}` is empty", hint=f"name the {empty} this call belongs to")
    for name in ("tool", "thread", "call_id", "requested_by"):
        _check_name(name, getattr(action, name))
    for place, agent in enumerate(action.agents):
        _check_name(f"agents[{place}]", agent)
    confidence = action.confidence
    if confidence is not None and not 0.0 <= confidence <= 1.0:
        raise InvalidAction(
            f"`confidence` must lie between 0 and 1, got {confidence}", hint="leave it out if unknown"
        )
    if action.facts:
        canonical(action.facts, "facts")
    for name, origin in action.origins.items() if action.origins else ():
        _check_name("origins", name)
        if type(origin) is not Origin:
            raise InvalidAction(f"`origins.{name}` is {origin!r}, which is no origin", hint="pass an Origin")


def _check_name(where: str, text: object) -> None:
    if type(text) is not str:
        raise InvalidAction(f"`{where}` must be text, got {type(text).__name__}", hint="pass a str")
    if text.isascii() and len(text) <= MAX_NAME:
        return
    if len(text) > MAX_NAME:
        raise InvalidAction(f"`{where}` has {len(text):,} characters, at most {MAX_NAME} are allowed")
    if _has_lone_surrogate(text):
        raise InvalidAction(
            f"`{where}` holds a lone surrogate, which is not text", hint="decode the text properly"
        )


def _has_lone_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _explain(value: object, where: str) -> InvalidAction:
    """Return the error that names the first offending path."""
    found = _first_fault(value, where, MAX_DEPTH)
    path, problem, hint = found or (where, "has no canonical form", "use plain JSON values")
    return InvalidAction(f"`{path}` {problem}", hint=hint)


def _first_fault(value: object, path: str, room: int) -> tuple[str, str, str] | None:
    match value:
        case None | bool():
            return None
        case str() if type(value) is str:
            return _text_fault(value, path)
        case int() | float() if type(value) is int or isinstance(value, float):
            return _number_fault(value, path)
        case dict() | list() | tuple() if type(cast("object", value)) in _CONTAINERS and room <= 0:
            return path, f"nests deeper than {MAX_DEPTH} levels", "flatten the arguments"
        case dict() if type(cast("object", value)) is dict:
            return _dict_fault(cast("dict[object, object]", value), path, room)
        case list() | tuple() if type(cast("object", value)) in _CONTAINERS:
            items = enumerate(cast("list[object]", value))
            faults = (_first_fault(item, f"{path}[{place}]", room - 1) for place, item in items)
            return next((fault for fault in faults if fault), None)
        case _:
            return (
                path,
                f"is a {type(value).__name__}, which JSON does not have",
                "convert it to a JSON value first",
            )


def _number_fault(value: float, path: str) -> tuple[str, str, str] | None:
    if not math.isfinite(value):
        return path, f"is {value}, which JSON does not have", "use null or text"
    if type(value) is int and abs(value) > MAX_INTEGER:
        return path, "is an integer beyond 2^53, which JSON readers round", "pass it as text"
    if MAX_INTEGER < abs(value) < _EXPONENT_FROM:
        return path, "is a whole number beyond 2^53, which JSON readers round", "pass it as text"
    return None


def _dict_fault(value: dict[object, object], path: str, room: int) -> tuple[str, str, str] | None:
    for key, item in value.items():
        if not isinstance(key, str):
            return path, f"has the key {key!r}, which is not text", "use text for every key"
        fault = _text_fault(key, f"{path}.{key}") or _first_fault(item, f"{path}.{key}", room - 1)
        if fault:
            return fault
    return None


def _text_fault(value: str, path: str) -> tuple[str, str, str] | None:
    if _has_lone_surrogate(value):
        shown = path.encode("utf-8", "backslashreplace").decode()
        return shown, "holds a lone surrogate, which is not text", "decode the text properly"
    return None
