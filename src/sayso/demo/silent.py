"""Silence, and an answer that comes a second too late."""

import threading
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from sayso.approvals import Approval, Status
from sayso.clock import SECOND
from sayso.demo.scene import Scene
from sayso.demo.screen import Screen
from sayso.errors import Late
from sayso.presentation import Presentation

_TOO_LATE = 1.0
"""How many seconds after the deadline the answer comes."""

_TICK = 0.05


class Silence:
    """A person who looks, is shown their code, says nothing, and then answers too late.

    Args:
        scene: The demo's parts.
        screen: The terminal.
        show: Prints a card.
    """

    def __init__(self, scene: Scene, screen: Screen, show: Callable[[Presentation, Console], None]) -> None:
        self._scene = scene
        self._screen = screen
        self._show = show
        self._card: Presentation | None = None
        self._code = ""

    def let_it_close(self, approval_id: str) -> None:
        """Show the card and the code, then let the window run out."""
        scene = self._scene
        self._card = scene.inbox.show(approval_id)
        self._show(self._card, self._screen.console)
        self._code = scene.inbox.challenge(self._card, scene.person)
        self._screen.note(f"The reviewer holds the right code, {self._code}, and says nothing.")
        self._count_down(self._card)

    def come_late(self) -> None:
        """Approve with the right code, one second after the deadline."""
        card, scene, screen = self._card, self._scene, self._screen
        if card is None:
            return
        screen.heading("One second after the deadline, somebody approves")
        self._wait_until(card.deadline + round(_TOO_LATE * SECOND))
        try:
            scene.inbox.approve(card, scene.person, proof=self._code)
        except Late as late:
            screen.note(str(late), style="yellow")
        screen.note(_standing(scene.store.get(card.approval_id), scene.travel.bookings()), style="green")

    def _count_down(self, card: Presentation) -> None:
        """Show the window closing, until the store says that it has."""
        console, store = self._screen.console, self._scene.store
        if not console.is_terminal:
            self._screen.note(f"{self._scene.window} s until the window closes, and nobody answers.")
        columns = (
            TextColumn("              "),
            BarColumn(40, complete_style="yellow", finished_style="yellow"),
            TextColumn("{task.description}"),
        )
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("", total=self._scene.window)
            while store.get(card.approval_id).status is Status.PENDING:
                left = store.clock.seconds_until(card.deadline) or 0.0
                progress.update(task, completed=left, description=f"{left:.1f} s left")
                _pause(_TICK)

    def _wait_until(self, moment: int) -> None:
        while (left := self._scene.store.clock.seconds_until(moment)) != 0:
            _pause(left or _TICK)


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def _standing(approval: Approval, booked: list[str]) -> str:
    """Say what the store and the tool's own table hold after the late answer."""
    return f"The denial stands: the approval is {approval.status}; booked: {'; '.join(booked) or 'nothing'}."
