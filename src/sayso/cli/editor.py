"""Writing in the person's own editor, without ever losing what they typed.

The file lies in a folder only its owner can enter and goes with it, whatever the editor
leaves behind. Arguments stand in it in clear: nobody can change what they cannot read.
"""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from sayso.actions import Json, parse_args
from sayso.errors import InvalidAction, InvalidEdit, UsageError
from sayso.presentation import visible

T = TypeVar("T")
Compose = Callable[[str], str]
"""Lets a person change a text and returns what they made of it."""

_USUAL = ("nano", "vim", "vi")


def find_editor() -> list[str]:
    """Return the words that start the person's editor, none when there is no editor."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    if named.strip():
        return shlex.split(named)
    found = next((path for name in _USUAL if (path := shutil.which(name))), None)
    return [found] if found else []


def compose(text: str, *, name: str) -> str:
    """Open a text in the person's editor and return what it was when they left.

    Args:
        text: What to start from.
        name: The file's name, so that the editor knows how to colour it.

    Raises:
        UsageError: There is no editor, or it failed.
    """
    words = find_editor()
    if not words:
        raise UsageError(
            "no editor was found", hint="set EDITOR, or use the option that takes it from a file"
        )
    with TemporaryDirectory(prefix="sayso-") as folder:
        path = Path(folder) / name
        path.write_text(text, "utf-8")
        try:
            subprocess.run([*words, str(path)], check=True)  # noqa: S603 - the person's own editor
            return path.read_text("utf-8")
        except (OSError, subprocess.CalledProcessError, UnicodeDecodeError) as error:
            raise UsageError(
                f"the editor `{words[0]}` failed: {error}", hint="nothing was decided; check EDITOR"
            ) from None


def edit_args(
    tool: str, args: Mapping[str, Json], accept: Callable[[dict[str, Json]], T], edit: Compose | None = None
) -> T | None:
    """Let a person change arguments until they are accepted or left as they are.

    Args:
        tool: The tool they are for.
        args: The arguments to start from.
        accept: Takes the new arguments; what it refuses is shown above them in the editor.
        edit: The editor; the person's own by default.

    Returns:
        What `accept` made of them, or None when the person emptied the file or changed nothing.
    """
    start = args_text(args)
    text, problem = start, ""
    while True:
        heading = f"# {visible(tool)}: change the values, save and close. Empty the file to change nothing.\n"
        complaint = "".join(f"# {visible(line)}\n" for line in problem.splitlines())
        text = _without_comments((edit or _json_editor)(heading + complaint + text))
        if not text.strip() or (text == start and not problem):
            return None
        try:
            return accept(parse_args(text))
        except (InvalidAction, InvalidEdit) as error:
            problem = str(error)


def args_text(args: Mapping[str, Json]) -> str:
    """Write arguments as JSON to be changed by hand; what cannot be seen is written as its escape."""
    text = json.dumps(args, indent=2, ensure_ascii=False)
    if text.isascii():
        return text + "\n"
    return "".join(c if c == "\n" or visible(c) == c else json.dumps(c)[1:-1] for c in text) + "\n"


def _json_editor(text: str) -> str:
    return compose(text, name="arguments.json")


def _without_comments(text: str) -> str:
    """Leave out lines that start with a number sign; no line of JSON does."""
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
