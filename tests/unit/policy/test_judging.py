"""What the rules of a tool add up to."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import threading
from dataclasses import replace

import pytest

from sayso.actions import Action, Json, Origin
from sayso.approvals import DecisionKind, Effect, ProofKind, ProofRule, Reason, Silence, Terms
from sayso.errors import PolicyError
from sayso.policy import Condition, Money, Outcome, Policy, Price, Rule, Verdict, stricter


def call(tool: str, confidence: float | None = None, **args: Json) -> Action:
    return Action(tool=tool, args=args, thread="t", confidence=confidence)


BOOKING = Policy(
    [
        Rule(tool="search_flights", effect=Effect.READ, outcome=Outcome.ALLOW),
        Rule(tool="book_flight", when="args.price > 400 || !args.refundable"),
        Rule(tool="write_note", effect=Effect.REVERSIBLE, outcome=Outcome.ALLOW),
    ]
)


@pytest.mark.parametrize(
    ("price", "refundable", "expected"),
    [
        (1847, False, Outcome.ASK),
        (1847.5, True, Outcome.ASK),
        (400, False, Outcome.ASK),
        (32, True, Outcome.ALLOW),
        (400, True, Outcome.ALLOW),
        ("1847", True, Outcome.ASK),
        (32, None, Outcome.ASK),
        (32, "yes", Outcome.ASK),
    ],
)
def test_when_narrows_what_an_irreversible_tool_asks(
    price: Json, refundable: Json, expected: Outcome
) -> None:
    assert BOOKING.judge(call("book_flight", price=price, refundable=refundable)).outcome is expected


def test_a_missing_argument_asks() -> None:
    verdict = BOOKING.judge(call("book_flight", price=32))
    assert (verdict.outcome, verdict.reasons) == (Outcome.ASK, (Reason.IRREVERSIBLE, Reason.RULE))
    assert "refundable" in verdict.why


@pytest.mark.parametrize(
    ("tool", "confidence", "expected"),
    [
        ("book_flight", 0.69, Outcome.DENY),
        ("book_flight", 0.70, Outcome.ALLOW),
        ("book_flight", None, Outcome.ALLOW),
        ("write_note", 0.69, Outcome.ASK),
        ("write_note", 0.70, Outcome.ALLOW),
        ("search_flights", 0.1, Outcome.ASK),
        ("unheard_of", 0.1, Outcome.ASK),
    ],
)
def test_an_irreversible_tool_below_the_floor_is_denied_outright(
    tool: str, confidence: float | None, expected: Outcome
) -> None:
    verdict = BOOKING.judge(call(tool, confidence, price=32, refundable=True))
    assert verdict.outcome is expected
    assert (Reason.LOW_CONFIDENCE in verdict.reasons) == (confidence is not None and confidence < 0.7)


@pytest.mark.parametrize(
    ("tool", "confidence", "expected"),
    [
        ("book_flight", 0.99, "escalate"),
        ("book_flight", 0.70, "escalate"),
        ("book_flight", 0.69, "default_deny"),
        ("search_flights", 0.70, "proceed"),
        ("search_flights", 0.69, "escalate"),
        ("write_note", 0.9, "proceed"),
        ("unheard_of", 1.0, "escalate"),
        ("Book_Flight", 1.0, "escalate"),
        ("book_flight", float("nan"), "default_deny"),
    ],
)
def test_routing_follows_reversibility_and_confidence(tool: str, confidence: float, expected: str) -> None:
    assert BOOKING.route(tool, confidence) == expected


@pytest.mark.parametrize(
    ("unlisted", "expected"),
    [(Outcome.ALLOW, "proceed"), (Outcome.ASK, "escalate"), (Outcome.DENY, "default_deny")],
)
def test_an_unlisted_tool_is_routed_as_the_policy_says(unlisted: Outcome, expected: str) -> None:
    policy = Policy([], unlisted=unlisted)
    assert policy.route("x", 1.0) == expected
    assert policy.route("x", 0.1) != "proceed"
    assert policy.judge(call("x")).outcome is unlisted


def test_a_cost_over_its_limit_asks_in_words_a_person_reads() -> None:
    rule = Rule(
        tool="book",
        cost=Price(amount=Condition.compile("args.price"), currency="USD"),
        over=Money.of(400, "USD"),
    )
    verdict = Policy([rule]).judge(call("book", price=1847))
    assert verdict.reasons == (Reason.IRREVERSIBLE, Reason.HIGH_COST)
    assert verdict.why == "it cannot be undone; it costs USD 1,847.00, over the USD 400.00 limit"


@pytest.mark.parametrize(
    ("price", "expected", "reason"),
    [
        (400, Outcome.ALLOW, None),
        (400.001, Outcome.ASK, Reason.HIGH_COST),
        (400.01, Outcome.ASK, Reason.HIGH_COST),
        (-5000, Outcome.ASK, Reason.RULE),
        ("10", Outcome.ASK, Reason.RULE),
        (True, Outcome.ASK, Reason.RULE),
        (1e300, Outcome.ASK, Reason.RULE),
        (None, Outcome.ASK, Reason.RULE),
    ],
)
def test_a_cost_that_is_over_or_unclear_asks(price: Json, expected: Outcome, reason: Reason | None) -> None:
    rule = Rule(
        tool="pay",
        effect=Effect.REVERSIBLE,
        outcome=Outcome.ALLOW,
        cost=Price(amount=Condition.compile("args.price"), currency="USD"),
        over=Money.of(400, "USD"),
    )
    verdict = Policy([rule]).judge(call("pay", price=price))
    assert verdict.outcome is expected
    assert verdict.reasons == ((reason,) if reason else ())


@pytest.mark.parametrize(
    "cost",
    [lambda action: Money.of(1, "EUR"), lambda action: 3, lambda action: 1 / 0],
)
def test_a_cost_function_that_cannot_be_compared_asks(cost: object) -> None:
    rule = Rule(tool="pay", effect=Effect.READ, outcome=Outcome.ALLOW, cost=cost, over=Money.of(400, "USD"))  # type: ignore[arg-type]
    verdict = Policy([rule]).judge(call("pay"))
    assert (verdict.outcome, verdict.reasons) == (Outcome.ASK, (Reason.RULE,))


@pytest.mark.parametrize(
    ("origins", "expected"),
    [
        ({}, Outcome.ALLOW),
        ({"to": Origin.USER}, Outcome.ALLOW),
        ({"body": Origin.WEB}, Outcome.ALLOW),
        ({"to": Origin.WEB}, Outcome.ASK),
        ({"to": Origin.TOOL}, Outcome.ASK),
        ({"to[1]": Origin.TOOL}, Outcome.ASK),
        ({"to.address": Origin.WEB}, Outcome.ASK),
        ({"to2": Origin.WEB}, Outcome.ALLOW),
    ],
)
def test_a_trusted_argument_from_outside_crosses_the_trust_boundary(
    origins: dict[str, Origin], expected: Outcome
) -> None:
    policy = Policy([Rule(tool="mail", effect=Effect.REVERSIBLE, outcome=Outcome.ALLOW, trusted=("to",))])
    verdict = policy.judge(Action(tool="mail", args={"to": "x"}, thread="t", origins=origins))
    assert verdict.outcome is expected
    assert (Reason.TRUST_BOUNDARY in verdict.reasons) == (expected is Outcome.ASK)


def test_an_allow_or_deny_rule_whose_condition_fails_to_hold_says_nothing() -> None:
    policy = Policy(
        [
            Rule(tool="pay", outcome=Outcome.ALLOW, when="args.amount < 10"),
            Rule(tool="drop", effect=Effect.REVERSIBLE, outcome=Outcome.DENY, when="args.all"),
        ]
    )
    assert policy.judge(call("pay", amount=5)).outcome is Outcome.ALLOW
    assert policy.judge(call("pay", amount=50)).outcome is Outcome.ASK
    assert policy.judge(call("drop", all=True)).outcome is Outcome.DENY
    assert policy.judge(call("drop", all=False)).outcome is Outcome.ALLOW
    assert policy.judge(call("drop")).outcome is Outcome.ASK


def test_the_terms_of_several_rules_add_up_to_the_strictest() -> None:
    policy = Policy(
        [
            Rule(
                tool="pay",
                effect=Effect.REVERSIBLE,
                decisions=(DecisionKind.REJECT, DecisionKind.APPROVE),
                confirm=ProofRule(kind=ProofKind.CODE),
                approvers={"finance": 1},
                window=600,
                silence=Silence.ALLOW,
            ),
            Rule(tool="p*", approvers={"finance": 2, "legal": 1}, window=60, lease=30),
        ]
    )
    assert policy.judge(call("pay")).terms == Terms(
        effect=Effect.IRREVERSIBLE,
        reasons=(Reason.IRREVERSIBLE, Reason.RULE),
        decisions=(DecisionKind.REJECT, DecisionKind.APPROVE),
        window=60,
        silence=Silence.DENY,
        proof=ProofRule(kind=ProofKind.CODE),
        quorum=(("finance", 2), ("legal", 1)),
        rule="pay",
        lease=30,
    )


@pytest.mark.parametrize("counts", [(1, 2), (2, 1)])
def test_the_largest_quorum_of_a_group_counts(counts: tuple[int, int]) -> None:
    rules = [Rule(tool="pay", approvers={"a": counts[0]}), Rule(tool="p*", approvers={"a": counts[1]})]
    terms = Policy(rules).judge(call("pay")).terms
    assert terms is not None
    assert terms.quorum == (("a", 2),)


def test_a_cost_that_is_not_known_says_why() -> None:
    price = Price(amount=Condition.compile("args.price"), currency="USD")
    verdict = Policy([Rule(tool="pay", cost=price, over=Money.of(4, "USD"))]).judge(call("pay", price="5"))
    assert "the amount is str, not a number" in verdict.why


def test_rules_without_an_answer_in_common_can_only_be_rejected() -> None:
    policy = Policy(
        [
            Rule(tool="x", decisions=(DecisionKind.APPROVE,)),
            Rule(tool="*", decisions=(DecisionKind.RESPOND,)),
        ]
    )
    terms = policy.judge(call("x")).terms
    assert terms is not None
    assert terms.decisions == (DecisionKind.REJECT,)


def test_mode_all_judges_every_call_by_itself() -> None:
    outcomes = [each.outcome for each in BOOKING.judge_batch([call("search_flights"), call("x"), call("x")])]
    assert outcomes == [Outcome.ALLOW, Outcome.ASK, Outcome.ASK]


def test_mode_first_denies_whatever_follows_the_first_that_asks() -> None:
    policy = Policy([*BOOKING.rules, Rule(tool="never", outcome=Outcome.DENY)], mode="first")
    batch = [
        call("search_flights"),
        call("never"),
        call("x"),
        call("search_flights"),
        call("y"),
        call("never"),
    ]
    verdicts = policy.judge_batch(batch)
    assert [each.outcome for each in verdicts] == [
        Outcome.ALLOW,
        Outcome.DENY,
        Outcome.ASK,
        Outcome.DENY,
        Outcome.DENY,
        Outcome.DENY,
    ]
    assert [each.reasons == (Reason.MODE,) for each in verdicts] == [False, False, False, True, True, False]
    assert "propose this one again" in verdicts[3].why


def test_explain_names_every_rule_looked_at_and_agrees_with_judge() -> None:
    policy = Policy(
        [Rule(tool="pay", when="args.n > 1", source="p.yaml:1"), Rule(tool="p*", source="p.yaml:2")]
    )
    explanation = policy.explain(call("pay", 0.9, n=1))
    assert explanation.verdict == policy.judge(call("pay", 0.9, n=1))
    assert [(step.rule, step.said) for step in explanation.steps] == [
        ("p.yaml:1", Outcome.ALLOW),
        ("p.yaml:2", Outcome.ASK),
    ]


def test_explain_shows_the_checks_of_the_policy_itself() -> None:
    steps = BOOKING.explain(call("Book_Flight", 0.1)).steps
    assert [step.rule for step in steps] == ["unlisted", "unlisted", "confidence_floor"]


def test_lint_names_tools_without_a_rule_and_rules_without_a_tool() -> None:
    policy = Policy([Rule(tool="book_flight", source="s.yaml:3"), Rule(tool="mcp__*"), Rule(tool="gone__*")])
    lint = policy.lint(["book_flights", "mcp__x"])
    assert [(each.name, each.suggestion) for each in lint.tools_without_rule] == [
        ("book_flights", "book_flight")
    ]
    assert [(each.name, each.source, each.suggestion) for each in lint.rules_without_tool] == [
        ("book_flight", "s.yaml:3", "book_flights"),
        ("gone__*", "", ""),
    ]
    assert not lint.clean
    assert Policy([Rule(tool="a")]).lint(["a"]).clean


OLD = Terms(effect=Effect.REVERSIBLE, reasons=(), decisions=(DecisionKind.APPROVE, DecisionKind.REJECT))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, False),
        ({"effect": Effect.IRREVERSIBLE}, True),
        ({"effect": Effect.READ}, False),
        ({"decisions": (DecisionKind.APPROVE,)}, True),
        ({"decisions": (DecisionKind.APPROVE, DecisionKind.EDIT)}, True),
        ({"decisions": tuple(DecisionKind)}, False),
        ({"proof": ProofRule(kind=ProofKind.CODE)}, True),
        ({"quorum": (("legal", 1),)}, True),
        ({"window": 10}, True),
        ({"window": 1000}, False),
        ({"reasons": (Reason.RULE,)}, False),
    ],
)
def test_stricter_sees_what_is_asked_for_in_addition(change: dict[str, object], expected: bool) -> None:
    assert stricter(replace(OLD, **change), OLD) is expected  # type: ignore[arg-type]


def test_stricter_compares_quorum_silence_and_phrases() -> None:
    two = replace(
        OLD, quorum=(("legal", 2),), silence=Silence.ALLOW, proof=ProofRule(kind=ProofKind.TYPE, template="a")
    )
    assert not stricter(OLD, replace(OLD, quorum=(("legal", 2),)))
    assert stricter(replace(two, quorum=(("legal", 3),)), two)
    assert not stricter(replace(two, quorum=(("legal", 1),)), two)
    assert stricter(replace(two, silence=Silence.DENY), two)
    assert stricter(replace(two, proof=ProofRule(kind=ProofKind.TYPE, template="b")), two)
    assert not stricter(replace(two, proof=ProofRule()), two)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"unlisted": "perhaps"}, "unlisted"),
        ({"confidence_floor": 1.5}, "confidence_floor"),
        ({"confidence_floor": float("nan")}, "confidence_floor"),
        ({"window": 0}, "window"),
        ({"mode": "some"}, "mode"),
        ({"rules": [{"tool": "x"}]}, "rules"),
    ],
)
def test_a_policy_with_a_setting_out_of_range_is_refused(settings: dict[str, object], word: str) -> None:
    with pytest.raises(PolicyError, match=word):
        Policy(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"tool": ""},
        {"decisions": ()},
        {"decisions": ("approve",)},
        {"outcome": "ask"},
        {"silence": Silence.ALLOW},
        {"window": 0},
        {"lease": -1},
        {"window": True},
        {"approvers": {"a": 0}},
        {"confirm": ProofRule(kind=ProofKind.TYPE)},
        {"cost": Money(1, "USD")},
        {"over": Money(1, "USD")},
        {"cost": Money(1, "USD"), "over": Money(1, "EUR")},
        {"cost": lambda: 1, "over": Money(1, "EUR")},
        {"args_schema": {"$ref": "https://example.com/schema"}},
        {"trusted": "to"},
    ],
)
def test_a_rule_that_cannot_work_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(PolicyError):
        Rule(**{"tool": "x", **fields})  # type: ignore[arg-type]


def test_verdicts_carry_terms_exactly_when_they_ask() -> None:
    with pytest.raises(ValueError, match="terms"):
        Verdict(outcome=Outcome.ASK, effect=Effect.READ)
    with pytest.raises(ValueError, match="terms"):
        Verdict(outcome=Outcome.ALLOW, effect=Effect.READ, terms=OLD)


def test_a_policy_judges_the_same_from_many_threads() -> None:
    wrong: list[object] = []

    def work(start: int) -> None:
        for n in range(start, start + 300):
            verdict = BOOKING.judge(call("book_flight", price=n, refundable=True))
            if (verdict.outcome is Outcome.ASK) != (n > 400):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(250 + 10 * each,)) for each in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_a_built_policy_cannot_be_changed() -> None:
    rules = [Rule(tool="x", outcome=Outcome.DENY)]
    policy = Policy(rules)
    rules.clear()
    assert policy.judge(call("x")).outcome is Outcome.DENY
    with pytest.raises(AttributeError):
        policy.unlisted = Outcome.ALLOW  # type: ignore[misc]
