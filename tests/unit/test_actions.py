"""The canonical form of an action, its digest, and everything that has none."""

import math
import struct
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from sayso.actions import MAX_BYTES, MAX_DEPTH, MAX_INTEGER, MAX_NAME, Action, Origin, canonical, parse_args
from sayso.errors import InvalidAction
from tests.builders import action
from tests.guarantees import guarantee

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.one_of(
    st.integers(-MAX_INTEGER, MAX_INTEGER),
    st.floats(allow_nan=False, allow_infinity=False).filter(
        lambda value: not MAX_INTEGER < abs(value) < 1e21
    ),
    st.sampled_from(
        [1e21, 1e15, 1e-7, 1e-6, -0.0, 0.0, 5e-324, 1.7976931348623157e308, 333333333.33333329, 0.001]
    ),
)
LEAVES = st.one_of(st.none(), st.booleans(), NUMBERS, TEXT)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(TEXT, inner, max_size=5)),
    max_leaves=20,
)


@given(JSON)
@example({"\U0001f600": 1, "\ufb33": 2, "\r": 3, "1": 4, "\x80": 5, "\u00f6": 6, "\u20ac": 7})
@example([56.0, 0.002, -0.0, 1e30, 4.5e-27, 1e-27, 1e23, 9007199254740991.0, 1424953923781206.2])
@example({"a": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\u2028\u007f"})
def test_every_json_value_is_written_as_rfc_8785_writes_it(value: object) -> None:
    assert canonical(value) == rfc8785.dumps(value)  # pyright: ignore[reportArgumentType] - any JSON


def test_keys_are_sorted_by_utf16_code_units() -> None:
    written = canonical({"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\x80": 6, "\u00f6": 7})
    assert written.decode() == '{"\\r":2,"1":4,"\x80":6,"\u00f6":7,"\u20ac":1,"\U0001f600":5,"\ufb33":3}'


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_are_written_as_the_vectors_of_rfc_8785(bits: str, text: str) -> None:
    number = struct.unpack(">d", bytes.fromhex(bits))[0]
    assert canonical([number]).decode() == f"[{text}]"


def test_the_example_of_rfc_8785_is_written_byte_for_byte() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\u002f",
        "literals": [None, True, False],
    }
    assert canonical(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_a_tuple_is_a_list() -> None:
    assert canonical({"a": (1, 2)}) == canonical({"a": [1, 2]})


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("args", "path", "words"),
    [
        ({"a": math.nan}, "args.a", "nan"),
        ({"a": [1, math.inf]}, "args.a[1]", "inf"),
        ({"a": {"b": -math.inf}}, "args.a.b", "-inf"),
        ({"a": b"x"}, "args.a", "bytes"),
        ({"a": {1, 2}}, "args.a", "set"),
        ({"a": [object()]}, "args.a[0]", "object"),
        ({"a": {1: 2}}, "args.a", "key 1"),
        ({"a": {None: 2}}, "args.a", "key None"),
        ({"a": "\ud800"}, "args.a", "lone surrogate"),
        ({"\udfff": 1}, "args.\\udfff", "lone surrogate"),
        ({"é": {"x\ud800": 1}}, "args.é.x\\ud800", "lone surrogate"),
        ({"a": MAX_INTEGER + 1}, "args.a", "2^53"),
        ({"a": [-(MAX_INTEGER + 1)]}, "args.a[0]", "2^53"),
        ({"é": 2**80}, "args.é", "2^53"),
        ({"a": 9007199254740992.0}, "args.a", "2^53"),
        ({"a": [-1e20]}, "args.a[0]", "2^53"),
        ({"a": nested(MAX_DEPTH)}, "args.a", "64 levels"),
        ({"a": (x for x in "ab")}, "args.a", "generator"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_its_path(args: dict[str, object], path: str, words: str) -> None:
    with pytest.raises(InvalidAction) as caught:
        action(args=args)  # pyright: ignore[reportArgumentType] - what is refused
    assert f"`{path}" in caught.value.message
    assert words in caught.value.message
    assert caught.value.hint


def test_the_largest_integers_and_the_deepest_nesting_allowed_pass() -> None:
    assert action(args={"a": MAX_INTEGER, "b": -MAX_INTEGER, "c": nested(MAX_DEPTH - 1)}).digest  # pyright: ignore[reportArgumentType]


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(InvalidAction, match="64 levels"):
        action(args={"a": loop})  # pyright: ignore[reportArgumentType] - what is refused


def test_a_subclass_of_text_is_refused_by_its_path() -> None:
    with pytest.raises(InvalidAction, match=r"`args\.a`.*Origin"):
        action(args={"a": Origin.USER})


def test_arguments_over_a_mebibyte_are_refused_with_their_size() -> None:
    assert action(args={"a": "x" * (MAX_BYTES - 8)}).digest
    with pytest.raises(InvalidAction, match=r"1,048,577 bytes"):
        action(args={"a": "x" * (MAX_BYTES - 7)})


@pytest.mark.parametrize("args", [[1], "text", None, 7])
def test_arguments_must_have_names(args: object) -> None:
    with pytest.raises(InvalidAction, match="named arguments"):
        Action(tool="t", args=args, thread="x")  # pyright: ignore[reportArgumentType] - what is refused


@pytest.mark.parametrize("field", ["tool", "thread", "call_id", "agents", "requested_by"])
@pytest.mark.parametrize(
    ("value", "words"), [("\ud800", "surrogate"), ("x" * (MAX_NAME + 1), "characters"), (7, "text")]
)
def test_names_that_are_no_plain_text_are_refused(field: str, value: object, words: str) -> None:
    fields: dict[str, Any] = {"tool": "t", "thread": "x", "args": {}}
    fields[field] = (value,) if field == "agents" else value
    with pytest.raises(InvalidAction, match=f"`{field}.*{words}"):
        Action(**fields)


@pytest.mark.parametrize("field", ["tool", "thread"])
def test_an_empty_tool_or_thread_is_refused(field: str) -> None:
    fields: dict[str, Any] = {"tool": "t", "thread": "x", "args": {}, field: ""}
    with pytest.raises(InvalidAction, match=f"`{field}` is empty"):
        Action(**fields)


@pytest.mark.parametrize("confidence", [-0.01, 1.01, math.nan, math.inf])
def test_a_confidence_outside_zero_to_one_is_refused(confidence: float) -> None:
    with pytest.raises(InvalidAction, match="confidence"):
        Action(tool="t", args={}, thread="x", confidence=confidence)


def test_facts_and_origins_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(InvalidAction, match=r"`facts\.at`"):
        Action(tool="t", args={}, thread="x", facts={"at": b"now"})  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidAction, match=r"`origins\.a`"):
        Action(tool="t", args={}, thread="x", origins={"a": "moon"})  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidAction, match="origins"):
        Action(tool="t", args={}, thread="x", origins={"\ud800": Origin.WEB})


@pytest.mark.parametrize(
    "other",
    [
        {"tool": "cancel_booking"},
        {"args": {"price": 1848}},
        {"args": {"price": 1847, "extra": None}},
        {"thread": "another"},
        {"agents": ("assistant", "researcher")},
        {"agents": ()},
    ],
)
@guarantee("G2")
def test_another_tool_argument_thread_or_agent_is_another_digest(other: dict[str, object]) -> None:
    base: dict[str, object] = {
        "tool": "book",
        "args": {"price": 1847},
        "thread": "trip",
        "agents": ("assistant",),
    }
    assert Action(**base).digest != Action(**base | other).digest  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "other", [{"call_id": "2"}, {"confidence": 0.1}, {"facts": {"seats": 1}}, {"requested_by": "bot"}]
)
def test_the_call_id_and_what_surrounds_a_call_are_not_part_of_the_digest(other: dict[str, object]) -> None:
    base: dict[str, object] = {"tool": "book", "args": {"price": 1847}, "thread": "trip"}
    assert Action(**base).digest == Action(**base | other).digest  # pyright: ignore[reportArgumentType]


def test_names_cannot_be_moved_across_fields_without_changing_the_digest() -> None:
    made = [
        Action(tool='a","v":1', args={}, thread="b"),
        Action(tool="a", args={}, thread='b","tool":"a'),
        Action(tool="a", args={}, thread="b"),
        Action(tool="b", args={}, thread="a"),
        Action(tool="a", args={}, thread="b", agents=("c", "d")),
        Action(tool="a", args={}, thread="b", agents=('c","d',)),
    ]
    assert len({each.digest for each in made}) == len(made)


@given(
    st.dictionaries(TEXT, LEAVES, max_size=4),
    TEXT.filter(bool),
    TEXT.filter(bool),
    st.lists(TEXT, max_size=3),
)
def test_the_digest_is_the_hash_of_the_canonical_whole(
    args: dict[str, object], tool: str, thread: str, agents: list[str]
) -> None:
    from hashlib import sha256  # noqa: PLC0415 - the only use

    whole = {"tool": tool, "args": args, "thread": thread, "agents": agents, "v": 1}
    made = Action(tool=tool, args=args, thread=thread, agents=tuple(agents))  # pyright: ignore[reportArgumentType]
    assert made.digest == sha256(rfc8785.dumps(whole)).hexdigest()  # pyright: ignore[reportArgumentType]


@guarantee("G2")
def test_an_action_does_not_change_when_the_callers_arguments_do() -> None:
    args: dict[str, object] = {"price": 1, "seats": [{"row": 12}]}
    made = action(args=args)  # pyright: ignore[reportArgumentType]
    args["price"] = 9999
    args["seats"][0]["row"] = 1  # pyright: ignore[reportIndexIssue, reportArgumentType, reportUnknownMemberType]
    assert made.args == {"price": 1, "seats": [{"row": 12}]}
    assert canonical(made.args) == made.canonical_args


def test_arguments_keep_their_order_and_the_types_json_has() -> None:
    made = action(args={"price": 1847.0, "date": "today", "pair": (1, 2)})
    assert list(made.args) == ["price", "date", "pair"]
    assert type(made.args["price"]) is float
    assert made.args["pair"] == [1, 2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 2}', "`a` twice"),
        ('{"a": 1, "\\u0061": 2}', "`a` twice"),
        ('{"x": {"b": 1, "b": 1}}', "`b` twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ("[1]", "object"),
        ('"text"', "object"),
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
        ('{"a": 1} {"b": 2}', "not valid JSON"),
        (b'{"a": "\xff"}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a": %s}' % ("9" * 5000), "not valid JSON"),
    ],
)
def test_text_that_can_be_read_in_two_ways_is_refused(text: str | bytes, words: str) -> None:
    with pytest.raises(InvalidAction, match=words):
        parse_args(text)


@pytest.mark.parametrize(
    "text", ['{"a": 1e400}', '{"a": 9007199254740993}', '{"a": "\\ud800"}', '{"\\udfff": 1}']
)
def test_an_action_from_text_has_a_canonical_form_or_is_refused(text: str) -> None:
    with pytest.raises(InvalidAction):
        Action.from_json(text, tool="t", thread="x")


def test_an_action_from_text_is_the_action_from_its_values() -> None:
    read = Action.from_json('{"b": [1.0, "\\u20ac"], "a": null}', tool="t", thread="x", call_id="1")
    assert read == Action(tool="t", args={"a": None, "b": [1, "€"]}, thread="x", call_id="1")
