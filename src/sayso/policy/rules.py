"""One rule of a policy, the same record whether it was written in Python or in a file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Protocol, TypeAlias, cast, runtime_checkable

from sayso.actions import Action, Json
from sayso.approvals import DecisionKind, Effect, ProofKind, ProofRule, Silence
from sayso.errors import PolicyError
from sayso.policy.conditions import Condition
from sayso.policy.money import Money
from sayso.policy.predicates import Predicate, count_parameters, name_of
from sayso.policy.verdicts import Outcome

ALL_DECISIONS = (DecisionKind.APPROVE, DecisionKind.EDIT, DecisionKind.REJECT, DecisionKind.RESPOND)
"""Every answer a person can give, in the order they are shown."""


@runtime_checkable
class SchemaModel(Protocol):
    """A class that knows the JSON Schema of its arguments, such as a pydantic model."""

    def model_json_schema(self) -> dict[str, object]:
        """Return the JSON Schema."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A cost that a condition computes from the call.

    Args:
        amount: The expression of the amount, in major units.
        currency: The ISO 4217 code.
    """

    amount: Condition
    currency: str


Cost: TypeAlias = Money | Price | Callable[[Action], Money]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What policy says about a tool, or about every tool a pattern matches.

    A rule whose conditions do not hold has nothing to say, except that an `ask` rule lets the
    call pass: its condition narrows when people are asked. A cost over the limit and an
    argument from outside ask whatever the conditions say.

    Args:
        tool: The tool's exact name, or a pattern with `*`, `?` or `[...]`.
        effect: What the tool does to the world; the worst effect among its rules counts.
        outcome: What the rule says when its conditions hold; left out, what the rest implies.
        when: The rule holds only if this is true: a predicate or a CEL condition.
        unless: The rule holds only if this is false.
        decisions: The answers people may give.
        description: Words for the reviewer, or a function of call and state, or call, state
            and runtime.
        args_schema: The JSON Schema that edited arguments must satisfy, or a pydantic model.
        cost: What the call costs: fixed, computed by a condition, or a function of the action.
        over: The cost above which people are asked.
        trusted: Arguments that must not come from outside.
        confirm: The proof an approval asks for.
        approvers: How many must approve, by group; empty means any one person.
        silence: What no answer means; None for the policy's own.
        window: How long people have, in seconds; None for the policy's own.
        lease: How long a started run may take, in seconds; None for the usual.
        source: Where the rule stands, such as `sayso.yaml:12`.

    Raises:
        PolicyError: With every mistake in the rule.
    """

    tool: str
    effect: Effect = Effect.IRREVERSIBLE
    outcome: Outcome = cast("Outcome", None)  # noqa: RUF009 - what the rest of the rule implies
    when: Condition | Predicate | str | None = None
    unless: Condition | Predicate | str | None = None
    decisions: tuple[DecisionKind, ...] = ALL_DECISIONS
    description: str | Callable[..., str] = ""
    args_schema: Mapping[str, Json] | SchemaModel | None = None
    cost: Cost | None = None
    over: Money | None = None
    trusted: tuple[str, ...] = ()
    confirm: ProofRule = field(default_factory=ProofRule)
    approvers: Mapping[str, int] | None = None
    silence: Silence | None = None
    window: int | None = None
    lease: int | None = None
    source: str = ""

    def __post_init__(self) -> None:
        """Compile the conditions and refuse what cannot work."""
        if cast("Outcome | None", self.outcome) is None:
            object.__setattr__(self, "outcome", _implied_by(self))
        problems: list[str] = []
        for key in ("when", "unless"):
            problems += _compile(self, key)
        problems += _normalise_schema(self)
        problems += _type_problems(self)
        if not problems:
            problems += _value_problems(self)
        if problems:
            where = f"{self.source}: " if self.source else ""
            raise PolicyError("\n".join(f"{where}`{self.tool}`: {problem}" for problem in problems))

    @property
    def is_pattern(self) -> bool:
        """Whether the rule is about every tool that a pattern matches."""
        return any(character in self.tool for character in "*?[")

    @property
    def place(self) -> str:
        """Where the rule stands, for people."""
        return self.source or self.tool

    @property
    def conditional(self) -> bool:
        """Whether what the rule says depends on the call."""
        return not (self.when is None and self.unless is None and self.cost is None and not self.trusted)

    def covers(self, tool: str) -> bool:
        """Return whether the rule is about this tool; names are compared exactly."""
        if not self.is_pattern:
            return self.tool == tool
        return fnmatchcase(tool, self.tool)


def implied(effect: Effect, *, conditional: bool, limited: bool, says_how: bool) -> Outcome:
    """Return the outcome of a rule that names none.

    What can be taken back passes, unless the rule says when or how to ask; a cost limit or
    trusted arguments ask by themselves.

    Args:
        effect: What the tool does.
        conditional: Whether the rule says when.
        limited: Whether it has a cost limit or trusted arguments.
        says_how: Whether it says how to ask: decisions, proof, approvers, words, schema, silence, window.
    """
    if effect is Effect.IRREVERSIBLE or conditional:
        return Outcome.ASK
    return Outcome.ASK if says_how and not limited else Outcome.ALLOW


def _implied_by(rule: Rule) -> Outcome:
    how = (rule.decisions != ALL_DECISIONS, rule.confirm != ProofRule(), rule.approvers, rule.description)
    waits = rule.silence is not None or rule.window is not None
    return implied(
        rule.effect,
        conditional=rule.when is not None or rule.unless is not None,
        limited=rule.cost is not None or bool(rule.trusted),
        says_how=any(how) or waits or rule.args_schema is not None,
    )


def _compile(rule: Rule, key: str) -> Iterator[str]:
    value = cast("object", getattr(rule, key))
    if isinstance(value, str):
        try:
            object.__setattr__(rule, key, Condition.compile(value))
        except PolicyError as error:
            yield f"{key}: {error.message}"
    elif value is not None and not isinstance(value, Condition):
        yield from _function_problems(key, value, 1)


def _function_problems(key: str, function: object, least: int) -> Iterator[str]:
    try:
        count_parameters(function, least, 3)
    except ValueError as error:
        yield f"{key}: `{name_of(function)}` {error}"


def _normalise_schema(rule: Rule) -> Iterator[str]:
    value = cast("object", rule.args_schema)
    if value is None:
        return
    if isinstance(value, SchemaModel):
        value = value.model_json_schema()
        object.__setattr__(rule, "args_schema", value)
    if not isinstance(value, Mapping):
        yield "args_schema: must be a JSON Schema or a model with `model_json_schema`"
        return
    yield from schema_problems(cast("Mapping[str, object]", value))


def schema_problems(schema: Mapping[str, object]) -> Iterator[str]:
    """Yield what is wrong with a JSON Schema; one that fetches another from elsewhere is refused."""
    import jsonschema  # noqa: PLC0415 - only policies with schemas need it

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        yield f"args_schema: is not a JSON Schema: {error.message}"
        return
    for reference in _references(schema):
        if not reference.startswith("#"):
            yield f"args_schema: refers to `{reference}`; only references within the schema are allowed"


def _references(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, object]", value).items():
            if key in ("$ref", "$dynamicRef") and isinstance(item, str):
                yield item
            yield from _references(item)
    elif isinstance(value, (list, tuple)):
        for item in cast("list[object]", value):
            yield from _references(item)


def _type_problems(rule: Rule) -> Iterator[str]:
    """Yield fields of the wrong type: a policy is code that types may not have checked."""
    expected: tuple[tuple[str, type | tuple[type, ...]], ...] = (
        ("tool", str),
        ("effect", Effect),
        ("outcome", Outcome),
        ("decisions", tuple),
        ("trusted", tuple),
        ("confirm", ProofRule),
        ("over", (Money, type(None))),
        ("approvers", (Mapping, type(None))),
        ("silence", (Silence, type(None))),
        ("window", (int, type(None))),
        ("lease", (int, type(None))),
        ("source", str),
    )
    for key, kinds in expected:
        value = cast("object", getattr(rule, key))
        if not isinstance(value, kinds) or isinstance(value, bool):
            yield f"{key}: has the wrong type, {type(value).__name__}"
    for kind in (
        cast("tuple[object, ...]", rule.decisions)
        if isinstance(cast("object", rule.decisions), tuple)
        else ()
    ):
        if not isinstance(kind, DecisionKind):
            yield f"decisions: {kind!r} is not a decision"


def _value_problems(rule: Rule) -> Iterator[str]:
    if not rule.tool:
        yield "tool: is empty"
    if not rule.decisions:
        yield "decisions: at least one answer must be allowed"
    if not isinstance(rule.description, str):
        yield from _function_problems("description", rule.description, 2)
    if rule.effect is Effect.IRREVERSIBLE and rule.silence is Silence.ALLOW:
        yield "silence: no answer is always a denial for an irreversible tool"
    for key, seconds in (("window", rule.window), ("lease", rule.lease)):
        if seconds is not None and seconds <= 0:
            yield f"{key}: must be more than 0 seconds, got {seconds}"
    for group, count in (rule.approvers or {}).items():
        if not group or type(count) is not int or count < 1:
            yield f"approvers: `{group}` must name how many, 1 or more, got {count!r}"
    if (rule.confirm.kind is ProofKind.TYPE) != bool(rule.confirm.template):
        yield 'confirm: `type` needs what must be typed, such as type:"{price}", and nothing else does'
    yield from _cost_problems(rule)


def _cost_problems(rule: Rule) -> Iterator[str]:
    cost, over = rule.cost, rule.over
    if (cost is None) != (over is None):
        yield "cost: a cost and its limit `over` go together"
        return
    if isinstance(cost, (Money, Price)) and over and cost.currency != over.currency:
        yield f"cost: is in {cost.currency} and its limit in {over.currency}"
    elif cost is not None and not isinstance(cost, (Money, Price)):
        try:
            count_parameters(cost, 1, 1)
        except ValueError as error:
            yield f"cost: `{name_of(cost)}` {error}"
