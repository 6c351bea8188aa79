"""Every error has an exit code, and every exit code a meaning."""

import inspect

from sayso import errors
from sayso.cli.exits import MEANINGS, Exit, exit_for
from sayso.cli.main import error_text
from sayso.errors import DecisionRefused, Late, NotFound, PolicyError, SaysoError, StoreFull


def test_each_family_of_errors_has_its_exit_code() -> None:
    found = {
        kind.__name__: exit_for(kind("x"))
        for kind in (NotFound, Late, DecisionRefused, PolicyError, StoreFull)
    }
    assert found == {
        "NotFound": Exit.NOT_FOUND,
        "Late": Exit.LATE,
        "DecisionRefused": Exit.REFUSED,
        "PolicyError": Exit.USAGE,
        "StoreFull": Exit.STORE,
    }


def test_no_error_ends_as_success() -> None:
    kinds = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, SaysoError)]
    assert all(exit_for(kind("x")) is not Exit.DONE for kind in kinds)


def test_every_exit_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Exit)


def test_an_error_with_many_lines_keeps_them_apart() -> None:
    assert (
        error_text(PolicyError("a:1: x\na:2: y", hint="mend it")) == "error:\n  a:1: x\n  a:2: y\nmend it\n"
    )
    assert error_text(NotFound("no such thing", hint="look again")) == "error: no such thing; look again\n"
