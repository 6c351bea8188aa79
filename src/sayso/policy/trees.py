"""YAML as a tree that remembers lines; nothing is built from it but plain values.

Anchors, aliases and tags are refused: a policy gains nothing from them, and a few lines of
them can stand for more than a machine holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

from sayso.errors import PolicyError

_LONGEST = 262_144
_DEEPEST = 50
_PLAIN_TAGS = ("str", "int", "float", "bool", "null", "map", "seq")

Scalar: TypeAlias = "str | int | float | bool | None"


@dataclass(frozen=True, slots=True)
class Tree:
    """A value of a file and where it stands.

    Args:
        value: A scalar, a tuple of trees, or trees by key.
        line: The line it starts on, from 1.
        text: A scalar as it was written.
        refused: Whether it was reported already, so that nothing more need be said.
    """

    value: "Scalar | tuple[Tree, ...] | dict[str, Tree]"
    line: int
    text: str = ""
    refused: bool = False

    @property
    def kind(self) -> str:
        """What the value is, in words."""
        names: dict[type, str] = {
            dict: "a mapping",
            tuple: "a list",
            str: "text",
            bool: "true or false",
            type(None): "nothing",
        }
        return names.get(type(self.value), "a number")


class _Mark(Protocol):
    line: int


class _Node(Protocol):
    tag: str
    anchor: str | None
    value: object
    start_mark: _Mark


def read_tree(text: str, source: str, mistakes: list[str]) -> Tree:
    """Read YAML; mistakes of structure are added to `mistakes` as `file:line: what is wrong`.

    Raises:
        PolicyError: The text is not one YAML document, is too large or nests too deep.
    """
    from ruamel.yaml import YAML, YAMLError  # noqa: PLC0415 - only policies in files need it

    if len(text) > _LONGEST:
        raise PolicyError(f"{source}: has {len(text):,} characters, at most {_LONGEST:,} are allowed")
    try:
        node = cast("_Node | None", YAML(typ="safe", pure=True).compose(text))  # pyright: ignore[reportUnknownMemberType] - its own types
    except YAMLError as error:
        raise PolicyError(f"{source}{_mark(error)}: is not YAML: {_problem(error)}") from None
    except RecursionError:
        raise PolicyError(f"{source}: nests too deep") from None
    except ValueError as error:
        raise PolicyError(f"{source}: is not YAML: {error}") from None
    if node is None:
        return Tree({}, 1)
    return _tree(node, _Reading(source, mistakes), _DEEPEST)


@dataclass(frozen=True, slots=True)
class _Reading:
    source: str
    mistakes: list[str]

    def report(self, node: _Node, problem: str) -> None:
        self.mistakes.append(f"{self.source}:{node.start_mark.line + 1}: {problem}")


def _tree(node: _Node, reading: _Reading, room: int) -> Tree:
    line = node.start_mark.line + 1
    if node.anchor:
        reading.report(node, f"anchors and aliases (`&{node.anchor}`) are not allowed; write it out")
        return Tree(None, line, refused=True)
    kind = str(node.tag).removeprefix("tag:yaml.org,2002:")
    if kind not in _PLAIN_TAGS or room <= 0:
        problem = f"`{node.tag}` is not allowed; write plain values" if room > 0 else "nests too deep"
        reading.report(node, problem)
        return Tree(None, line, refused=True)
    if kind == "map":
        return Tree(_mapping(node, reading, room), line)
    if kind == "seq":
        return Tree(tuple(_tree(each, reading, room - 1) for each in cast("list[_Node]", node.value)), line)
    text = cast("str", node.value)
    return Tree(_scalar(kind, text), line, text)


def _mapping(node: _Node, reading: _Reading, room: int) -> dict[str, Tree]:
    found: dict[str, Tree] = {}
    for key_node, value_node in cast("list[tuple[_Node, _Node]]", node.value):
        key = key_node.value
        if not isinstance(key, str):
            reading.report(key_node, "a key must be text")
            continue
        if key in found:
            reading.report(
                key_node, f"`{key}` stands here for the second time; first on line {found[key].line}"
            )
            continue
        tree = _tree(value_node, reading, room - 1)
        found[key] = Tree(tree.value, key_node.start_mark.line + 1, tree.text, tree.refused)
    return found


def _scalar(kind: str, text: str) -> Scalar:
    """Return the value of a scalar; numbers only in the plain decimal spelling."""
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    try:
        return int(text) if kind == "int" else float(text) if kind == "float" else text
    except ValueError:
        return text


def plain_value(tree: Tree) -> object:
    """Return the plain value of a tree, without its lines."""
    if isinstance(tree.value, dict):
        return {key: plain_value(each) for key, each in tree.value.items()}
    if isinstance(tree.value, tuple):
        return [plain_value(each) for each in tree.value]
    return tree.value


def entries(tree: Tree) -> Mapping[str, Tree]:
    """Return the entries of a mapping, none for anything else."""
    return tree.value if isinstance(tree.value, dict) else {}


def _mark(error: Exception) -> str:
    mark = cast("_Mark | None", getattr(error, "problem_mark", None))
    return f":{mark.line + 1}" if mark else ""


def _problem(error: Exception) -> str:
    return cast("str | None", getattr(error, "problem", None)) or "it cannot be read"
