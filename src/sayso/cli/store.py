"""`sayso store`: looking the store over, and bringing it up to date."""

from collections.abc import Sequence

import typer
from rich.text import Text

from sayso.cli.exits import Exit
from sayso.cli.opening import check_exists, settings_for, store_path
from sayso.cli.options import ConfigOption, JsonOption, StoreOption
from sayso.cli.printing import BAD, GOOD, print_json, print_line, terminal
from sayso.errors import UsageError
from sayso.stores import open_store
from sayso.stores.inspection import Inspection, inspect_file


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Look the store over, and bring it up to date.", rich_markup_mode=None)
    group.command("check")(check)
    group.command("migrate")(migrate)
    app.add_typer(group, name="store")


def check(*, as_json: JsonOption = False, config: ConfigOption = None, store: StoreOption = None) -> int:
    """Look the store over without changing it.

    Schema, pages, references, and that no list reads a whole table.
    The exit code is 5 when something is wrong.
    """
    settings = settings_for(config, store)
    check_exists(settings)
    path = store_path(settings)
    if path is None:
        raise UsageError(f"`{settings.store}` is not a file", hint="name a store in a file")
    found = inspect_file(path)
    if as_json:
        print_json(
            {
                "sound": found.sound,
                "schema": found.schema,
                "newest_schema": found.newest,
                "pages": list(found.pages),
                "references": list(found.references),
                "scans": list(found.scans),
            }
        )
    else:
        _print(found)
    return Exit.DONE if found.sound else Exit.NOT_SOUND


def migrate(*, as_json: JsonOption = False, config: ConfigOption = None, store: StoreOption = None) -> None:
    """Bring the store's schema up to date, making the store when there is none."""
    settings = settings_for(config, store)
    path = store_path(settings)
    before = inspect_file(path).schema if path is not None and path.exists() else 0
    open_store(settings.store, migrate=True).close()
    after = inspect_file(path).schema if path is not None else before
    if as_json:
        print_json({"from": before, "to": after})
    elif before == after:
        print_line(f"The schema is {after}, which is the newest; nothing to do.")
    else:
        print_line(f"The schema went from {before} to {after}.", style=GOOD)


def _print(found: Inspection) -> None:
    if found.schema == found.newest:
        schema: Sequence[str] = ()
    elif found.schema < found.newest:
        schema = (f"it is {found.schema}, this Sayso needs {found.newest}: run `sayso store migrate`",)
    else:
        schema = (f"it is {found.schema}, this Sayso knows up to {found.newest}: use the newer one",)
    _line("schema", f"{found.schema}", schema)
    _line("pages", "ok", found.pages)
    _line("references", "ok", found.references)
    _line("query plans", "ok, every list reads an index", found.scans)


def _line(name: str, well: str, problems: Sequence[str]) -> None:
    console = terminal()
    verdict = Text("NOT SOUND", style=f"bold {BAD}") if problems else Text(well, style=GOOD)
    console.print(Text.assemble(f"{name:<14}", verdict), soft_wrap=True)
    for problem in problems:
        console.print(Text(f"  {problem}", style=BAD), soft_wrap=True)
