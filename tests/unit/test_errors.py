"""Every error says what is wrong and what to do, and survives a process boundary."""

import pickle
from collections.abc import Iterator

import pytest

from sayso import errors
from sayso.errors import MissingExtra, Refused, SaysoError


def kinds(of: type[SaysoError] = SaysoError) -> Iterator[type[SaysoError]]:
    yield of
    for kind in of.__subclasses__():
        yield from kinds(kind)


ALL = [kind for kind in kinds() if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", ALL)
def test_an_error_survives_pickling_whole(kind: type[SaysoError]) -> None:
    error = kind("it broke", hint="mend it", approval_id="ap1")
    read = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(read) is kind
    assert (read.message, read.hint, read.approval_id) == ("it broke", "mend it", "ap1")
    assert str(read) == "it broke; mend it"


def test_every_code_is_its_own() -> None:
    assert len({kind.code for kind in ALL}) == len(ALL)


def test_without_a_hint_the_message_stands_alone() -> None:
    assert str(SaysoError("it broke")) == "it broke"


def test_what_must_not_run_is_told_apart_from_what_was_not_taken() -> None:
    refused = {kind.code for kind in kinds(Refused)}
    assert refused == {"refused", "denied", "rejected", "expired", "withdrawn", "outcome_unknown"}


def test_a_missing_extra_comes_with_the_line_that_installs_it() -> None:
    error = MissingExtra.of("langchain", "langchain")
    assert "`langchain` is not installed" in error.message
    assert 'pip install "sayso[langchain]"' in error.hint


def test_the_hint_of_several_mistakes_stands_on_a_line_of_its_own() -> None:
    assert str(SaysoError("a:1: one\na:2: two", hint="mend both")) == "a:1: one\na:2: two\nmend both"
    assert str(SaysoError("one")) == "one"
