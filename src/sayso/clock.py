"""Time as Sayso knows it: whole milliseconds since the Unix epoch, UTC.

The only module that reads a clock. Everything else is handed a `Clock` or a plain `now`.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

Millis: TypeAlias = int
"""Whole milliseconds since the Unix epoch, UTC."""

SECOND: int = 1000

elapsed = time.monotonic
"""Returns seconds that only ever grow, for measuring how long something takes."""


def clock_text(moment: Millis) -> str:
    """Write an instant as `2026-12-01 14:05:00 UTC`."""
    return datetime.fromtimestamp(moment // SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


class Clock(Protocol):
    """What tells the time, and how long a thread may sleep until a given time."""

    def now(self) -> Millis:
        """Return the present, in milliseconds since the Unix epoch."""
        ...

    def seconds_until(self, moment: Millis) -> float | None:
        """Return how many real seconds to sleep until `moment`, or None to sleep until woken."""
        ...

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever time moves other than by itself."""
        ...


class SystemClock:
    """The machine's clock, never running backwards within one process."""

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> Millis:
        """Return the present; a clock set back holds still instead of reopening a deadline."""
        self._last = max(self._last, time.time_ns() // 1_000_000)
        return self._last

    def seconds_until(self, moment: Millis) -> float | None:
        """Return the real seconds until `moment`, zero when it has passed."""
        return max(0.0, (moment - self.now()) / SECOND)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Do nothing: this clock only ever moves by itself."""


class ManualClock:
    """A clock that stands still until it is told to move; for tests and demonstrations."""

    def __init__(self, start: Millis = 1_790_000_000_000) -> None:
        self._now = start
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def now(self) -> Millis:
        """Return the time it was last moved to."""
        return self._now

    def advance(self, seconds: float) -> Millis:
        """Move forward by `seconds` and wake whoever waits for a deadline; return the new time."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back: got {seconds} seconds")
        with self._lock:
            self._now += round(seconds * SECOND)
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()
        return self._now

    def seconds_until(self, moment: Millis) -> float | None:
        """Return zero when `moment` has come, else None: only `advance` can bring it."""
        return 0.0 if moment <= self._now else None

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each `advance`."""
        with self._lock:
            self._callbacks.append(callback)
