"""The named statements and numbered migrations that stores run; no SQL stands in Python."""

import re
from functools import cache
from importlib.resources import files


@cache
def queries() -> dict[str, str]:
    """Return every statement of `queries.sql` by its name."""
    text = files(__name__).joinpath("queries.sql").read_text("utf-8")
    found: dict[str, str] = {}
    for part in re.split(r"^-- name: ", text, flags=re.MULTILINE)[1:]:
        name, _, body = part.partition("\n")
        lines = [line for line in body.splitlines() if not line.startswith("--")]
        found[name.strip()] = " ".join(lines).strip().rstrip(";")
    return found


@cache
def migrations(dialect: str) -> tuple[tuple[int, str, str], ...]:
    """Return the migrations of a dialect in order, each as number, name and script."""
    found: list[tuple[int, str, str]] = []
    for file in files(__name__).joinpath(dialect).iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        found.append((int(number), name, file.read_text("utf-8")))
    return tuple(sorted(found))
