"""What happened, written so that changing it shows: entries, chains, checkpoints, verification."""

from sayso.audit.chain import Entry, genesis, link, seal
from sayso.audit.checkpoints import Checkpoint, CheckpointFile, Signer, make_checkpoint
from sayso.audit.verification import Finding, Report, verify

__all__ = [
    "Checkpoint",
    "CheckpointFile",
    "Entry",
    "Finding",
    "Report",
    "Signer",
    "genesis",
    "link",
    "make_checkpoint",
    "seal",
    "verify",
]
