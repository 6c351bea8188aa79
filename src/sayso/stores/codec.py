"""How records become the text a store keeps, and back; the same for every store.

Reading computes the digest of the action again, so a row changed behind Sayso's back is
noticed before anybody is shown it or anything runs.
"""

from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

import orjson

from sayso.actions import Action, Json, Origin
from sayso.approvals import (
    Approval,
    Cause,
    Challenge,
    Decision,
    DecisionKind,
    Effect,
    Permit,
    Person,
    ProofKind,
    ProofRule,
    Reason,
    Resolution,
    Silence,
    Status,
    Terms,
)
from sayso.errors import SaysoError, StoreDamaged

Fields: TypeAlias = dict[str, object]

_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)


class Row(NamedTuple):
    """An approval as its columns."""

    seq: int
    id: str
    status: str
    version: int
    terms: int
    state: str
    digest: bytes
    args: bytes
    body: str


def write_terms(terms: Terms) -> str:
    """Write terms as text, the same text for equal terms."""
    return _dump(
        {
            "effect": terms.effect,
            "reasons": terms.reasons,
            "decisions": terms.decisions,
            "window": terms.window,
            "silence": terms.silence,
            "proof": [terms.proof.kind, terms.proof.template],
            "quorum": terms.quorum,
            "rule": terms.rule,
            "schema": terms.args_schema,
            "lease": terms.lease,
        }
    )


@lru_cache(maxsize=1024)
def read_terms(text: str) -> Terms:
    """Read terms back.

    Raises:
        StoreDamaged: They were changed by something other than Sayso, or cannot be read.
    """
    try:
        return _read_terms(text)
    except _UNREADABLE as error:
        raise StoreDamaged(
            f"a set of terms in the store cannot be read: it was changed or damaged ({error})",
            hint="restore the store from a backup",
        ) from error


def _read_terms(text: str) -> Terms:
    found = _load(text)
    proof_kind, template = cast("tuple[str, str]", found["proof"])
    return Terms(
        effect=Effect(cast("str", found["effect"])),
        reasons=tuple(Reason(reason) for reason in cast("list[str]", found["reasons"])),
        decisions=tuple(DecisionKind(kind) for kind in cast("list[str]", found["decisions"])),
        window=cast("int", found["window"]),
        silence=Silence(cast("str", found["silence"])),
        proof=ProofRule(kind=ProofKind(proof_kind), template=template),
        quorum=tuple((group, needed) for group, needed in cast("list[tuple[str, int]]", found["quorum"])),
        rule=cast("str", found["rule"]),
        args_schema=cast("dict[str, Json] | None", found["schema"]),
        lease=cast("int", found["lease"]),
    )


def write_body(approval: Approval) -> str:
    """Write what never changes after the opening."""
    rest = {
        "why": approval.why,
        "description": approval.description,
        "replaces": approval.replaces,
        "opened": approval.opened_at,
        "deadline": approval.deadline,
    }
    return _dump(_other_fields(approval.action) | {name: value for name, value in rest.items() if value})


def write_state(approval: Approval) -> str:
    """Write what changes: empty while nothing has happened yet."""
    state: Fields = {}
    if approval.edited:
        edited = approval.edited
        state["edited"] = _other_fields(edited) | {
            "args": edited.canonical_args.decode(),
            "digest": edited.digest,
        }
    if approval.decisions:
        state["decisions"] = [_decision_fields(decision) for decision in approval.decisions]
    if approval.challenges:
        state["challenges"] = [
            [code.session, code.digest, code.salt, code.hash, code.until, code.tries]
            for code in approval.challenges
        ]
    if approval.permit:
        state["permit"] = [approval.permit.digest, approval.permit.holder, approval.permit.until]
    if approval.resolution:
        ended = approval.resolution
        state["resolution"] = [ended.status, ended.cause, ended.at, ended.by, ended.message, ended.successor]
    return _dump(state) if state else ""


def read_approval(row: Row, terms: Terms) -> Approval:
    """Read an approval back, checking the action against its digest.

    Raises:
        StoreDamaged: The row was changed by something other than Sayso, or cannot be read.
    """
    try:
        return _read_approval(row, terms)
    except (*_UNREADABLE, SaysoError) as error:
        raise StoreDamaged(
            f"approval {row.id} cannot be trusted: its row in the store was changed or damaged ({error})",
            hint="run `sayso audit verify`, and restore the store from a backup",
            approval_id=row.id,
        ) from error


def _read_approval(row: Row, terms: Terms) -> Approval:
    body = _load(row.body)
    state = _load(row.state) if row.state else {}
    permit = cast("tuple[str, str, int] | None", state.get("permit"))
    ended = cast("tuple[str, str, int, str, str, str] | None", state.get("resolution"))
    challenges = cast("list[tuple[str, str, str, str, int, int]]", state.get("challenges", []))
    given_so_far = cast("list[Fields]", state.get("decisions", []))
    return Approval(
        id=row.id,
        seq=row.seq,
        version=row.version,
        action=Action.stored(row.args, row.digest.hex(), _read_fields(body)),
        terms=terms,
        why=cast("str", body.get("why", "")),
        description=cast("str", body.get("description", "")),
        replaces=cast("str", body.get("replaces", "")),
        opened_at=cast("int", body["opened"]),
        deadline=cast("int", body["deadline"]),
        status=Status(row.status),
        edited=_read_edited(cast("Fields", state["edited"])) if "edited" in state else None,
        decisions=tuple(_read_decision(given) for given in given_so_far) if given_so_far else (),
        challenges=tuple(
            Challenge(session=session, digest=digest, salt=salt, hash=code, until=until, tries=tries)
            for session, digest, salt, code, until, tries in challenges
        )
        if challenges
        else (),
        permit=Permit(approval_id=row.id, digest=permit[0], holder=permit[1], until=permit[2])
        if permit
        else None,
        resolution=_read_resolution(ended) if ended else None,
    )


def _read_resolution(ended: tuple[str, str, int, str, str, str]) -> Resolution:
    status, cause, at, by, message, successor = ended
    return Resolution(
        status=Status(status), cause=Cause(cause), at=at, by=by, message=message, successor=successor
    )


def _other_fields(action: Action) -> Fields:
    """Return everything of an action but its arguments and digest, which are kept as they are."""
    found: Fields = {"tool": action.tool, "thread": action.thread, "by": action.requested_by}
    if action.call_id:
        found["call"] = action.call_id
    if action.agents:
        found["agents"] = action.agents
    if action.confidence is not None:
        found["confidence"] = action.confidence
    if action.origins:
        found["origins"] = dict(action.origins)
    if action.facts:
        found["facts"] = dict(action.facts)
    return found


def _read_fields(found: Fields) -> Fields:
    origins = cast("dict[str, str]", found.get("origins", {}))
    return {
        "tool": found["tool"],
        "thread": found["thread"],
        "call_id": found.get("call", ""),
        "agents": tuple(cast("list[str]", found.get("agents", ()))),
        "requested_by": found["by"],
        "confidence": found.get("confidence"),
        "origins": {name: Origin(value) for name, value in origins.items()} if origins else {},
        "facts": found.get("facts", {}),
    }


def _read_edited(found: Fields) -> Action:
    return Action.stored(
        cast("str", found["args"]).encode(), cast("str", found["digest"]), _read_fields(found)
    )


def _decision_fields(decision: Decision) -> Fields:
    person = decision.person
    found: Fields = {
        "kind": decision.kind,
        "by": person.id,
        "via": person.via,
        "digest": decision.digest,
        "at": decision.at,
        "proof": decision.proof,
    }
    if person.groups:
        found["groups"] = sorted(person.groups)
    if decision.shown:
        found["shown"] = decision.shown
    if decision.message:
        found["message"] = decision.message
    return found


def _read_decision(found: Fields) -> Decision:
    groups = frozenset(cast("list[str]", found.get("groups", [])))
    return Decision(
        kind=DecisionKind(cast("str", found["kind"])),
        person=Person(id=cast("str", found["by"]), groups=groups, via=cast("str", found["via"])),
        digest=cast("str", found["digest"]),
        shown=cast("str", found.get("shown", "")),
        message=cast("str", found.get("message", "")),
        at=cast("int", found["at"]),
        proof=ProofKind(cast("str", found["proof"])),
    )


def _dump(value: object) -> str:
    return orjson.dumps(value).decode()


def _load(text: str) -> Fields:
    return cast("Fields", orjson.loads(text))
