"""The errors' codes are stable and unique, and the drawn tree and the page name every class."""

import re
from pathlib import Path

from sayso import errors
from sayso.errors import MissingExtra
from tools.errors_page import ROOTS, classes

ROOT = Path(__file__).parents[2]
CLASSES = classes()


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [each.code for each in CLASSES]
    assert sorted(codes) == sorted(set(codes))
    assert [code for code in codes if not re.fullmatch(r"[a-z_]+", code)] == []
    assert [each.__name__ for each in CLASSES if "code" not in vars(each)] == []


def test_the_drawn_tree_names_every_error_under_its_family() -> None:
    tree = errors.__doc__ or ""
    assert [each.__name__ for each in CLASSES if not re.search(rf"\b{each.__name__}\b", tree)] == []
    for family in ROOTS:
        drawn = tree[tree.index(f"── {family}") :]
        members = [each.__name__ for each in CLASSES if issubclass(each, getattr(errors, family))]
        assert [drawn.index(name) for name in members] == sorted(drawn.index(name) for name in members)


def test_the_page_names_every_error_and_its_code() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    assert [
        each.__name__ for each in CLASSES[1:] if f"| `{each.__name__}` | `{each.code}` |" not in page
    ] == []


def test_a_missing_extra_names_the_line_that_installs_it() -> None:
    assert 'pip install "sayso[langchain]"' in str(MissingExtra.of("langchain", "langchain"))
