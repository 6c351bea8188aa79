"""`sayso version`: what is installed."""

import platform
import sqlite3
from importlib.metadata import version as installed

import typer

from sayso.cli.options import JsonOption
from sayso.cli.printing import print_json, print_line


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(version)


def version(*, as_json: JsonOption = False) -> None:
    """Print the version of Sayso and of what it runs on."""
    found = {
        "sayso": installed("sayso"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    if as_json:
        print_json(found)
    else:
        print_line(f"sayso {found['sayso']}, Python {found['python']}, SQLite {found['sqlite']}")
