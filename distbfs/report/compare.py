"""The figures of a comparison of engines, from what its searches took and found."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distbfs.graph500.statistics import rate_statistics
from distbfs.report.tables import print_table, shown

COLUMNS = ("engine", "median ms", "quartiles ms", "GTEPS", "speed-up")
COUNTS = ("edge checks", "over limit")


def engine_figures(
    seconds: Sequence[Sequence[float]], nedge: Sequence[int]
) -> dict[str, Any]:
    """Return the figures of one engine.

    seconds: [sources][repeats]; nedge: input tuples in the component, [sources]

    A source counts by the median of its repeats; ``harmonic_mean_GTEPS`` is over
    sources, the rest over all searches.
    """
    times = np.asarray(seconds, dtype=np.float64)
    by_source = np.median(times, axis=1)
    rate = rate_statistics(nedge, by_source.tolist())
    low, middle, high = np.quantile(times, [0.25, 0.5, 0.75]).tolist()
    return {
        "median_seconds": middle,
        "quartile_seconds": [low, high],
        "min_seconds": float(times.min()),
        "max_seconds": float(times.max()),
        "harmonic_mean_GTEPS": rate.harmonic_mean / 1e9,
        "seconds": times.tolist(),
    }


def add_speedups(engines: Sequence[dict[str, Any]], baseline: str) -> None:
    """Add ``speedup`` to each engine: the baseline's median time over its own."""
    base = next(x for x in engines if x["engine"] == baseline)["median_seconds"]
    for engine in engines:
        engine["speedup"] = base / engine["median_seconds"]


def add_limits(
    engines: Sequence[dict[str, Any]], limits: Mapping[str, Sequence[float]]
) -> None:
    """Add ``limit_seconds`` and ``over_limit`` to the engines that have a limit.

    limits: by engine, the least time of each counted source, the first ones
    """
    for engine in engines:
        least = limits.get(engine["engine"], ())
        engine["limit_seconds"] = statistics.mean(least) if least else None
        engine["over_limit"] = None
        if least:
            times = [statistics.median(x) for x in engine["seconds"][: len(least)]]
            engine["over_limit"] = statistics.mean(times) / engine["limit_seconds"]


def print_comparison(values: Mapping[str, Any]) -> None:
    """Print the table of a comparison, one engine a line."""
    rows = []
    for engine in values["engines"]:
        low, high = (shown(x * 1e3) for x in engine["quartile_seconds"])
        over = engine["over_limit"]
        rows.append(
            (
                engine["engine"],
                engine["median_seconds"] * 1e3,
                f"{low} - {high}",
                engine["harmonic_mean_GTEPS"],
                engine["speedup"],
                round(engine["checks"]),
                "-" if over is None else shown(over),
            )
        )
    print_table((*COLUMNS, *COUNTS), rows)
