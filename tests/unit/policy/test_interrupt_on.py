"""The seed contract: `interrupt_on` maps are taken as they are, and their mistakes are named."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import functools
from collections.abc import Callable

import pytest

from sayso.actions import Action, Json
from sayso.approvals import DecisionKind, Effect, Reason, Silence
from sayso.errors import PolicyError
from sayso.policy import Context, Outcome, Policy

ALL = ("approve", "edit", "reject", "respond")


def call(tool: str, **args: Json) -> Action:
    return Action(tool=tool, args=args, thread="t")


def outcome(config: object, **args: Json) -> Outcome:
    return Policy.from_interrupt_on({"tool": config}).judge(call("tool", **args)).outcome


@pytest.mark.parametrize(
    ("config", "decisions"),
    [
        (True, ALL),
        ({"allowed_decisions": ["approve", "reject"]}, ("approve", "reject")),
        ({"allowed_decisions": ("reject", "approve")}, ("reject", "approve")),
        ({"allowed_decisions": {"edit", "approve"}}, ("approve", "edit")),
        ({"allowed_decisions": [DecisionKind.APPROVE]}, ("approve",)),
        ({"allowed_decisions": ["approve", "approve"]}, ("approve",)),
        ({"when": lambda call: True}, ALL),
        ({"predicate": lambda call: True}, ALL),
    ],
)
def test_a_config_asks_and_allows_the_decisions_it_lists(config: object, decisions: tuple[str, ...]) -> None:
    verdict = Policy.from_interrupt_on({"tool": config}).judge(call("tool"))
    assert verdict.terms is not None
    assert verdict.terms.decisions == decisions


def test_false_never_asks_and_counts_as_reading() -> None:
    verdict = Policy.from_interrupt_on({"fetch_file": False}).judge(call("fetch_file", path="x"))
    assert (verdict.outcome, verdict.effect, verdict.reasons) == (Outcome.ALLOW, Effect.READ, ())


def test_a_tool_that_asks_is_irreversible_and_silence_denies() -> None:
    verdict = Policy.from_interrupt_on({"remove_file": True}, silence=Silence.ALLOW).judge(
        call("remove_file")
    )
    assert verdict.terms is not None
    assert verdict.terms.silence is Silence.DENY
    assert verdict.reasons == (Reason.IRREVERSIBLE,)


def test_a_tool_the_map_does_not_name_asks() -> None:
    verdict = Policy.from_interrupt_on({"a": True}).judge(call("b"))
    assert (verdict.outcome, verdict.reasons) == (Outcome.ASK, (Reason.UNLISTED,))


def test_effects_override_the_default() -> None:
    policy = Policy.from_interrupt_on({"a": True}, effects={"a": Effect.REVERSIBLE}, silence=Silence.ALLOW)
    terms = policy.judge(call("a")).terms
    assert terms is not None
    assert (terms.effect, terms.silence) == (Effect.REVERSIBLE, Silence.ALLOW)


def writes_outside_workspace(request: object) -> bool:
    path = request.tool_call["args"].get("file_path", "")  # type: ignore[attr-defined]  # the seed's own words
    return not path.startswith("/workspace/")


@pytest.mark.parametrize(("path", "expected"), [("/workspace/a", Outcome.ALLOW), ("/etc/a", Outcome.ASK)])
def test_the_seeds_request_style_predicate_works(path: str, expected: Outcome) -> None:
    config = {"allowed_decisions": ["approve", "edit", "reject"], "when": writes_outside_workspace}
    assert outcome(config, file_path=path) is expected


@pytest.mark.parametrize("key", ["when", "predicate"])
@pytest.mark.parametrize(
    "predicate",
    [
        lambda call: call["args"]["n"] > 1,
        lambda call, state: call["args"]["n"] > state["limit"],
        lambda call, state, runtime: call["args"]["n"] > runtime["limit"] and bool(state),
        lambda request: request.tool_call["args"]["n"] > request.state["limit"],
        lambda request: request.args_from if hasattr(request, "args_from") else request["args"]["n"] > 1,
        lambda call, limit=1: call["args"]["n"] > limit,
        functools.partial(lambda limit, call: call["args"]["n"] > limit, 1),
    ],
)
def test_a_predicate_takes_one_two_or_three_arguments(key: str, predicate: Callable[..., bool]) -> None:
    policy = Policy.from_interrupt_on({"tool": {key: predicate}})
    context = Context(state={"limit": 1}, runtime={"limit": 1})
    assert policy.judge(call("tool", n=2), context).outcome is Outcome.ASK
    assert policy.judge(call("tool", n=1), context).outcome is Outcome.ALLOW


def test_a_predicate_sees_the_tool_the_state_and_the_runtime() -> None:
    seen: list[object] = []

    def look(request: object) -> bool:
        seen.extend(getattr(request, name) for name in ("state", "runtime", "tool"))
        return False

    Policy.from_interrupt_on({"x": {"when": look}}).judge(call("x"), Context(state=1, runtime=2, tool=3))
    assert seen == [1, 2, 3]


def test_a_predicate_cannot_change_what_will_run() -> None:
    def meddle(request: dict[str, dict[str, list[int]]]) -> bool:
        request["args"]["to"].append(2)
        return False

    action = call("x", to=[1])
    Policy.from_interrupt_on({"x": {"when": meddle}}).judge(action)
    assert action.args == {"to": [1]}


def raising(call: object) -> bool:
    raise SystemError("secret-value")


async def later() -> bool:
    return False


@pytest.mark.parametrize(
    ("predicate", "named"),
    [
        (raising, "SystemError"),
        (lambda call: call["args"]["price"] > 1, "KeyError 'price'"),
        (lambda call: None, "NoneType"),
        (lambda call: 0, "int"),
        (lambda call: "", "str"),
        (lambda call: later(), "awaitable"),
    ],
)
def test_a_predicate_that_fails_asks_and_names_the_fault(
    predicate: Callable[..., object], named: str
) -> None:
    verdict = Policy.from_interrupt_on({"x": {"when": predicate}}).judge(call("x"))
    assert verdict.outcome is Outcome.ASK
    assert Reason.RULE in verdict.reasons
    assert named in verdict.why
    assert "secret-value" not in verdict.why


def test_a_fault_never_quotes_an_argument() -> None:
    table: dict[object, bool] = {}
    policy = Policy.from_interrupt_on({"x": {"when": lambda call: table[call["args"]["note"]]}})
    verdict = policy.judge(call("x", note="hunter2"))
    assert verdict.outcome is Outcome.ASK
    assert "hunter2" not in verdict.why


def test_the_default_description_shows_prefix_tool_and_args_in_their_order() -> None:
    policy = Policy.from_interrupt_on({"mail": True}, description_prefix="Tool execution pending approval")
    verdict = policy.judge(call("mail", to="a", body="b"))
    assert verdict.description == (
        "Tool execution pending approval\n\nTool: mail\nArgs: {'to': 'a', 'body': 'b'}"
    )


@pytest.mark.parametrize(
    "description",
    [
        "CRITICAL",
        lambda call, state: "CRITICAL",
        lambda call, state, runtime: "CRITICAL",
    ],
)
def test_a_description_is_text_or_a_function(description: object) -> None:
    policy = Policy.from_interrupt_on({"x": {"allowed_decisions": ["approve"], "description": description}})
    assert policy.judge(call("x")).description == "CRITICAL"


def test_a_description_that_fails_still_asks_and_shows_the_call() -> None:
    def broken(call: object, state: object) -> str:
        raise ValueError("no")

    verdict = Policy.from_interrupt_on(
        {"x": {"allowed_decisions": ["approve"], "description": broken}}
    ).judge(call("x", a=1))
    assert verdict.outcome is Outcome.ASK
    assert verdict.description == "Tool: x\nArgs: {'a': 1}"
    assert "ValueError" in verdict.why


def test_a_description_that_is_not_text_is_replaced_by_the_call() -> None:
    config = {"allowed_decisions": ["approve"], "description": lambda call, state: None}
    verdict = Policy.from_interrupt_on({"x": config}).judge(call("x"))
    assert (verdict.outcome, verdict.description) == (Outcome.ASK, "Tool: x\nArgs: {}")


def test_a_schema_and_a_model_become_the_terms_schema() -> None:
    class Model:
        @staticmethod
        def model_json_schema() -> dict[str, object]:
            return {"type": "object"}

    for schema in ({"type": "object"}, Model):
        policy = Policy.from_interrupt_on({"x": {"allowed_decisions": ["edit"], "args_schema": schema}})
        terms = policy.judge(call("x")).terms
        assert terms is not None
        assert terms.args_schema == {"type": "object"}


async def async_predicate(call: object) -> bool:
    return True


class AsyncCallable:
    async def __call__(self, call: object) -> bool:
        return True


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"allowed_decisions": ["aprove"]}, ["aprove", "did you mean `approve`"]),
        ({"allowed_decisions": ["approve", 3]}, ["3", "allowed_decisions"]),
        ({"allowed_decisions": []}, ["allowed_decisions"]),
        ({"allowed_decisions": "approve"}, ["allowed_decisions"]),
        ({"allowed_decisions": None}, ["allowed_decisions"]),
        ({}, ["allowed_decisions", "missing"]),
        ({"description": "x"}, ["allowed_decisions", "missing"]),
        ({"allowed_decisons": ["approve"]}, ["allowed_decisons", "did you mean `allowed_decisions`"]),
        ({"when": async_predicate}, ["when", "async_predicate", "async"]),
        ({"when": AsyncCallable()}, ["when", "async"]),
        ({"when": functools.partial(async_predicate)}, ["when", "async"]),
        ({"when": lambda: True}, ["when", "1 to 3"]),
        ({"when": lambda a, b, c, d: True}, ["when", "1 to 3"]),
        ({"when": lambda call, *, key: True}, ["when", "keyword"]),
        ({"when": 5}, ["when", "function"]),
        ({"when": None}, ["when", "None"]),
        ({"when": lambda c: True, "predicate": lambda c: True}, ["when", "predicate", "keep one"]),
        ({"allowed_decisions": ["approve"], "description": lambda a: ""}, ["description", "2 to 3"]),
        ({"allowed_decisions": ["approve"], "description": 5}, ["description"]),
        ({"allowed_decisions": ["approve"], "args_schema": 5}, ["args_schema"]),
        ({"allowed_decisions": ["approve"], "args_schema": {"type": "objct"}}, ["args_schema", "objct"]),
        (None, ["True, False or a config", "NoneType"]),
        (1, ["True, False or a config"]),
        (["approve"], ["True, False or a config"]),
    ],
)
def test_a_mistake_is_refused_at_construction_naming_tool_and_key(config: object, words: list[str]) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.from_interrupt_on({"send_email": config})
    for word in ["send_email", *words]:
        assert word in str(caught.value)


def test_every_mistake_of_the_map_is_named_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.from_interrupt_on({"a": None, "b": {"when": 5}, "c": True}, effects={"d": Effect.READ})
    assert all(f"`{name}`" in str(caught.value) for name in "abd")


def test_a_bad_mode_is_refused() -> None:
    with pytest.raises(PolicyError, match="mode"):
        Policy.from_interrupt_on({"a": True}, mode="sometimes")  # type: ignore[arg-type]  # what is tested


def test_a_map_that_is_not_a_map_is_refused() -> None:
    with pytest.raises(PolicyError, match="interrupt_on"):
        Policy.from_interrupt_on([("a", True)])  # type: ignore[arg-type]  # what is tested
