"""Asking the rules of a tool about one call."""

from dataclasses import replace
from decimal import Decimal
from typing import cast

from sayso.actions import UNTRUSTED, Action
from sayso.errors import UsageError
from sayso.policy.conditions import Condition
from sayso.policy.money import Money
from sayso.policy.plans import Defaults, Plan, settle, step_of
from sayso.policy.predicates import Doubt, Fault, Predicate, answer, attempt, invoke
from sayso.policy.rules import Price, Rule
from sayso.policy.verdicts import Context, Step, Verdict

_NO_CONTEXT = Context()


def is_low(action: Action, defaults: Defaults) -> bool:
    """Return whether the agent says it is less sure than the floor; silence is not judged."""
    return action.confidence is not None and not action.confidence >= defaults.confidence_floor


def judge_plan(
    plan: Plan, action: Action, context: Context | None, defaults: Defaults
) -> tuple[Verdict, tuple[Step, ...]]:
    """Return the verdict on a call and what each rule said."""
    context = context or _NO_CONTEXT
    steps = tuple(_look(rule, plan, action, context) for rule in plan.rules)
    verdict = settle(plan, steps, defaults, low=is_low(action, defaults))
    return describe(verdict, plan, action, context), steps


def _look(rule: Rule, plan: Plan, action: Action, context: Context) -> Step:
    return step_of(
        rule,
        holds=_holds(rule, plan, action, context),
        cost=_over(rule, action),
        outside=_outside(rule, action),
    )


def _holds(rule: Rule, plan: Plan, action: Action, context: Context) -> bool | Fault:
    when = True if rule.when is None else _test(rule.when, plan, action, context)
    if rule.unless is None:
        return when
    unless = _test(rule.unless, plan, action, context)
    if isinstance(unless, Fault):
        return unless if when is not False else False
    return when if isinstance(when, Fault) else when and not unless


def _test(
    condition: Condition | Predicate | str, plan: Plan, action: Action, context: Context
) -> bool | Fault:
    if isinstance(condition, Condition):
        return answer(lambda: condition.value(action), action)
    predicate = cast("Predicate", condition)
    return answer(lambda: invoke(predicate, plan.counts[id(predicate)], action, context), action)


def _over(rule: Rule, action: Action) -> str | Fault:
    """Return in words how the cost is over its limit, nothing when it is not, or a fault."""
    if rule.cost is None or rule.over is None:
        return ""
    limit = rule.over
    cost = attempt(lambda: _cost(rule, action), action)
    if isinstance(cost, Fault):
        return cost
    if not isinstance(cost, Money):
        return Fault(f"it is {type(cost).__name__}, not Money")
    if cost.minor < 0:
        return Fault("it is negative")
    exceeds = attempt(lambda: cost.exceeds(limit), action)
    if isinstance(exceeds, Fault):
        return Fault(f"it is in {cost.currency} and its limit in {limit.currency}")
    return f"it costs {cost}, over the {limit} limit" if exceeds else ""


def _cost(rule: Rule, action: Action) -> object:
    if rule.cost is None or isinstance(rule.cost, Money):
        return rule.cost
    if not isinstance(rule.cost, Price):
        return rule.cost(action)
    amount = rule.cost.amount.value(action)
    if type(amount) not in (int, float):
        raise Doubt(f"the amount is {type(amount).__name__}, not a number")
    try:
        return Money.at_least(Decimal(repr(amount)), rule.cost.currency)
    except UsageError:
        raise Doubt("the amount is not a number that money can have") from None


def _outside(rule: Rule, action: Action) -> tuple[str, ...]:
    """Return the trusted arguments that came, whole or in part, from outside."""
    if not rule.trusted or not action.origins:
        return ()
    outside = [name for name, origin in action.origins.items() if origin in UNTRUSTED]
    return tuple(
        name
        for name in rule.trusted
        if any(each == name or each.startswith((f"{name}.", f"{name}[")) for each in outside)
    )


def describe(verdict: Verdict, plan: Plan, action: Action, context: Context | None) -> Verdict:
    """Add the author's words to a verdict that asks; words that cannot be had never stop it."""
    described = plan.description
    if verdict.terms is None or not described:
        return verdict
    if isinstance(described, str):
        return replace(verdict, description=described)
    text = attempt(
        lambda: invoke(described, plan.counts[id(described)], action, context or _NO_CONTEXT), action
    )
    if text == "":
        return verdict
    if isinstance(text, str):
        return _with(verdict, text, "")
    fault = text.text if isinstance(text, Fault) else f"it returned {type(text).__name__}, not text"
    return _with(verdict, f"Tool: {action.tool}\nArgs: {action.args}", f"its description is missing: {fault}")


def _with(verdict: Verdict, description: str, fault: str) -> Verdict:
    why = "; ".join(each for each in (verdict.why, fault) if each)
    return replace(verdict, why=why, description=description)
