"""The best knobs of engine bfs4k for a graph, one knob after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from distbfs.errors import UsageError
from distbfs.options import Knobs

VALUES: dict[str, tuple[Any, ...]] = {
    "k1": (1, 2, 4, 8, 16, 32),
    "k4": (0, 1, 2, 4),
    "ext": (True, False),
    "k5": (0, 1, 2, 4),
    "k2": (0.0, 0.01, 0.05, 0.15, 0.5),
    "k3": (4, 16, 64),
    "k6": (32, 128, 512, 1024),
    "k7": (0, 1, 4, 10),
}
Measure = Callable[[Knobs, Knobs], tuple[float, float]]


@dataclass(frozen=True)
class Trial:
    """One value of a knob beside the best so far; seconds of the same rounds."""

    knob: str
    value: Any
    seconds: float
    best_seconds: float


def names_of(text: str) -> list[str]:
    """Parse a comma-separated list of knobs; ``all`` means every one.

    Raises UsageError for an unknown name.
    """
    names = list(VALUES) if text == "all" else text.split(",")
    for name in names:
        if name not in VALUES:
            allowed = ", ".join(sorted(VALUES))
            raise UsageError(f"knob '{name}'; allowed: all, or some of {allowed}")
    return names


def sweep_knobs(
    start: Knobs,
    names: Sequence[str],
    measure: Measure,
    more_time: Callable[[], bool] = lambda: True,
) -> tuple[Knobs, list[Trial]]:
    """Return the best knobs and all trials.

    start: values of all knobs; measure: takes the best knobs and others, returns the
    seconds of both; more_time: asked before each trial

    Each knob goes through its values while the others stay fixed; the next knob starts
    from the best so far.
    """
    best, trials = start, []
    for name in names:
        kept = best
        for value in VALUES[name]:
            if value == getattr(kept, name) or not more_time():
                continue
            tried = replace(kept, **{name: value})
            base, seconds = measure(best, tried)
            trials.append(Trial(name, value, seconds, base))
            if seconds < base:
                best = tried
    return best, trials
