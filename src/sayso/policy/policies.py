"""The policy: rules, indexed by tool, that give a verdict on every action."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from os import PathLike
from typing import Literal, TypeAlias

from sayso.actions import Action
from sayso.approvals import Effect, Reason, Silence
from sayso.errors import PolicyError
from sayso.policy.interrupt_on import rules_from_interrupt_on
from sayso.policy.judging import describe, is_low, judge_plan
from sayso.policy.loading import read_policy, read_text
from sayso.policy.names import folded, suspicion
from sayso.policy.plans import Defaults, Plan, plan_for, policy_steps
from sayso.policy.rules import Rule
from sayso.policy.verdicts import Context, Explanation, Lint, Outcome, Unmatched, Verdict

Mode: TypeAlias = Literal["all", "first"]
Route: TypeAlias = Literal["proceed", "escalate", "default_deny"]

_REMEMBERED = 2048
_WAIT = "an earlier call of this batch waits for a person; propose this one again after the decision"


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules that give a verdict on every action; frozen once built, safe to use from any thread.

    Args:
        rules: The rules, in any order: deny beats ask beats allow.
        unlisted: The outcome for a tool no rule is about.
        confidence_floor: From 0 to 1. Below it an irreversible action is denied and any other
            is asked about; an action without a confidence is not judged by it.
        silence: What no answer means for what can be taken back; it is always a denial for
            the irreversible.
        window: How long people have, in seconds.
        mode: `all` reviews every call of a batch; `first` pauses at the first that asks.

    Raises:
        PolicyError: A setting is out of range.
    """

    rules: Sequence[Rule] = ()
    _: KW_ONLY
    unlisted: Outcome = Outcome.ASK
    confidence_floor: float = 0.70
    silence: Silence = Silence.DENY
    window: int = 300
    mode: Mode = "all"
    _defaults: Defaults = field(init=False, repr=False, compare=False)
    _plans: Mapping[str, Plan] = field(init=False, repr=False, compare=False)
    _find: Callable[[str], Plan] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the rules by exact name and work out what does not depend on a call."""
        _check(self)
        rules = tuple(self.rules)
        defaults = Defaults(
            unlisted=Outcome(self.unlisted),
            confidence_floor=self.confidence_floor,
            silence=Silence(self.silence),
            window=self.window,
        )
        listed: dict[str, list[Rule]] = {}
        for rule in rules:
            if not rule.is_pattern:
                listed.setdefault(rule.tool, []).append(rule)
        patterns = tuple(rule for rule in rules if rule.is_pattern)
        imitable = frozenset(map(folded, listed))

        def find(tool: str) -> Plan:
            matching = (*listed.get(tool, ()), *(rule for rule in patterns if rule.covers(tool)))
            return plan_for(tool, matching, suspicion(tool, listed, imitable), defaults)

        object.__setattr__(self, "rules", rules)
        object.__setattr__(self, "_defaults", defaults)
        object.__setattr__(self, "_plans", {tool: find(tool) for tool in listed})
        # A model can invent names without end, so only so many are remembered.
        object.__setattr__(self, "_find", lru_cache(maxsize=_REMEMBERED)(find))

    def judge(self, action: Action, context: Context | None = None) -> Verdict:
        """Return the verdict on an action; nothing a rule does makes this raise.

        A rule that raises, answers anything but a bool, or must be awaited, asks.

        Args:
            action: The call.
            context: What the framework knows, handed to predicates.
        """
        plan = self._plans.get(action.tool) or self._find(action.tool)
        if plan.fixed is None or plan.low is None:
            return judge_plan(plan, action, context, self._defaults)[0]
        confidence = action.confidence
        sure = confidence is None or confidence >= self.confidence_floor
        verdict = plan.fixed if sure else plan.low
        return describe(verdict, plan, action, context) if callable(plan.description) else verdict

    def judge_batch(self, actions: Sequence[Action], context: Context | None = None) -> tuple[Verdict, ...]:
        """Return the verdicts on the calls a model proposed together, in their order.

        In mode `first`, every call after the first that asks is denied and can be proposed
        again, so nothing later runs before the decision.
        """
        verdicts: list[Verdict] = []
        waiting = False
        for action in actions:
            verdict = self.judge(action, context)
            if waiting and verdict.outcome is not Outcome.DENY:
                verdict = Verdict(
                    outcome=Outcome.DENY,
                    effect=verdict.effect,
                    reasons=(Reason.MODE,),
                    rule="mode",
                    why=_WAIT,
                )
            waiting = waiting or (self.mode == "first" and verdict.outcome is Outcome.ASK)
            verdicts.append(verdict)
        return tuple(verdicts)

    def route(self, tool: str, confidence: float) -> Route:
        """Return where a call goes by reversibility and confidence alone, whatever its arguments.

        Args:
            tool: The tool's name.
            confidence: How sure the agent is, from 0 to 1.
        """
        plan = self._plans.get(tool) or self._find(tool)
        low = not confidence >= self.confidence_floor
        if any(rule.outcome is Outcome.DENY and not rule.conditional for rule in plan.rules):
            return "default_deny"
        if not plan.rules:
            return self._route_unlisted(plan, low=low)
        if plan.effect is Effect.IRREVERSIBLE:
            return "default_deny" if low else "escalate"
        asks = any(rule.outcome is Outcome.ASK and not rule.conditional for rule in plan.rules)
        return "escalate" if low or plan.suspect or asks else "proceed"

    def _route_unlisted(self, plan: Plan, *, low: bool) -> Route:
        if self.unlisted is Outcome.DENY:
            return "default_deny"
        return "proceed" if self.unlisted is Outcome.ALLOW and not low and not plan.suspect else "escalate"

    def explain(self, action: Action, context: Context | None = None) -> Explanation:
        """Return the verdict with every rule looked at and what it said."""
        plan = self._plans.get(action.tool) or self._find(action.tool)
        verdict, steps = judge_plan(plan, action, context, self._defaults)
        return Explanation(
            verdict=verdict,
            steps=(*steps, *policy_steps(plan, steps, self._defaults, low=is_low(action, self._defaults))),
        )

    def lint(self, tools: Iterable[str]) -> Lint:
        """Compare the rules with the names of the tools that really exist."""
        names = sorted(set(tools))
        patterns = sorted({rule.tool for rule in self.rules})
        return Lint(
            tools_without_rule=tuple(
                Unmatched(name=name, suggestion=_near(name, patterns))
                for name in names
                if not any(rule.covers(name) for rule in self.rules)
            ),
            rules_without_tool=tuple(
                Unmatched(name=rule.tool, source=rule.source, suggestion=_near(rule.tool, names))
                for rule in self.rules
                if not any(rule.covers(name) for name in names)
            ),
        )

    @classmethod
    def from_interrupt_on(
        cls,
        interrupt_on: Mapping[str, object],
        *,
        description_prefix: str = "Tool execution requires approval",
        mode: Mode = "all",
        unlisted: Outcome = Outcome.ASK,
        effects: Mapping[str, Effect] | None = None,
        confidence_floor: float = 0.70,
        silence: Silence = Silence.DENY,
        window: int = 300,
    ) -> "Policy":
        """Build a policy from a map of tools, as agent frameworks take it.

        Args:
            interrupt_on: By tool: True to ask with every answer allowed, False to never ask, or
                a config with `allowed_decisions`, `description`, `args_schema`, and `when` or
                `predicate`.
            description_prefix: The first line of descriptions nobody wrote.
            mode: `all` or `first`.
            unlisted: The outcome for a tool the map does not name.
            effects: What tools do to the world; by default a tool that is ever asked about is
                irreversible, and one that never is only reads.
            confidence_floor: As for the policy.
            silence: As for the policy.
            window: As for the policy, in seconds.

        Raises:
            PolicyError: With every mistake in the map, by tool and key.
        """
        rules = rules_from_interrupt_on(interrupt_on, description_prefix, effects or {})
        return cls(
            rules,
            unlisted=unlisted,
            confidence_floor=confidence_floor,
            silence=silence,
            window=window,
            mode=mode,
        )

    @classmethod
    def from_text(cls, text: str, source: str = "sayso.yaml") -> "Policy":
        """Build a policy from the text of a policy file.

        Args:
            text: The YAML.
            source: The name mistakes are reported under.

        Raises:
            PolicyError: With every mistake, as `file:line: what is wrong`.
        """
        read = read_policy(text, source)
        return cls(
            read.rules,
            unlisted=read.unlisted,
            confidence_floor=read.confidence_floor,
            silence=read.silence,
            window=read.window,
            mode=read.mode,
        )

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> "Policy":
        """Build a policy from a file.

        Raises:
            PolicyError: The file cannot be read, or with every mistake in it.
        """
        text, source = read_text(path)
        return cls.from_text(text, source)


def _near(name: str, known: Sequence[str]) -> str:
    return next(iter(get_close_matches(name, known, n=1)), "")


def _check(policy: Policy) -> None:
    problems: list[str] = []
    if policy.mode not in ("all", "first"):
        problems.append(f"`mode` must be `all` or `first`, got {policy.mode!r}")
    if policy.unlisted not in tuple(Outcome):
        problems.append(f"`unlisted` must be allow, ask or deny, got {policy.unlisted!r}")
    if policy.silence not in tuple(Silence):
        problems.append(f"`silence` must be deny or allow, got {policy.silence!r}")
    if not 0.0 <= policy.confidence_floor <= 1.0:
        problems.append(f"`confidence_floor` must lie between 0 and 1, got {policy.confidence_floor}")
    if type(policy.window) is not int or policy.window <= 0:
        problems.append(f"`window` must be a whole number of seconds above 0, got {policy.window!r}")
    strangers = [each for each in policy.rules if not isinstance(each, Rule)]  # pyright: ignore[reportUnnecessaryIsInstance] - types may not have been checked
    problems += [f"`rules` must hold Rule records, got {type(each).__name__}" for each in strangers]
    if problems:
        raise PolicyError("\n".join(problems), hint="mend the policy")
