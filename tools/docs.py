"""Write the generated pages of docs/ anew, or with `--check` say which of them are out of date.

A page is a function that returns its text; to add one, name it in `PAGES`.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tools import cli_page, errors_page, guarantees_page

ROOT = Path(__file__).parents[1]

PAGES: dict[str, Callable[[], str]] = {
    "docs/guarantees.md": guarantees_page.render,
    "docs/reference/cli.md": cli_page.render,
    "docs/reference/errors.md": errors_page.render,
}
"""The generated pages: where each lies and what writes it."""


def stale(root: Path, pages: dict[str, str]) -> list[str]:
    """Return the pages whose files under `root` do not hold their text."""
    return [name for name, text in pages.items() if not _holds(root / name, text)]


def write(root: Path, pages: dict[str, str]) -> list[str]:
    """Write the pages that are stale and return their names."""
    changed = stale(root, pages)
    for name in changed:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(pages[name], "utf-8")
    return changed


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check; return 1 when a check found a page that is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args(arguments)
    pages = {name: render() for name, render in PAGES.items()}
    if not options.check:
        for name in write(ROOT, pages):
            print(f"wrote {name}")
        return 0
    found = stale(ROOT, pages)
    for name in found:
        print(f"{name} is out of date; write it anew with: make docs", file=sys.stderr)
    return 1 if found else 0


def _holds(file: Path, text: str) -> bool:
    return file.exists() and file.read_text("utf-8") == text


if __name__ == "__main__":
    raise SystemExit(main())
