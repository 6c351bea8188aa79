"""`python -m bench`: measure the rows and print the table."""

import argparse
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from rich.console import Console

from sayso.errors import SaysoError

try:
    from bench import report
    from bench.harness import Band, CannotRun, interleave
    from bench.rows import ROWS
    from bench.table import Result
    from bench.work import Scale
except ModuleNotFoundError as error:
    raise SystemExit(f"`{error.name}` is not installed; install it with: uv sync --group bench") from error

PICTURE = Path("docs/bench.svg")
FAULTS = (
    CannotRun,
    SaysoError,
    sqlite3.Error,
    OSError,
    RuntimeError,
    subprocess.SubprocessError,
    ExceptionGroup,
)
"""What stops a row and is reported; anything else is a mistake in the bench."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and report; return 1 when a target was missed and `--check` was given."""
    options = _parser().parse_args(arguments)
    low, high = (float(edge) / 1e6 for edge in options.band.split(":"))
    scale = Scale(
        rounds=options.rounds or (3 if options.quick else 9),
        quick=options.quick,
        full=options.full,
        folder=options.dir,
    )
    console, errors = Console(width=options.width), Console(stderr=True)
    rng = Random(options.seed)  # noqa: S311 - the order of contenders, not a secret
    results: list[Result] = []
    for key in options.rows or list(ROWS):
        errors.print(f"measuring {key} ...")
        results.append(run(key, scale, rng, Band(low=low, high=high)))
    report.show(results, console)
    if options.json:
        options.json.write_text(report.as_json(results) + "\n", encoding="utf-8")
    if options.plot:
        report.plot(results, options.plot)
    return 1 if options.check and report.missed(results) else 0


def run(key: str, scale: Scale, rng: Random, band: Band) -> Result:
    """Measure one row; a fault is reported in its place."""
    with ExitStack() as kept:
        try:
            row = ROWS[key](scale, kept)
            outcome = interleave(row.contenders, min(row.rounds or scale.rounds, scale.rounds), rng, band)
        except FAULTS as fault:
            return Result(key=key, problem=_explain(fault))
        return Result(key=key, row=row, outcome=outcome)


def _explain(fault: BaseException) -> str:
    """Name a fault; of several at once, the first."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return f"{type(fault).__name__}: {fault}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--rows", nargs="+", choices=list(ROWS), metavar="ROW", help=f"only these: {', '.join(ROWS)}")
    add("--rounds", type=int, default=0, help="how often each contender is measured (9, or 3 with --quick)")
    add("--quick", action="store_true", help="a tenth of the work, for a look only")
    add("--full", action="store_true", help="also the rows with a million records")
    add(
        "--dir",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where the databases go; must be a real disk",
    )
    add("--band", default="40:400", help="where a raw commit must lie for a run to count, in us, LOW:HIGH")
    add("--seed", type=int, default=None, help="makes the order of contenders repeatable")
    add("--width", type=int, default=None, help="how wide the table is, in characters")
    add("--json", type=Path, help="write every figure of every round to this file")
    add("--plot", type=Path, nargs="?", const=PICTURE, help=f"draw the ratios into this file ({PICTURE})")
    add("--check", action="store_true", help="fail when a target was missed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
