"""CEL conditions: what is refused when they are compiled, and what asks when they run."""

import pytest

from sayso.actions import Action, Json, Origin
from sayso.approvals import Effect
from sayso.errors import PolicyError
from sayso.policy import Condition, Outcome, Policy, Rule


def outcome(condition: str, key: str = "when", **args: Json) -> Outcome:
    rule = Rule(tool="x", effect=Effect.REVERSIBLE, **{key: condition})  # type: ignore[arg-type]
    action = Action(
        tool="x",
        args=args,
        thread="t",
        agents=("main", "sub"),
        confidence=0.9,
        origins={"to": Origin.WEB},
    )
    return Policy([rule]).judge(action).outcome


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("1 +", ["is not CEL", "column"]),
        ("", ["is not CEL"]),
        ("arg.price > 4", ["no variable `arg`", "did you mean `args`"]),
        ("args.price > limit", ["no variable `limit`"]),
        ("emial(args.to).all_in(['a.com'])", ["no function `emial`", "did you mean `email`"]),
        ("args.to.endswith('x')", ["no function `endswith`", "did you mean `endsWith`"]),
        ("sql(args.q).destructiv", ["no `destructiv`", "did you mean `destructive`"]),
        ("sql((args.q + ')')).risky == 'x'", ["no `risky`"]),
        ("shell(args.c)", ["not a condition by itself"]),
        ("true", ["names no variable"]),
        ("args.x == 99999999999999999999", ["is not CEL"]),
        ("args.l.all(i, i > j)", ["no variable `j`"]),
        ("'args.x > y' == args.z + q", ["no variable `q`"]),
        ("a.b > c.d", ["no variable `a`", "no variable `c`"]),
        ("(" * 1000 + "args.x" + ")" * 1000, ["is not CEL"]),
        ("args.x == 1 || " * 400 + "args.x == 2", ["characters"]),
    ],
)
def test_a_condition_that_cannot_work_is_refused_when_compiled(source: str, words: list[str]) -> None:
    with pytest.raises(PolicyError) as caught:
        Condition.compile(source)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "condition",
    [
        "args.price > 400",
        "args.price >= 401",
        "args.price > 400.5",
        "double(args.price) * 1.5 > 600.0",
        "args.items.exists(item, item.startsWith('a'))",
        "args.items.all(item, size(item) == 1) && tool == 'x'",
        "'sub' in agents && agents[0] == 'main'",
        "confidence < 0.95",
        "thread == 't'",
        "origins.to == 'web'",
        "has(args.price) && !has(args.other)",
        "args.name.matches('^a+b$')",
        'args.name == "it\'s" || args.price > 1',
    ],
)
@pytest.mark.parametrize("price", [1847, 1847.5])
def test_a_condition_that_holds_asks(condition: str, price: Json) -> None:
    assert outcome(condition, price=price, items=["a", "b"], name="aab") is Outcome.ASK
    assert outcome(condition, "unless", price=price, items=["a", "b"], name="aab") is Outcome.ALLOW


@pytest.mark.parametrize("key", ["when", "unless"])
@pytest.mark.parametrize(
    "condition",
    [
        "args.missing > 1",
        "args.missing",
        "args.price",
        "args.name > 4",
        "args.price + args.half > 1.0",
        "args.price / 0 == 1",
        "args.items[7] == 'a'",
        "args.name.matches('(')",
        "int(args.name) > 1",
        "args.big * args.big * args.big > 1",
        "path(args.price).inside('/workspace')",
        "path(args.nul).inside('/workspace')",
        "path('/WORKSPACE/a' + args.name).inside('/workspace')",
        "path(args.nul).matches('*')",
        "path('A' + args.name).matches('a*')",
        "path(args.name).inside(args.price)",
        "args.name.inside('/workspace')",
        "email(args.name).inside('/workspace')",
        "email(args.name).all_in(['company.com'])",
        "email(args.items).all_in([])",
        "email('a@company.com').all_in('company.com') || args.price > 9999",
        "email('a@company.com').all_in([args.price])",
        "host(args.name + '\\\\').in_domains(['company.com'])",
        "{'__matcher__': args.name}.all_in(['company.com'])",
        "sql(args.name, 'klingon').destructive",
    ],
)
def test_a_condition_that_cannot_tell_asks_whichever_way_it_is_written(condition: str, key: str) -> None:
    args: dict[str, Json] = {
        "price": 1,
        "half": 0.5,
        "items": ["a"],
        "name": "b",
        "big": 2**53 - 1,
        "nul": "a\x00",
    }
    assert outcome(condition, key, **args) is Outcome.ASK


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('path(args.p).inside("/workspace")', Outcome.ALLOW),
        ('!path(args.p).matches("**/.env*")', Outcome.ALLOW),
        ('email(args.to).all_in(["company.com"])', Outcome.ALLOW),
        ('email(args.to).all_in(["other.com"])', Outcome.ASK),
        ('host(args.url).in_domains(["company.com"])', Outcome.ALLOW),
        ('host(args.url).in_domains(["other.com"])', Outcome.ASK),
        ('sql(args.q).risk == "read"', Outcome.ALLOW),
        ('!sql(args.q, "postgres").destructive', Outcome.ALLOW),
        ('"t" in sql(args.q).tables', Outcome.ALLOW),
        ('shell(args.c).risk == "read"', Outcome.ALLOW),
        ('"ls" in shell(args.c).commands', Outcome.ALLOW),
    ],
)
def test_the_matchers_can_be_called_from_conditions(condition: str, expected: Outcome) -> None:
    args: dict[str, Json] = {
        "p": "/workspace/a",
        "to": ["a@company.com"],
        "url": "https://api.company.com/x",
        "q": "select * from t",
        "c": "ls",
    }
    assert outcome(condition, "unless", **args) is expected


def test_a_fault_writes_nothing_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    outcome("path(args.p).inside('/workspace')", p="sk-secret\x00")
    outcome("sql(args.q).destructive", q="call sk_secret()")
    outcome("args.p.matches('(')", p="sk-secret")
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_conditions_with_one_source_are_equal() -> None:
    assert Condition.compile("args.a > 1") == Condition.compile("args.a > 1")
    assert Condition.compile("args.a > 1") != Condition.compile("args.a > 2")
