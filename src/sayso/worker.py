"""One pass over what only time and nobody else does: expiry, lapsed leases, checkpoints, delivery.

Every pass may be repeated, interrupted or run by several processes at once; it must never
settle anything twice or deliver what was not asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sayso.approvals import Approval, Status
from sayso.audit import CheckpointFile, Signer, make_checkpoint
from sayso.channels import Channel
from sayso.clock import Millis
from sayso.decisions import Change, expire, lapse
from sayso.presentation import present
from sayso.stores.base import Alter, Notice, Store

SWEEP = 500
"""How many approvals one sweep transaction takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one pass did.

    Args:
        expired: Approvals nobody answered in time.
        unknown: Actions whose lease ended without a report.
        delivered: Notices that every channel took.
        failed: Notices a channel could not take; they stay in the outbox.
        checkpoint: The number of the checkpoint written, 0 for none.
    """

    expired: int = 0
    unknown: int = 0
    delivered: int = 0
    failed: int = 0
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
        channels: Where notices go; without any they are taken out of the outbox untold.
        checkpoints: Where signed checkpoints go, if any.
        signer: What signs them.
    """
    expired, unknown = sweep(store)
    delivered, failed = deliver(store, channels)
    number = checkpoint(store, checkpoints, signer) if checkpoints and signer else 0
    return Pass(expired=expired, unknown=unknown, delivered=delivered, failed=failed, checkpoint=number)


def sweep(store: Store) -> tuple[int, int]:
    """Expire what is overdue and mark lapsed leases; return how many of each."""
    store.flush()
    expired = unknown = 0
    while due := store.due(store.clock.now(), SWEEP):
        outcomes = store.write_many([Alter(approval_id=approval_id, step=_overdue) for approval_id in due])
        for outcome in outcomes:
            if not isinstance(outcome, Change):
                raise outcome
            if outcome.events:
                unknown += outcome.approval.status is Status.UNKNOWN
                expired += outcome.approval.status is not Status.UNKNOWN
    return expired, unknown


def checkpoint(store: Store, file: CheckpointFile, signer: Signer) -> int:
    """Sign everything written since the last checkpoint; return its number, 0 when nothing was."""
    known = file.read()
    last = known[-1] if known else None
    entries = list(store.entries(after=last.seq if last else 0))
    if not entries:
        return 0
    made = make_checkpoint(last, entries, store.clock.now(), signer)
    file.append(made)
    return made.number


def deliver(store: Store, channels: Sequence[Channel]) -> tuple[int, int]:
    """Hand every waiting notice to every channel; return how many were taken and how many not."""
    delivered = failed = 0
    while notices := store.notices(SWEEP):
        told = [notice for notice in notices if _tell(store, notice, channels)]
        store.delivered(told)
        delivered += len(told)
        failed = len(notices) - len(told)
        if failed:
            break
    return delivered, failed


def _tell(store: Store, notice: Notice, channels: Sequence[Channel]) -> bool:
    if not channels:
        return True
    card = present(store.get(notice.approval_id), store.clock.now())
    try:
        for channel in channels:
            channel.announce(notice.kind, card)
    except OSError:
        return False
    return True


def _overdue(approval: Approval, now: Millis) -> Change:
    return expire(approval, now) if approval.status is Status.PENDING else lapse(approval, now)
