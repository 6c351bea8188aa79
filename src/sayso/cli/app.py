"""The commands of `sayso`, each loaded only when it is the one that was typed."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Protocol, cast

import typer

from sayso.cli.exits import MEANINGS, Exit
from sayso.errors import SaysoError, UsageError

COMMANDS = {
    "inbox": "inbox",
    "show": "inbox",
    "approve": "deciding",
    "edit": "deciding",
    "reject": "deciding",
    "respond": "deciding",
    "watch": "watching",
    "reconcile": "reconciling",
    "stats": "stats",
    "audit": "audit",
    "policy": "policy",
    "store": "store",
    "worker": "worker",
    "demo": "demo",
    "version": "version",
}
"""Every command, in the order of the help, and the module it stands in."""


class CommandModule(Protocol):
    """A module with commands."""

    def add_to(self, app: typer.Typer) -> None:
        """Add the commands."""
        ...


def call(words: Sequence[str]) -> int:
    """Run the command that was typed and return its exit code.

    Raises:
        UsageError: The words are no command.
        SaysoError: The command could not do what was asked.
    """
    try:
        code = assemble(words)(list(words), prog_name="sayso", standalone_mode=False)
    except typer.TyperException as error:
        raise _usage(error, words) from None
    except typer.Abort:
        raise SaysoError("the input ended, and nothing was decided", hint="answer the question") from None
    return code if isinstance(code, int) else Exit.DONE


def assemble(words: Sequence[str] = ()) -> typer.Typer:
    """Return the app with the command that was typed, or with all of them."""
    app = typer.Typer(
        help="Decide what AI agents may do. No agent acts on its own say-so.",
        epilog=_epilog(),
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(_without_command)
    typed = next((word for word in words if not word.startswith("-")), "")
    names = [COMMANDS[typed]] if typed in COMMANDS else list(dict.fromkeys(COMMANDS.values()))
    for name in names:
        module = cast("CommandModule", import_module(f"sayso.cli.{name}"))
        module.add_to(app)
    return app


def _without_command(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version and context.invoked_subcommand is None:
        from sayso.cli.version import version as print_version  # noqa: PLC0415 - rarely asked for like this

        print_version()
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _epilog() -> str:
    lines = "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items())
    return f"\b\nExit codes:\n{lines}"


def _usage(error: typer.TyperException, words: Sequence[str]) -> UsageError:
    message = error.format_message().strip().rstrip(".")
    typed = next((word for word in words if word in COMMANDS), "")
    return UsageError(
        message[:1].lower() + message[1:],
        hint=f"see `sayso {typed} --help`" if typed else "see `sayso --help`",
    )
