"""Reading one value of a policy file: a word, a duration, a proof, an amount.

Every reader returns the value, or None after it wrote down the mistake.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TypeVar, cast

from sayso.actions import Json
from sayso.approvals import DecisionKind, ProofKind, ProofRule
from sayso.errors import PolicyError, UsageError
from sayso.policy.conditions import Condition, nearest
from sayso.policy.money import Money, is_currency
from sayso.policy.rules import Price, schema_problems
from sayso.policy.trees import Tree, entries, plain_value

E = TypeVar("E", bound=StrEnum)

_UNITS: Mapping[str, int] = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"([1-9][0-9]{0,6})([smhd])")
_TYPED = re.compile(r"type:\s*(?:\"([^\"]+)\"|'([^']+)'|([^\"'\s].*))")
_TEMPLATE = re.compile(r"(?:[^{}]|\{[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+|\[[0-9]+\])*\})+")
_COST_KEYS = ("amount", "currency", "over")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads values of one file and collects the mistakes.

    Args:
        source: The file's name.
        mistakes: Every mistake so far, as `file:line: what is wrong`.
    """

    source: str
    mistakes: list[str] = field(default_factory=list[str])

    def report(self, tree: Tree, problem: str) -> None:
        """Write a mistake down with its line, unless the file's structure was at fault already."""
        if not tree.refused:
            self.mistakes.append(f"{self.source}:{tree.line}: {problem}")

    def known_keys(self, tree: Tree, where: str, keys: Sequence[str]) -> Mapping[str, Tree]:
        """Return the entries of a mapping, reporting those with unknown keys."""
        if not isinstance(tree.value, dict):
            self.report(tree, f"`{where}` must be a mapping, got {tree.kind}")
            return {}
        for key, each in tree.value.items():
            if key not in keys:
                self.report(each, f"`{where}` has no `{key}`{nearest(key, tuple(keys))}")
        return {key: each for key, each in tree.value.items() if key in keys}

    def choice(self, tree: Tree, where: str, kind: type[E]) -> E | None:
        """Read one word of an enumeration."""
        words = [each.value for each in kind]
        if isinstance(tree.value, str) and tree.value in words:
            return kind(tree.value)
        shown = tree.value if isinstance(tree.value, str) else tree.text or tree.kind
        self.report(
            tree,
            f"`{where}` must be one of {', '.join(words)}, got `{shown}`{nearest(str(shown), tuple(words))}",
        )
        return None

    def text(self, tree: Tree, where: str) -> str | None:
        """Read a text that is not empty."""
        if isinstance(tree.value, str) and tree.value.strip():
            return tree.value
        self.report(tree, f"`{where}` must be text, got {tree.kind if tree.value != '' else 'an empty text'}")
        return None

    def texts(self, tree: Tree, where: str) -> tuple[str, ...] | None:
        """Read a list of texts."""
        if not isinstance(tree.value, tuple) or not tree.value:
            self.report(tree, f"`{where}` must be a list, got {tree.kind}")
            return None
        found = tuple(self.text(each, where) for each in tree.value)
        return cast("tuple[str, ...]", found) if all(found) else None

    def number(self, tree: Tree, where: str) -> float | None:
        """Read a number from 0 to 1."""
        if type(tree.value) in (int, float) and 0 <= cast("float", tree.value) <= 1:
            return float(cast("float", tree.value))
        self.report(tree, f"`{where}` must be a number from 0 to 1, got {tree.text or tree.kind}")
        return None

    def seconds(self, tree: Tree, where: str) -> int | None:
        """Read a duration such as `90s`, `5m`, `2h` or `1d`; return seconds."""
        found = _DURATION.fullmatch(tree.value) if isinstance(tree.value, str) else None
        if found:
            return int(found.group(1)) * _UNITS[found.group(2)]
        self.report(
            tree, f"`{where}` must be a duration such as 30s, 5m, 2h or 1d, got {tree.text or tree.kind}"
        )
        return None

    def condition(self, tree: Tree, where: str) -> Condition | None:
        """Read a CEL condition."""
        if not isinstance(tree.value, str):
            self.report(tree, f"`{where}` must be a condition in text, got {tree.kind}")
            return None
        try:
            return Condition.compile(tree.value)
        except PolicyError as error:
            self.report(tree, f"{where}: {error.message}")
            return None

    def decisions(self, tree: Tree) -> tuple[DecisionKind, ...] | None:
        """Read the list of allowed answers."""
        if not isinstance(tree.value, tuple) or not tree.value:
            self.report(
                tree, f"`decisions` must be a list of some of {', '.join(DecisionKind)}, got {tree.kind}"
            )
            return None
        found = [self.choice(each, "decisions", DecisionKind) for each in tree.value]
        return tuple(dict.fromkeys(kind for kind in found if kind)) if all(found) else None

    def proof(self, tree: Tree) -> ProofRule | None:
        """Read `click`, `code`, `totp` or `type:"{argument}"`."""
        if isinstance(tree.value, str) and (typed := _TYPED.fullmatch(tree.value)):
            template = next(each for each in typed.groups() if each)
            if _TEMPLATE.fullmatch(template):
                return ProofRule(kind=ProofKind.TYPE, template=template)
            self.report(tree, '`confirm` has a `{` that names no argument; write type:"{price}"')
            return None
        if tree.value == ProofKind.TYPE:
            self.report(tree, '`confirm: type` does not say what must be typed; write type:"{price}"')
            return None
        kind = self.choice(tree, "confirm", ProofKind)
        return ProofRule(kind=kind) if kind else None

    def approvers(self, tree: Tree) -> Mapping[str, int] | None:
        """Read how many of each group must approve."""
        if not isinstance(tree.value, dict) or not tree.value:
            self.report(
                tree, f"`approvers` must say how many of each group, such as {{travel: 1}}, got {tree.kind}"
            )
            return None
        counts: dict[str, int] = {}
        for group, count in tree.value.items():
            if group and type(count.value) is int and count.value >= 1:
                counts[group] = count.value
            else:
                self.report(
                    count,
                    f"`approvers.{group}` must be a whole number above 0, got {count.text or count.kind}",
                )
        return counts

    def schema(self, tree: Tree) -> Mapping[str, Json] | None:
        """Read a JSON Schema."""
        value = plain_value(tree)
        if not isinstance(value, dict):
            self.report(tree, f"`schema` must be a JSON Schema, got {tree.kind}")
            return None
        schema = cast("dict[str, Json]", value)
        problems = list(schema_problems(schema))
        for problem in problems:
            self.report(tree, problem.replace("args_schema:", "`schema`", 1))
        return None if problems else schema

    def cost(self, tree: Tree) -> tuple[Price, Money] | None:
        """Read an amount, its currency and its limit."""
        found = self.known_keys(tree, "cost", _COST_KEYS)
        for key in _COST_KEYS:
            if key not in found and entries(tree):
                self.report(tree, f"`cost` needs `{key}`")
        if len(found) < len(_COST_KEYS):
            return None
        amount = self.condition(found["amount"], "cost.amount")
        currency = found["currency"].value
        if not is_currency(currency):
            self.report(
                found["currency"], f"`cost.currency` must be a code such as USD, got {found['currency'].text}"
            )
            return None
        limit = self._limit(found["over"], cast("str", currency))
        return (Price(amount=amount, currency=limit.currency), limit) if amount and limit else None

    def _limit(self, tree: Tree, currency: str) -> Money | None:
        try:
            limit = Money.of(Decimal(tree.text), currency)
        except (InvalidOperation, UsageError) as error:
            detail = error.message if isinstance(error, UsageError) else f"got {tree.text or tree.kind}"
            self.report(tree, f"`cost.over` must be an amount: {detail}")
            return None
        if limit.minor < 0:
            self.report(tree, "`cost.over` must not be negative")
            return None
        return limit
