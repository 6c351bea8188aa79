"""The one description of an approval that every surface shows: terminal, web, chat and mail.

Nothing here may depend on the surface, and nothing may be left out without saying so: a text
that is too long is cut in the middle with the size of the gap, and its path is listed as hidden
until the reviewer opens it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256

from sayso.actions import UNTRUSTED, Json, Origin, canonical
from sayso.approvals import Approval, DecisionKind, Effect
from sayso.clock import SECOND, Millis
from sayso.presentation.leaves import Leaf, leaves
from sayso.presentation.sentences import (
    ProofNeed,
    asked_by_of,
    headline,
    proof_of,
    quorum_of,
    reasons_of,
    silence_of,
)
from sayso.presentation.sheet import Field, Sheet
from sayso.presentation.visible import CLOSE, OPEN

_LARGEST = 256 * 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """All that a surface shows of an approval. Every text is safe to print.

    Args:
        approval_id: The approval.
        headline: One plain sentence of what would happen.
        tool: The tool that would run.
        thread: The conversation or run it belongs to.
        asked_by: The agent path and who asks.
        why: Why it was stopped, in policy's words.
        reasons: Why it was stopped, a phrase for each reason.
        effect: What the tool does to the world.
        rule: Where the rule stands.
        description: The author's words for the reviewer, if any.
        fields: The arguments and the facts they rest on.
        hidden: The paths that are not fully shown and were not opened.
        opened: The paths the reviewer opened.
        warnings: Everything that could deceive, with its path.
        opened_at: When it was asked, in milliseconds since the epoch.
        deadline: The last moment a decision counts, in milliseconds since the epoch.
        seconds_left: Whole seconds until the deadline, zero when it has passed; not in `digest`.
        silence: What no answer means.
        decisions: The answers allowed.
        proof: What must be given to approve.
        quorum: How many must approve.
        action_digest: The digest of what would run.
        digest: The SHA-256 digest, in hexadecimal, of all that is shown.
    """

    approval_id: str
    headline: str
    tool: str
    thread: str
    asked_by: str
    why: str
    reasons: tuple[str, ...]
    effect: Effect
    rule: str
    description: Field | None
    fields: tuple[Field, ...]
    opened_at: Millis
    deadline: Millis
    silence: str
    decisions: tuple[DecisionKind, ...]
    proof: ProofNeed
    quorum: str
    action_digest: str
    hidden: tuple[str, ...] = ()
    opened: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    seconds_left: int = 0
    digest: str = ""


def present(
    approval: Approval, now: Millis, *, opened: frozenset[str] = frozenset(), limit: int = 2000
) -> Presentation:
    """Return what every surface shows of an approval.

    Args:
        approval: What is waiting.
        now: The present, in milliseconds since the epoch; changes `seconds_left` only.
        opened: The paths the reviewer opened, which are shown in full.
        limit: How many characters of one text are shown unless it is opened.
    """
    sheet = Sheet(opened, limit)
    action, terms = approval.effective, approval.terms
    tool = sheet.line("tool", action.tool, is_name=True)
    found = tuple(leaves(action.args)) if action.args else ()
    card = Presentation(
        approval_id=sheet.line("approval", approval.id),
        headline=headline(tool, found, edited=approval.edited is not None),
        tool=tool,
        thread=sheet.line("thread", action.thread, is_name=True),
        asked_by=asked_by_of(approval, sheet),
        why=sheet.line("why", approval.why),
        reasons=reasons_of(approval),
        effect=terms.effect,
        rule=sheet.line("rule", terms.rule),
        description=sheet.block("description", approval.description) if approval.description else None,
        fields=(
            *_tool_fields(approval, sheet),
            *_argument_fields(approval, found, sheet),
            *_fact_fields(approval, sheet),
        ),
        opened_at=approval.opened_at,
        deadline=approval.deadline,
        silence=silence_of(approval),
        decisions=terms.decisions,
        proof=proof_of(terms.proof, sheet),
        quorum=quorum_of(terms.quorum, sheet),
        action_digest=action.digest,
    )
    card = replace(card, hidden=tuple(sheet.hidden), opened=opened, warnings=tuple(sheet.warnings))
    left = max(0, (approval.deadline - now) // SECOND)
    return replace(card, digest=_digest(card), seconds_left=left)


def _tool_fields(approval: Approval, sheet: Sheet) -> tuple[Field, ...]:
    if approval.effective.tool == approval.action.tool:
        return ()
    after, before = (
        Leaf(path="tool", value=approval.effective.tool),
        Leaf(path="tool", value=approval.action.tool),
    )
    return (sheet.field(after, before=before),)


def _argument_fields(approval: Approval, found: Sequence[Leaf], sheet: Sheet) -> tuple[Field, ...]:
    if approval.edited is None:
        return sheet.fields(
            "args.*", found, lambda leaf: sheet.field(leaf, extra=_origin_notes(leaf, approval))
        )
    now = {leaf.path for leaf in found}
    original = leaves(approval.action.args) if approval.action.args else ()
    before = {leaf.path: leaf for leaf in original}
    gone = [leaf for path, leaf in before.items() if path not in now]

    def make(leaf: Leaf) -> Field:
        if leaf.path not in now:
            return _gone(leaf, sheet)
        extra = _origin_notes(leaf, approval)
        old = before.get(leaf.path)
        if old and canonical(old.value) == canonical(leaf.value):
            return sheet.field(leaf, extra=extra)
        return sheet.field(leaf, extra=extra, before=old, was=f"{OPEN}not there{CLOSE}")

    return sheet.fields("args.*", [*found, *gone], make)


def _gone(leaf: Leaf, sheet: Sheet) -> Field:
    old = sheet.field(leaf)
    return replace(old, text=f"{OPEN}taken out{CLOSE}", before=old.text)


def _origin_notes(leaf: Leaf, approval: Approval) -> tuple[str, ...]:
    origin = approval.effective.origins.get(leaf.top)
    if origin not in UNTRUSTED:
        return ()
    source = "the web" if origin == Origin.WEB else "a tool's output"
    return (f"came from {source}: somebody outside may have written it",)


def _fact_fields(approval: Approval, sheet: Sheet) -> tuple[Field, ...]:
    facts = approval.effective.facts
    return sheet.fields("facts.*", list(leaves(facts, "facts")), sheet.field) if facts else ()


_SHOWN = tuple(
    part.name for part in fields(Presentation) if part.name not in {"seconds_left", "digest", "opened"}
)


def _digest(card: Presentation) -> str:
    """Return the digest over all that is shown, apart from the time left, which is never the same twice."""
    shown = {name: getattr(card, name) for name in _SHOWN} | {
        "effect": card.effect.value,
        "description": _row(card.description) if card.description else None,
        "fields": [_row(field) for field in card.fields],
        "decisions": [kind.value for kind in card.decisions],
        "proof": [card.proof.kind.value, card.proof.sentence],
        "v": 1,
    }
    return sha256(canonical(shown, "presentation", _LARGEST)).hexdigest()


def _row(field: Field) -> list[Json]:
    return [field.path, field.text, field.hidden_characters, field.notes, field.before]
