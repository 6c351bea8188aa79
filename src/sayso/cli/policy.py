"""`sayso policy`: checking a policy file, asking what it says, and comparing it with the tools there are."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from sayso.actions import Action, Json, parse_args
from sayso.cli.exits import Exit
from sayso.cli.opening import settings_for
from sayso.cli.options import ConfigOption, JsonOption
from sayso.cli.printing import (
    BAD,
    GOOD,
    LABEL,
    WARNING,
    Column,
    duration,
    plural,
    print_json,
    print_line,
    print_named,
    print_rows,
    terminal,
)
from sayso.config import load_policy
from sayso.errors import ConfigError
from sayso.policy import Explanation, Outcome, Policy, Step, Unmatched, Verdict
from sayso.presentation import visible

PolicyOption = Annotated[
    str, typer.Option("--policy", metavar="FILE", help="The policy; the one in the settings by default.")
]
_STYLES = {Outcome.ALLOW: GOOD, Outcome.ASK: WARNING, Outcome.DENY: BAD}
_STEPS = (
    Column(title="rule", width=28),
    Column(title="about", width=22),
    Column(title="says", width=7),
    Column(title="why"),
)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Check a policy, ask it, compare it with your tools.", rich_markup_mode=None)
    for command in (check, explain, lint):
        group.command()(command)
    app.add_typer(group, name="policy")


def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A policy file, or package.module:name.")],
    *,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Load a policy and name every mistake, with file and line."""
    settings_for(config, None)
    policy = load_policy(file)
    if as_json:
        print_json({"rules": len(policy.rules), "unlisted": str(policy.unlisted)})
    else:
        rules = plural(len(policy.rules), "rule")
        print_line(
            f"{visible(file)}: {rules}, no mistakes; a tool that is not listed: {policy.unlisted}.",
            style=GOOD,
        )


def explain(
    *,
    tool: Annotated[str, typer.Option(metavar="NAME", help="The tool that would be called.")],
    args: Annotated[str, typer.Option(metavar="JSON", help="Its arguments, as a JSON object.")] = "{}",
    confidence: Annotated[
        float | None, typer.Option(min=0, max=1, metavar="SHARE", help="How sure the agent is, from 0 to 1.")
    ] = None,
    policy: PolicyOption = "",
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Say what policy says about a call, and why.

    Every rule that was looked at is listed with its answer.
    """
    judged = _policy(policy, config)
    action = Action(tool=tool, args=parse_args(args), thread="explain", confidence=confidence)
    found = judged.explain(action)
    if as_json:
        print_json(_explanation_json(found))
        return
    verdict = found.verdict
    console = terminal()
    line = Text.assemble(
        (f"{verdict.outcome}", f"bold {_STYLES[verdict.outcome]}"), f"  {visible(tool)} is {verdict.effect}"
    )
    console.print(line, soft_wrap=True)
    print_named((label, visible(text)) for label, text in _lines(verdict))
    console.print()
    print_rows(_STEPS, map(_step_row, found.steps))


def lint(
    *,
    tools: Annotated[str, typer.Option(metavar="NAMES", help="The tools there are, separated by commas.")],
    policy: PolicyOption = "",
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Name tools without a rule and rules without a tool.

    The exit code is 2 when there are any.
    """
    names = [name.strip() for name in tools.split(",") if name.strip()]
    found = _policy(policy, config).lint(names)
    if as_json:
        print_json(
            {
                "clean": found.clean,
                "tools_without_rule": [_unmatched_json(each) for each in found.tools_without_rule],
                "rules_without_tool": [_unmatched_json(each) for each in found.rules_without_tool],
            }
        )
    elif found.clean:
        print_line(
            f"Every one of the {plural(len(names), 'tool')} has a rule, and every rule a tool.", style=GOOD
        )
    else:
        _print_unmatched("no rule is about", found.tools_without_rule)
        _print_unmatched("no tool is called", found.rules_without_tool)
    return Exit.DONE if found.clean else Exit.USAGE


def _policy(name: str, config: ConfigOption) -> Policy:
    """Return the policy that was named, or that of the settings.

    Raises:
        ConfigError: Neither is there.
    """
    found = name or settings_for(config, None).policy
    if not found:
        raise ConfigError("no policy is named", hint="add --policy FILE, or `policy` to sayso.toml")
    return load_policy(found)


def _lines(verdict: Verdict) -> list[tuple[str, str]]:
    """Return the verdict in words: why, by which rule, and on which terms people are asked."""
    lines = [("why", verdict.why or "nothing speaks against it"), ("rule", verdict.rule)]
    terms = verdict.terms
    if terms is not None:
        quorum = " and ".join(f"{count} of {group}" for group, count in terms.quorum) or "one person"
        lines += [
            ("answers", ", ".join(terms.decisions)),
            ("proof", f"{terms.proof.kind} {terms.proof.template}".strip()),
            ("who", quorum),
            ("silence", f"{terms.silence} after {duration(terms.window)}"),
        ]
    return [(label, text) for label, text in lines if text]


def _step_row(step: Step) -> tuple[str | Text, ...]:
    said = Text(step.said.value, style=_STYLES[step.said]) if step.said else Text("nothing", style=LABEL)
    return visible(step.rule), visible(step.tool), said, visible(step.why)


def _print_unmatched(what: str, found: Sequence[Unmatched]) -> None:
    for each in found:
        where = f"{each.source}: " if each.source else ""
        near = f"; did you mean `{visible(each.suggestion)}`?" if each.suggestion else ""
        print_line(f"{where}{what} `{visible(each.name)}`{near}", style=WARNING)


def _unmatched_json(each: Unmatched) -> dict[str, Json]:
    return {"name": each.name, "source": each.source, "suggestion": each.suggestion}


def _explanation_json(found: Explanation) -> dict[str, Json]:
    verdict, terms = found.verdict, found.verdict.terms
    asked: dict[str, Json] | None = None
    if terms is not None:
        asked = {
            "decisions": [str(kind) for kind in terms.decisions],
            "window": terms.window,
            "silence": str(terms.silence),
            "proof": {"kind": str(terms.proof.kind), "template": terms.proof.template},
            "quorum": dict(terms.quorum),
            "lease": terms.lease,
        }
    return {
        "outcome": str(verdict.outcome),
        "effect": str(verdict.effect),
        "reasons": [str(reason) for reason in verdict.reasons],
        "rule": verdict.rule,
        "why": verdict.why,
        "terms": asked,
        "steps": [
            {
                "rule": step.rule,
                "tool": step.tool,
                "said": str(step.said) if step.said else None,
                "reasons": [str(reason) for reason in step.reasons],
                "why": step.why,
            }
            for step in found.steps
        ],
    }
