"""What a reviewer sees: one description of an approval for every surface, with nothing hidden in it."""

from sayso.presentation.card import Presentation, present
from sayso.presentation.leaves import Change, ChangeKind, diff
from sayso.presentation.sentences import ProofNeed
from sayso.presentation.sheet import Field
from sayso.presentation.visible import visible

__all__ = ["Change", "ChangeKind", "Field", "Presentation", "ProofNeed", "diff", "present", "visible"]
