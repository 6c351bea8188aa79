"""What policy answers, as records, and how two sets of terms compare."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sayso.approvals import Effect, ProofKind, Reason, Silence, Terms


class Outcome(StrEnum):
    """Policy's answer: run it, ask people, or do not run it."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


STRICTNESS: Mapping[Outcome, int] = {Outcome.ALLOW: 0, Outcome.ASK: 1, Outcome.DENY: 2}
"""Deny beats ask beats allow."""

EFFECT_RANK: Mapping[Effect, int] = {Effect.READ: 0, Effect.REVERSIBLE: 1, Effect.IRREVERSIBLE: 2}
"""The worst effect among the rules of one tool is the tool's."""

PROOF_RANK: Mapping[ProofKind, int] = {
    ProofKind.CLICK: 0,
    ProofKind.TYPE: 1,
    ProofKind.CODE: 2,
    ProofKind.TOTP: 3,
}
"""A proof of a higher rank says more about the person and what they read."""


def strictest(outcomes: tuple[Outcome, ...]) -> Outcome | None:
    """Return the strictest of the outcomes, or None when there are none."""
    return max(outcomes, key=STRICTNESS.__getitem__, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Policy's answer about one action.

    Args:
        outcome: Run it, ask people, or do not run it.
        effect: What the tool does to the world.
        reasons: Why it was stopped; empty when it was not.
        rule: Where the deciding rule stands: `file:line`, or a tool's name.
        why: One plain sentence for a person.
        description: The author's own words for the reviewer, if any.
        terms: The conditions of the approval; present exactly when people are asked.
    """

    outcome: Outcome
    effect: Effect
    reasons: tuple[Reason, ...] = ()
    rule: str = ""
    why: str = ""
    description: str = ""
    terms: Terms | None = None

    def __post_init__(self) -> None:
        """Hold the invariant that terms come with a question and only then."""
        if (self.terms is not None) != (self.outcome is Outcome.ASK):
            raise ValueError("a verdict has terms exactly when its outcome is `ask`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the framework knows about a call besides the call; handed to predicates as it is.

    Args:
        state: The framework's state of the run.
        runtime: The framework's runtime.
        tool: The tool's own object.
    """

    state: object = None
    runtime: object = None
    tool: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rule that was looked at, and what it said.

    Args:
        rule: Where it stands: `file:line`, or its tool pattern.
        tool: The name or pattern it is about.
        said: Its answer, or None when it had nothing to say.
        reasons: Its reasons to stop the action.
        why: Its answer in words.
    """

    rule: str
    tool: str
    said: Outcome | None
    reasons: tuple[Reason, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A verdict with everything that led to it.

    Args:
        verdict: The verdict `judge` gives.
        steps: Every rule looked at, exact names first, and the checks of the policy itself.
    """

    verdict: Verdict
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """A tool without a rule, or a rule without a tool.

    Args:
        name: The tool's name or the rule's pattern.
        source: Where the rule stands, empty for a tool.
        suggestion: The nearest name on the other side, empty when nothing is near.
    """

    name: str
    source: str = ""
    suggestion: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lint:
    """How the rules and the tools that really exist fit together.

    Args:
        tools_without_rule: Tools no rule matches; they get what `unlisted` says.
        rules_without_tool: Rules that match none of the tools: renamed or misspelt.
    """

    tools_without_rule: tuple[Unmatched, ...] = ()
    rules_without_tool: tuple[Unmatched, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether every tool has a rule and every rule a tool."""
        return not self.tools_without_rule and not self.rules_without_tool


def stricter(new: Terms, old: Terms) -> bool:
    """Return whether `new` asks for anything that `old` did not.

    Stricter is: a worse effect; an answer taken away; a stronger proof or another phrase to
    type; more approvals from a group or a group not asked before; a shorter window; silence
    that now denies. Anything looser changes nothing.
    """
    before = dict(old.quorum)
    return (
        EFFECT_RANK[new.effect] > EFFECT_RANK[old.effect]
        or not set(old.decisions) <= set(new.decisions)
        or _stronger_proof(new, old)
        or any(count > before.get(group, 0) for group, count in new.quorum)
        or new.window < old.window
        or (new.silence is Silence.DENY and old.silence is Silence.ALLOW)
    )


def _stronger_proof(new: Terms, old: Terms) -> bool:
    if new.proof.kind is old.proof.kind:
        return new.proof.template != old.proof.template
    return PROOF_RANK[new.proof.kind] > PROOF_RANK[old.proof.kind]
