"""What the convention tests read: the tracked files, and every module's source once."""

import ast
import io
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "sayso"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One Python file.

    Args:
        name: Its path below the root, with slashes.
        text: Its source.
        tree: The same, parsed.
    """

    name: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return self.text.count("\n")


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    """Return the modules below the named folders, in the order of their paths."""
    files = (file for folder in folders for file in sorted((ROOT / folder).rglob("*.py")))
    return tuple(_read(file) for file in files)


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every comment in Python source."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@cache
def tracked() -> tuple[Path, ...]:
    """Return the files of the repository; where there is no git, those that could be in it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - whichever git there is
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    files = (ROOT / name for name in listed.stdout.split("\0") if name)
    return tuple(file for file in files if file.is_file())


def _read(file: Path) -> Module:
    text = file.read_text("utf-8")
    return Module(name=file.relative_to(ROOT).as_posix(), text=text, tree=ast.parse(text))
