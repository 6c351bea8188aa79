"""What every module keeps to: its size, its docstring, its name, its excuses."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator

import pytest

from tests.conventions.source import Module, comments, modules

MODULES = modules("src", "tests", "bench", "tools")
OURS = modules("src")
LONGEST = {"src": 500, "bench": 500, "tools": 500, "tests": 800}
"""How many lines a module may have; tests are lists, and read like them."""

LONGER: dict[str, int] = {}
"""Modules over the limit and how long they are; this may only shrink."""

LONGEST_DOCSTRING = 12
"""How many lines say what a module decides; more belongs into docs/."""

LONGER_DOCSTRINGS = {"src/sayso/errors.py"}
"""Drawn trees."""

CATCHERS = {
    "src/sayso/gate.py": {
        "Exception",
        "BaseException",
    },  # a fault becomes a refusal, or goes to the flow that raises it
    "src/sayso/policy/predicates.py": {"Exception"},  # a user's own function; its fault becomes a question
    "src/sayso/stores/memory.py": {"BaseException"},  # goes to the caller whose write it was
    "src/sayso/stores/sqlite.py": {"BaseException"},  # goes to the caller whose write it was
}
"""Where everything is caught; this may only shrink."""

DUMPS = {"utils", "util", "helpers", "helper", "common", "misc", "core", "base_utils"}
"""Names that say nothing about what is inside."""

EXCUSE = re.compile(
    r"#\s*(noqa|type:\s*ignore|pyright:\s*ignore|pragma:\s*no\s*(cover|branch)|fmt:\s*(off|skip))"
)
REASON = re.compile(r"\s-\s\S+")
MARK = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def test_modules_stay_under_the_limit() -> None:
    long = {module.name: module.lines for module in MODULES if module.lines > LONGEST[_folder(module)]}
    assert {name: lines for name, lines in long.items() if lines > LONGER.get(name, 0)} == {}, (
        "split by what it decides"
    )
    assert LONGER.keys() <= long.keys(), "shrink LONGER"


def test_every_module_says_in_a_few_lines_what_it_is_for() -> None:
    lines = {module.name: len((ast.get_docstring(module.tree) or "").splitlines()) for module in MODULES}
    assert [name for name, count in lines.items() if count == 0] == []
    assert {name for name, count in lines.items() if count > LONGEST_DOCSTRING} <= LONGER_DOCSTRINGS


def test_modules_are_named_after_what_they_hold() -> None:
    assert [
        module.name for module in MODULES if DUMPS.intersection(module.name.removesuffix(".py").split("/"))
    ] == []


def test_only_where_a_fault_becomes_a_refusal_or_a_question_is_everything_caught() -> None:
    caught = {module.name: set(_swallowed(module.tree)) for module in OURS}
    assert {
        name: kinds - CATCHERS.get(name, set())
        for name, kinds in caught.items()
        if kinds - CATCHERS.get(name, set())
    } == {}
    assert all(caught[name] == kinds for name, kinds in CATCHERS.items()), "shrink CATCHERS"


def test_nothing_is_left_for_later_in_the_code() -> None:
    assert list(_where(MODULES, lambda text: bool(MARK.search(text)))) == [], (
        "finish it, or say it in CHANGELOG.md"
    )


def test_every_excuse_carries_its_reason() -> None:
    excused = [module for module in MODULES if _folder(module) != "tests"]
    assert list(_where(excused, _is_bare)) == [], "write ` - why` behind it"


def test_no_import_hides_from_the_runtime() -> None:
    hiding = ("TYPE_CHECKING", "from __future__ import annotations")
    assert [module.name for module in OURS if any(each in module.text for each in hiding)] == []


@pytest.mark.parametrize(
    ("comment", "bare"),
    [
        ("# noqa: S101", True),
        ("# noqa: S101 - the bench checks itself", False),
        ("# type: ignore[arg-type]", True),
        ("# pyright: ignore[reportArgumentType] - checked by its signature", False),
        ("# pragma: no cover", True),
        ("# an ordinary comment", False),
    ],
)
def test_an_excuse_without_a_reason_is_recognised(comment: str, *, bare: bool) -> None:
    assert _is_bare(comment) is bare


@pytest.mark.parametrize(
    ("source", "swallowed"),
    [
        ("try: a()\nexcept Exception: pass", ["Exception"]),
        ("try: a()\nexcept (ValueError, Exception) as e: pass", ["Exception"]),
        ("try: a()\nexcept BaseException: raise", []),
        ("try: a()\nexcept BaseException as e: keep(e)", ["BaseException"]),
        ("try: a()\nexcept: pass", ["everything"]),
        ("with suppress(Exception): a()", ["Exception"]),
        ("with contextlib.suppress(OSError, Exception): a()", ["Exception"]),
        ("try: a()\nexcept ValueError: pass", []),
    ],
)
def test_swallowed_exceptions_are_recognised(source: str, swallowed: list[str]) -> None:
    assert list(_swallowed(ast.parse(source))) == swallowed


def _folder(module: Module) -> str:
    return module.name.split("/")[0]


def _where(searched: Iterable[Module], is_wrong: Callable[[str], bool]) -> Iterator[str]:
    for module in searched:
        yield from (f"{module.name}:{line}" for line, text in comments(module.text) if is_wrong(text))


def _is_bare(comment: str) -> bool:
    excuse = EXCUSE.search(comment)
    return excuse is not None and not REASON.search(comment, excuse.end())


def _swallowed(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ExceptHandler(body=[*_, ast.Raise(exc=None)]):
                continue
            case ast.ExceptHandler(type=None):
                yield "everything"
            case ast.ExceptHandler(type=ast.expr() as caught):
                yield from _broad([caught])
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=caught):
                yield from _broad(caught)
            case _:
                pass


def _broad(caught: list[ast.expr]) -> Iterator[str]:
    for each in caught:
        names = each.elts if isinstance(each, ast.Tuple) else [each]
        yield from (
            name.id
            for name in names
            if isinstance(name, ast.Name) and name.id in {"Exception", "BaseException"}
        )
