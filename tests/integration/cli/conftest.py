"""An office for every test of the command line."""

from pathlib import Path

import pytest

from tests.integration.cli.terminal import Office


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """Return a store, a policy and people in a new folder."""
    return Office(tmp_path)
