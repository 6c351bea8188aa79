"""Audit entries and the SHA-256 chain that binds each to all before it in its thread.

An entry never holds an argument: it names the action by its digest (G11).
"""

from hashlib import sha256
from typing import NamedTuple

import orjson

from sayso.clock import Millis
from sayso.decisions import Event


class Entry(NamedTuple):
    """One line of the audit, as it is stored.

    Args:
        seq: Its number in the store.
        thread: The chain it belongs to.
        n: Its number in the chain, from 1.
        at: When, in milliseconds since the epoch.
        kind: What happened.
        approval_id: The approval, or empty.
        body: Who, through which door, and the facts, as JSON text.
        hash: The SHA-256 link.
    """

    seq: int
    thread: str
    n: int
    at: Millis
    kind: str
    approval_id: str
    body: str
    hash: bytes


def genesis(thread: str) -> bytes:
    """Return what the first entry of a thread's chain is linked to."""
    return sha256(b"sayso audit chain v1\0" + thread.encode()).digest()


def seal(event: Event) -> str:
    """Write who did it, through which door, and the facts, as the body of an entry."""
    body: dict[str, object] = {}
    if event.by:
        body["by"] = event.by
    if event.via:
        body["via"] = event.via
    if event.data:
        body["data"] = event.data
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode()


def link(previous: bytes, n: int, at: Millis, kind: str, approval_id: str, body: str) -> bytes:  # noqa: PLR0917 - the fields of an entry in their order, on the hottest path
    """Return the hash of an entry: SHA-256 over the previous hash and every field of this one."""
    return sha256(
        b"%b%d %d %b %b %b" % (previous, n, at, kind.encode(), approval_id.encode(), body.encode())
    ).digest()
