"""Collecting what is shown: each text made visible, cut with the size of the gap, and warned of."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sayso.presentation.leaves import Leaf, Shown, show, show_leaf
from sayso.presentation.visible import CLOSE, OPEN, clip

MOST_FIELDS = 100
"""How many values are shown before the rest is folded under one path that can be opened."""

_ODD_NAME = re.compile(r"[>(),\"]|\A\s|\s\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One value as it is shown.

    Args:
        path: Where it stands: `args.price`; opening it shows all of it.
        text: The value, every character visible. It may hold line feeds: a surface indents the lines after the first,
            so that no value passes for the next field.
        hidden_characters: How many characters are not shown.
        notes: What a reviewer should know about it.
        before: What it was before a person edited it, or None if it was not edited.
    """

    path: str
    text: str
    hidden_characters: int = 0
    notes: tuple[str, ...] = ()
    before: str | None = None


class Sheet:
    """Collects what stays hidden and what to warn of while the texts are made."""

    def __init__(self, opened: frozenset[str], limit: int) -> None:
        self.opened = opened
        self.limit = limit
        self.hidden: list[str] = []
        self.warnings: list[str] = []

    def cut(self, path: str, text: str) -> tuple[str, int]:
        """Cut a visible text unless its path was opened, and remember that it is cut."""
        shown, gap = (text, 0) if path in self.opened else clip(text, self.limit)
        if gap:
            self.hide(path)
        return shown, gap

    def hide(self, path: str) -> None:
        """Remember a path that is not fully shown."""
        if path not in self.hidden:
            self.hidden.append(path)

    def warn(self, path: str, notes: Iterable[str]) -> None:
        """Remember what could deceive, with its path."""
        found = [f"{path}: {note}" for note in notes]
        self.warnings += [warning for warning in found if warning not in self.warnings]

    def line(self, path: str, text: str, *, is_name: bool = False) -> str:
        """Return a text on one line."""
        shown = show(text, is_name=is_name)
        self.warn(path, _all_notes(shown))
        return self.cut(path, shown.text)[0]

    def block(self, path: str, text: str) -> Field:
        """Return a text that keeps its lines."""
        shown = show(text, lines=True)
        notes = _all_notes(shown)
        self.warn(path, notes)
        cut, gap = self.cut(path, shown.text)
        return Field(path=path, text=cut, hidden_characters=gap, notes=notes)

    def field(
        self, leaf: Leaf, *, extra: tuple[str, ...] = (), before: Leaf | None = None, was: str | None = None
    ) -> Field:
        """Return a leaf as a field.

        Args:
            leaf: What to show.
            extra: Notes to add.
            before: The leaf it replaced.
            was: What to say it was, where it replaced none.
        """
        shown = show_leaf(leaf)
        notes = (*_all_notes(shown), *extra)
        self.warn(leaf.path, notes)
        text, gap = self.cut(leaf.path, shown.text)
        if before:
            was, more = self.cut(leaf.path, show_leaf(before).text)
            gap += more
        return Field(path=leaf.path, text=text, hidden_characters=gap, notes=notes, before=was)

    def fields(self, path: str, found: Sequence[Leaf], make: Callable[[Leaf], Field]) -> tuple[Field, ...]:
        """Return a field for each leaf, the ones beyond `MOST_FIELDS` folded under `path` unless it was opened."""
        shown = found if path in self.opened else found[:MOST_FIELDS]
        made = [make(leaf) for leaf in shown]
        rest = found[len(shown) :]
        return (*made, self.fold(path, rest)) if rest else tuple(made)

    def fold(self, path: str, rest: Sequence[Leaf]) -> Field:
        """Stand in for values beyond the first `MOST_FIELDS`."""
        self.hide(path)
        count = sum(
            len(leaf.path) + len(leaf.value if isinstance(leaf.value, str) else str(leaf.value))
            for leaf in rest
        )
        return Field(
            path=path, text=f"{OPEN}{len(rest):,} more values not shown{CLOSE}", hidden_characters=count
        )


def _all_notes(shown: Shown) -> tuple[str, ...]:
    return (*(f"a secret is not shown: {secret}" for secret in shown.secrets), *shown.notes)


def shown_name(path: str, text: str, sheet: Sheet) -> str:
    """Show a name, in quotation marks if it holds what separates names."""
    shown = sheet.line(path, text, is_name=True)
    if not _ODD_NAME.search(shown):
        return shown
    quoted = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'
