"""What a package exports is what it says, in order, and what users see is type-checked as they see it."""

import ast
import sys

import sayso
from tests.conventions.source import ROOT, modules

PUBLIC_API = next(module for module in modules("tests/typing") if module.name.endswith("public_api.py"))


def test_exported_names_exist_in_order_and_once() -> None:
    assert list(sayso.__all__) == sorted(set(sayso.__all__))
    assert [name for name in sayso.__all__ if not hasattr(sayso, name)] == []


def test_the_stub_of_the_package_names_what_loads_when_it_is_used() -> None:
    stub = ast.parse((ROOT / "src/sayso/__init__.pyi").read_text("utf-8"))
    names = {
        each.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    assert sorted(names) == sayso.__all__
    assert {name: getattr(sys.modules[str(home)], name) for name, home in names.items()} == {
        name: getattr(sayso, name) for name in sayso.__all__
    }


def test_every_public_name_has_a_case_for_the_type_checker() -> None:
    used = {node.id for node in ast.walk(PUBLIC_API.tree) if isinstance(node, ast.Name)}
    assert set(sayso.__all__) - used == set()
