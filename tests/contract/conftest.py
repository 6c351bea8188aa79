"""The stores that every test of this folder runs against; a new store is one more entry."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from sayso.clock import Clock, ManualClock
from sayso.stores import Store, open_store

Opener: TypeAlias = Callable[[Path, Clock], Store]

STORES: dict[str, Opener] = {
    "sqlite file": lambda folder, clock: open_store(folder / "sayso.db", clock=clock),
    "sqlite memory": lambda _, clock: open_store(":memory:", clock=clock),
}
SHARED = ("sqlite file",)
"""The stores that several processes, or several openings in one, can share."""


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    """One store of each kind."""
    opened = STORES[request.param](tmp_path, clock)
    yield opened
    opened.close()


@pytest.fixture(params=SHARED)
def two(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[tuple[Store, Store]]:
    """The same store, opened twice."""
    both = STORES[request.param](tmp_path, clock), STORES[request.param](tmp_path, clock)
    yield both
    for each in both:
        each.close()
