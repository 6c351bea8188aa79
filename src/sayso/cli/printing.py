"""How `sayso` prints: calm tables for people, stable lines for pipes, JSON for programs."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sayso.actions import Json
from sayso.clock import SECOND, Millis, clock_text

WIDEST = 110
"""How wide a card or table gets, in columns; longer lines are hard to read."""

LABEL = "dim"
GOOD, WARNING, BAD = "green", "yellow", "red"

_ROOM = 40
"""How many places the last value of a row needs to stand beside the others."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Args:
        title: Its heading.
        width: The most places on a line it takes, 0 for what is left.
        right: Whether it is aligned to the right.
    """

    title: str
    width: int = 0
    right: bool = False


def terminal() -> Console:
    """Return the console of standard output."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.width = min(console.width, WIDEST)
    return console


def print_json(value: Json) -> None:
    """Print one JSON document on one line, in ASCII: no character in it can move a cursor."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def print_line(text: str, *, style: str = "") -> None:
    """Print a line; the style shows on a terminal only."""
    terminal().print(Text(text, style=style), soft_wrap=True)


def print_remark(text: str) -> None:
    """Print a line that is no result, where it does not get into a pipe."""
    if sys.stdout.isatty():
        print_line(text, style=LABEL)
    else:
        sys.stderr.write(text + "\n")


def print_rows(columns: Sequence[Column], rows: Iterable[Sequence[str | Text]], *, cut: bool = False) -> None:
    """Print rows: aligned under headings on a terminal, tab-separated values in a pipe.

    Where there is no room for the last value beside the others, it stands below them.

    Args:
        columns: The columns, the last one as wide as the room there is.
        rows: A value for each column.
        cut: Whether a last value that is too long is cut off instead of wrapped.
    """
    console = terminal()
    if not console.is_terminal:
        for row in rows:
            sys.stdout.write("\t".join(map(str, row)) + "\n")
        return
    made = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    widths = [
        min(column.width, max([len(column.title), *(row[place].cell_len for row in made)]))
        for place, column in enumerate(columns[:-1])
    ]
    narrow = console.width - sum(widths) - 2 * len(widths) < _ROOM
    titles = [Text(column.title, style=LABEL) for column in columns]
    for row in ([*titles[:-1], Text()] if narrow else titles, *made):
        line = Text("  ").join(_cell(row[place], width, columns[place]) for place, width in enumerate(widths))
        last = row[-1].copy()
        below = narrow or (not cut and line.cell_len + 2 + last.cell_len > console.width)
        if cut:
            last.truncate(console.width - 2 - (0 if below else line.cell_len), overflow="ellipsis")
        if below or not last.plain:
            line.rstrip()
            console.print(line, no_wrap=True)
            if last.plain:
                console.print(Padding(last, (0, 0, 0, 2)))
        else:
            console.print(Text("  ").join((line, last)), no_wrap=True)


def _cell(text: Text, width: int, column: Column) -> Text:
    cell = text.copy()
    cell.truncate(width, overflow="ellipsis")
    cell.align("right" if column.right else "left", width)
    return cell


def print_named(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and values, the values aligned and wrapped on a terminal."""
    console = terminal()
    if not console.is_terminal:
        for name, value in pairs:
            sys.stdout.write(f"{name}: {value}\n")
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style=LABEL)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, Text(value))
    console.print(grid)


def duration(seconds: float) -> str:
    """Write a duration in its two largest units: `4m 12s`, `2d 3h`."""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE:02}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE:02}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR:02}h"


def moment(at: Millis) -> str:
    """Write an instant as the UTC time of its day."""
    return clock_text(at)[11:19]


def age(at: Millis, now: Millis) -> str:
    """Write how long ago an instant was."""
    return f"{duration((now - at) / SECOND)} ago"


def plural(count: int, one: str, many: str = "") -> str:
    """Write a count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
