"""`sayso demo` as a person meets it: a real program on a real terminal, and then in a pipe.

What counts is what is left afterwards: the bookings in the tool's own table, and the audit.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pexpect
import pytest

from sayso import Status, open_store
from sayso.audit import CheckpointFile, verify
from tests.guarantees import guarantee

ENOUGH = 30
"""How many seconds anything here may take."""

STYLE = r"(?:\x1b\[[0-9;]*m)*"
CODE = re.compile(rf"Type {STYLE}([A-Z0-9]{{6}}){STYLE} to approve;")
WRONG = "AAAAAA"
ECONOMY = {"flight": "B6 1324", "date": "2027-03-15", "cabin": "economy", "price": 334, "refundable": True}
EDITOR = """
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
path.write_text(json.dumps(json.loads("\\n".join(lines)) | {changes!r}))
"""


class Terminal:
    """The demo on a pseudo-terminal of 80 columns, and what it left behind."""

    def __init__(self, folder: Path, *options: str, editor: str = "false") -> None:
        self.folder = folder
        self.child: pexpect.spawn[str] = pexpect.spawn(
            sys.executable,
            ["-m", "sayso", "demo", *options],
            env=_environment(folder) | {"TERM": "xterm", "EDITOR": editor},
            encoding="utf-8",
            timeout=ENOUGH,
            dimensions=(200, 80),
        )

    def until(self, pattern: str | re.Pattern[str]) -> re.Match[str]:
        """Read on until a pattern appears."""
        self.child.expect(pattern)
        assert isinstance(self.child.match, re.Match)
        return self.child.match

    def code(self) -> str:
        """Return the code on the screen, once the prompt waits."""
        code = self.until(CODE)[1]
        self.until(r"\n> ")
        return code

    def type(self, line: str) -> None:
        """Type a line."""
        self.child.sendline(line)

    def finish(self) -> tuple[int | None, str]:
        """Return the exit code and everything printed since."""
        self.child.expect(pexpect.EOF)
        self.child.close()
        return self.child.exitstatus, self.child.before or ""


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Terminal]:
    """Return the demo, stopped at the booking nobody asked for."""
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.child.close(force=True)


@guarantee("G2")
def test_the_right_code_books_exactly_what_was_shown(opened: Terminal, tmp_path: Path) -> None:
    opened.type(opened.code())
    code, _ = opened.finish()
    assert code == 0
    assert bookings(tmp_path) == [("UA 212", "business", 184_700)]
    assert kinds(tmp_path) == ["allowed", "opened", "code_issued", "approved", "claimed", "done"]


def test_the_terminal_says_who_asks_what_runs_why_until_when_and_what_silence_means(opened: Terminal) -> None:
    card = opened.until(re.compile(r"approval ap.*?Type ", re.DOTALL))[0]
    for words in (
        "travel-agent, requested by sarah@example.com",
        "UA 212",
        "1847",
        "it cannot be undone",
        "USD 1,847.00",
        "will NOT run",
    ):
        assert words in flat(card)
    assert re.search(r"[45]m \d\ds\b", flat(card))


def test_a_wrong_code_books_nothing_and_the_right_one_still_does(opened: Terminal, tmp_path: Path) -> None:
    right = opened.code()
    opened.type(WRONG)
    opened.until("4 tries are left")
    assert bookings(tmp_path) == []
    opened.type(right)
    assert opened.finish()[0] == 0
    assert len(bookings(tmp_path)) == 1
    assert kinds(tmp_path)[2:5] == ["code_issued", "proof_failed", "approved"]


def test_an_edit_books_the_economy_fare_instead(tmp_path: Path) -> None:
    script = tmp_path / "editor.py"
    script.write_text(EDITOR.format(changes=ECONOMY))
    terminal = Terminal(tmp_path, editor=f"{sys.executable} {script}")
    terminal.code()
    terminal.type("e")
    code = terminal.until(rf"Type {STYLE}([A-Z0-9]{{6}}){STYLE} to approve the change: ")[1]
    terminal.type(code)
    exit_code, output = terminal.finish()
    assert exit_code == 0
    assert bookings(tmp_path) == [("B6 1324", "economy", 33_400)]
    assert kinds(tmp_path) == ["allowed", "opened", "code_issued", "edited", "claimed", "done"]
    assert "B6 1324 on 2027-03-15, economy, refundable, $334" in flat(output)


def test_a_reject_reaches_the_agent_which_books_what_was_asked_for(opened: Terminal, tmp_path: Path) -> None:
    opened.code()
    opened.type("r")
    opened.until("Reason for the agent: ")
    opened.type("Economy only, under $400.")
    assert opened.finish()[0] == 0
    assert bookings(tmp_path) == [("AS 1042", "economy", 31_200)]
    assert kinds(tmp_path) == ["allowed", "opened", "code_issued", "rejected", "allowed", "allowed"]


def test_a_respond_stands_in_for_the_result_and_nothing_runs(opened: Terminal, tmp_path: Path) -> None:
    opened.code()
    opened.type("s")
    opened.until("becomes the tool's result: ")
    opened.type("Sarah decides on Monday.")
    code, output = opened.finish()
    assert code == 0
    assert "Sarah decides on Monday." in flat(output)
    assert bookings(tmp_path) == []
    assert kinds(tmp_path) == ["allowed", "opened", "code_issued", "responded"]


@pytest.mark.parametrize("left_waiting", [False, True])
def test_ctrl_c_withdraws_the_request_and_leaves_with_130(
    opened: Terminal, tmp_path: Path, *, left_waiting: bool
) -> None:
    opened.code()
    if left_waiting:
        opened.type("w")
        opened.until("The agent waits until")
    opened.child.sendintr()
    code, output = opened.finish()
    assert code == 130
    assert "Booked: nothing." in output
    assert "Traceback" not in output
    assert bookings(tmp_path) == []
    assert kinds(tmp_path) == ["allowed", "opened", "code_issued", "withdrawn"]
    assert statuses(tmp_path) == [Status.WITHDRAWN]


def test_a_decision_from_another_terminal_ends_the_prompt(opened: Terminal, tmp_path: Path) -> None:
    approval_id = opened.until(r"sayso approve (ap\w+)")[1]
    opened.code()
    config = kept(tmp_path) / "sayso.toml"
    done = piped(tmp_path, "", "reject", approval_id, "--reason", "book nothing", "--config", str(config))
    assert done.returncode == 0, done.stderr
    code, output = opened.finish()
    assert code == 0
    assert "already rejected by" in flat(output)
    assert bookings(tmp_path) == []
    assert kinds(tmp_path)[-1] == "rejected"


@guarantee("G5")
def test_silence_is_denied_and_an_answer_one_second_late_changes_nothing(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "--silent")
    terminal.until("s left")
    code, output = terminal.finish()
    assert code == 0
    assert "The denial stands" in output
    assert bookings(tmp_path) == []
    assert statuses(tmp_path) == [Status.EXPIRED]
    assert kinds(tmp_path) == ["allowed", "opened", "code_issued", "expired", "late"]
    moments = dict(zip(kinds(tmp_path), times(tmp_path), strict=True))
    assert moments["expired"] > deadline(tmp_path)
    assert moments["late"] >= deadline(tmp_path) + 1000


@guarantee("G1")
@pytest.mark.parametrize("options", [(), ("--silent",)])
def test_without_anybody_at_the_keyboard_the_window_closes_and_nothing_is_booked(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = piped(tmp_path, "", "demo", *options)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert not any(line.endswith(" ") for line in done.stdout.splitlines() if line != "> ")
    assert bookings(tmp_path) == []
    assert statuses(tmp_path) == [Status.EXPIRED]


def test_piped_lines_decide(tmp_path: Path) -> None:
    done = piped(tmp_path, "r\nbook nothing at all\n", "demo")
    assert done.returncode == 0, done.stderr
    assert "book nothing at all" in done.stdout
    assert bookings(tmp_path) == []
    assert statuses(tmp_path) == [Status.REJECTED]


def test_the_store_can_be_named_and_used_again(tmp_path: Path) -> None:
    store = tmp_path / "mine.db"
    for _ in range(2):
        assert piped(tmp_path, "r\nbook nothing\n", "demo", "--store", str(store)).returncode == 0
    with closing(open_store(store)) as opened:
        assert [each.status for each in opened.page(None).approvals] == [Status.REJECTED] * 2


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment, with temporary files in `folder` and none of the person's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SAYSO_")}
    return kept | {"TMPDIR": str(folder)}


def piped(folder: Path, typed: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run `sayso` without a terminal."""
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "sayso", *words],
        env=_environment(folder),
        input=typed,
        capture_output=True,
        text=True,
        timeout=ENOUGH,
        check=False,
    )


def kept(folder: Path) -> Path:
    """Return where the demo kept its files."""
    return next(folder.glob("sayso-*/sayso.toml")).parent


def bookings(folder: Path) -> list[tuple[str, str, int]]:
    """Return flight, cabin and price in minor units of every booking."""
    with closing(sqlite3.connect(kept(folder) / "travel.db")) as connection:
        return connection.execute("SELECT flight, cabin, price_minor FROM bookings").fetchall()


def kinds(folder: Path) -> list[str]:
    """Return what the audit says happened, after checking that it is sound and only booking ever asked."""
    path = kept(folder) / "sayso.db"
    with closing(open_store(path)) as store:
        entries = list(store.entries())
        checkpoints = CheckpointFile(Path(f"{path}.checkpoints")).read()
        report = verify(entries, checkpoints, heads=store.heads(), statuses=store.statuses())
        asked = {approval.action.tool for approval in store.page(None).approvals}
    assert report.sound, report.findings
    assert asked == {"book_flight"}
    assert json.loads(entries[0].body)["data"]["tool"] == "search_flights"
    return [entry.kind for entry in entries]


def times(folder: Path) -> list[int]:
    """Return when each audit entry was written, in milliseconds since the epoch."""
    with closing(open_store(kept(folder) / "sayso.db")) as store:
        return [entry.at for entry in store.entries()]


def deadline(folder: Path) -> int:
    """Return the deadline of the one approval, in milliseconds since the epoch."""
    with closing(open_store(kept(folder) / "sayso.db")) as store:
        return store.page(None).approvals[0].deadline


def statuses(folder: Path) -> list[Status]:
    """Return the status of every approval."""
    with closing(open_store(kept(folder) / "sayso.db")) as store:
        return [approval.status for approval in store.page(None).approvals]


def flat(text: str) -> str:
    """Return terminal output as running words: no colour, no frame, no line breaks."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[│╭╮╰╯─]", " ", text)
    return " ".join(plain.split())
