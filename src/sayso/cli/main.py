"""The entry point: runs one command and turns whatever ends it into an exit code.

Kept light, so that `sayso --version` answers at once; the commands load when they are used.
"""

import io
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version

from sayso.cli.exits import Exit, exit_for
from sayso.errors import SaysoError


def run() -> None:
    """Run `sayso` with the words of the command line, and leave with its exit code."""
    sys.exit(main(sys.argv[1:]))


def main(words: Sequence[str]) -> int:
    """Run one command and return its exit code.

    Args:
        words: The words after `sayso`.
    """
    _keep_printing()
    try:
        code = _run(words)
        sys.stdout.flush()
    except SaysoError as error:
        return _report(error, words)
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Typer and rich leave by SystemExit for one reason only: nobody reads the output any more.
        sys.stdout = io.StringIO()
        return Exit.CLOSED
    if code == Exit.INTERRUPTED and sys.stderr.isatty():
        sys.stderr.write("\n")  # so that the shell's prompt does not stand behind `^C`
    return code


def _run(words: Sequence[str]) -> int:
    if list(words) == ["--version"]:
        sys.stdout.write(f"sayso {version('sayso')}\n")
        return Exit.DONE
    from sayso.cli.app import call  # noqa: PLC0415 - typer takes longer to load than a version to print

    return call(words)


def _report(error: SaysoError, words: Sequence[str]) -> int:
    """Say what went wrong, to people on standard error and to programs on standard output."""
    if "--json" in words:
        found = {
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "approval_id": error.approval_id,
        }
        sys.stdout.write(json.dumps({"error": found}) + "\n")
        sys.stdout.flush()
    else:
        sys.stderr.write(error_text(error))
    return exit_for(error)


def error_text(error: SaysoError) -> str:
    """Return an error as people read it; one with several lines keeps them apart."""
    if "\n" not in error.message:
        return f"error: {error}\n"
    lines = "".join(f"  {line}\n" for line in error.message.splitlines())
    return f"error:\n{lines}" + (f"{error.hint}\n" if error.hint else "")


def _keep_printing() -> None:
    """Write what a terminal's encoding lacks as an escape, instead of failing in the middle of a card."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
