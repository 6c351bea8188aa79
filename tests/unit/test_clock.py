"""Time in whole milliseconds, and clocks that only go forward."""

from datetime import UTC, datetime

import pytest

from sayso.clock import ManualClock, SystemClock, elapsed


def test_the_machines_clock_tells_milliseconds_and_never_runs_back() -> None:
    clock = SystemClock()
    first = clock.now()
    assert abs(first - datetime.now(UTC).timestamp() * 1000) < 5000  # noqa: TID251 - what the clock is compared with
    assert all(clock.now() >= first for _ in range(1000))


def test_a_clock_that_is_set_back_holds_still() -> None:
    clock = SystemClock()
    ahead = clock.now() + 3_600_000
    clock._last = ahead  # pyright: ignore[reportPrivateUsage] - as if the machine had been an hour ahead
    assert clock.now() == ahead
    assert clock.seconds_until(ahead) == 0.0


def test_the_seconds_until_a_moment_are_never_negative() -> None:
    clock = SystemClock()
    assert clock.seconds_until(0) == 0.0
    assert 59 < (clock.seconds_until(clock.now() + 60_000) or 0) <= 60
    clock.on_change(pytest.fail)


def test_a_manual_clock_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(1000)
    heard: list[int] = []
    clock.on_change(lambda: heard.append(clock.now()))
    assert clock.now() == 1000
    assert clock.seconds_until(1001) is None
    assert clock.seconds_until(1000) == 0.0
    assert clock.advance(0.5) == 1500
    assert clock.advance(0) == 1500
    assert heard == [1500, 1500]


def test_a_manual_clock_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        ManualClock().advance(-0.001)


def test_elapsed_time_only_grows() -> None:
    first = elapsed()
    assert elapsed() >= first
