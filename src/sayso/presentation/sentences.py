"""The sentences of a card: what would happen, who asks, why, what silence means, what approving takes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sayso.approvals import Approval, ProofKind, ProofRule, Reason, Silence
from sayso.clock import Millis
from sayso.presentation.leaves import Leaf, show_leaf
from sayso.presentation.sheet import Sheet, shown_name
from sayso.presentation.visible import clip

_HEADLINE_VALUES = 6
_HEADLINE_TEXT = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_REASONS = {
    Reason.IRREVERSIBLE: "it cannot be undone",
    Reason.HIGH_COST: "it costs more than may be spent without asking",
    Reason.TRUST_BOUNDARY: "an argument came from outside",
    Reason.LOW_CONFIDENCE: "the agent is not sure enough",
    Reason.UNLISTED: "no rule names this tool",
    Reason.SECRET: "the arguments hold a secret",
    Reason.BUDGET: "a budget is used up",
    Reason.RULE: "a rule asks for it",
    Reason.MODE: "the present mode asks for it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofNeed:
    """What must be given to approve.

    Args:
        kind: Which proof.
        sentence: What to do, in one sentence.
    """

    kind: ProofKind
    sentence: str


def headline(tool: str, found: Sequence[Leaf], *, edited: bool) -> str:
    """Say what would happen, from the tool and its arguments alone; what a model wrote stands in quotation marks."""
    start = f"After an edit, {tool}" if edited else tool
    if not found:
        return f"{start} would run without arguments"
    values = ", ".join(_headline_value(leaf) for leaf in found[:_HEADLINE_VALUES])
    rest = len(found) - _HEADLINE_VALUES
    more = f", and {rest:,} more value{'s' if rest > 1 else ''}" if rest > 0 else ""
    return f"{start} would run with {values}{more}"


def _headline_value(leaf: Leaf) -> str:
    text, _ = clip(show_leaf(leaf, inline=True).text, _HEADLINE_TEXT)
    path, _ = clip(leaf.path.removeprefix("args."), _HEADLINE_TEXT)
    return f"{path} {text}"


def asked_by_of(approval: Approval, sheet: Sheet) -> str:
    """Name the agent path, outermost first, and who asks."""
    action = approval.effective
    agents = [shown_name(f"agents[{place}]", agent, sheet) for place, agent in enumerate(action.agents)]
    requester = shown_name("requested_by", action.requested_by, sheet)
    return f"{' > '.join(agents)}, requested by {requester}" if agents else requester


def reasons_of(approval: Approval) -> tuple[str, ...]:
    """Say why it was stopped, a phrase for each reason."""
    confidence = approval.action.confidence
    sure = f": it says {confidence:.0%}" if confidence is not None else ""
    return tuple(
        _REASONS[reason] + (sure if reason is Reason.LOW_CONFIDENCE else "")
        for reason in approval.terms.reasons
    )


def silence_of(approval: Approval) -> str:
    """Say what no answer means, and from when."""
    deadline, opened = _moment(approval.deadline), _moment(approval.opened_at)
    if deadline is None or opened is None:
        when = f"{approval.deadline:,} milliseconds after 1970-01-01 UTC"
    else:
        day = "" if deadline.date() == opened.date() else f"{deadline:%Y-%m-%d} "
        when = f"{day}{deadline:%H:%M:%S} UTC"
    outcome = "it will run" if approval.terms.silence is Silence.ALLOW else "it will NOT run"
    return f"No answer by {when} means {outcome}."


def _moment(millis: Millis) -> datetime | None:
    try:
        return _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return None


def quorum_of(groups: Sequence[tuple[str, int]], sheet: Sheet) -> str:
    """Say how many must approve."""
    if not groups:
        return "One person who may decide is enough."
    needs = [
        f"{count} approval{'s' if count != 1 else ''} from {shown_name(f'quorum[{place}]', group, sheet)}"
        for place, (group, count) in enumerate(groups)
    ]
    return f"It needs {' and '.join(needs)}."


def proof_of(rule: ProofRule, sheet: Sheet) -> ProofNeed:
    """Say what must be given to approve."""
    match rule.kind:
        case ProofKind.CLICK:
            sentence = "Approving takes no further proof."
        case ProofKind.CODE:
            sentence = "To approve, ask for a code and type it; it is good for this action only."
        case ProofKind.TYPE:
            template = sheet.line("proof", rule.template)
            one = re.fullmatch(r"\{([^{}]+)\}", template)
            what = f"the value of {one[1]}" if one else f'"{template}", with the values of this action'
            sentence = f"To approve, type {what}."
        case ProofKind.TOTP:
            sentence = "To approve, type the six digits your authenticator shows."
    return ProofNeed(kind=rule.kind, sentence=sentence)
