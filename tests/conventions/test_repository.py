"""What no file of the repository may hold, and what the first page must stay."""

import re
from pathlib import Path

import pytest

from tests.conventions.source import ROOT, tracked
from tools.docs import stale, write

HOMES = re.compile(r"(?<![\w.])/(?:home|root|Users|private|opt|mnt|work)/[\w.-]+/[\w./-]+|\b[A-Z]:\\Users\\")
REGISTRIES = re.compile(
    r"(?i)\b(?:pypi\.org|files\.pythonhosted\.org|registry\.npmjs\.org|registry\.yarnpkg\.com|conda\.anaconda\.org)\b"
    r"|--(?:extra-)?index-url[ =]|--find-links[ =]|\bfile:///(?:\w+/)+simple"
)

EXCUSED: dict[str, str] = {
    "tests/conventions/test_repository.py": "it says what to look for",
}
"""Files that may name such a place, and why."""

README_LINES = 120


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    assert _naming(HOMES) == []


def test_no_file_names_a_package_registry() -> None:
    assert _naming(REGISTRIES) == []


@pytest.mark.parametrize("text", ["/home/ann/src/sayso/gate.py", r"C:\Users\ann", "see /root/work/main"])
def test_a_place_on_a_machine_is_recognised(text: str) -> None:
    assert HOMES.search(text)


@pytest.mark.parametrize("text", ["https://pypi.org/simple", "--index-url x", "file:///opt/simple"])
def test_a_registry_is_recognised(text: str) -> None:
    assert REGISTRIES.search(text)


def test_the_readme_stays_a_page() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < README_LINES


def test_a_stale_page_is_found_and_written_anew(tmp_path: Path) -> None:
    pages = {"docs/a.md": "new", "docs/b.md": "same"}
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("old", "utf-8")
    (tmp_path / "docs" / "b.md").write_text("same", "utf-8")
    assert stale(tmp_path, pages) == ["docs/a.md"]
    assert write(tmp_path, pages) == ["docs/a.md"]
    assert stale(tmp_path, pages) == []


def _naming(place: re.Pattern[str]) -> list[str]:
    found: list[str] = []
    for file in tracked():
        name = file.relative_to(ROOT).as_posix()
        hit = None if name in EXCUSED else place.search(file.read_text("utf-8", errors="replace"))
        if hit:
            found.append(f"{name}: {hit[0]}")
    return found
