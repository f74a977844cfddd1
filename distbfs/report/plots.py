"""Plots of result files; Matplotlib (extra ``plot``) is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distbfs.errors import UsageError
from distbfs.formats.writing import check_place, placed
from distbfs.leftovers import DASH
from distbfs.registry import optional

KINDS = (".png", ".svg", ".pdf")
# what tells lines and bars apart without colours, in turn
MARKERS, HATCHES = "os^DvP*X", ("", "//", "..", "xx", "\\\\", "oo", "--", "++")


def new_figure(width: float, height: float) -> Any:
    """Return an empty Matplotlib figure, sizes in inches.

    Raises LibraryMissing if Matplotlib is not installed.
    """
    missing = "a plot needs matplotlib; pip install '.[plot]'"
    kind = optional("matplotlib.figure", missing).Figure
    return kind(figsize=(width, height), dpi=150, layout="constrained")


def check_target(path: Path) -> None:
    """Raise an error, before a long run, if its plot could not be drawn."""
    if path != DASH and path.suffix not in KINDS:
        kinds = ", ".join(KINDS)
        raise UsageError(f"{path}: a plot ends in '{path.suffix}'; allowed: {kinds}")
    check_place(path)
    new_figure(1, 1)


def write(figure: Any, path: Path) -> None:
    """Write a figure; InputError or ResourceError if it cannot be written."""
    from matplotlib import rc_context  # noqa: PLC0415

    # TrueType, as journals require
    with placed(path, force=True) as partial, rc_context({"pdf.fonttype": 42}):
        figure.savefig(partial, format="svg" if path == DASH else None)


def name_of_graph(graph: Mapping[str, Any]) -> str:
    """Return the name of a graph in plots; for a store, the last folder of its path.

    graph: the graph's entry in the output of ``distbfs compare --json``
    """
    return Path(graph["title"]).name or str(graph["title"])


def size_of_graph(graph: Mapping[str, Any]) -> str:
    """Describe the size of a graph in words."""
    return f"{graph['vertices']} vertices, {graph['edges']} edges"


def draw_survey(values: Mapping[str, Any], path: Path) -> None:
    """Draw degrees and component sizes of a graph on logarithmic axes.

    values: the JSON of ``distbfs info --degrees --json``

    Degree 0 is left out. If all components have one size, the title gives it.
    """
    degrees, components = values["degrees"], values["components"]
    sizes = components["size"]
    panels = [("degree", "vertices", degrees["degree"], degrees["vertices"])]
    if len(sizes) > 1:
        of_one = "vertices of a component"
        panels.append((of_one, "components", sizes, components["components"]))
    figure = new_figure(1 + 4.2 * len(panels), 4)
    for axes, (across, up, x, y) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        points = [(a, b) for a, b in zip(x, y, strict=True) if a > 0]
        if points:
            a, b = zip(*points, strict=True)
            axes.loglog(a, b, ".", color="tab:blue")
            axes.set_xlim(log_axis(axes.xaxis, min(a), max(a)))
            axes.set_ylim(log_axis(axes.yaxis, min(b), max(b)))
        axes.set_xlabel(across)
        axes.set_ylabel(up)
    count, largest = components["count"], components["largest"]
    parts = f"{count} components, the largest of {max(largest, default=0)} vertices"
    if len(sizes) == 1:
        parts = f"{count} components of {sizes[0]} vertices each"
    whose = " of the largest"
    if count == 1:
        parts, whose = "one component", ""
    figure.suptitle(
        f"{Path(values['store']).name}: {size_of_graph(values)}\n"
        f"{parts}; diameter{whose} at least {values['diameter']['at_least']}",
        fontsize=10,
    )
    write(figure, path)


def log_axis(axis: Any, least: float, most: float) -> tuple[float, float]:
    """Mark a logarithmic axis with plain numbers so that no two labels touch.

    Return limits that leave room around all points.
    """
    from matplotlib import ticker  # noqa: PLC0415

    few = most < 100 * least
    digits = range(1, 10) if most < 7 * least else (1, 2, 5) if few else (1,)
    axis.set_major_locator(ticker.LogLocator(subs=tuple(digits)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())
    return (0.95 if few else 0.6) * least, 1.6 * most


def draw_trace(
    events: Sequence[Mapping[str, Any]],
    path: Path,
    begin: float = 0.0,
    end: float | None = None,
    title: str = "",
) -> None:
    """Draw the phases of each rank over time in one row, with inner spans on top.

    events: complete events as ``report.trace.read_trace`` returns them
    begin, end: the interval to show, ms; UsageError if it is empty
    title: the subject of the trace
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
    figure = new_figure(10, max(1.5 + 0.7 * len(ranks), 0.6 + 0.2 * len(names)))
    from matplotlib import colormaps  # noqa: PLC0415

    shades = colormaps["tab20" if len(names) > 10 else "tab10"]
    looks = {
        name: {"facecolor": shades(k % shades.N), "hatch": HATCHES[k % len(HATCHES)]}
        for k, name in enumerate(names)
    }
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
            axes.broken_barh(spans, place, zorder=2 + order, **looks[name])
    handles = [axes.barh(0, 0, **looks[name]) for name in names]
    axes.legend(handles, names, loc="upper left", bbox_to_anchor=(1, 1), fontsize=8)
    axes.set_title(title, fontsize=10)
    axes.set_yticks(range(len(ranks)), [f"rank {rank}" for rank in ranks])
    axes.invert_yaxis()
    axes.set_xlim(left=begin, right=end)
    axes.set_xlabel("ms")
    write(figure, path)
