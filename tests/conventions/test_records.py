"""Records cannot change once made, have no stray fields, and name every field where they are made."""

import ast
from collections.abc import Iterator

import sayso
from tests.conventions.source import Module, modules

WANTED = frozenset({"frozen", "slots", "kw_only"})

EXCUSED: dict[str, frozenset[str]] = {
    "src/sayso/cli/conversation.py:Conversation": frozenset({"frozen"}),  # what was said so far
    "src/sayso/config.py:PersonSettings": frozenset({"slots"}),  # pydantic fills in its defaults
    "src/sayso/config.py:Settings": frozenset({"slots"}),  # pydantic fills in its defaults
    "src/sayso/confirmation/attempt.py:Attempt": frozenset({"kw_only"}),
    "src/sayso/policy/conditions.py:Condition": frozenset({"kw_only"}),
    "src/sayso/policy/fields.py:Reader": frozenset({"kw_only"}),
    "src/sayso/policy/matchers.py:EmailMatch": frozenset({"kw_only"}),
    "src/sayso/policy/matchers.py:HostMatch": frozenset({"kw_only"}),
    "src/sayso/policy/matchers.py:PathMatch": frozenset({"kw_only"}),
    "src/sayso/policy/money.py:Money": frozenset(
        {"kw_only"}
    ),  # an amount and its currency read best in that order
    "src/sayso/policy/policies.py:Policy": frozenset({"kw_only"}),  # `Policy([...])`: it is its rules
    "src/sayso/policy/shell.py:ShellMatch": frozenset({"kw_only"}),
    "src/sayso/policy/sql.py:SqlMatch": frozenset({"kw_only"}),
    "src/sayso/policy/trees.py:Tree": frozenset({"kw_only"}),
    "src/sayso/settling.py:Expect": frozenset({"kw_only"}),
}
"""Public dataclasses that do without, as `module:Class`, and what they miss; this may only shrink."""


def test_every_record_is_frozen_slotted_and_made_by_keyword() -> None:
    missing = {name: lacks for name, lacks in _missing() if lacks - EXCUSED.get(name, frozenset())}
    assert missing == {}


def test_no_dataclass_is_excused_without_need() -> None:
    missing = dict(_missing())
    assert {name: missing.get(name, frozenset()) for name in EXCUSED} == EXCUSED, "shrink EXCUSED"


def test_every_field_of_what_the_package_exports_is_described() -> None:
    assert [
        each for module in modules("src") for each in _undescribed(module, frozenset(sayso.__all__))
    ] == []


def test_what_a_record_lacks_is_recognised() -> None:
    source = (
        "@dataclass(frozen=True, slots=False)\nclass A:\n    a: int\n    b: int\n"
        "@dataclass\nclass B:\n    a: int\n    b: int\n"
        "@checked(frozen=True, slots=True, kw_only=True)\nclass C:\n    a: int\n    b: int\n"
        "@dataclass(frozen=True, slots=True)\nclass One:\n    a: int\n"
    )
    found = {record.name: _lacks(record, mark) for record, mark in _records(ast.parse(source))}
    assert found == {"A": {"slots", "kw_only"}, "B": WANTED, "C": set(), "One": set()}


def test_an_undescribed_field_is_recognised() -> None:
    source = '@dataclass\nclass A:\n    """A.\n\n    Args:\n        a: It.\n    """\n\n    a: int\n    b: int\n    c: int = field(init=False)\n'
    module = Module(name="a.py", text=source, tree=ast.parse(source))
    assert list(_undescribed(module, frozenset({"A"}))) == ["a.py:A.b"]


def _missing() -> Iterator[tuple[str, frozenset[str]]]:
    for module in modules("src"):
        yield from (
            (f"{module.name}:{record.name}", _lacks(record, mark)) for record, mark in _records(module.tree)
        )


def _records(tree: ast.Module) -> Iterator[tuple[ast.ClassDef, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from (
                (node, mark) for mark in node.decorator_list if _name(mark) in {"dataclass", "checked"}
            )


def _name(mark: ast.expr) -> str:
    match mark:
        case ast.Call(func=ast.Name(id=name)) | ast.Name(id=name):
            return name
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _lacks(record: ast.ClassDef, mark: ast.expr) -> frozenset[str]:
    given = mark.keywords if isinstance(mark, ast.Call) else []
    on = {each.arg for each in given if isinstance(each.value, ast.Constant) and each.value.value is True}
    return WANTED - on - (frozenset({"kw_only"}) if len(list(_fields(record))) == 1 else frozenset[str]())


def _fields(record: ast.ClassDef) -> Iterator[str]:
    """Yield the names of the fields that are given when it is made."""
    for node in record.body:
        match node:
            case ast.AnnAssign(value=ast.Call(keywords=keywords)) if any(
                each.arg == "init" for each in keywords
            ):
                pass
            case ast.AnnAssign(target=ast.Name(id="_"), annotation=ast.Name(id="KW_ONLY")):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind) if not _is_of_class(kind):
                yield name
            case _:
                pass


def _is_of_class(annotation: ast.expr) -> bool:
    return "ClassVar" in ast.unparse(annotation)


def _undescribed(module: Module, exported: frozenset[str]) -> Iterator[str]:
    for record, _ in _records(module.tree):
        described = ast.get_docstring(record) or ""
        if record.name in exported:
            yield from (
                f"{module.name}:{record.name}.{each}"
                for each in _fields(record)
                if f"{each}:" not in described
            )
