"""Whether the audit is whole, as three separate answers.

Integrity: no entry was changed, removed from the middle or moved. Completeness: nothing is
missing from the end, and every approval's status is what its entries say. Attribution: the
checkpoints carry the expected signature, and every decision names a person and a door.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import orjson

from sayso.audit.chain import Entry, genesis, link
from sayso.audit.checkpoints import Checkpoint, line_hash, next_root
from sayso.clock import clock_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong with the audit.

    Args:
        question: `integrity`, `completeness` or `attribution`.
        seq: The entry it was found at, or 0.
        message: What is wrong, and where.
    """

    question: str
    seq: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What verification found.

    Args:
        entries: How many entries were read.
        chains: How many threads they belong to.
        checkpoints: How many checkpoints were checked.
        uncovered: How many entries came after the last checkpoint.
        findings: What is wrong, in the order of the log.
    """

    entries: int
    chains: int
    checkpoints: int
    uncovered: int
    findings: tuple[Finding, ...] = ()

    def holds(self, question: str) -> bool:
        """Return whether one of the three questions is answered well."""
        return not any(finding.question == question for finding in self.findings)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def first(self) -> Finding | None:
        """The first thing that is wrong."""
        return self.findings[0] if self.findings else None


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What has been read so far."""

    heads: dict[str, tuple[int, bytes]] = field(default_factory=dict[str, tuple[int, bytes]])
    statuses: dict[str, str] = field(default_factory=dict[str, str])
    findings: list[Finding] = field(default_factory=list[Finding])
    entries: int = 0
    last_seq: int = 0
    root: str = ""
    segment: list[bytes] = field(default_factory=list[bytes])


MAX_FINDINGS = 100
_DECIDED = frozenset({"approved", "edited", "rejected", "responded", "late", "reconciled"})
_RESULTS = {
    "opened": "pending",
    "rejected": "rejected",
    "responded": "responded",
    "claimed": "running",
    "renewed": "running",
    "released": "approved",
    "done": "done",
    "failed": "failed",
    "unknown": "unknown",
    "withdrawn": "withdrawn",
    "superseded": "withdrawn",
}


def verify(
    entries: Iterable[Entry],
    checkpoints: Iterable[Checkpoint] = (),
    *,
    key: str = "",
    heads: Mapping[str, tuple[int, bytes]] | None = None,
    statuses: Mapping[str, str] | None = None,
) -> Report:
    """Read the log once, in order, and check it against itself, its checkpoints and the store.

    Args:
        entries: All entries by `seq`.
        checkpoints: All checkpoints in order.
        key: The public key that must have signed them, in hexadecimal; empty checks none.
        heads: The chain heads the store names, to be compared.
        statuses: The status of every approval in the store, to be compared.
    """
    reading = _Reading()
    waiting = list(checkpoints)
    total = len(waiting)
    _check_signatures(waiting, key, reading.findings)
    waiting.reverse()
    for entry in entries:
        while waiting and entry.seq > waiting[-1].seq:
            _check_checkpoint(waiting.pop(), reading)
        _read(entry, reading)
    while waiting:
        _check_checkpoint(waiting.pop(), reading)
    if heads is not None:
        _check_heads(heads, reading)
    if statuses is not None:
        _check_statuses(statuses, reading)
    return Report(
        entries=reading.entries,
        chains=len(reading.heads),
        checkpoints=total,
        uncovered=len(reading.segment),
        findings=tuple(reading.findings[:MAX_FINDINGS]),
    )


def _read(entry: Entry, reading: _Reading) -> None:
    seq, thread, n, at, kind, approval_id, body, given = entry
    known = reading.heads.get(thread)
    last, previous = known or (0, genesis(thread))
    if n != last + 1:
        reading.findings.append(_gap(entry, last))
    elif link(previous, n, at, kind, approval_id, body) != given:
        message = (
            f"entry {seq} ({kind}, {clock_text(at)}) does not match its hash: it or its place was changed"
        )
        reading.findings.append(Finding(question="integrity", seq=seq, message=message))
    reading.heads[thread] = (n, given)
    reading.entries += 1
    reading.last_seq = seq
    reading.segment.append(given)
    if kind in _DECIDED:
        _check_person(entry, reading)
    if approval_id:
        _follow(entry, reading)


def _gap(entry: Entry, last: int) -> Finding:
    missing = f"{last + 1}" if entry.n == last + 2 else f"{last + 1} to {entry.n - 1}"
    problem = (
        f"number {missing} of thread `{entry.thread}` is missing" if entry.n > last else "is out of order"
    )
    return Finding(
        question="integrity", seq=entry.seq, message=f"before entry {entry.seq} ({entry.kind}): {problem}"
    )


def _check_person(entry: Entry, reading: _Reading) -> None:
    try:
        body = cast("dict[str, object]", orjson.loads(entry.body))
    except ValueError:
        body = {}
    if not body.get("by") or not body.get("via"):
        message = f"entry {entry.seq} ({entry.kind}) does not say who decided, or through which door"
        reading.findings.append(Finding(question="attribution", seq=entry.seq, message=message))


def _follow(entry: Entry, reading: _Reading) -> None:
    """Keep the status that the entries so far lead to; a quorum may need several approvals."""
    kind = entry.kind
    if kind in _RESULTS:
        reading.statuses[entry.approval_id] = _RESULTS[kind]
    elif kind == "expired":
        allowed = '"outcome":"allowed"' in entry.body
        reading.statuses[entry.approval_id] = "approved" if allowed else "expired"
    elif kind in {"approved", "edited"}:
        reading.statuses[entry.approval_id] = "pending" if '"missing":{' in entry.body else "approved"
    elif kind == "reconciled":
        reading.statuses[entry.approval_id] = "done" if '"ran":true' in entry.body else "failed"


def _check_checkpoint(checkpoint: Checkpoint, reading: _Reading) -> None:
    root = next_root(reading.root, reading.segment)
    name = f"checkpoint {checkpoint.number} ({clock_text(checkpoint.at)})"
    if reading.entries != checkpoint.entries:
        message = (
            f"{name} saw {checkpoint.entries} entries up to number {checkpoint.seq}, "
            f"the log now has {reading.entries}: {checkpoint.entries - reading.entries} are missing"
        )
        reading.findings.append(Finding(question="completeness", seq=reading.last_seq, message=message))
    elif root != checkpoint.root:
        message = f"{name} does not match the entries up to number {checkpoint.seq}: the log was rewritten"
        reading.findings.append(Finding(question="integrity", seq=checkpoint.seq, message=message))
    reading.root = checkpoint.root
    reading.segment.clear()


def _check_signatures(checkpoints: list[Checkpoint], key: str, findings: list[Finding]) -> None:
    last: Checkpoint | None = None
    for checkpoint in checkpoints:
        if key and not checkpoint.is_signed_by(key):
            message = f"checkpoint {checkpoint.number} was not signed with the expected key {key[:12]}"
            findings.append(Finding(question="attribution", seq=checkpoint.seq, message=message))
        if checkpoint.number != (last.number if last else 0) + 1 or checkpoint.previous != line_hash(last):
            message = f"checkpoint {checkpoint.number} does not follow the one before it: one was removed or changed"
            findings.append(Finding(question="completeness", seq=checkpoint.seq, message=message))
        last = checkpoint


def _check_heads(heads: Mapping[str, tuple[int, bytes]], reading: _Reading) -> None:
    for thread, (n, head) in heads.items():
        read = reading.heads.get(thread, (0, genesis(thread)))
        if read != (n, head):
            message = f"thread `{thread}` should end at number {n}, but its entries end at {read[0]}"
            reading.findings.append(Finding(question="completeness", seq=reading.last_seq, message=message))


def _check_statuses(statuses: Mapping[str, str], reading: _Reading) -> None:
    for approval_id, status in statuses.items():
        said = reading.statuses.get(approval_id)
        if said != status:
            told = f"its entries lead to {said}" if said else "it has no entries"
            message = f"approval {approval_id} is stored as {status}, but {told}"
            reading.findings.append(Finding(question="completeness", seq=0, message=message))
    for approval_id in reading.statuses.keys() - statuses.keys():
        message = f"approval {approval_id} has entries, but is no longer in the store"
        reading.findings.append(Finding(question="completeness", seq=0, message=message))
