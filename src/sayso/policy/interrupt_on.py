"""Reading `interrupt_on` maps: the form in which agent frameworks say what to pause at."""

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from sayso.approvals import DecisionKind, Effect
from sayso.errors import PolicyError
from sayso.policy.conditions import nearest
from sayso.policy.predicates import Call
from sayso.policy.rules import ALL_DECISIONS, Rule
from sayso.policy.verdicts import Outcome

_KEYS = ("allowed_decisions", "description", "args_schema", "when", "predicate")
_KINDS = tuple(kind.value for kind in DecisionKind)


def rules_from_interrupt_on(
    interrupt_on: Mapping[str, object], prefix: str, effects: Mapping[str, Effect]
) -> tuple[Rule, ...]:
    """Return one rule for each tool of the map.

    Args:
        interrupt_on: By tool: True, False or a config.
        prefix: The first line of descriptions nobody wrote.
        effects: What tools do to the world, where it is known.

    Raises:
        PolicyError: With every mistake, by tool and key.
    """
    if not isinstance(interrupt_on, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - types may not have been checked
        raise PolicyError(
            f"`interrupt_on` must map tools to True, False or a config, got {type(interrupt_on).__name__}",
            hint='write {"send_email": True}',
        )
    problems = [
        f"`effects` names `{tool}`, which `interrupt_on` does not{nearest(tool, interrupt_on)}"
        for tool in effects
        if tool not in interrupt_on
    ]
    rules: list[Rule] = []
    for tool, config in interrupt_on.items():
        try:
            rules.append(_rule(tool, config, prefix, effects.get(tool)))
        except PolicyError as error:
            problems.append(error.message)
    if problems:
        raise PolicyError("\n".join(problems), hint="mend `interrupt_on`")
    return tuple(rules)


def _rule(tool: str, config: object, prefix: str, effect: Effect | None) -> Rule:
    if config is False:
        return Rule(
            tool=tool, effect=effect or Effect.READ, outcome=Outcome.ALLOW, description=_default(prefix)
        )
    if config is True:
        config = {"allowed_decisions": _KINDS}
    if not isinstance(config, Mapping):
        raise PolicyError(
            f"`{tool}`: must be True, False or a config, got {type(config).__name__}",
            hint="use True to ask about every call",
        )
    settings = cast("Mapping[object, object]", config)
    if problems := list(_problems(settings)):
        raise PolicyError("\n".join(f"`{tool}`: {problem}" for problem in problems))
    return Rule(
        tool=tool,
        effect=effect or Effect.IRREVERSIBLE,
        when=cast("Callable[..., object] | None", settings.get("when", settings.get("predicate"))),
        decisions=_decisions(settings),
        description=cast("str | Callable[..., str]", settings.get("description") or _default(prefix)),
        args_schema=cast("dict[str, None] | None", settings.get("args_schema")),
    )


def _problems(config: Mapping[object, object]) -> Iterator[str]:
    for key in config:
        if key not in _KEYS:
            yield f"there is no key {key!r}{nearest(str(key), _KEYS)}"
    if "when" in config and "predicate" in config:
        yield "`when` and `predicate` are two names for one thing; keep one"
    for key in ("when", "predicate"):
        if key in config and config[key] is None:
            yield f"`{key}` is None; leave it out to ask about every call"
    described = config.get("description", "")
    if not isinstance(described, str) and not callable(described):
        yield f"`description` must be text or a function, got {type(described).__name__}"
    yield from _decision_problems(config)


def _decision_problems(config: Mapping[object, object]) -> Iterator[str]:
    if "allowed_decisions" not in config:
        if "when" not in config and "predicate" not in config:
            yield f"`allowed_decisions` is missing; list some of {', '.join(_KINDS)}"
        return
    listed = config["allowed_decisions"]
    if not isinstance(listed, (list, tuple, set, frozenset)) or not listed:
        yield f"`allowed_decisions` must be a list of some of {', '.join(_KINDS)}, got {listed!r}"
        return
    for each in cast("list[object]", listed):
        if each not in _KINDS:
            yield f"`allowed_decisions` holds {each!r}, which is not a decision{nearest(str(each), _KINDS)}"


def _decisions(config: Mapping[object, object]) -> tuple[DecisionKind, ...]:
    listed = config.get("allowed_decisions")
    if listed is None:
        return ALL_DECISIONS
    if isinstance(listed, (set, frozenset)):
        return tuple(kind for kind in ALL_DECISIONS if kind in cast("set[object]", listed))
    return tuple(dict.fromkeys(DecisionKind(each) for each in cast("list[str]", listed)))


def _default(prefix: str) -> Callable[[Call, object], str]:
    def description(call: Call, _state: object) -> str:
        return f"{prefix}\n\nTool: {call['name']}\nArgs: {call['args']}"

    return description
