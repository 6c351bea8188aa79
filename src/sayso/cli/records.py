"""The JSON forms of what `sayso` prints, for programs.

Arguments appear only as a card shows them, with secrets taken out. Instants are in
milliseconds since the epoch.
"""

from collections.abc import Mapping
from typing import cast

import orjson

from sayso.actions import Json
from sayso.approvals import Approval, Resolution
from sayso.audit import Entry
from sayso.clock import Millis
from sayso.errors import StoreDamaged
from sayso.presentation import Field, Presentation, present


def approval_json(approval: Approval, now: Millis) -> dict[str, Json]:
    """Return an approval as a list shows it."""
    card = present(approval, now)
    return {
        "id": approval.id,
        "status": str(approval.status),
        "effect": str(card.effect),
        "tool": card.tool,
        "thread": card.thread,
        "asked_by": card.asked_by,
        "headline": card.headline,
        "why": card.why,
        "reasons": [str(reason) for reason in approval.terms.reasons],
        "warnings": list(card.warnings),
        "opened_at": approval.opened_at,
        "deadline": approval.deadline,
        "seconds_left": card.seconds_left,
        "digest": card.action_digest,
        "replaces": approval.replaces,
        "decisions": [
            {
                "kind": str(given.kind),
                "by": given.person.id,
                "via": given.person.via,
                "at": given.at,
                "proof": str(given.proof),
            }
            for given in approval.decisions
        ],
        "resolution": _resolution(approval.resolution),
    }


def card_json(card: Presentation) -> dict[str, Json]:
    """Return a card with all that it shows."""
    return {
        "approval_id": card.approval_id,
        "headline": card.headline,
        "tool": card.tool,
        "thread": card.thread,
        "asked_by": card.asked_by,
        "why": card.why,
        "reasons": list(card.reasons),
        "effect": str(card.effect),
        "rule": card.rule,
        "description": card.description.text if card.description else None,
        "fields": [_field(field) for field in card.fields],
        "hidden": list(card.hidden),
        "warnings": list(card.warnings),
        "opened_at": card.opened_at,
        "deadline": card.deadline,
        "seconds_left": card.seconds_left,
        "silence": card.silence,
        "decisions": [str(kind) for kind in card.decisions],
        "proof": {"kind": str(card.proof.kind), "sentence": card.proof.sentence},
        "quorum": card.quorum,
        "action_digest": card.action_digest,
        "shown_as": card.digest,
    }


def entry_json(entry: Entry) -> dict[str, Json]:
    """Return an audit entry with its body read."""
    return {
        "seq": entry.seq,
        "thread": entry.thread,
        "n": entry.n,
        "at": entry.at,
        "kind": entry.kind,
        "approval_id": entry.approval_id,
        "body": body_of(entry),
        "hash": entry.hash.hex(),
    }


def body_of(entry: Entry) -> Mapping[str, Json]:
    """Return who, through which door, and the facts of an audit entry.

    Raises:
        StoreDamaged: The body is not a JSON object.
    """
    try:
        body = orjson.loads(entry.body)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise StoreDamaged(f"entry {entry.seq} of the audit cannot be read", hint="run `sayso audit verify`")
    return cast("dict[str, Json]", body)


def _field(field: Field) -> dict[str, Json]:
    return {
        "path": field.path,
        "text": field.text,
        "hidden_characters": field.hidden_characters,
        "notes": list(field.notes),
        "before": field.before,
    }


def _resolution(ended: Resolution | None) -> dict[str, Json] | None:
    if ended is None:
        return None
    return {
        "status": str(ended.status),
        "cause": str(ended.cause),
        "by": ended.by,
        "at": ended.at,
        "message": ended.message,
        "successor": ended.successor,
    }
