"""The demo from the first word to the last, for a person at a terminal or for a pipe.

What a person sees of an approval, and how they answer, is handed in as a `Desk`: the command
line's own, so that the demo shows what the product shows.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Protocol

from rich.console import Console

from sayso.approvals import Approval, Person, Status
from sayso.demo.agent import Ended, Said
from sayso.demo.reading import LineReader, QuestionClosed
from sayso.demo.record import print_record
from sayso.demo.scene import REQUEST, Scene, Stopped
from sayso.demo.screen import Screen
from sayso.demo.silent import Silence
from sayso.errors import DecisionRefused
from sayso.inbox import Inbox
from sayso.presentation import Presentation

_WINDOW, _PIPED_WINDOW, _SILENT_WINDOW = 300, 5, 3
_DONE, _NOT_SOUND, _INTERRUPTED = 0, 5, 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the demo can be asked for.

    Args:
        silent: Let the window close, then decide too late.
        model: A model's name for LangChain's `init_chat_model`; scripted when empty.
        store: The store's path; a new temporary folder's when empty.
    """

    silent: bool = False
    model: str = ""
    store: str = ""


class Desk(Protocol):
    """The person's side of a terminal."""

    def show(self, card: Presentation, console: Console) -> None:
        """Print a card."""
        ...

    def ask(
        self, inbox: Inbox, approval_id: str, person: Person, console: Console, read: Callable[[str], str]
    ) -> Approval:
        """Show an approval and take a decision on it."""
        ...


def main(options: Options, desk: Desk) -> int:
    """Run the demo and return its exit code: 0, 5 when the audit is not sound, 130 when interrupted.

    Raises:
        MissingExtra: A model was named and LangChain is not installed.
        SaysoError: The store or the model failed.
    """
    screen = Screen(Console(highlight=False, soft_wrap=False))
    folder = Path(mkdtemp(prefix="sayso-"))
    store = str(Path(options.store).absolute()) if options.store else ""
    scene = Scene(folder=folder, store=store, window=_window(options), model=options.model)
    try:
        return _play(scene, screen, desk, options)
    except KeyboardInterrupt:
        scene.cancel()
        screen.interrupted(scene.travel.bookings())
        screen.farewell(scene.config)
        return _INTERRUPTED
    finally:
        scene.close()


def _window(options: Options) -> int:
    """Return how many seconds a person gets."""
    if options.silent:
        return _SILENT_WINDOW
    return _WINDOW if sys.stdin.isatty() else _PIPED_WINDOW


def _play(scene: Scene, screen: Screen, desk: Desk, options: Options) -> int:
    screen.title(scene.model.name, scene.thread)
    screen.line("Sarah", REQUEST)
    silence = Silence(scene, screen, desk.show) if options.silent else None
    for moment in scene.run():
        match moment:
            case Said():
                screen.said(moment)
            case Ended():
                screen.ended(moment)
            case Stopped():
                screen.stopped(moment.tool)
                if silence:
                    silence.let_it_close(moment.approval_id)
                else:
                    _ask(scene, screen, desk, moment.approval_id)
    screen.answer(scene.answer)
    if silence:
        silence.come_late()
    sound = print_record(screen, scene.parts, scene.travel, scene.thread)
    screen.farewell(scene.config)
    return _DONE if sound else _NOT_SOUND


def _ask(scene: Scene, screen: Screen, desk: Desk, approval_id: str) -> None:
    """Let the person at this terminal decide, for as long as there is something to decide."""
    if sys.stdin.isatty():
        screen.elsewhere(approval_id, scene.config)
    reader = LineReader(scene.store, approval_id)
    try:
        left = desk.ask(scene.inbox, approval_id, scene.person, screen.console, reader)
        if left.status is Status.PENDING:
            screen.left_waiting(left)
    except QuestionClosed:
        screen.closed(scene.store.get(approval_id))
    except DecisionRefused as refusal:
        screen.refused(refusal)
