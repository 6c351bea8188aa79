"""Everything about one tool that does not depend on the call, worked out once.

A `Plan` holds the rules of a tool, the worst effect among them, the strictest terms they add
up to, and, when no rule depends on the call, the finished verdicts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sayso.approvals import DecisionKind, Effect, ProofRule, Reason, Silence, Terms
from sayso.policy.conditions import Condition
from sayso.policy.predicates import Fault, count_parameters, name_of
from sayso.policy.rules import ALL_DECISIONS, Rule
from sayso.policy.verdicts import EFFECT_RANK, PROOF_RANK, Outcome, Step, Verdict, strictest


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a policy says where its rules say nothing.

    Args:
        unlisted: The outcome for a tool no rule is about.
        confidence_floor: The confidence below which an agent is not sure enough.
        silence: What no answer means for what can be taken back.
        window: How long people have, in seconds.
    """

    unlisted: Outcome = Outcome.ASK
    confidence_floor: float = 0.70
    silence: Silence = Silence.DENY
    window: int = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is known about a tool before it is called.

    Args:
        tool: The tool's name.
        rules: Its rules, exact names first.
        effect: The worst effect among them.
        terms: The strictest terms they add up to, without reasons.
        counts: How many arguments its functions take, by the identity of the function.
        description: The first words for the reviewer among the rules, or the function that finds them.
        suspect: Why the name itself asks for a person, or empty.
        fixed: The verdict, when no rule depends on the call.
        low: The verdict below the confidence floor, when no rule depends on the call.
    """

    tool: str
    rules: tuple[Rule, ...]
    effect: Effect
    terms: Terms
    counts: Mapping[int, int]
    description: str | Callable[..., str] = ""
    suspect: str = ""
    fixed: Verdict | None = None
    low: Verdict | None = None


def plan_for(tool: str, rules: tuple[Rule, ...], suspect: str, defaults: Defaults) -> Plan:
    """Work out the plan of one tool."""
    effect = max((rule.effect for rule in rules), key=EFFECT_RANK.__getitem__, default=Effect.IRREVERSIBLE)
    plan = Plan(
        tool=tool,
        rules=rules,
        effect=effect,
        terms=_merged(tool, rules, effect, defaults),
        suspect=suspect,
        counts=_counts(rules),
        description=next((rule.description for rule in rules if rule.description), ""),
    )
    if any(rule.conditional for rule in rules):
        return plan
    steps = tuple(step_of(rule, holds=True) for rule in rules)
    description = plan.description if isinstance(plan.description, str) else ""
    return replace(
        plan,
        fixed=_described(settle(plan, steps, defaults, low=False), description),
        low=_described(settle(plan, steps, defaults, low=True), description),
    )


def _counts(rules: tuple[Rule, ...]) -> Mapping[int, int]:
    """Read the signatures now: reading one takes longer than a verdict."""
    found: dict[int, int] = {}
    for rule in rules:
        for function, least in ((rule.when, 1), (rule.unless, 1), (rule.description, 2)):
            if callable(function):
                found[id(function)] = count_parameters(function, least, 3)
    return found


def step_of(rule: Rule, *, holds: bool | Fault, cost: str | Fault = "", outside: Sequence[str] = ()) -> Step:
    """Return what a rule says, given how its parts came out.

    Args:
        rule: The rule.
        holds: Whether its conditions hold, or the fault they ended in.
        cost: How the cost is over its limit, in words; empty when it is not; or a fault.
        outside: Trusted arguments that came from outside.
    """
    said, reasons, why = _said(rule, holds=holds)
    stops: list[tuple[Reason, str]] = []
    if isinstance(cost, Fault):
        stops.append((Reason.RULE, f"its cost is not known: {cost.text}"))
    elif cost:
        stops.append((Reason.HIGH_COST, cost))
    if outside:
        names = ", ".join(f"`{name}`" for name in outside)
        stops.append((Reason.TRUST_BOUNDARY, f"{names} came from outside and must not"))
    if stops:
        said = strictest((Outcome.ASK, said)) if said else Outcome.ASK
        texts = [why] if reasons and why else []
        reasons = tuple(dict.fromkeys((*reasons, *(reason for reason, _ in stops))))
        why = "; ".join((*texts, *(text for _, text in stops)))
    return Step(rule=rule.place, tool=rule.tool, said=said, reasons=reasons, why=why)


def _said(rule: Rule, *, holds: bool | Fault) -> tuple[Outcome | None, tuple[Reason, ...], str]:
    if isinstance(holds, Fault):
        return Outcome.ASK, (Reason.RULE,), f"its rule cannot tell: {holds.text}"
    condition = _condition_text(rule)
    if not holds:
        said = Outcome.ALLOW if rule.outcome is Outcome.ASK else None
        return said, (), f"its rule speaks only {condition}"
    if rule.outcome is Outcome.ASK and not condition and rule.effect is Effect.IRREVERSIBLE:
        return Outcome.ASK, (), ""
    reasons = () if rule.outcome is Outcome.ALLOW else (Reason.RULE,)
    verb = {Outcome.ALLOW: "allows it", Outcome.ASK: "asks", Outcome.DENY: "denies it"}[rule.outcome]
    return rule.outcome, reasons, f"its rule {verb} {condition or 'every time'}"


def _condition_text(rule: Rule) -> str:
    parts: list[str] = []
    for word, condition in (("when", rule.when), ("unless", rule.unless)):
        if condition is not None:
            text = condition.source if isinstance(condition, Condition) else name_of(condition)
            parts.append(f"{word} `{text}`")
    return " and ".join(parts)


def settle(plan: Plan, steps: tuple[Step, ...], defaults: Defaults, *, low: bool) -> Verdict:
    """Add up what the rules said, the strictest first."""
    steps = (*steps, *policy_steps(plan, steps, defaults, low=low))
    outcome = strictest(tuple(step.said for step in steps if step.said)) or Outcome.ASK
    deciding = [step for step in steps if step.said is outcome]
    rule = deciding[0].rule if deciding else ""
    if outcome is Outcome.ALLOW:
        return Verdict(outcome=outcome, effect=plan.effect, rule=rule, why=deciding[0].why)
    reasons = [reason for step in deciding for reason in step.reasons]
    texts = [step.why for step in deciding if step.why]
    if plan.rules and outcome is Outcome.ASK and plan.effect is Effect.IRREVERSIBLE:
        reasons.insert(0, Reason.IRREVERSIBLE)
        texts.insert(0, "it cannot be undone")
    unique = tuple(dict.fromkeys(reasons))
    terms = replace(plan.terms, reasons=unique, rule=rule) if outcome is Outcome.ASK else None
    why = "; ".join(dict.fromkeys(texts))
    return Verdict(outcome=outcome, effect=plan.effect, reasons=unique, rule=rule, why=why, terms=terms)


def policy_steps(plan: Plan, steps: tuple[Step, ...], defaults: Defaults, *, low: bool) -> tuple[Step, ...]:
    """Return what the policy itself adds to its rules: effect, listing, name and confidence."""
    added: list[Step] = []
    if plan.rules and not any(step.said for step in steps):
        said = Outcome.ASK if plan.effect is Effect.IRREVERSIBLE else Outcome.ALLOW
        why = "" if said is Outcome.ASK else "it can be undone and no rule stops it"
        added.append(Step(rule=plan.rules[0].place, tool=plan.tool, said=said, why=why))
    if not plan.rules:
        reasons = () if defaults.unlisted is Outcome.ALLOW else (Reason.UNLISTED,)
        added.append(
            Step(
                rule="unlisted",
                tool=plan.tool,
                said=defaults.unlisted,
                reasons=reasons,
                why="no rule lists this tool",
            )
        )
    if plan.suspect:
        added.append(
            Step(
                rule="unlisted",
                tool=plan.tool,
                said=Outcome.ASK,
                reasons=(Reason.UNLISTED,),
                why=plan.suspect,
            )
        )
    if low:
        denied = bool(plan.rules) and plan.effect is Effect.IRREVERSIBLE
        why = f"the agent is less sure than {defaults.confidence_floor:.2f}"
        added.append(
            Step(
                rule="confidence_floor",
                tool=plan.tool,
                said=Outcome.DENY if denied else Outcome.ASK,
                reasons=(Reason.LOW_CONFIDENCE,),
                why=f"{why}, and it cannot be undone" if denied else why,
            )
        )
    return tuple(added)


def _described(verdict: Verdict, description: str) -> Verdict:
    return replace(verdict, description=description) if description and verdict.terms else verdict


def _merged(tool: str, rules: tuple[Rule, ...], effect: Effect, defaults: Defaults) -> Terms:
    """Add the terms of all rules of a tool up to the strictest."""
    decisions = tuple(kind for kind in ALL_DECISIONS if all(kind in rule.decisions for rule in rules))
    silences = {rule.silence for rule in rules if rule.silence} or {defaults.silence}
    silent_allow = effect is not Effect.IRREVERSIBLE and silences == {Silence.ALLOW}
    leases = [rule.lease for rule in rules if rule.lease]
    return Terms(
        effect=effect,
        reasons=(),
        decisions=_ordered(decisions, rules) or (DecisionKind.REJECT,),
        window=min((rule.window for rule in rules if rule.window), default=defaults.window),
        silence=Silence.ALLOW if silent_allow else Silence.DENY,
        proof=max(
            (rule.confirm for rule in rules), key=lambda proof: PROOF_RANK[proof.kind], default=ProofRule()
        ),
        quorum=_quorum(rules),
        rule=rules[0].place if rules else tool,
        args_schema=next((rule.args_schema for rule in rules if rule.args_schema is not None), None),  # pyright: ignore[reportArgumentType] - a rule keeps only the schema
        lease=min(leases) if leases else Terms.__dataclass_fields__["lease"].default,
    )


def _ordered(decisions: tuple[DecisionKind, ...], rules: tuple[Rule, ...]) -> tuple[DecisionKind, ...]:
    """Keep the order in which the author listed the answers."""
    listed = rules[0].decisions if rules else decisions
    return tuple(kind for kind in dict.fromkeys(listed) if kind in decisions)


def _quorum(rules: tuple[Rule, ...]) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for rule in rules:
        for group, count in (rule.approvers or {}).items():
            counts[group] = max(count, counts.get(group, 0))
    return tuple(sorted(counts.items()))
