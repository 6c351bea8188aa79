"""What holds for every test: known guarantees only, and in CI no test skipped in silence."""

import os
from collections.abc import Iterator
from typing import cast

import pytest
from _pytest.reports import BaseReport
from hypothesis import settings

from tests.guarantees import BY_ID

ALLOWED_SKIPS: dict[str, str] = {}
"""Tests that CI may skip, by the start of their id, and why."""

# A shared machine may be slow at any moment, so no example has a time limit. `make prove` looks longer.
settings.register_profile("usual", deadline=None)
settings.register_profile("prove", deadline=None, max_examples=5000)
settings.load_profile("usual")


def guarantees_of(item: pytest.Item) -> Iterator[str]:
    """Yield the ids of the guarantees that a test says it proves."""
    for mark in item.iter_markers("guarantee"):
        yield from cast("tuple[str, ...]", mark.args)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse to run when a test claims to prove what nobody promised."""
    unknown = sorted(
        f"{item.nodeid} names `{name}`" for item in items for name in guarantees_of(item) if name not in BY_ID
    )
    if unknown:
        raise pytest.UsageError("no such guarantee in tests/guarantees.py: " + "; ".join(unknown))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of CI that skipped a test without being allowed to."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or reporter is None:
        return
    stats = cast("dict[str, list[BaseReport]]", reporter.stats)
    skipped = {report.nodeid for report in stats.get("skipped", [])}
    silent = sorted(each for each in skipped if not any(map(each.startswith, ALLOWED_SKIPS)))
    if not silent:
        return
    reporter.ensure_newline()
    reporter.line(f"skipped, and not in ALLOWED_SKIPS of tests/conftest.py: {', '.join(silent)}", red=True)
    if session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
