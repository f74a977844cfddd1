"""The figures of a comparison of engines, from the times and counts of its searches."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np

from distbfs.benchmark.statistics import rate_statistics
from distbfs.report.tables import print_table, shown

OPTIONAL = ("efficiency", "repeats", "J a search")  # columns


def engine_figures(
    seconds: Sequence[Sequence[float]], nedge: Sequence[int]
) -> dict[str, Any]:
    """Return one engine's figures by JSON key.

    seconds: times, [sources][repeats]; nedge: input tuples in the component, [sources]

    In ``harmonic_mean_GTEPS``, each source counts with the median of its repeats; the
    other figures are over all searches.
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
        "harmonic_mean_GTEPS": rate["harmonic_mean"] / 1e9,
        "seconds": times.tolist(),
    }


def add_speedups(engines: Sequence[dict[str, Any]], baseline: str) -> None:
    """Add ``speedup`` to each engine: the baseline's median time over the engine's."""
    base = next(x for x in engines if x["engine"] == baseline)["median_seconds"]
    for engine in engines:
        engine["speedup"] = base / engine["median_seconds"]


def add_efficiency(engines: Sequence[dict[str, Any]]) -> None:
    """Add ``efficiency``: speed-up over the fewest threads, per ratio of threads.

    It is None if a series has a single number of threads.
    """
    for engine in engines:
        engine["efficiency"] = None
        same = [x for x in engines if x["series"] == engine["series"] and x["threads"]]
        if len(same) < 2 or not engine["threads"]:
            continue
        base = min(same, key=lambda x: x["threads"])
        gain = base["median_seconds"] / engine["median_seconds"]
        engine["efficiency"] = gain * base["threads"] / engine["threads"]


def comparisons_of(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the entries of ``distbfs compare --json``, one per graph."""
    comparisons: list[Mapping[str, Any]] = values.get("comparisons", [values])
    return comparisons


def add_limits(
    engines: Sequence[dict[str, Any]], limits: Mapping[str, Sequence[float]]
) -> None:
    """Add ``limit_seconds`` and ``over_limit`` to the engines that have a limit.

    limits: for each engine's name, the least seconds of each of the first sources
    """
    for engine in engines:
        least = limits.get(engine["engine"], ())
        engine["limit_seconds"] = statistics.mean(least) if least else None
        engine["over_limit"] = None
        if least:
            times = [statistics.median(x) for x in engine["seconds"][: len(least)]]
            engine["over_limit"] = statistics.mean(times) / engine["limit_seconds"]


def cell(value: float | None, scale: float = 1.0) -> str:
    """Format a number for a table; None is shown as ``-``."""
    return "-" if value is None else shown(value * scale)


def print_comparison(values: Mapping[str, Any]) -> None:
    """Print a table for each graph, with a line for each engine; omit empty columns."""
    comparisons = comparisons_of(values)
    for comparison in comparisons:
        if len(comparisons) > 1:
            graph = comparison["graph"]
            sizes = f"{graph['vertices']} vertices, {graph['edges']} edges"
            click.echo(f"{graph['title']}: {sizes}")
        print_engines(comparison["engines"])


def print_engines(engines: Sequence[Mapping[str, Any]]) -> None:
    """Print one graph's table."""
    rows = [cells_of(engine) for engine in engines]
    names = [
        name
        for name in rows[0]
        if name not in OPTIONAL or any(row[name] != "-" for row in rows)
    ]
    print_table(names, [[row[name] for name in names] for row in rows])


def cells_of(engine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of an engine's row by the names of their columns."""
    low, high = (shown(x * 1e3) for x in engine["quartile_seconds"])
    checks = engine["checks"]
    return {
        "engine": engine["engine"],
        "median ms": engine["median_seconds"] * 1e3,
        "quartiles ms": f"{low} - {high}",
        "GTEPS": engine["harmonic_mean_GTEPS"],
        "speed-up": engine["speedup"],
        "efficiency": cell(engine.get("efficiency")),
        "edge checks": "-" if checks is None else round(checks),
        "repeats": cell(engine.get("repeats")),
        "over limit": cell(engine["over_limit"]),
        "J a search": cell(engine.get("joules")),
    }
