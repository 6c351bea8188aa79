"""The real `sayso` on a store of its own: in pipes, and under a pseudo-terminal as a person has it."""

import os
import pty
import pwd
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import orjson

from sayso import Action, Approval, Gate, Inbox, ManualClock, Person, Policy, Store, open_store
from sayso.actions import Json
from sayso.clock import SystemClock, elapsed

PATIENCE = 30.0
"""How long a program may take to say what is expected, in seconds: the machine may be busy."""

HOUR = 3_600_000

POLICY = """
unlisted: ask
silence: {irreversible: deny, after: 30m}
tools:
  search_flights: read
  book_flight: {effect: irreversible, when: args.price > 400, confirm: code}
  send_email: {effect: irreversible, decisions: [approve, edit, reject]}
  issue_refund: {effect: irreversible, confirm: 'type:"{amount}"', approvers: {finance: 2}}
  delete_user: {effect: irreversible, confirm: totp}
  write_file: {effect: reversible, outcome: ask}
"""

FLIGHT: Mapping[str, Json] = {"flight": "UA 212", "price": 1847, "refundable": False}
SECRET = "sk-ant-api03-" + "a1B2" * 23 + "AA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Json]:
        """The one JSON document that was printed."""
        return cast("dict[str, Json]", orjson.loads(self.out))

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self.out.splitlines()


@dataclass(slots=True)
class Office:
    """A store, a policy and people, in a folder of their own."""

    folder: Path
    login: str = field(default_factory=lambda: pwd.getpwuid(os.getuid()).pw_name)

    def __post_init__(self) -> None:
        (self.folder / "sayso.yaml").write_text(POLICY, "utf-8")
        self.config("ann", groups=("finance",))
        self.config("ben", groups=("finance",))
        self.config("eve")
        self.opened().close()

    @property
    def path(self) -> Path:
        """The store's file."""
        return self.folder / "sayso.db"

    def config(self, person: str, *, groups: tuple[str, ...] = (), totp: str = "") -> Path:
        """Write the settings under which this login is `person`."""
        file = self.folder / f"{person}.toml"
        file.write_text(
            f'store = "{self.path}"\npolicy = "{self.folder / "sayso.yaml"}"\n'
            f'[people.{person}]\nos_user = "{self.login}"\ngroups = {list(groups)}\ntotp = "{totp}"\n',
            "utf-8",
        )
        return file

    def opened(self, *, ago: int = 0) -> Store:
        """Open the store, with a clock that stands `ago` milliseconds in the past if that is not 0."""
        clock = ManualClock(SystemClock().now() - ago) if ago else None
        return open_store(self.path, clock=clock)

    def policy(self) -> Policy:
        """Return the policy."""
        return Policy.from_file(self.folder / "sayso.yaml")

    def ask(
        self,
        tool: str = "book_flight",
        args: Mapping[str, Json] | None = None,
        *,
        ago: int = 0,
        by: str = "bot",
    ) -> Approval:
        """Let an agent ask for something, without waiting for the answer."""
        store = self.opened(ago=ago)
        action = Action(
            tool=tool,
            args=FLIGHT if args is None else args,
            thread="trip",
            agents=("assistant",),
            requested_by=by,
        )
        try:
            return Gate(store=store, policy=self.policy(), name="gate:test").open(action)
        finally:
            store.close()

    def leave_unknown(self) -> Approval:
        """Let an agent start something an hour ago and never report back."""
        asked = self.ask("send_email", {"to": "bob@example.com"}, ago=HOUR)
        store = self.opened(ago=HOUR)
        try:
            Inbox(store=store).approve(asked, Person(id="ann", via="cli"))
            Gate(store=store, policy=self.policy(), name="gate:test").claim(asked.id)
        finally:
            store.close()
        return asked

    def now(self, approval_id: str) -> Approval:
        """Return an approval as it is stored now."""
        store = self.opened()
        try:
            return store.get(approval_id)
        finally:
            store.close()

    def run(
        self,
        *words: str,
        typed: str = "",
        person: str = "ann",
        environment: Mapping[str, str] | None = None,
        other_session: bool = False,
    ) -> Finished:
        """Run a command in pipes."""
        done = subprocess.run(  # noqa: S603 - our own program
            self._words(words, person),
            input=typed,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=self.folder,
            env=self._environment(environment),
            start_new_session=other_session,
        )
        return Finished(code=done.returncode, out=done.stdout, err=done.stderr)

    def sit_down(
        self,
        *words: str,
        person: str = "ann",
        columns: int = 100,
        environment: Mapping[str, str] | None = None,
    ) -> "Terminal":
        """Run a command under a pseudo-terminal."""
        return Terminal(self._words(words, person), self.folder, self._environment(environment), columns)

    def pipe(self, *words: str, person: str = "ann") -> "subprocess.Popen[str]":
        """Start a command that goes on until it is stopped."""
        return subprocess.Popen(  # noqa: S603 - our own program
            self._words(words, person),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self._environment(None),
        )

    def _words(self, words: tuple[str, ...], person: str) -> list[str]:
        settings = (
            []
            if "--config" in words or not words or words[0] in _NO_SETTINGS
            else [f"--config={self._of(person)}"]
        )
        return [sys.executable, "-m", "sayso", *words, *settings]

    def _of(self, person: str) -> Path:
        return self.folder / f"{person}.toml"

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("SAYSO_", "COLUMNS"))
        }
        return kept | {"TERM": "dumb", "PYTHONIOENCODING": "utf-8"} | dict(more or {})


_NO_SETTINGS = ("--version", "--help", "version", "demo")


class Terminal:
    """A program and the screen it writes to."""

    def __init__(self, words: list[str], folder: Path, environment: Mapping[str, str], columns: int) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (50, columns))
        self._program = subprocess.Popen(  # noqa: S603 - our own program
            words,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        self.screen = ""
        self._read = 0

    def expect(self, pattern: str) -> str:
        """Wait for something after what was expected before; return it, or its first group."""
        deadline = elapsed() + PATIENCE
        while True:
            found = re.search(pattern, self.screen[self._read :])
            if found:
                self._read += found.end()
                return found[1] if found.re.groups else found[0]
            assert self._more(deadline), f"never said {pattern!r}:\n{self.screen}"

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._ours, f"{line}\n".encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._program.send_signal(signal.SIGINT)

    def ended(self) -> int:
        """Wait for the end and return the exit code."""
        deadline = elapsed() + PATIENCE
        while self._more(deadline):
            pass
        code = self._program.wait(PATIENCE)
        os.close(self._ours)
        return code

    def _more(self, deadline: float) -> bool:
        """Read what was written since; False at the end, or when patience is over."""
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - elapsed()))
        if not ready:
            self._program.kill()
            return False
        try:
            piece = os.read(self._ours, 65536)
        except OSError:
            return False
        self.screen += piece.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(piece)
