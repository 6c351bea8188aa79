"""The table, as text, JSON and a picture. It shows what was measured and nothing else."""

import json
import platform
import sqlite3
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.harness import Outcome
from bench.table import Line, Result, Target, Unit

UNSTEADY = 3
"""How many times the smallest ratio the largest may be before a line is called unsteady."""

_SCALES = ((1e-3, 1e6, "us"), (1.0, 1e3, "ms"))


def write(figure: float | None, unit: Unit) -> str:
    """Write a figure for people."""
    if figure is None:
        return "-"
    if unit == "bytes":
        return f"{figure:,.0f} B"
    if unit == "rate":
        return f"{1 / figure:,.0f}/s"
    for limit, factor, name in _SCALES:
        if figure < limit:
            return f"{figure * factor:,.1f} {name}"
    return f"{figure:,.2f} s"


def write_ratio(ratio: tuple[float, float, float] | None) -> str:
    """Write a median ratio with its range over the rounds."""
    if ratio is None:
        return "-"
    middle, least, most = ratio
    digits = 2 if middle >= 0.1 else 3  # noqa: PLR2004 - where two decimals would say too little
    return f"{middle:.{digits}f}x [{least:.{digits}f}..{most:.{digits}f}]"


def show(results: Sequence[Result], console: Console) -> None:
    """Print the table, then everything that could not be measured and why."""
    table = Table(
        "work", "Sayso", "floor", "to the floor", "to the peers", "target", "reached", show_lines=True
    )
    for result in results:
        for line in result.row.lines:
            table.add_row(*_cells(result.outcome, line))
    console.print(
        f"{machine()}; ratios are medians over the rounds, [least..most]; below 1x is faster than the other"
    )
    console.print(table)
    for remark in remarks(results):
        console.print(remark, highlight=False)


def remarks(results: Sequence[Result]) -> Iterator[str]:
    """Yield what does not count or could not run, and why."""
    for result in results:
        if result.problem:
            yield f"{result.key}: could not run: {result.problem}"
        for name, reason in result.outcome.missing.items():
            yield f"{result.key}: {name} could not run: {reason}"
        if result.outcome.rejected:
            yield f"{result.key}: rejected, measure it again: {result.outcome.rejected}"
        if result.outcome.dropped:
            yield f"{result.key}: {result.outcome.dropped} rounds left out, their raw commit strayed"
        for line in result.row.lines:
            ratio = result.outcome.ratio(line.subject, line.floor)
            if ratio and ratio[2] > UNSTEADY * ratio[1]:
                yield f"{result.key}: `{line.work}` is unsteady; measure it where nothing else runs"


def machine() -> str:
    """Name what it ran on."""
    peers = ", ".join(f"{name} {version(name)}" for name in ("holdpoint", "agentbarrier"))
    return (
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}, {peers}"
    )


def missed(results: Sequence[Result]) -> int:
    """Return how many targets were not reached or could not be told."""
    judged = (
        (result, line, target) for result in results for line in result.row.lines for target in line.targets
    )
    failed = sum(not target.reached(result.outcome, line.subject) for result, line, target in judged)
    return failed + sum(bool(result.problem or result.outcome.rejected) for result in results)


def as_json(results: Sequence[Result]) -> str:
    """Return everything measured: medians, every round, ratios and targets."""
    rows = [
        {
            "row": result.key,
            "problem": result.problem,
            "rejected": result.outcome.rejected,
            "dropped": result.outcome.dropped,
            "missing": dict(result.outcome.missing),
            "rounds": dict(result.outcome.series),
            "lines": [_fields(result.outcome, line) for line in result.row.lines],
        }
        for result in results
    ]
    return json.dumps({"machine": machine(), "rows": rows}, indent=1)


def plot(results: Sequence[Result], path: Path) -> None:
    """Draw each line's ratio to the floor and to the peers; the file's ending says which format."""
    import matplotlib as mpl  # noqa: PLC0415 - slow to load, and only the picture needs it

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - only `--plot` needs it

    bars = [
        (line.work, name, result.outcome.ratio(name, line.subject)) for result, line, name in _pairs(results)
    ]
    drawn = [(f"{work}: {name}", ratio) for work, name, ratio in reversed(bars) if ratio]
    figure, axes = plt.subplots(figsize=(10, 1 + 0.28 * len(drawn)))
    places = range(len(drawn))
    middles = [ratio[0] for _, ratio in drawn]
    errors = [[r[0] - r[1] for _, r in drawn], [r[2] - r[0] for _, r in drawn]]
    colours = ["#9aa5b1" if "floor" in name else "#2f6f8f" for name, _ in drawn]
    axes.barh(places, middles, xerr=errors, color=colours)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(places, [name for name, _ in drawn], fontsize=7)
    axes.set_xlabel("cost relative to Sayso (1 = Sayso; right of it is slower or larger)")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _pairs(results: Sequence[Result]) -> Iterator[tuple[Result, Line, str]]:
    for result in results:
        for line in result.row.lines:
            for name in (line.floor, *line.peers):
                if name and not result.outcome.rejected:
                    yield result, line, name


def _cells(outcome: Outcome, line: Line) -> tuple[str, ...]:
    ratios = (f"{name}: {write_ratio(outcome.ratio(line.subject, name))}" for name in line.peers)
    return (
        line.work,
        write(outcome.median(line.subject), line.unit),
        write(outcome.median(line.floor), line.unit),
        write_ratio(outcome.ratio(line.subject, line.floor)),
        "\n".join(ratios),
        "\n".join(_target(target, line.unit) for target in line.targets),
        "\n".join(_reached(outcome, line, target) for target in line.targets),
    )


def _target(target: Target, unit: Unit) -> str:
    if not target.against:
        return f"<= {write(target.at_most, unit)}"
    return f"<= {target.at_most:.3g}x {target.against}"


def _reached(outcome: Outcome, line: Line, target: Target) -> str:
    if outcome.rejected:
        return "rejected"
    return {True: "yes", False: "NO", None: "-"}[target.reached(outcome, line.subject)]


def _fields(outcome: Outcome, line: Line) -> dict[str, object]:
    others = (line.floor, *line.peers)
    return {
        "work": line.work,
        "unit": line.unit,
        "median": outcome.median(line.subject),
        "floor": outcome.median(line.floor),
        "ratios": {name: outcome.ratio(line.subject, name) for name in others if name},
        "targets": [
            {"target": _target(target, line.unit), "reached": _reached(outcome, line, target)}
            for target in line.targets
        ],
    }
