"""What a row of the table is: one run of contenders, and the lines read off it."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from bench.harness import Contender, Outcome
from bench.work import Scale

Unit: TypeAlias = Literal["time", "rate", "bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a line has to reach.

    Args:
        at_most: The largest ratio to `against`, or the largest figure when that is empty.
        against: The contender to compare with.
    """

    at_most: float
    against: str = ""

    def reached(self, outcome: Outcome, subject: str) -> bool | None:
        """Return whether it was reached, or None when it cannot be told."""
        if not self.against:
            figure = outcome.median(subject)
            return None if figure is None else figure <= self.at_most
        ratio = outcome.ratio(subject, self.against)
        return None if ratio is None else ratio[0] <= self.at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table.

    Args:
        work: What was done, in a few words.
        subject: Sayso's contender.
        floor: The contender with no product around it, empty when there is none.
        peers: Whom else to compare with.
        targets: What it has to reach.
        unit: How to write the figures: seconds, units per second, or bytes.
    """

    work: str
    subject: str
    floor: str = ""
    peers: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()
    unit: Unit = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run: contenders that are measured together, and the lines read off it.

    Args:
        contenders: Who is measured.
        lines: What is read off.
        rounds: How many rounds, 0 for the usual number.
    """

    contenders: Sequence[Contender]
    lines: Sequence[Line]
    rounds: int = 0


RowMaker: TypeAlias = Callable[[Scale, ExitStack], Row]
"""Builds a row; what must outlive its rounds is closed by the stack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A row that was run.

    Args:
        key: The row's name on the command line.
        row: The row.
        outcome: What its rounds gave.
        problem: Why it could not run at all, empty when it did.
    """

    key: str
    row: Row = field(default_factory=lambda: Row(contenders=(), lines=()))
    outcome: Outcome = field(default_factory=lambda: Outcome(series={}))
    problem: str = ""
