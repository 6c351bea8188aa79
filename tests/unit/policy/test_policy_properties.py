"""What holds for every policy and every call."""

# pyright: reportUnknownVariableType=false

from collections.abc import Callable

from hypothesis import assume, given
from hypothesis import strategies as st

from sayso.actions import Action
from sayso.approvals import Effect
from sayso.policy import Outcome, Policy, Rule
from sayso.policy.verdicts import STRICTNESS

REGISTRY = ("book_flight", "cancel_booking", "issue_refund")
OUTCOMES = st.sampled_from(list(Outcome))
EFFECTS = st.sampled_from(list(Effect))
PATTERNS = st.sampled_from(["pay", "p*", "?ay", "*", "[p]ay"])
RULES = st.lists(st.builds(Rule, tool=PATTERNS, outcome=OUTCOMES, effect=EFFECTS), min_size=1, max_size=6)


def call(tool: str, confidence: float | None = None) -> Action:
    return Action(tool=tool, args={}, thread="t", confidence=confidence)


@given(RULES, st.randoms())
def test_deny_beats_ask_beats_allow_in_any_order(rules: list[Rule], random: Callable[..., object]) -> None:
    strictest = max((rule.outcome for rule in rules), key=STRICTNESS.__getitem__)
    shuffled = list(rules)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert Policy(rules).judge(call("pay")).outcome is strictest
    assert Policy(shuffled).judge(call("pay")).outcome is strictest


@given(RULES, RULES)
def test_adding_rules_never_loosens_a_verdict(rules: list[Rule], more: list[Rule]) -> None:
    before, after = (Policy(each).judge(call("pay")).outcome for each in (rules, [*rules, *more]))
    assert STRICTNESS[after] >= STRICTNESS[before]


@given(st.text(min_size=1, max_size=40))
def test_an_unlisted_tool_is_never_allowed_by_default(name: str) -> None:
    policy = Policy([Rule(tool="listed", outcome=Outcome.ALLOW, effect=Effect.READ)])
    if name != "listed":
        assert policy.judge(call(name)).outcome is Outcome.ASK
        assert policy.route(name, 1.0) == "escalate"


@given(
    st.one_of(
        st.none(),
        st.integers(),
        st.text(),
        st.floats(),
        st.lists(st.booleans()),
        st.sampled_from([ValueError, KeyError, RecursionError, MemoryError, AssertionError, StopIteration]),
    ),
    EFFECTS,
    st.sampled_from(["when", "unless"]),
)
def test_a_predicate_that_misbehaves_never_allows(result: object, effect: Effect, key: str) -> None:
    def predicate(call: object) -> object:
        if isinstance(result, type) and issubclass(result, Exception):
            raise result
        return result

    rule = Rule(tool="pay", effect=effect, **{key: predicate})  # type: ignore[arg-type]
    assert Policy([rule]).judge(call("pay")).outcome is Outcome.ASK


TRICKS: list[Callable[[str], str]] = [
    str.upper,
    str.title,
    str.swapcase,
    lambda name: f" {name}",
    lambda name: f"{name} ",
    lambda name: f"{name}\n",
    lambda name: f"{name}\x00",
    lambda name: f"\x00{name}",
    lambda name: f"{name}\u200b",
    lambda name: f"\u202e{name}",
    lambda name: name.replace("o", "\u043e"),
    lambda name: name.replace("i", "\u0456") + "\u0301",
    lambda name: name.replace("_", "\uff3f"),
    lambda name: "".join(chr(ord(each) + 0xFEE0) for each in name),
    lambda name: name.replace("_", "\u00ad_"),
]


@given(st.sampled_from(REGISTRY), st.sampled_from(TRICKS), st.sampled_from([None, 0.1, 0.99]))
def test_a_name_that_imitates_an_irreversible_tool_asks_however_open_the_policy_is(
    name: str, trick: Callable[[str], str], confidence: float | None
) -> None:
    assume(trick(name) != name)
    rules = [Rule(tool=each) for each in REGISTRY]
    anything = Rule(tool="*", outcome=Outcome.ALLOW, effect=Effect.READ)
    for policy in (Policy(rules, unlisted=Outcome.ALLOW), Policy([*rules, anything])):
        assert policy.judge(call(trick(name), confidence)).outcome is Outcome.ASK
        assert policy.route(trick(name), 1.0) == "escalate"


@given(st.floats(min_value=0, max_value=1), st.booleans())
def test_routing_is_exactly_the_rule_of_two_axes(confidence: float, irreversible: bool) -> None:
    effect = Effect.IRREVERSIBLE if irreversible else Effect.REVERSIBLE
    outcome = Outcome.ASK if irreversible else Outcome.ALLOW
    policy = Policy([Rule(tool="x", effect=effect, outcome=outcome)])
    if irreversible:
        expected = "escalate" if confidence >= 0.70 else "default_deny"
    else:
        expected = "escalate" if confidence < 0.70 else "proceed"
    assert policy.route("x", confidence) == expected
