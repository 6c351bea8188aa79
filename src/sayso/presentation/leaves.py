"""Arguments as a reviewer reads them: one named value after the other, secrets taken out; and what an edit changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from sayso.actions import Json, canonical
from sayso.presentation.lookalikes import lookalikes
from sayso.presentation.visible import CLOSE, OPEN, clip, hazards, visible
from sayso.scanner import Hit, child, find_secrets, item

_LONGEST_KEY = 120
_KEY_HEAD = 60
_MASK = "***"


class ChangeKind(StrEnum):
    """What became of one value in an edit."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between two sets of arguments.

    Args:
        path: Where: `args.price`.
        before: The old value in visible text, empty when it was not there.
        after: The new value in visible text, empty when it was taken out.
        kind: Added, removed or changed.
    """

    path: str
    before: str
    after: str
    kind: ChangeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A value with nothing inside it, and where it stands.

    Args:
        path: Where, in visible text; no two leaves of one value share it.
        value: Text, a number, true, false, null, or an empty list or object.
        name: The argument name nearest to it, which may mark it as a secret.
        top: The argument it belongs to.
    """

    path: str
    value: Json
    name: str = ""
    top: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A text made safe to show.

    Args:
        text: Every character visible, every secret replaced by what it was.
        secrets: What the secrets were: `GitHub token, 40 characters`.
        notes: What a reviewer should know about it.
    """

    text: str
    secrets: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def leaves(value: Json, path: str = "args", name: str = "", top: str = "") -> Iterator[Leaf]:
    """Yield every leaf of a JSON value, objects in the order of their keys."""
    if isinstance(value, Mapping) and value:
        taken: set[str] = set()
        for key in sorted(value):
            place, whole = _place(path, key)
            place = _unused(place, taken)
            if not whole:
                yield Leaf(path=f"{place}{OPEN}key{CLOSE}", value=key, top=top or key)
            yield from leaves(value[key], place, key, top or key)
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for index, inner in enumerate(value):
            yield from leaves(inner, item(path, index), name, top)
    else:
        yield Leaf(path=path, value=value, name=name, top=top)


def show(
    text: str, *, name: str = "", lines: bool = False, quoted: bool = False, is_name: bool = False
) -> Shown:
    """Make a text safe to show.

    Args:
        text: What to show.
        name: The argument it is the value of.
        lines: Whether line feeds stay.
        quoted: Whether quotation marks and backslashes are escaped, as inside a JSON string.
        is_name: Whether it is a name, where look-alikes are judged more strictly.
    """
    hits = find_secrets(text, name)
    secrets = tuple(hit.label for hit in hits)
    notes = (*hazards(text), *lookalikes(_replaced(text, hits, _MASK), is_name=is_name))
    return Shown(text=_joined(text, hits, lines=lines, quoted=quoted), secrets=secrets, notes=notes)


def show_leaf(leaf: Leaf, *, inline: bool = False) -> Shown:
    """Make a leaf safe to show: text in quotation marks, anything else as canonical JSON.

    Args:
        leaf: What to show.
        inline: Whether it stands on one line among other values, so that nothing in it may pass for the others.
    """
    if isinstance(leaf.value, str):
        shown = show(leaf.value, name=leaf.name, lines=not inline, quoted=inline)
        return Shown(text=f'"{shown.text}"', secrets=shown.secrets, notes=shown.notes)
    text = canonical(leaf.value).decode()
    if isinstance(leaf.value, int | float) and not isinstance(leaf.value, bool) and leaf.name:
        return show(text, name=leaf.name)
    return Shown(text=text)


def diff(before: Mapping[str, Json], after: Mapping[str, Json], where: str = "args") -> tuple[Change, ...]:
    """Return what changed between two sets of arguments, in the order of their paths.

    Args:
        before: The old arguments.
        after: The new ones.
        where: The name of the arguments in the paths.
    """
    old = {leaf.path: leaf for leaf in leaves(before, where)}
    new = {leaf.path: leaf for leaf in leaves(after, where)}
    changes = (_change(path, old.get(path), new.get(path)) for path in sorted({**old, **new}))
    return tuple(change for change in changes if change)


def _change(path: str, old: Leaf | None, new: Leaf | None) -> Change | None:
    if old and new and canonical(old.value) == canonical(new.value):
        return None
    kind = ChangeKind.CHANGED if old and new else ChangeKind.REMOVED if old else ChangeKind.ADDED
    before = show_leaf(old).text if old else ""
    after = show_leaf(new).text if new else ""
    return Change(path=path, before=before, after=after, kind=kind)


def _place(path: str, key: str) -> tuple[str, bool]:
    """Return how the value under a key is named, and whether the whole key stands in that name."""
    hits = find_secrets(key)
    plain = f"{path}.{key}"
    if not hits and child(path, key) == plain:
        return plain, True
    label = _joined(key, hits, lines=False, quoted=True)
    if len(label) <= _LONGEST_KEY:
        return f'{path}["{label}"]', True
    head, _ = clip(label, _KEY_HEAD)
    return f'{path}["{head}{OPEN}sha256 {sha256(label.encode()).hexdigest()[:16]}{CLOSE}"]', False


def _unused(place: str, taken: set[str]) -> str:
    """Keep the places of two keys apart that held different secrets of the same kind and length."""
    count, candidate = 1, place
    while candidate in taken:
        count += 1
        candidate = f"{place}{OPEN}{count}{CLOSE}"
    taken.add(candidate)
    return candidate


def _joined(text: str, hits: Sequence[Hit], *, lines: bool, quoted: bool) -> str:
    pieces: list[str] = []
    done = 0
    for hit in (*hits, None):
        part = text[done : hit.start if hit else len(text)]
        if quoted:
            part = part.replace("\\", "\\\\").replace('"', '\\"')
        pieces.append(visible(part, lines=lines))
        if hit:
            pieces.append(f"{OPEN}secret: {hit.label}{CLOSE}")
            done = hit.end
    return "".join(pieces)


def _replaced(text: str, hits: Sequence[Hit], mask: str) -> str:
    pieces: list[str] = []
    done = 0
    for hit in hits:
        pieces += (text[done : hit.start], mask)
        done = hit.end
    return "".join((*pieces, text[done:]))
