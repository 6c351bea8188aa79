"""What is left when the demo is over: the audit, read back and verified, and the bookings."""

from collections.abc import Mapping
from typing import cast

import orjson
from rich.text import Text

from sayso.actions import Json
from sayso.audit import Entry, verify
from sayso.clock import SECOND, Millis
from sayso.config import Parts
from sayso.demo.screen import Screen
from sayso.demo.tools import Travel
from sayso.presentation import visible
from sayso.worker import checkpoint

_WORDS = {
    "allowed": "needed nobody",
    "denied": "denied by policy",
    "opened": "stopped, waits for a person",
    "code_issued": "confirmation code shown",
    "proof_failed": "wrong code",
    "approved": "approved",
    "edited": "edited and approved",
    "rejected": "rejected",
    "responded": "answered in its place",
    "claimed": "permit taken",
    "done": "ran once",
    "failed": "ran and failed",
    "expired": "nobody answered: denied",
    "late": "came too late, discarded",
    "withdrawn": "withdrawn",
    "superseded": "replaced by a stricter one",
}


def print_record(screen: Screen, parts: Parts, travel: Travel, thread: str) -> bool:
    """Print what happened in a thread, whether the audit proves it, and what is booked.

    Returns:
        Whether the audit is sound.
    """
    parts.store.flush()
    screen.heading("What happened, from the audit")
    entries = [entry for entry in parts.store.entries() if entry.thread == thread]
    screen.rows(_timeline(entries))
    sound = _print_proof(screen, parts)
    booked = travel.bookings()
    screen.heading("What is booked")
    for line in booked or ["nothing"]:
        screen.remark(line)
    return sound


def _timeline(entries: list[Entry]) -> list[tuple[Text, ...]]:
    """Return a row an entry: when, what about, what, and who."""
    rows: list[tuple[Text, ...]] = []
    tools: dict[str, str] = {}
    for entry in entries:
        body = cast("Mapping[str, Json]", orjson.loads(entry.body))
        data = cast("Mapping[str, Json]", body.get("data", {}))
        tool = str(data.get("tool") or tools.get(entry.approval_id, ""))
        tools[entry.approval_id] = tool
        rows.append(
            (
                Text(time_text(entry.at), style="dim"),
                Text(visible(tool), style="cyan"),
                Text(_WORDS.get(entry.kind, entry.kind), style=_style(entry.kind)),
                Text(visible(_who(body)), style="dim"),
            )
        )
    return rows


def _who(body: Mapping[str, Json]) -> str:
    by = str(body.get("by", ""))
    if by.startswith("gate:"):
        return "the gate"
    return f"{by} ({body['via']})" if body.get("via") else by or "time itself"


def _style(kind: str) -> str:
    if kind in {"opened", "expired", "late", "rejected", "denied", "proof_failed", "failed", "withdrawn"}:
        return "yellow"
    return "green" if kind in {"approved", "edited", "done"} else ""


def _print_proof(screen: Screen, parts: Parts) -> bool:
    """Sign a checkpoint, read the whole log back, and say what it proves."""
    signer, file = parts.signer, parts.checkpoints
    if signer is not None and file is not None:
        checkpoint(parts.store, file, signer)
    store = parts.store
    report = verify(
        store.entries(),
        file.read() if file else (),
        key=signer.key if signer else "",
        heads=store.heads(),
        statuses=store.statuses(),
    )
    plural = "" if report.checkpoints == 1 else "s"
    covered = f"{report.entries} entries, {report.checkpoints} signed checkpoint{plural}"
    if report.sound:
        screen.remark(f"Verified: {covered}.", style="green")
        screen.remark("No entry was changed, none is missing, every decision names a person.", style="green")
    for finding in report.findings:
        screen.remark(f"{finding.question}: {finding.message}", style="red")
    return report.sound


def time_text(moment: Millis) -> str:
    """Write an instant as the UTC time of its day, to the millisecond."""
    seconds, thousandths = divmod(moment % (86_400 * SECOND), SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}.{thousandths:03}"
