"""In CI a test that was skipped fails the run, and no run accepts a mark for what nobody promised."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conventions.source import ROOT

SKIPPING = (
    "import pytest\n\ndef test_it(): pass\n\n@pytest.mark.skip(reason='later')\ndef test_that(): pass\n"
)
MARKED = "import pytest\n\n@pytest.mark.guarantee('G99')\ndef test_it(): pass\n"


def run(folder: Path, source: str, *, ci: bool) -> subprocess.CompletedProcess[str]:
    """Run one test file under the hooks of tests/conftest.py, in a process of its own."""
    (folder / "test_some.py").write_text(source, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = guarantee(id)\n", "utf-8")
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(  # noqa: S603 - the test runner
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        env=usual | {"CI": "true" if ci else "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_ci_fails_when_a_test_is_skipped_in_silence(tmp_path: Path) -> None:
    ran = run(tmp_path, SKIPPING, ci=True)
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED
    assert "skipped, and not in ALLOWED_SKIPS" in ran.stdout
    assert "1 passed, 1 skipped" in ran.stdout


def test_elsewhere_a_test_may_be_skipped(tmp_path: Path) -> None:
    assert run(tmp_path, SKIPPING, ci=False).returncode == pytest.ExitCode.OK


def test_ci_passes_when_nothing_is_skipped(tmp_path: Path) -> None:
    assert run(tmp_path, "def test_it(): pass\n", ci=True).returncode == pytest.ExitCode.OK


def test_a_mark_for_what_nobody_promised_stops_the_run(tmp_path: Path) -> None:
    ran = run(tmp_path, MARKED, ci=False)
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "names `G99`" in ran.stderr
