"""One pass over what only time and nobody else does: expiry, lapsed leases, checkpoints, delivery.

Every pass may be repeated, interrupted or run by several processes at once; it must never
settle anything twice or deliver what was not asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from sayso.approvals import Approval, Status
from sayso.audit import CheckpointFile, Signer, make_checkpoint
from sayso.channels import Channel
from sayso.clock import Millis
from sayso.decisions import Change, expire, lapse
from sayso.errors import StoreDamaged
from sayso.presentation import present
from sayso.stores.base import Alter, Notice, Store

TOLD = frozenset({"opened", "approved", "edited", "rejected", "responded", "expired", "withdrawn", "unknown"})
"""The audit entries that people are told of."""

SWEEP = 500
"""How many approvals one sweep transaction takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one pass did.

    Args:
        expired: Approvals nobody answered in time.
        unknown: Actions whose lease ended without a report.
        damaged: Overdue approvals whose rows cannot be trusted; they are left as they are.
        delivered: Notices that every channel took.
        checkpoint: The number of the checkpoint written, 0 for none.
    """

    expired: int = 0
    unknown: int = 0
    damaged: int = 0
    delivered: int = 0
    checkpoint: int = 0


def run_once(
    store: Store,
    *,
    channels: Sequence[Channel] = (),
    checkpoints: CheckpointFile | None = None,
    signer: Signer | None = None,
) -> Pass:
    """Do everything that is due now, by the store's clock.

    Args:
        store: The store.
        channels: Where notices go; without any, what happened counts as told.
        checkpoints: Where signed checkpoints go, if any.
        signer: What signs them.
    """
    expired, unknown, damaged = sweep(store)
    delivered = deliver(store, channels)
    number = checkpoint(store, checkpoints, signer) if checkpoints and signer else 0
    return Pass(expired=expired, unknown=unknown, damaged=damaged, delivered=delivered, checkpoint=number)


def sweep(store: Store) -> tuple[int, int, int]:
    """Expire what is overdue and mark lapsed leases.

    Returns:
        How many expired, how many outcomes became unknown, and how many rows are damaged.

    Raises:
        StoreError: The store cannot be used.
    """
    store.flush()
    expired = unknown = damaged = 0
    while due := store.due(store.clock.now(), SWEEP):
        outcomes = store.write_many([Alter(approval_id=approval_id, step=_overdue) for approval_id in due])
        for outcome in outcomes:
            if not isinstance(outcome, Change | StoreDamaged):
                raise outcome
        changes = [outcome for outcome in outcomes if isinstance(outcome, Change)]
        changed = [change.approval for change in changes if change.events]
        damaged = len(outcomes) - len(changes)
        unknown += sum(approval.status is Status.UNKNOWN for approval in changed)
        expired += sum(approval.status is not Status.UNKNOWN for approval in changed)
        if damaged == len(due):
            break
    return expired, unknown, damaged


def checkpoint(store: Store, file: CheckpointFile, signer: Signer) -> int:
    """Sign everything written since the last checkpoint; return its number, 0 when nothing was."""
    with file.held():
        known = file.read()
        last = known[-1] if known else None
        entries = list(store.entries(after=last.seq if last else 0))
        if not entries:
            return 0
        made = make_checkpoint(last, entries, store.clock.now(), signer)
        file.append(made)
        return made.number


def deliver(store: Store, channels: Sequence[Channel]) -> int:
    """Hand what happened since the last notice to every channel, in order.

    A notice that a channel cannot take stops the pass and is tried again in the next one.

    Returns:
        How many notices every channel took.
    """
    delivered = 0
    while notices := store.notices(SWEEP):
        told = list(takewhile(lambda notice: _tell(store, notice, channels), notices))
        if told:
            store.delivered(told[-1])
        delivered += sum(notice.kind in TOLD for notice in told)
        if len(told) < len(notices):
            break
    return delivered


def _tell(store: Store, notice: Notice, channels: Sequence[Channel]) -> bool:
    if not channels or notice.kind not in TOLD:
        return True
    try:
        card = present(store.get(notice.approval_id), store.clock.now())
    except StoreDamaged:
        return True  # there is nothing trustworthy to tell; the inbox names it
    try:
        for channel in channels:
            channel.announce(notice.kind, card)
    except OSError:
        return False
    return True


def _overdue(approval: Approval, now: Millis) -> Change:
    return expire(approval, now) if approval.status is Status.PENDING else lapse(approval, now)
