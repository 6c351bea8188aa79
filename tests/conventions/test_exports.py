"""What a package exports is what it says, in order, and what users see is type-checked as they see it."""

import ast
from collections.abc import Iterator

import sayso
from tests.conventions.source import Module, modules

PUBLIC_API = next(module for module in modules("tests/typing") if module.name.endswith("public_api.py"))


def test_exported_names_exist_in_order_and_once() -> None:
    assert list(sayso.__all__) == sorted(set(sayso.__all__))
    assert [name for name in sayso.__all__ if not hasattr(sayso, name)] == []


def test_the_package_imports_nothing_that_it_does_not_export() -> None:
    root = next(module for module in modules("src") if module.name == "src/sayso/__init__.py")
    assert set(_imported(root)) == set(sayso.__all__)


def test_every_public_name_has_a_case_for_the_type_checker() -> None:
    used = {node.id for node in ast.walk(PUBLIC_API.tree) if isinstance(node, ast.Name)}
    assert set(sayso.__all__) - used == set()


def _imported(module: Module) -> Iterator[str]:
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom):
            yield from (each.asname or each.name for each in node.names)
