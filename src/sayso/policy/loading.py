"""Reading policy files: `sayso.yaml`, with every mistake named by file and line.

`read_text` is the only function of policy that reads a file.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, TypedDict, cast

from sayso.actions import Json
from sayso.approvals import DecisionKind, Effect, ProofRule, Silence
from sayso.errors import PolicyError
from sayso.policy.conditions import Condition, nearest
from sayso.policy.fields import Reader
from sayso.policy.money import Money
from sayso.policy.rules import Price, Rule, implied
from sayso.policy.trees import Tree, read_tree
from sayso.policy.verdicts import Outcome

_TOP = ("unlisted", "confidence_floor", "silence", "mode", "tools")
_SILENCE = ("irreversible", "reversible", "after")
_TOOL = (
    "effect",
    "outcome",
    "when",
    "unless",
    "decisions",
    "confirm",
    "approvers",
    "description",
    "schema",
    "cost",
    "trusted",
    "silence",
    "window",
    "lease",
)
_SAYS_HOW_TO_ASK = frozenset(
    {"decisions", "confirm", "approvers", "description", "schema", "silence", "window"}
)
_SHORT: Mapping[str, tuple[Effect, Outcome]] = {
    "read": (Effect.READ, Outcome.ALLOW),
    "reversible": (Effect.REVERSIBLE, Outcome.ALLOW),
    "irreversible": (Effect.IRREVERSIBLE, Outcome.ASK),
    "ask": (Effect.IRREVERSIBLE, Outcome.ASK),
    "deny": (Effect.IRREVERSIBLE, Outcome.DENY),
    "allow": (Effect.REVERSIBLE, Outcome.ALLOW),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """What a policy file says.

    Args:
        rules: One rule for each entry of `tools`.
        unlisted: The outcome for a tool no rule is about.
        confidence_floor: From 0 to 1.
        silence: What no answer means for what can be taken back.
        window: How long people have, in seconds.
        mode: `all` or `first`.
    """

    rules: tuple[Rule, ...]
    unlisted: Outcome = Outcome.ASK
    confidence_floor: float = 0.70
    silence: Silence = Silence.DENY
    window: int = 300
    mode: Literal["all", "first"] = "all"


class _Parts(TypedDict, total=False):
    """The fields of a rule as they were read."""

    effect: Effect
    outcome: Outcome
    when: Condition
    unless: Condition
    decisions: tuple[DecisionKind, ...]
    description: str
    args_schema: Mapping[str, Json]
    cost: Price
    over: Money
    trusted: tuple[str, ...]
    confirm: ProofRule
    approvers: Mapping[str, int]
    silence: Silence
    window: int
    lease: int


def read_text(path: str | PathLike[str]) -> tuple[str, str]:
    """Return the text of a policy file and the name to report mistakes under.

    Raises:
        PolicyError: The file cannot be read, or is not UTF-8.
    """
    name = fspath(path)
    try:
        return Path(name).read_text(encoding="utf-8"), Path(name).name
    except OSError as error:
        raise PolicyError(f"`{name}` cannot be read: {error.strerror}", hint="check the path") from None
    except UnicodeDecodeError:
        raise PolicyError(f"`{name}` is not UTF-8 text", hint="save it as UTF-8") from None


def read_policy(text: str, source: str) -> PolicyFile:
    """Read the text of a policy file.

    Raises:
        PolicyError: With every mistake, as `file:line: what is wrong`.
    """
    reader = Reader(source)
    tree = read_tree(text, source, reader.mistakes)
    found = _read(tree, reader)
    if reader.mistakes:
        count = len(reader.mistakes)
        hint = f"mend {'the mistake' if count == 1 else f'the {count} mistakes'} and load it again"
        raise PolicyError("\n".join(sorted(reader.mistakes, key=_line)), hint=hint)
    return found


def _line(mistake: str) -> int:
    found = re.match(r"[^:]*:(\d+):", mistake)
    return int(found.group(1)) if found else 0


def _read(tree: Tree, reader: Reader) -> PolicyFile:
    budgets = tree.value.get("budgets") if isinstance(tree.value, dict) else None
    if budgets:
        reader.report(budgets, "`budgets` is not supported yet; limit single calls with `cost` or `when`")
    top = reader.known_keys(tree, "the policy", (*_TOP, "budgets"))
    unlisted = reader.choice(top["unlisted"], "unlisted", Outcome) if "unlisted" in top else None
    floor = reader.number(top["confidence_floor"], "confidence_floor") if "confidence_floor" in top else None
    silence, window = _silence(top["silence"], reader) if "silence" in top else (None, None)
    return PolicyFile(
        rules=_rules(top["tools"], reader) if "tools" in top else (),
        unlisted=unlisted or Outcome.ASK,
        confidence_floor=0.70 if floor is None else floor,
        silence=silence or Silence.DENY,
        window=window or 300,
        mode=_mode(top["mode"], reader) if "mode" in top else "all",
    )


def _mode(tree: Tree, reader: Reader) -> Literal["all", "first"]:
    if tree.value not in ("all", "first"):
        reader.report(tree, f"`mode` must be all or first, got {tree.text or tree.kind}")
    return "first" if tree.value == "first" else "all"


def _silence(tree: Tree, reader: Reader) -> tuple[Silence | None, int | None]:
    found = reader.known_keys(tree, "silence", _SILENCE)
    if "irreversible" in found and found["irreversible"].value != Silence.DENY:
        reader.report(
            found["irreversible"], "`silence.irreversible` can only be deny: silence is never consent"
        )
    silence = (
        reader.choice(found["reversible"], "silence.reversible", Silence) if "reversible" in found else None
    )
    return silence, reader.seconds(found["after"], "silence.after") if "after" in found else None


def _rules(tree: Tree, reader: Reader) -> tuple[Rule, ...]:
    if not isinstance(tree.value, dict):
        reader.report(tree, f"`tools` must be a mapping of tools to rules, got {tree.kind}")
        return ()
    rules = (_rule(tool, each, reader) for tool, each in tree.value.items())
    return tuple(rule for rule in rules if rule)


def _rule(tool: str, tree: Tree, reader: Reader) -> Rule | None:
    before = len(reader.mistakes)
    parts = _long(tool, tree, reader) if isinstance(tree.value, dict) else _short(tool, tree, reader)
    if len(reader.mistakes) > before or parts is None:
        return None
    try:
        return Rule(tool=tool, source=f"{reader.source}:{tree.line}", **parts)
    except PolicyError as error:
        reader.mistakes.extend(error.message.split("\n"))
        return None


def _short(tool: str, tree: Tree, reader: Reader) -> _Parts | None:
    if isinstance(tree.value, str) and tree.value in _SHORT:
        effect, outcome = _SHORT[tree.value]
        return {"effect": effect, "outcome": outcome}
    near = nearest(tree.text, _SHORT)
    reader.report(
        tree, f"`{tool}` must be one of {', '.join(_SHORT)}, or a mapping, got {tree.text or tree.kind}{near}"
    )
    return None


def _long(tool: str, tree: Tree, reader: Reader) -> _Parts:
    found = reader.known_keys(tree, tool, _TOOL)
    if not found:
        reader.report(tree, f"`{tool}` says nothing; write one of {', '.join(_SHORT)}")
    parts: dict[str, object] = {}
    readers: Mapping[str, Callable[[Tree], object]] = {
        "effect": lambda each: reader.choice(each, "effect", Effect),
        "outcome": lambda each: reader.choice(each, "outcome", Outcome),
        "when": lambda each: reader.condition(each, "when"),
        "unless": lambda each: reader.condition(each, "unless"),
        "decisions": reader.decisions,
        "confirm": reader.proof,
        "approvers": reader.approvers,
        "description": lambda each: reader.text(each, "description"),
        "schema": reader.schema,
        "trusted": lambda each: reader.texts(each, "trusted"),
        "silence": lambda each: reader.choice(each, "silence", Silence),
        "window": lambda each: reader.seconds(each, "window"),
        "lease": lambda each: reader.seconds(each, "lease"),
    }
    for key, each in found.items():
        if key != "cost":
            parts["args_schema" if key == "schema" else key] = readers[key](each)
        elif priced := reader.cost(each):
            parts["cost"], parts["over"] = priced
    read = cast("_Parts", parts)
    if "outcome" not in found:
        keys = found.keys()
        read["outcome"] = implied(
            read.get("effect", Effect.IRREVERSIBLE),
            conditional=bool(keys & {"when", "unless"}),
            limited=bool(keys & {"cost", "trusted"}),
            says_how=bool(keys & _SAYS_HOW_TO_ASK),
        )
    return read
