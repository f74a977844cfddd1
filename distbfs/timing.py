"""Wall-clock timing of named phases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up seconds per phase; phases may be entered any number of times."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Count the time of a ``with`` block towards ``phase``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(phase, time.perf_counter() - start)

    def add(self, phase: str, seconds: float) -> None:
        """Count seconds towards a phase."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def get(self, phase: str) -> float:
        """Return the seconds of a phase so far."""
        return self.seconds.get(phase, 0.0)

    def reset(self) -> dict[str, float]:
        """Return the seconds so far and start again from nothing."""
        taken, self.seconds = self.seconds, {}
        return taken
