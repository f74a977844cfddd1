"""Plots of comparisons over graphs and threads, as Figures 2 to 7 of CS406.

Source: Sevilmis, Sivri, Aydin: CS406 project, 2019, Section 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distbfs.benchmark.compare_figures import comparisons_of
from distbfs.errors import UsageError
from distbfs.report.plots import new_figure, write

KINDS = {
    "time": ("median_seconds", "median time, ms", 1e3),
    "speedup": ("speedup", "speed-up", 1.0),
    "efficiency": ("efficiency", "parallel efficiency", 1.0),
    "rate": ("harmonic_mean_GTEPS", "GTEPS, harmonic mean over sources", 1.0),
}
USUAL = ("time", "speedup", "efficiency")


def series_of(comparison: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return engine name -> its entries, of engines run with several thread counts."""
    by_series: dict[str, list[Mapping[str, Any]]] = {}
    for engine in comparison["engines"]:
        if engine.get("threads"):
            by_series.setdefault(engine["series"], []).append(engine)
    return {
        name: sorted(engines, key=lambda x: int(x["threads"]))
        for name, engines in by_series.items()
        if len(engines) > 1
    }


def kinds_of(values: Mapping[str, Any], kinds: Sequence[str]) -> list[str]:
    """Return the kinds that have values; raise UsageError where none has."""
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"kind is '{kind}'; allowed: {', '.join(KINDS)}")
    kept = [
        kind
        for kind in kinds
        if any(
            engine.get(KINDS[kind][0]) is not None
            for comparison in comparisons_of(values)
            for engine in comparison["engines"]
        )
    ]
    if not kept:
        raise UsageError(f"the comparison has no values of {', '.join(kinds)}")
    return kept


def draw_panels(
    values: Mapping[str, Any], path: Path, kinds: Sequence[str] = USUAL
) -> None:
    """Draw a comparison, one panel a kind.

    values: the JSON of ``distbfs compare --json``

    Engines run with several thread counts give lines over threads, one a graph and
    engine; otherwise bars, one group a graph.
    """
    kinds = kinds_of(values, kinds)
    comparisons = comparisons_of(values)
    lines = any(series_of(comparison) for comparison in comparisons)
    figure = new_figure(5 * len(kinds), 4)
    for axes, kind in zip(
        figure.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True
    ):
        (draw_lines if lines else draw_bars)(axes, comparisons, kind)
        axes.set_ylabel(KINDS[kind][1])
        axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=7)
    write(figure, path)


def draw_lines(axes: Any, comparisons: Sequence[Mapping[str, Any]], kind: str) -> None:
    """Draw one line over threads for each engine and graph."""
    key, _, scale = KINDS[kind]
    ticks: set[int] = set()
    for comparison in comparisons:
        title = comparison["graph"]["title"]
        for name, engines in series_of(comparison).items():
            label = f"{title}, {name}" if len(comparisons) > 1 else name
            base = engines[0]["median_seconds"]
            heights = [
                base / x["median_seconds"] if kind == "speedup" else x[key] * scale
                for x in engines
            ]
            counts = [x["threads"] for x in engines]
            axes.plot(counts, heights, "o-", label=label)
            ticks.update(counts)
    axes.set_xticks(sorted(ticks))
    axes.set_xlabel("threads")
    if kind == "time":
        axes.set_yscale("log")


def draw_bars(axes: Any, comparisons: Sequence[Mapping[str, Any]], kind: str) -> None:
    """Draw a group of bars for each graph, one bar an engine."""
    key, _, scale = KINDS[kind]
    names = [engine["engine"] for engine in comparisons[0]["engines"]]
    width = 0.8 / len(names)
    for k, name in enumerate(names):
        at, heights = [], []
        for place, comparison in enumerate(comparisons):
            height = comparison["engines"][k][key]
            if height is not None:
                at.append(place + (k - (len(names) - 1) / 2) * width)
                heights.append(height * scale)
        axes.bar(at, heights, width, label=name)
    titles = [comparison["graph"]["title"] for comparison in comparisons]
    axes.set_xticks(range(len(titles)), titles, fontsize=8)
    if kind == "time":
        axes.set_yscale("log")
