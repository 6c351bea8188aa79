"""Measure contenders against each other in one process, in random order, round by round.

A machine drifts, so a figure alone says little. Each round measures every contender once, in an
order drawn afresh; what is compared are the ratios within a round.
"""

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

Measure: TypeAlias = Callable[[], float]
"""Measures once and returns one figure: seconds or bytes for one unit of work."""

Step: TypeAlias = Callable[[], object]
"""Does one unit of work."""

Opener: TypeAlias = Callable[[], AbstractContextManager[Step]]
"""Builds a fresh contender and closes it afterwards, outside the measured time."""

AsyncOpener: TypeAlias = Callable[[], AbstractAsyncContextManager[Callable[[], Awaitable[object]]]]
"""The same for work on an event loop."""

RAW = "raw commit"
"""The contender whose steadiness decides whether a run counts."""

STEADY = 1.8
"""How far a round's raw commit may lie from the median of its run, as a factor."""

FEWEST = 5
"""How many rounds must be left after the unsteady ones are taken out."""

PROBES, PAUSE = 10, 2.0
"""How often a round looks for a quiet disk, and how long it waits in between, in seconds."""

WALL = time.perf_counter_ns
CPU = time.process_time_ns


class CannotRun(Exception):
    """A row or a contender cannot be measured here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One thing that does the work of a row.

    Args:
        name: What the report calls it.
        measure: Measures it once.
    """

    name: str
    measure: Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the rounds of one row gave.

    Args:
        series: The figures of each contender, one per round, in the same order for all.
        missing: Why a contender has no figures, by name.
        rejected: Why the whole run does not count, empty when it does.
        dropped: How many rounds were taken out because the raw commit was unsteady.
    """

    series: Mapping[str, tuple[float, ...]]
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    rejected: str = ""
    dropped: int = 0

    def median(self, name: str) -> float | None:
        """Return the median figure of a contender, or None when it has none."""
        figures = self.series.get(name)
        return statistics.median(figures) if figures else None

    def ratio(self, name: str, against: str) -> tuple[float, float, float] | None:
        """Return median, smallest and largest ratio of two contenders within a round."""
        ours, theirs = self.series.get(name), self.series.get(against)
        if not ours or not theirs:
            return None
        ratios = [mine / other for mine, other in zip(ours, theirs, strict=True) if other > 0]
        if not ratios:
            return None
        return statistics.median(ratios), min(ratios), max(ratios)


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Where a raw commit usually lies on a machine that may be trusted with durable rows.

    Args:
        low: The fastest believable commit, in seconds; below it nothing reaches the disk.
        high: The slowest, in seconds; above it the disk is busy with something else.
    """

    low: float
    high: float


def interleave(contenders: Sequence[Contender], rounds: int, rng: Random, band: Band) -> Outcome:
    """Measure every contender once per round, in an order drawn afresh for each round.

    A contender that cannot run is left out with its reason; the others go on. A round waits a
    while for a raw commit within its band, so that a disk busy for a moment spoils no run.
    """
    raw = next((contender for contender in contenders if contender.name == RAW), None)
    figures: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    missing: dict[str, str] = {}
    for _ in range(rounds):
        if raw:
            _await_quiet(raw, band)
        order = [contender for contender in contenders if contender.name not in missing]
        rng.shuffle(order)
        for contender in order:
            gc.collect()
            try:
                figures[contender.name].append(contender.measure())
            except CannotRun as reason:
                missing[contender.name] = str(reason)
    kept = {name: tuple(found) for name, found in figures.items() if name not in missing}
    return judge_steadiness(Outcome(series=kept, missing=missing), band)


def _await_quiet(raw: Contender, band: Band) -> None:
    for _ in range(PROBES):
        if band.low <= raw.measure() <= band.high:
            return
        time.sleep(PAUSE)


def judge_steadiness(outcome: Outcome, band: Band) -> Outcome:
    """Take out the rounds whose raw commit strays, and reject a run that is off its band."""
    raw = outcome.series.get(RAW)
    if not raw:
        return outcome
    middle = statistics.median(raw)
    steady = [place for place, figure in enumerate(raw) if middle / STEADY <= figure <= middle * STEADY]
    kept = {name: tuple(found[place] for place in steady) for name, found in outcome.series.items()}
    return Outcome(
        series=kept,
        missing=outcome.missing,
        dropped=len(raw) - len(steady),
        rejected=_rejection(middle, len(steady), len(raw), band),
    )


def _rejection(middle: float, steady: int, rounds: int, band: Band) -> str:
    if not band.low <= middle <= band.high:
        return (
            f"the raw commit took {middle * 1e6:.0f} us, outside the band of "
            f"{band.low * 1e6:.0f} to {band.high * 1e6:.0f} us"
        )
    if steady < min(FEWEST, rounds):
        return f"the raw commit strayed in {rounds - steady} of {rounds} rounds"
    return ""


def timed(opener: Opener, *, count: int, batch: int = 1, clock: Callable[[], int] = WALL) -> Measure:
    """Return a measure that opens a contender, warms it up and times it.

    Args:
        opener: Builds what is measured.
        count: How many batches to time; the first third warms up and does not count.
        batch: How many steps between two looks at the clock.
        clock: `WALL`, or `CPU` for work that never waits.

    Returns:
        A measure that gives the median seconds of one step.
    """

    def measure() -> float:
        with opener() as step:
            times = [_batch(step, batch, clock) for _ in range(count)]
        return statistics.median(times[count // 3 :]) / batch / 1e9

    return measure


def _batch(step: Step, batch: int, clock: Callable[[], int]) -> int:
    start = clock()
    for _ in range(batch):
        step()
    return clock() - start


def timed_async(opener: AsyncOpener, *, count: int) -> Measure:
    """Return the same as `timed` for steps that are awaited, one after the other."""

    async def run() -> list[int]:
        times: list[int] = []
        async with opener() as step:
            for _ in range(count):
                start = WALL()
                await step()
                times.append(WALL() - start)
        return times

    def measure() -> float:
        times = asyncio.run(run())
        return statistics.median(times[count // 3 :]) / 1e9

    return measure
