"""Plots of result files; Matplotlib (extra ``plot``) is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distbfs.errors import InputError, UsageError

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
    if not path.resolve().parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist")
    new_figure(1, 1)


def write(figure: Any, path: Path) -> None:
    """Write a figure; InputError where the file cannot be written."""
    try:
        figure.savefig(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


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
