"""One agent's run of several calls, and the people who answer: what the crash tests kill.

A run can be repeated: the same calls have the same ids, and whatever is over is left alone.
Everything that was acknowledged is reported, everything that was done is in the effects file.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import TypeAlias, cast

import sayso
from sayso import (
    Action,
    Approval,
    DecisionKind,
    Effect,
    Gate,
    Inbox,
    ManualClock,
    Person,
    Policy,
    ProofKind,
    ProofRule,
    Rule,
    Silence,
    Status,
    open_store,
)
from sayso.errors import DecisionRefused, SaysoError
from sayso.settlement import Settlement
from sayso.stores import Store
from sayso.worker import run_once

WINDOW = 3600
SHORT = 60
LEASE = 900

ANN = Person(id="ann", session="s")
BOB = Person(id="bob", groups=frozenset({"ops"}), session="s")
CYD = Person(id="cyd", groups=frozenset({"ops"}), session="s")

POLICY = Policy(
    [
        Rule(tool="book"),
        Rule(tool="dear", approvers={"ops": 1}),
        Rule(tool="pay", approvers={"ops": 2}),
        Rule(tool="wire", confirm=ProofRule(kind=ProofKind.CODE)),
        Rule(tool="memo", effect=Effect.REVERSIBLE, silence=Silence.ALLOW, window=SHORT),
    ],
    window=WINDOW,
)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of the run, and who answers it how."""

    tool: str
    n: int
    answers: tuple[tuple[Person, DecisionKind], ...]


EDITED = 4
"""The call that stays with its tool when it is edited."""

APPROVE, EDIT, REJECT = DecisionKind.APPROVE, DecisionKind.EDIT, DecisionKind.REJECT
CALLS = (
    Call(tool="book", n=1, answers=((ANN, APPROVE),)),
    Call(tool="pay", n=2, answers=((BOB, APPROVE), (CYD, APPROVE))),
    Call(tool="wire", n=3, answers=((ANN, APPROVE),)),
    Call(tool="book", n=EDITED, answers=((ANN, EDIT),)),
    Call(tool="book", n=5, answers=((ANN, REJECT),)),
    Call(tool="book", n=6, answers=((ANN, EDIT), (BOB, APPROVE))),
    Call(tool="memo", n=7, answers=()),
)
"""An approval, a quorum, a code, an edit, a rejection, an edit that needs a stricter approval, and silence."""

Fact: TypeAlias = tuple[str, ...]
Report: TypeAlias = Callable[[Fact], None]


class Run:
    """An agent with its gate, and the people at their inbox, on one store.

    Args:
        folder: Where the store and the effects file are.
        thread: The thread of the run.
        report: Told of everything that Sayso acknowledged.
        clock: The time.
    """

    def __init__(self, folder: Path, thread: str, report: Report, clock: ManualClock) -> None:
        self.store: Store = open_store(folder / "sayso.db", clock=clock)
        self.gate = Gate(store=self.store, policy=POLICY, name=f"gate of {thread}")
        self.inbox = Inbox(store=self.store, policy=POLICY)
        self.clock = clock
        self._folder = folder
        self._thread = thread
        self._report = report

    def go(self, calls: Sequence[Call] = CALLS) -> None:
        """Make every call, from wherever an earlier run got to."""
        for call in calls:
            if call.tool == "memo":
                self.gate.open(self.action(call))
                self.clock.advance(SHORT + 1)
                run_once(self.store)
            self._make(call)

    def action(self, call: Call) -> Action:
        """Return a call as the agent makes it, the same each time."""
        return Action(tool=call.tool, args={"n": call.n}, thread=self._thread, call_id=f"call {call.n}")

    def _make(self, call: Call) -> None:
        approval = self.gate.open(self.action(call))
        self._report(("opened", approval.id))
        for person, kind in call.answers:
            approval = self._newest(approval)
            if approval.status is Status.PENDING:
                self._answer(approval, person, kind)
        approval = self._newest(approval)
        try:
            settlement = self.gate.claim(approval.id)
        except SaysoError:
            return  # rejected, started or over
        self._report(("claimed", approval.id))
        self._act(settlement)

    def _newest(self, approval: Approval) -> Approval:
        """Read an approval again, or the one that took its place."""
        found = self.store.get(approval.id)
        successor = found.resolution.successor if found.resolution else ""
        return self._newest(self.store.get(successor)) if successor else found

    def _answer(self, approval: Approval, person: Person, kind: DecisionKind) -> None:
        card = self.inbox.show(approval.id)
        try:
            if kind is REJECT:
                self.inbox.reject(card, person, "no")
            elif kind is EDIT:
                n = cast("int", approval.action.args["n"])
                self.inbox.edit(card, person, {"n": n + 10}, tool="book" if n == EDITED else "dear")
            else:
                needs = approval.terms.proof.kind is ProofKind.CODE
                self.inbox.approve(card, person, proof=self.inbox.challenge(card, person) if needs else "")
        except DecisionRefused:
            return  # another run was faster, or this person answered before the crash
        self._report(("decided", approval.id, person.id, kind))

    def _act(self, settlement: Settlement) -> None:
        assert settlement.approval is not None
        name = settlement.approval.id
        line = f"{name} {settlement.action.digest}\n".encode()
        file = os.open(self._folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line)
        os.fsync(file)
        os.close(file)
        self._report(("ran", name))
        self.gate.complete(settlement)
        self._report(("completed", name))


def effects(folder: Path) -> list[tuple[str, str]]:
    """Return what was done: approval and digest, in order."""
    path = folder / "effects"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(line.split()[0], line.split()[1]) for line in lines]


# -- in a process of its own -----------------------------------------------------------------

HERE = str(Path(sayso.__file__).parent)
WATCHED = tuple(
    f"{HERE}/{name}" for name in ("stores/", "settling.py", "gate.py", "decisions.py", "inbox.py")
)
"""Where a process can be killed: before each line of these files."""


Trace: TypeAlias = Callable[[FrameType, str, object], "Trace | None"]


class Fuse:
    """Kills this process, as `kill -9` does, right before the line of that number is executed.

    Args:
        line: Which one of all executed lines of the watched files, from 1; 0 kills at none.
    """

    def __init__(self, line: int) -> None:
        self._line = line
        self.lines: list[tuple[str, int]] = []

    def light(self) -> None:
        """Start to count, in this thread."""
        sys.settrace(self._enter)

    def _enter(self, frame: FrameType, event: str, argument: object) -> Trace | None:
        return self._step if frame.f_code.co_filename.startswith(WATCHED) else None

    def _step(self, frame: FrameType, event: str, argument: object) -> Trace:
        if event == "line":
            self.lines.append((frame.f_code.co_filename.removeprefix(HERE), frame.f_lineno))
            if len(self.lines) == self._line:
                os.kill(os.getpid(), signal.SIGKILL)
        return self._step


def run_in_child(folder: Path, threads: Sequence[str], start: int, kill_at: int, pipe: Connection) -> None:
    """Make the runs of some threads; the pipe gets what was acknowledged and then every line executed."""
    fuse = Fuse(kill_at)
    fuse.light()
    for thread in threads:
        run = Run(folder, thread, pipe.send, ManualClock(start))
        run.go()
        run.store.close()
    sys.settrace(None)
    pipe.send(fuse.lines)
