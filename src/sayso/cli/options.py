"""The options that many commands share, said once."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON for programs; errors too, on standard output.")
]
ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option("--config", metavar="PATH", help="The settings file; sayso.toml by default.")
]
StoreOption: TypeAlias = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="The store; beats SAYSO_STORE and the settings.")
]
ApprovalArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="The approval's id, or the beginning of it.")
]
OpenOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--open", metavar="PATH", help="Show this part in full; can be repeated."),
]
OpenAllOption: TypeAlias = Annotated[bool, typer.Option("--open-all", help="Show every part in full.")]
ShownOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--shown",
        metavar="DIGEST",
        help="Refuse unless the card is the very one you saw: its `shown as`, or the first 12 digits of it.",
    ),
]
ProofOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--proof",
        metavar="VALUE",
        help="The proof, without asking: y, the code, the phrase or the six digits.",
    ),
]
