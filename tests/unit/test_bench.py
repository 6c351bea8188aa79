"""The bench judges its own measurements before it reports them."""

from random import Random

import pytest

from bench.harness import RAW, Band, CannotRun, Contender, Outcome, interleave, judge_steadiness
from bench.report import write
from bench.table import Target

BAND = Band(low=40e-6, high=400e-6)


def test_a_ratio_is_taken_within_each_round_and_not_between_medians() -> None:
    outcome = Outcome(series={"ours": (1.0, 20.0, 3.0), "theirs": (2.0, 10.0, 3.0)})
    assert outcome.ratio("ours", "theirs") == (1.0, 0.5, 2.0)


def test_a_run_whose_raw_commit_lies_outside_its_band_is_rejected() -> None:
    outcome = judge_steadiness(Outcome(series={RAW: (3.97e-3,) * 9}), BAND)
    assert "outside the band of 40 to 400 us" in outcome.rejected


def test_a_round_whose_raw_commit_strays_is_left_out_for_every_contender() -> None:
    raw = (100e-6, 100e-6, 390e-6, 110e-6, 90e-6, 100e-6)
    outcome = judge_steadiness(Outcome(series={RAW: raw, "ours": (1.0, 2.0, 99.0, 3.0, 4.0, 5.0)}), BAND)
    assert outcome.series["ours"] == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert (outcome.dropped, outcome.rejected) == (1, "")


def test_a_run_that_strays_in_most_rounds_is_rejected() -> None:
    raw = (100e-6, 390e-6, 100e-6, 390e-6, 50e-6, 100e-6, 390e-6)
    assert "strayed in 4 of 7 rounds" in judge_steadiness(Outcome(series={RAW: raw}), BAND).rejected


def test_a_contender_that_cannot_run_says_why_and_the_others_go_on() -> None:
    def refuse() -> float:
        raise CannotRun("it has no store")

    contenders = (Contender(name="ours", measure=lambda: 1.0), Contender(name="theirs", measure=refuse))
    outcome = interleave(contenders, 3, Random(1), BAND)  # noqa: S311 - an order, not a secret
    assert outcome.missing == {"theirs": "it has no store"}
    assert outcome.series == {"ours": (1.0, 1.0, 1.0)}


def test_contenders_take_turns_in_an_order_that_changes() -> None:
    turns: list[str] = []

    def turn(name: str) -> Contender:
        return Contender(name=name, measure=lambda: turns.append(name) or 1.0)

    interleave([turn("a"), turn("b"), turn("c")], 6, Random(1), BAND)  # noqa: S311 - an order, not a secret
    rounds = ["".join(turns[start : start + 3]) for start in range(0, 18, 3)]
    assert all(sorted(each) == ["a", "b", "c"] for each in rounds)
    assert len(set(rounds)) > 1


@pytest.mark.parametrize(("figure", "reached"), [(1.9, True), (2.1, False)])
def test_a_target_is_reached_up_to_its_ratio_and_no_further(figure: float, reached: bool) -> None:
    outcome = Outcome(series={"ours": (figure,), "floor": (1.0,)})
    assert Target(against="floor", at_most=2).reached(outcome, "ours") is reached


def test_a_target_against_somebody_who_did_not_run_is_neither_reached_nor_missed() -> None:
    assert Target(against="floor", at_most=2).reached(Outcome(series={"ours": (1.0,)}), "ours") is None


def test_figures_are_written_in_the_unit_that_reads_best() -> None:
    assert [write(12e-6, "time"), write(3e-3, "time"), write(1e-4, "rate"), write(1440.0, "bytes")] == [
        "12.0 us",
        "3.0 ms",
        "10,000/s",
        "1,440 B",
    ]
