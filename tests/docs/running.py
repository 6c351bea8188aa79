"""Runs the blocks of one page in order, in an empty folder, as a reader would.

Python blocks share one namespace. Shell blocks run their `$ ` lines in one shell per block; of
the output shown, every line must come, in that order, and `...` stands for anything.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from tests.docs.blocks import Block

SHELLS = frozenset({"console", "bash", "sh", "shell"})
SHOWN = frozenset({"text", "mermaid"})
"""Languages of drawings and outputs: there is nothing to run."""

LONGEST = 60
"""How long one shell block may take, in seconds."""

_END = "\x1e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a shell block.

    Args:
        text: The command.
        shown: The output that the page shows, by line.
    """

    text: str
    shown: list[str] = field(default_factory=list[str])


class BlockError(AssertionError):
    """A block did not do what its page says."""


def run(block: Block, folder: Path, module: ModuleType, skipped: frozenset[str]) -> None:
    """Run one block, or write it to its file.

    Args:
        block: The block.
        folder: Where the page's files are, and the current folder.
        module: Holds the names of the page's Python blocks.
        skipped: Commands that are only shown.

    Raises:
        BlockError: It did something else than its page says, or nothing says what to do with it.
    """
    if block.not_run is not None:
        if not block.not_run:
            raise BlockError("say why it is not run")
    elif block.file:
        (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
        (folder / block.file).write_text(block.text + "\n", "utf-8")
    elif block.language == "python":
        code = "\n" * block.line + block.text
        exec(compile(code, module.__name__, "exec"), module.__dict__)  # noqa: S102 - our own page
    elif block.language in SHELLS:
        run_shell(block.text, folder, skipped)
    elif block.language not in SHOWN:
        raise BlockError(f"`{block.language}` cannot be run: name its file, or say why it is not run")


def run_shell(text: str, folder: Path, skipped: frozenset[str]) -> None:
    """Run the commands of a shell block and compare what they print."""
    wanted = [command for command in commands(text) if command.text not in skipped]
    script = "".join(f"{command.text}\nprintf '{_END}%d{_END}' $?\n" for command in wanted)
    ran = subprocess.run(  # noqa: S603 - the commands of our own page
        ["bash", "-c", script],  # noqa: S607 - whichever bash there is
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    answers = re.findall(rf"([^{_END}]*){_END}(\d+){_END}", ran.stdout)
    for command, (output, status) in zip(wanted, answers, strict=True):
        _compare(command, output, int(status))


def commands(text: str) -> list[Command]:
    """Return the commands of a shell block; without any `$ `, every line is one.

    Raises:
        BlockError: Output stands before the first command.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not any(line.startswith("$ ") for line in lines):
        return [Command(text=text)] if lines else []
    found: list[Command] = []
    for line in lines:
        if line.startswith("$ "):
            found.append(Command(text=line[2:]))
        elif not found:
            raise BlockError(f"`{line}` stands before the first command")
        elif line.startswith("> "):
            found[-1] = Command(text=f"{found[-1].text}\n{line[2:]}")
        else:
            found[-1].shown.append(line)
    return found


def missing(shown: list[str], output: str) -> str:
    """Return the first line shown that the output does not have in its turn, or nothing."""
    printed = [_squeezed(line) for line in output.splitlines()]
    at = 0
    for line in shown:
        pattern = ".*".join(re.escape(part) for part in re.split(r"\.\.\.|…", _squeezed(line)))
        at = (
            next((number for number in range(at, len(printed)) if re.fullmatch(pattern, printed[number])), -1)
            + 1
        )
        if at == 0 and pattern != ".*":
            return line
    return ""


def _compare(command: Command, output: str, status: int) -> None:
    absent = missing(command.shown, output)
    if absent:
        raise BlockError(f"`$ {command.text}` did not print `{absent}` but:\n{output}")
    if status != 0 and not command.shown:
        raise BlockError(f"`$ {command.text}` ended with {status}:\n{output}")
    if "Traceback (most recent call last)" in output:
        raise BlockError(f"`$ {command.text}` failed:\n{output}")


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SAYSO_", "PYTEST_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return kept | {"PATH": path, "HOME": str(folder), "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
