"""The code blocks of a page, each with what the comments right before it say about it.

<!-- file: sayso.yaml -->                  the block is written to that file
<!-- docs: not run: reason -->             the block is only shown
<!-- docs: commands not run: make demo, make bench: reason -->   anywhere: these commands are only shown
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w+-]*)")
FILE = re.compile(r"<!--\s*file:\s*(?P<name>\S+)\s*-->")
NOT_RUN = re.compile(r"<!--\s*docs:\s*not run:\s*(?P<reason>.*?)\s*-->")
COMMANDS_NOT_RUN = re.compile(r"<!--\s*docs:\s*commands not run:\s*(?P<commands>[^:]+):\s*\S.*?-->")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block.

    Args:
        language: The word behind the fence.
        text: What is inside.
        line: The line of the fence, counted from one.
        file: The file it is written to, if any.
        not_run: Why it is only shown; None when it must run.
    """

    language: str
    text: str
    line: int
    file: str
    not_run: str | None


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page in order.

    Raises:
        ValueError: A fence is never closed.
    """
    lines = page.splitlines()
    number, above = 0, ""
    while number < len(lines):
        opening = FENCE.match(lines[number])
        if not opening:
            above = _above(above, lines[number])
            number += 1
            continue
        end = _closing(lines, number, opening["fence"])
        inside = dedent("\n".join(lines[number + 1 : end]))
        yield _block(opening["language"], inside, number + 1, above)
        number, above = end + 1, ""


def commands_not_run(page: str) -> frozenset[str]:
    """Return the commands that a page only shows."""
    listed = (each["commands"] for each in COMMANDS_NOT_RUN.finditer(page))
    return frozenset(command.strip() for commands in listed for command in commands.split(","))


def pages(root: Path) -> list[Path]:
    """Return the pages whose blocks must run: the first page and everything under docs/."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def _above(above: str, line: str) -> str:
    """Keep the comments that stand right before a block, and forget them at the next text."""
    if not line.strip():
        return above
    is_comment = line.strip().startswith("<!--") or (above and "-->" not in above)
    return f"{above}\n{line}" if is_comment else ""


def _closing(lines: list[str], opening: int, fence: str) -> int:
    for number in range(opening + 1, len(lines)):
        if re.fullmatch(rf"\s*{fence[0]}{{{len(fence)},}}\s*", lines[number]):
            return number
    raise ValueError(f"the block of line {opening + 1} is never closed")


def _block(language: str, text: str, line: int, above: str) -> Block:
    file, not_run = FILE.search(above), NOT_RUN.search(above)
    return Block(
        language=language,
        text=text,
        line=line,
        file=file["name"] if file else "",
        not_run=not_run["reason"] if not_run else None,
    )
