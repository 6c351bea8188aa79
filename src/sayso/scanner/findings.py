"""What the scanner reports, and how places inside arguments are named. Never the secret itself."""

import re
from dataclasses import dataclass

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,119}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A secret inside one text.

    Args:
        start: The first character that belongs to it.
        end: The first character after it.
        kind: What it is, in words: `GitHub token`.
        prefix: The vendor's public prefix, such as `ghp_`, or empty.
    """

    start: int
    end: int
    kind: str
    prefix: str = ""

    @property
    def label(self) -> str:
        """Name the kind and the length: `GitHub token, 40 characters`."""
        size = self.end - self.start
        return f"{self.kind}, {size:,} character{'' if size == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A secret inside a JSON value.

    Args:
        path: Where it is: `args.headers.authorization`, or the object whose key holds it.
        kind: What it is, in words.
        start: The first character that belongs to it, in the text at `path`.
        end: The first character after it.
        preview: Kind, length and at most the vendor's prefix; safe to show and to log.
    """

    path: str
    kind: str
    start: int
    end: int
    preview: str

    @classmethod
    def of(cls, path: str, hit: Hit) -> "Finding":
        """Place a hit, describing it without giving it away."""
        preview = f'{hit.label}, starts with "{hit.prefix}"' if hit.prefix else hit.label
        return cls(path=path, kind=hit.kind, start=hit.start, end=hit.end, preview=preview)


def child(path: str, key: str) -> str:
    """Name the value under `key`: `path.key`, or `path["odd key"]` so that no two places share a name."""
    if _PLAIN_NAME.fullmatch(key):
        return f"{path}.{key}"
    quoted = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'{path}["{quoted}"]'


def item(path: str, place: int) -> str:
    """Name the value at a place in a list: `path[0]`."""
    return f"{path}[{place}]"
