"""What a shell command does, read from its syntax tree.

Programs and forms that are known are listed here and in `shell_words`; whatever is not listed
is `unknown`, the worst risk. The tree is the one bash would build, so quoting, pipes,
substitutions and wrappers such as `sudo` hide nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, cast

from sayso.policy.shell_words import RANK, ShellRisk, Word, classify, variable_is_safe

_LONGEST = 20_000
_DEEPEST = 3
_UNREADABLE = re.compile(r"[^\S \t\n]|[\x00-\x08\x0e-\x1f\x7f]")
_SHELL_MEANS = re.compile(r"[*?\[\]{}~\\$`]")
_PLAIN_EXPANSION = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
_HARMLESS_FORMS = frozenset(
    [
        "program",
        "list",
        "pipeline",
        "command",
        "command_name",
        "word",
        "number",
        "string",
        "string_content",
        "raw_string",
        "concatenation",
        "comment",
        "redirected_statement",
        "file_redirect",
        "file_descriptor",
        "heredoc_redirect",
        "heredoc_start",
        "heredoc_body",
        "heredoc_content",
        "heredoc_end",
        "herestring_redirect",
        "simple_expansion",
        "special_variable_name",
        "variable_name",
        "expansion",
        "command_substitution",
        "process_substitution",
        "subshell",
        "compound_statement",
        "if_statement",
        "elif_clause",
        "else_clause",
        "for_statement",
        "do_group",
        "while_statement",
        "case_statement",
        "case_item",
        "negated_command",
        "test_command",
        "unary_expression",
        "binary_expression",
        "test_operator",
        "variable_assignment",
    ]
)
"""Forms that do nothing by themselves; their parts are judged one by one."""


class _Node(Protocol):
    """The part of a syntax tree's node that is read here."""

    @property
    def type(self) -> str: ...
    @property
    def text(self) -> bytes | None: ...
    @property
    def has_error(self) -> bool: ...
    @property
    def children(self) -> list["_Node"]: ...
    @property
    def named_children(self) -> list["_Node"]: ...
    def children_by_field_name(self, name: str, /) -> list["_Node"]: ...


@dataclass(frozen=True, slots=True)
class ShellMatch:
    """What a shell command does.

    Args:
        risk: `read`, `write`, `network`, `destructive`, or `unknown` when it cannot be told.
        commands: The programs it starts, in order, wrappers included.
    """

    risk: ShellRisk
    commands: tuple[str, ...] = ()


def shell(value: object) -> ShellMatch:
    """Read a bash command line or script."""
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST or _UNREADABLE.search(value):
        return ShellMatch("unknown")
    return _read(value, 0)


@lru_cache(maxsize=256)
def _read(text: str, depth: int) -> ShellMatch:
    root = _tree(text)
    if root.has_error or depth > _DEEPEST:
        return ShellMatch("unknown")
    risks: list[ShellRisk] = ["read"]
    commands: list[str] = []
    for node in _walk(root):
        if node.type == "command":
            risk, names = _command_risk(node, depth)
            risks.append(risk)
            commands += names
        else:
            risks.append(_form_risk(node))
    return ShellMatch(max(risks, key=RANK.__getitem__), tuple(commands))


def _tree(text: str) -> _Node:
    import tree_sitter  # noqa: PLC0415 - only policies about shells need it
    import tree_sitter_bash  # noqa: PLC0415 - see above

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    return cast("_Node", parser.parse(text.encode()).root_node)


def _walk(root: _Node) -> Iterator[_Node]:
    """Yield every named node in the order of the text."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(node.named_children)


def _command_risk(node: _Node, depth: int) -> tuple[ShellRisk, list[str]]:
    arguments = [*node.children_by_field_name("name"), *node.children_by_field_name("argument")]
    return classify([_literal(each) for each in arguments], lambda script: _nested(script, depth))


def _nested(script: str, depth: int) -> ShellRisk:
    if not script.strip() or _UNREADABLE.search(script):
        return "unknown"
    return _read(script, depth + 1).risk


def _form_risk(node: _Node) -> ShellRisk:
    """Judge everything but simple commands."""
    if node.type == "file_redirect":
        return _redirect_risk(node)
    text = (node.text or b"").decode()
    first = node.children[0].type if node.children else ""
    match node.type:
        case "variable_assignment":
            safe = variable_is_safe(text.partition("=")[0])
        case "for_statement":
            names = node.children_by_field_name("variable")
            safe = all(variable_is_safe((each.text or b"").decode()) for each in names)
        case "expansion":
            safe = _PLAIN_EXPANSION.fullmatch(text) is not None
        case "compound_statement":
            safe = first == "{"
        case "test_command":
            safe = first == "["
        case "test_operator":
            safe = text not in ("-v", "-R")
        case "heredoc_body":
            # The grammar leaves these inside the plain text of the body; bash runs them.
            safe = not re.search(r"`|\$\[", text)
        case kind:
            safe = kind in _HARMLESS_FORMS
    return "read" if safe else "unknown"


def _redirect_risk(node: _Node) -> ShellRisk:
    operator = next((each.type for each in node.children if each.type.strip("<>&|") == ""), "")
    targets = [_literal(each) for each in node.children_by_field_name("destination")]
    if len(targets) != 1 or targets[0] is None:
        return "unknown"
    target = targets[0]
    if re.match(r"/dev/(?:tcp|udp)/", target):
        return "network"
    if operator == "<" or target in _DEVICES or (operator in (">&", "<&") and target.isdigit()):
        return "read"
    return "destructive" if target.startswith("/dev/") else "write"


def _literal(node: _Node) -> Word:
    """Return the word as the program will get it, or None when only the shell can know."""
    text = (node.text or b"").decode()
    word: Word = None
    match node.type:
        case "command_name" if len(node.named_children) == 1:
            word = _literal(node.named_children[0])
        case "number":
            word = text
        case "word" if text == "\\;" or not _SHELL_MEANS.search(text):
            word = text.removeprefix("\\")
        case "raw_string":
            word = text[1:-1]
        case "string" if "\\" not in text and all(
            each.type == "string_content" for each in node.named_children
        ):
            word = text[1:-1]
        case "concatenation":
            word = text if text == "{}" else _joined([_literal(each) for each in node.named_children])
        case _:
            pass
    return word


def _joined(parts: list[Word]) -> Word:
    return None if any(part is None for part in parts) else "".join(part or "" for part in parts)
