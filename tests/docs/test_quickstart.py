"""The part of the quickstart that waits for a person, with the `sayso` command as the person."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import blocks

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
BIN = Path(sys.executable).parent
LONGEST = 30
"""How long the agent may take to ask or to end, in seconds."""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    for block in blocks(PAGE.read_text("utf-8")):
        if block.file:
            (tmp_path / block.file).write_text(block.text + "\n", "utf-8")
    command = [sys.executable, "agent.py"]
    with subprocess.Popen(  # noqa: S603 - the program of our own page
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        yield started
        started.kill()


def sayso(folder: Path, *words: str) -> str:
    command = [str(BIN / "sayso"), *words]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=LONGEST)  # noqa: S603
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def waiting(folder: Path) -> str:
    """Return the id of the approval that the agent waits for, as soon as it asked."""
    for _ in range(LONGEST * 20):
        if (folder / "sayso.db").exists():
            found = json.loads(_listed(folder))
            if found.get("approvals"):
                return found["approvals"][0]["id"]
        time.sleep(0.05)  # another process asks; nothing here can tell when
    raise AssertionError("the agent never asked")


def _listed(folder: Path) -> str:
    command = [str(BIN / "sayso"), "inbox", "--json"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=LONGEST)  # noqa: S603
    return ran.stdout or "{}"


def test_the_agent_of_the_quickstart_books_once_a_person_typed_the_code(
    agent: subprocess.Popen[str], tmp_path: Path
) -> None:
    approval = waiting(tmp_path)
    assert approval.startswith("ape464")
    card = sayso(tmp_path, "show", approval)
    for line in (each.text for each in blocks(PAGE.read_text("utf-8")) if "headline:" in each.text):
        shown = [text for text in line.splitlines() if not text.startswith("silence")]
        assert [text for text in shown if text not in card.splitlines()] == []
    code = json.loads(sayso(tmp_path, "show", approval, "--code", "--json"))["code"]
    sayso(tmp_path, "approve", "ape464", "--proof", code)
    output, _ = agent.communicate(timeout=LONGEST)
    assert output.splitlines() == ["['UA 212, 1847 USD, not refundable']", "booked UA 212"]


def test_the_agent_of_the_quickstart_is_told_why_it_was_rejected(
    agent: subprocess.Popen[str], tmp_path: Path
) -> None:
    sayso(tmp_path, "reject", waiting(tmp_path), "--reason", "economy was asked for")
    output, errors = agent.communicate(timeout=LONGEST)
    assert "booked" not in output
    assert "Rejected" in errors
    assert "economy was asked for" in errors
