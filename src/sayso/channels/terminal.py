"""Notices as lines on a terminal, for whoever watches the worker."""

import sys
from typing import TextIO

from sayso.presentation import Presentation

_WORDS = {
    "opened": "needs a decision",
    "unknown": "has an unknown outcome: find out whether it ran",
}


class TerminalChannel:
    """Writes one line a notice.

    Args:
        stream: Where to; standard error by default.
    """

    name = "terminal"

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def announce(self, kind: str, card: Presentation) -> None:
        """Write what happened and what it is about in one line."""
        what = _WORDS.get(kind, f"was {kind}")
        line = f"{card.approval_id} {what}: {card.headline}"
        print(line, file=self._stream or sys.stderr, flush=True)
