"""Reading a person's answers without outliving the question.

A prompt that waits on a person must end when the window closes or somebody else decides, so
lines are read with one eye on the approval.
"""

import os
import select
import sys
import termios

from sayso.approvals import Status
from sayso.stores import Store

_LOOK_EVERY = 0.25
"""How many seconds may pass before a prompt notices that its approval was settled."""


class QuestionClosed(Exception):  # noqa: N818 - the question ended, nothing went wrong
    """The approval was settled while the person was still thinking."""


class LineReader:
    """Reads lines from standard input while an approval is pending; silence stays silence.

    Args:
        store: Where the approval is.
        approval_id: The approval the person is asked about.
    """

    def __init__(self, store: Store, approval_id: str) -> None:
        self._store = store
        self._approval_id = approval_id
        self._is_over = False

    def __call__(self, prompt: str = "") -> str:
        """Return the next line, without its end.

        Raises:
            QuestionClosed: The approval is not pending any more.
        """
        sys.stdout.write(prompt)
        sys.stdout.flush()
        while True:
            line = _take_line(final=self._is_over)
            if line is not None:
                return self._echoed(line)
            if self._store.get(self._approval_id).status is not Status.PENDING:
                self._leave()
                raise QuestionClosed
            self._fill()

    def _fill(self) -> None:
        """Wait a moment for more to read; at the end of input there is nothing but the window."""
        ready, _, _ = select.select([] if self._is_over else [0], [], [], _LOOK_EVERY)
        if ready:
            piece = os.read(0, 4096)
            self._is_over = not piece
            _TYPED.extend(piece)

    def _leave(self) -> None:
        """End the line of the prompt; what was half typed must not reach the next prompt or the shell."""
        sys.stdout.write("\n")
        sys.stdout.flush()
        if sys.stdin.isatty():
            termios.tcflush(0, termios.TCIFLUSH)

    def _echoed(self, line: str) -> str:
        """Write a piped answer where a typed one would stand."""
        if not sys.stdin.isatty():
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        return line


_TYPED = bytearray()
"""What was read and not yet asked for; shared, because it belongs to the one standard input."""


def _take_line(*, final: bool) -> str | None:
    """Take a line off what was typed; at the end of input also one without an end."""
    line, end, rest = _TYPED.partition(b"\n")
    if not end and not (final and line):
        return None
    _TYPED[:] = rest
    return line.decode(errors="replace").rstrip("\r")
