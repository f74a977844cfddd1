"""Plots of comparisons over graphs and threads, as Figures 2 to 7 of CS406.

Source: Sevilmis, Sivri, Aydin: CS406 project, 2019, Section 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distbfs.benchmark.compare_figures import comparisons_of
from distbfs.errors import UsageError
from distbfs.report.plots import (
    HATCHES,
    MARKERS,
    log_axis,
    name_of_graph,
    new_figure,
    size_of_graph,
    write,
)

KINDS = {
    "time": ("median_seconds", "median time, ms", 1e3),
    "speedup": ("speedup", "speed-up", 1.0),
    "efficiency": ("efficiency", "parallel efficiency", 1.0),
    "rate": ("harmonic_mean_GTEPS", "GTEPS, harmonic mean over sources", 1.0),
}
USUAL = ("time", "speedup", "efficiency")


def series_of(comparison: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return, by name, the entries of engines that ran with several thread counts."""
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
    """Return the kinds of KINDS that have values; raise UsageError if none has."""
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
    """Draw a comparison, one panel for each kind.

    values: the JSON of ``distbfs compare --json``

    If engines ran with several numbers of threads, there is a row of panels for each
    graph, with lines over threads; otherwise one row of panels with a group of bars for
    each graph.
    """
    kinds = kinds_of(values, kinds)
    comparisons = comparisons_of(values)
    lines = any(series_of(comparison) for comparison in comparisons)
    rows: Sequence[Sequence[Mapping[str, Any]]] = [[x] for x in comparisons]
    rows = rows if lines else [comparisons]
    figure = new_figure(1.5 + 4.5 * len(kinds), 3.6 * len(rows))
    grid = figure.subplots(len(rows), len(kinds), squeeze=False)
    legend: dict[str, Any] = {}
    for line, row in zip(grid, rows, strict=True):
        for axes, kind in zip(line, kinds, strict=True):
            (draw_lines if lines else draw_bars)(axes, row, kind)
            axes.set_ylabel(KINDS[kind][1])
            if kind == "speedup" and not lines:
                axes.set_ylabel(f"{KINDS[kind][1]} over {row[0]['baseline']}")
            if kind == "time":
                axes.set_yscale("log")
                log_axis(axes.yaxis, *axes.get_ylim())
            axes.grid(axis="y", alpha=0.3)
            handles, labels = axes.get_legend_handles_labels()
            legend |= dict(zip(labels, handles, strict=True))
        for axes in line if len(row) == 1 else ():
            graph = row[0]["graph"]
            title = f"{name_of_graph(graph)}: {size_of_graph(graph)}"
            axes.set_title(title, fontsize=10, loc="left")
    figure.legend(legend.values(), legend.keys(), loc="outside right upper", fontsize=8)
    write(figure, path)


def draw_lines(axes: Any, comparisons: Sequence[Mapping[str, Any]], kind: str) -> None:
    """Draw one line over threads for each engine of one graph.

    Other libraries, which have no number of threads, are horizontal lines. Panels of
    speed-up and efficiency, which refer to an engine's fewest threads, leave them out.
    """
    key, _, scale = KINDS[kind]
    [comparison] = comparisons
    series = series_of(comparison)
    ticks = sorted({x["threads"] for engines in series.values() for x in engines})
    for k, (name, engines) in enumerate(series.items()):
        base = engines[0]["median_seconds"]
        heights = [
            base / x["median_seconds"] if kind == "speedup" else x[key] * scale
            for x in engines
        ]
        marker = MARKERS[k % len(MARKERS)]
        axes.plot([x["threads"] for x in engines], heights, marker=marker, label=name)
    if kind in ("speedup", "efficiency"):
        ideal = [x / ticks[0] if kind == "speedup" else 1.0 for x in ticks]
        axes.plot(ticks, ideal, ":", color="gray", label="ideal", zorder=1)
    else:
        others = [x for x in comparison["engines"] if x["series"] not in series]
        for place, engine in enumerate(others, len(series)):
            height, color = engine[key] * scale, f"C{place % 10}"
            axes.axhline(height, ls="--", color=color, label=engine["engine"])
    axes.set_xticks(ticks)
    axes.set_xlabel("threads")
    if kind != "time":
        axes.set_ylim(bottom=0)


def draw_bars(axes: Any, comparisons: Sequence[Mapping[str, Any]], kind: str) -> None:
    """Draw a group of bars for each graph, with a bar for each engine."""
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
        hatch = HATCHES[k % len(HATCHES)]
        axes.bar(at, heights, width, label=name, hatch=hatch, edgecolor="white")
    titles = [name_of_graph(comparison["graph"]) for comparison in comparisons]
    turned = {"rotation": 25, "ha": "right"} if len("".join(titles)) > 40 else {}
    axes.set_xticks(range(len(titles)), titles, fontsize=8, **turned)
