"""`sayso demo`: an agent that overreaches, and you in between."""

from typing import Annotated

import typer

from sayso.cli.conversation import TerminalDesk
from sayso.demo import Options, main


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    *,
    silent: Annotated[
        bool, typer.Option("--silent", help="Let the window close, then try to approve too late.")
    ] = False,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="A model's name for LangChain's init_chat_model; scripted without."
        ),
    ] = "",
    store: Annotated[
        str, typer.Option(metavar="PATH", help="Where to keep it; a new folder by default.")
    ] = "",
) -> int:
    """Watch an agent overreach, and decide about it.

    It books a flight nobody asked for; real tools, a real store, a scripted model.
    """
    return main(Options(silent=silent, model=model, store=store), TerminalDesk())
