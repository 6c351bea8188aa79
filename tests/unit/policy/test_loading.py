"""Policy files: what they mean, and that every mistake is named with its line."""

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.actions import Action, Json, Origin
from sayso.approvals import DecisionKind, Effect, ProofKind, ProofRule, Reason, Silence, Terms
from sayso.errors import PolicyError
from sayso.policy import Condition, Money, Outcome, Policy, Price, Rule

EXAMPLE = """
unlisted: ask                     # what a tool nobody listed gets
confidence_floor: 0.80
silence: {irreversible: deny, reversible: allow, after: 10m}
mode: first
tools:
  search_flights: read
  book_flight:
    effect: irreversible
    decisions: [approve, edit, reject]
    when: args.price > 400 || !args.refundable
    confirm: code
    approvers: {travel: 1}
    window: 2m
    lease: 1h
  send_email: {effect: irreversible, unless: 'email(args.to).all_in(["company.com"])'}
  write_file: {effect: reversible, when: '!path(args.file_path).inside("/workspace")'}
  execute_sql: {when: sql(args.query).destructive}
  execute: {when: shell(args.command).risk != "read"}
  pay:
    effect: reversible
    cost: {amount: args.amount, currency: USD, over: 400.50}
    trusted: [account]
    confirm: type:"{amount}"
    schema: {type: object}
    description: Money leaves the house
    silence: deny
  rm: deny
  note: reversible
  "mcp__*": ask
"""


def call(tool: str, **args: Json) -> Action:
    return Action(tool=tool, args=args, thread="t")


def mistakes(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        Policy.from_text(text)
    return caught.value.message.split("\n")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (call("search_flights"), Outcome.ALLOW),
        (call("book_flight", price=32, refundable=True), Outcome.ALLOW),
        (call("book_flight", price=1847, refundable=False), Outcome.ASK),
        (call("send_email", to="a@company.com"), Outcome.ALLOW),
        (call("send_email", to="a@company.com.evil.io"), Outcome.ASK),
        (call("write_file", file_path="/workspace/a"), Outcome.ALLOW),
        (call("write_file", file_path="/workspace/../etc/passwd"), Outcome.ASK),
        (call("execute_sql", query="select 1"), Outcome.ALLOW),
        (call("execute_sql", query="drop table t"), Outcome.ASK),
        (call("execute", command="ls"), Outcome.ALLOW),
        (call("execute", command="curl x | sh"), Outcome.ASK),
        (call("pay", amount=400.5), Outcome.ALLOW),
        (call("pay", amount=400.51), Outcome.ASK),
        (Action(tool="pay", args={"amount": 1}, thread="t", origins={"account": Origin.WEB}), Outcome.ASK),
        (call("rm"), Outcome.DENY),
        (call("note"), Outcome.ALLOW),
        (call("mcp__anything"), Outcome.ASK),
        (call("nobody_listed_me"), Outcome.ASK),
    ],
)
def test_the_example_means_what_it_says(action: Action, expected: Outcome) -> None:
    assert Policy.from_text(EXAMPLE).judge(action).outcome is expected


def test_the_terms_are_those_of_the_file() -> None:
    verdict = Policy.from_text(EXAMPLE).judge(call("book_flight", price=500, refundable=True))
    assert verdict.terms == Terms(
        effect=Effect.IRREVERSIBLE,
        reasons=(Reason.IRREVERSIBLE, Reason.RULE),
        decisions=(DecisionKind.APPROVE, DecisionKind.EDIT, DecisionKind.REJECT),
        window=120,
        silence=Silence.DENY,
        proof=ProofRule(kind=ProofKind.CODE),
        quorum=(("travel", 1),),
        rule="sayso.yaml:8",
        lease=3600,
    )


def test_the_settings_are_those_of_the_file() -> None:
    policy = Policy.from_text(EXAMPLE)
    assert (policy.confidence_floor, policy.window, policy.mode) == (0.80, 600, "first")
    terms = policy.judge(call("write_file", file_path="/etc/x")).terms
    assert terms is not None
    assert (terms.silence, terms.window) == (Silence.ALLOW, 600)


def test_a_file_and_python_build_the_same_rules() -> None:
    text = """
tools:
  pay:
    effect: reversible
    outcome: ask
    when: args.amount > 1
    decisions: [approve]
    cost: {amount: args.amount, currency: JPY, over: 400}
    trusted: [to]
    confirm: type:'PAY {amount}'
    approvers: {finance: 2}
    schema: {type: object}
    window: 1d
"""
    expected = Rule(
        tool="pay",
        effect=Effect.REVERSIBLE,
        when="args.amount > 1",
        decisions=(DecisionKind.APPROVE,),
        cost=Price(amount=Condition.compile("args.amount"), currency="JPY"),
        over=Money.of(400, "JPY"),
        trusted=("to",),
        confirm=ProofRule(kind=ProofKind.TYPE, template="PAY {amount}"),
        approvers={"finance": 2},
        args_schema={"type": "object"},
        window=86_400,
        source="p.yaml:3",
    )
    assert Policy.from_text(text, "p.yaml").rules == (expected,)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("read", Outcome.ALLOW),
        ("reversible", Outcome.ALLOW),
        ("allow", Outcome.ALLOW),
        ("irreversible", Outcome.ASK),
        ("ask", Outcome.ASK),
        ("deny", Outcome.DENY),
        ("{effect: read}", Outcome.ALLOW),
        ("{effect: reversible}", Outcome.ALLOW),
        ("{effect: reversible, window: 5m}", Outcome.ASK),
        ("{effect: reversible, confirm: code}", Outcome.ASK),
        ("{effect: reversible, approvers: {a: 1}}", Outcome.ASK),
        ("{effect: irreversible}", Outcome.ASK),
        ("{window: 5m}", Outcome.ASK),
        ("{effect: irreversible, outcome: allow}", Outcome.ALLOW),
        ("{outcome: deny}", Outcome.DENY),
    ],
)
def test_an_entry_without_an_outcome_follows_its_effect(entry: str, expected: Outcome) -> None:
    assert Policy.from_text(f"tools:\n  x: {entry}\n").judge(call("x")).outcome is expected


@pytest.mark.parametrize(
    ("entry", "line", "words"),
    [
        ("x: reed", 2, "did you mean `read`"),
        ("x: 5", 2, "must be one of"),
        ("x:", 2, "must be one of"),
        ("x: {}", 2, "says nothing"),
        ("x: {effct: read}", 2, "did you mean `effect`"),
        ("x: {effect: reads}", 2, "did you mean `read`"),
        ("x: {decisions: [aprove]}", 2, "did you mean `approve`"),
        ("x: {decisions: approve}", 2, "`decisions` must be a list"),
        ("x: {decisions: []}", 2, "`decisions` must be a list"),
        ("x:\n    when: args.x >", 3, "is not CEL"),
        ("x:\n    effect: read\n    when: agrs.x > 1", 4, "did you mean `args`"),
        ("x: {when: true}", 2, "must be a condition"),
        ("x:\n    unless: emial(args.to).all_in(['a'])", 3, "did you mean `email`"),
        ("x: {confirm: type}", 2, "what must be typed"),
        ("x: {confirm: captcha}", 2, "must be one of click, code, type, totp"),
        ('x:\n    confirm: type:"{price"', 3, "names no argument"),
        ("x: {window: 5}", 2, "must be a duration"),
        ("x: {window: 5 minutes}", 2, "must be a duration"),
        ("x: {window: 0m}", 2, "must be a duration"),
        ("x: {lease: -1m}", 2, "must be a duration"),
        ("x: {approvers: {a: 0}}", 2, "above 0"),
        ("x: {approvers: [a]}", 2, "how many"),
        ("x: {trusted: to}", 2, "must be a list"),
        ("x: {schema: {type: objct}}", 2, "not a JSON Schema"),
        ("x: {schema: {$ref: 'http://a/b'}}", 2, "only references within"),
        ("x: {cost: {amount: args.p, currency: USD}}", 2, "needs `over`"),
        ("x: {cost: {amount: args.p, currency: usd, over: 4}}", 2, "such as USD"),
        ("x: {cost: {amount: args.p, currency: USD, over: 4.005}}", 2, "more digits"),
        ("x: {cost: {amount: args.p, currency: USD, over: lots}}", 2, "must be an amount"),
        ("x: {cost: {amount: args.p, currency: USD, over: -1}}", 2, "negative"),
        ("x: {cost: 5}", 2, "must be a mapping"),
        ("x: {silence: allow}", 2, "always a denial"),
        ("x: {description: 5}", 2, "must be text"),
        ("x: read\n  x: ask", 3, "second time; first on line 2"),
        ("x: &a {effect: read}\n  y: *a", 2, "anchors and aliases"),
        ("x: !!python/object/apply:os.system [ls]", 2, "not allowed"),
        ("? [a]\n  : read", 2, "a key must be text"),
    ],
)
def test_a_mistake_in_an_entry_is_named_with_its_line(entry: str, line: int, words: str) -> None:
    found = mistakes(f"tools:\n  {entry}\n")
    assert any(each.startswith(f"sayso.yaml:{line}: ") and words in each for each in found), found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("unlistd: ask", "did you mean `unlisted`"),
        ("unlisted: maybe", "must be one of allow, ask, deny"),
        ("confidence_floor: 7", "from 0 to 1"),
        ("confidence_floor: true", "from 0 to 1"),
        ("confidence_floor: .nan", "from 0 to 1"),
        ("silence: {irreversible: allow}", "silence is never consent"),
        ("silence: {reversible: maybe}", "must be one of deny, allow"),
        ("silence: {after: soon}", "must be a duration"),
        ("silence: allow", "must be a mapping"),
        ("mode: some", "all or first"),
        ("budgets: {x: 1}", "not supported yet"),
        ("tools: [a]", "mapping of tools"),
        ("[a]", "must be a mapping"),
        ("a: [", "is not YAML"),
        ("a: b: c", "is not YAML"),
        ("---\na: 1\n---\nb: 1", "is not YAML"),
        ("tools:\n  x: \x07", "is not YAML"),
        ("a: " + "[" * 400 + "]" * 400, "too deep"),
        ("# " + "x" * 300_000, "characters"),
    ],
)
def test_a_mistake_in_the_policy_itself_is_named(text: str, words: str) -> None:
    assert any(words in each for each in mistakes(text))


def test_every_mistake_is_reported_at_once_in_the_order_of_the_file() -> None:
    found = mistakes(
        "unlisted: maybe\ntools:\n  a: reed\n  b: {effct: read}\n  c: {when: args.x > y}\n  a: ask\n"
    )
    lines = [int(re.match(r"sayso\.yaml:(\d+): ", each).group(1)) for each in found]  # type: ignore[union-attr]
    assert lines == sorted(lines)
    assert {1, 3, 4, 5, 6} <= set(lines)


def test_a_bomb_of_aliases_is_refused_without_being_expanded() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]
    assert any("anchors and aliases" in each for each in mistakes("\n".join(lines)))


def test_an_empty_file_asks_about_everything() -> None:
    assert Policy.from_text("").judge(call("x")).outcome is Outcome.ASK


def test_a_file_is_read_from_disk_and_named_in_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(EXAMPLE, encoding="utf-8")
    assert Policy.from_file(file).judge(call("rm")).rule.startswith("mine.yaml:")
    file.write_text("tools: {x: reed}", encoding="utf-8")
    with pytest.raises(PolicyError, match=r"mine\.yaml:1: "):
        Policy.from_file(str(file))


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        Policy.from_file(tmp_path / "missing.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"tools: {\xff: read}")
    with pytest.raises(PolicyError, match="UTF-8"):
        Policy.from_file(tmp_path / "latin.yaml")


@given(st.text(max_size=200))
def test_no_text_makes_loading_fail_with_anything_but_a_policy_error(text: str) -> None:
    with suppress(PolicyError):
        assert Policy.from_text(text).judge(call("x")).outcome is not None


@given(
    st.dictionaries(
        st.sampled_from(["when", "unless", "effect", "window", "cost", "confirm"]), st.text(max_size=30)
    )
)
def test_no_entry_makes_loading_fail_with_anything_but_a_policy_error(entry: dict[str, str]) -> None:
    with suppress(PolicyError):
        assert Policy.from_text(f"tools: {{x: {json.dumps(entry)}}}").judge(call("x")).outcome is not None


@pytest.mark.parametrize("place", ["amount", "customer.name", "items[0].price", "rows[2][1]"])
def test_a_phrase_to_type_can_name_any_value_that_a_person_could_be_shown(place: str) -> None:
    policy = Policy.from_text(f"tools:\n  pay:\n    confirm: 'type:\"{{{place}}}\"'\n")
    assert policy.rules[0].confirm == ProofRule(kind=ProofKind.TYPE, template=f"{{{place}}}")


@pytest.mark.parametrize("place", ["", "0", "a.", "a..b", "a[b]", "a[0", "a b"])
def test_a_phrase_that_names_a_value_in_no_readable_way_is_refused(place: str) -> None:
    assert "names no argument" in mistakes(f"tools:\n  pay:\n    confirm: 'type:\"{{{place}}}\"'\n")[0]
