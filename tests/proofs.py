"""Which tests prove which guarantee, read from the tests' source without running it."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A test that carries the mark of a guarantee.

    Args:
        guarantee: The guarantee's id.
        file: The test's file, relative to the folder that holds `tests`.
        test: The test's name.
    """

    guarantee: str
    file: str
    test: str

    @property
    def sentence(self) -> str:
        """The test's name, as the sentence it is."""
        return self.test.removeprefix("test_").replace("_", " ")


def proofs(root: Path) -> list[Proof]:
    """Return every proof under `root/tests`, in the order of files and lines."""
    found: list[Proof] = []
    for file in sorted((root / "tests").rglob("test_*.py")):
        body = ast.parse(file.read_text("utf-8")).body
        name = file.relative_to(root).as_posix()
        found += [
            Proof(guarantee=each, file=name, test=test)
            for test, ids in _marked(body, _of_module(body))
            for each in ids
        ]
    return found


def _marked(body: Sequence[ast.stmt], inherited: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in body:
        match node:
            case ast.ClassDef(name=name) if name.startswith("Test"):
                yield from _marked(node.body, (*inherited, *_ids(node.decorator_list)))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                yield name, tuple(dict.fromkeys((*inherited, *_ids(node.decorator_list))))
            case _:
                pass


def _of_module(body: Sequence[ast.stmt]) -> tuple[str, ...]:
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=ast.List(elts=marks)):
                return _ids(marks)
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=mark):
                return _ids([mark])
            case _:
                pass
    return ()


def _ids(marks: Sequence[ast.expr]) -> tuple[str, ...]:
    return tuple(each for mark in reversed(marks) for each in _id(mark))


def _id(mark: ast.expr) -> Iterator[str]:
    match mark:
        case ast.Call(
            func=ast.Name(id="guarantee") | ast.Attribute(attr="guarantee"),
            args=[ast.Constant(value=str(name))],
        ):
            yield name
        case _:
            pass
