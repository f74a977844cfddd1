"""Plots of result files; Matplotlib (extra ``plot``) is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distbfs.errors import UsageError
from distbfs.formats.writing import check_place, placed

KINDS = (".png", ".svg", ".pdf")


def new_figure(width: float, height: float) -> Any:
    """Return an empty Matplotlib figure, inches; UsageError where there is none."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            "a plot needs matplotlib; pip install 'distbfs[plot]'"
        ) from error
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def check_target(path: Path) -> None:
    """Refuse, before a long run, what could not be drawn after it."""
    if path.suffix not in KINDS:
        kinds = ", ".join(KINDS)
        raise UsageError(f"{path}: a plot ends in '{path.suffix}'; allowed: {kinds}")
    check_place(path)
    new_figure(1, 1)


def write(figure: Any, path: Path) -> None:
    """Write a figure; InputError or ResourceError where it cannot be written."""
    with placed(path, force=True) as partial:
        figure.savefig(partial)


def draw_comparison(values: Mapping[str, Any], path: Path) -> None:
    """Draw the GTEPS of each engine of a comparison as bars.

    values: what ``distbfs compare --json`` prints
    """
    engines = values["engines"]
    names = [
        engine["engine"].replace(":", "\n").replace(",", "\n") for engine in engines
    ]
    lines = sum(1 + 0.7 * name.count("\n") for name in names)
    rates = [engine["harmonic_mean_GTEPS"] for engine in engines]
    figure = new_figure(8, 1.2 + 0.4 * lines)
    axes = figure.subplots()
    bars = axes.barh(range(len(names)), rates, color="tab:blue")
    labels = [
        f" {rate:.3g} ({engine['speedup']:.3g} x)"
        for rate, engine in zip(rates, engines, strict=True)
    ]
    axes.bar_label(bars, labels)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.35)
    axes.set_xlabel("GTEPS, harmonic mean over sources")
    graph = values["graph"]
    figure.suptitle(
        f"{graph['title']}: {graph['n']} vertices, {graph['m']} directed edges;"
        f" x of {values['baseline']}",
        fontsize=10,
    )
    write(figure, path)


def draw_survey(values: Mapping[str, Any], path: Path) -> None:
    """Draw degrees and component sizes of a graph on logarithmic axes.

    values: what ``distbfs info --degrees --json`` prints; degree 0 is left out
    """
    figure = new_figure(9, 4)
    left, right = figure.subplots(1, 2)
    degrees, components = values["degrees"], values["components"]
    for axes, across, up, words in (
        (left, degrees["degree"], degrees["vertices"], ("degree", "vertices")),
        (
            right,
            components["size"],
            components["components"],
            ("vertices of a component", "components"),
        ),
    ):
        points = [(x, y) for x, y in zip(across, up, strict=True) if x > 0]
        if points:
            axes.loglog(*zip(*points, strict=True), ".", color="tab:blue")
        axes.set_xlabel(words[0])
        axes.set_ylabel(words[1])
    figure.suptitle(
        f"{values['n']} vertices, {values['m']} directed edges; diameter of the "
        f"largest component at least {values['diameter']['at_least']}",
        fontsize=10,
    )
    write(figure, path)


def draw_trace(
    events: Sequence[Mapping[str, Any]],
    path: Path,
    begin: float = 0.0,
    end: float | None = None,
) -> None:
    """Draw what each rank did when, one row a rank; a span lies over what holds it.

    events: complete events as ``report.trace.read_trace`` returns them
    begin, end: ms, what to show; UsageError where nothing was then
    """
    shown = [
        event
        for event in events
        if (event["ts"] + event["dur"]) / 1e3 >= begin
        and (end is None or event["ts"] / 1e3 <= end)
    ]
    if not shown:
        raise UsageError("the trace has nothing between these times")
    ranks = sorted({event["pid"] for event in shown})
    total: dict[str, float] = {}
    for event in shown:
        total[event["name"]] = total.get(event["name"], 0.0) + event["dur"]
    names = sorted(total, key=lambda name: -total[name])
    colors = {name: f"C{k % 10}" for k, name in enumerate(names)}
    figure = new_figure(10, 1.5 + 0.7 * len(ranks))
    axes = figure.subplots()
    for row, rank in enumerate(ranks):
        events_of_rank = [event for event in shown if event["pid"] == rank]
        for name in names:
            spans = [
                (event["ts"] / 1e3, event["dur"] / 1e3)
                for event in events_of_rank
                if event["name"] == name
            ]
            # the longer a kind takes in all, the more others it may hold
            order = names.index(name)
            height = 0.9 - 0.4 * min(order, 5) / 5
            place = (row - height / 2, height)
            axes.broken_barh(spans, place, color=colors[name], zorder=2 + order)
    handles = [axes.barh(0, 0, color=colors[name]) for name in names[:10]]
    axes.legend(
        handles, names[:10], loc="upper left", bbox_to_anchor=(1, 1), fontsize=8
    )
    axes.set_yticks(range(len(ranks)), [f"rank {rank}" for rank in ranks])
    axes.invert_yaxis()
    axes.set_xlim(left=begin, right=end)
    axes.set_xlabel("ms")
    write(figure, path)
