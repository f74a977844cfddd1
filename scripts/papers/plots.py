"""Bars and lines that can be read in grey: hatches, markers and line styles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

GREYS = ("0.15", "0.85", "0.5", "1.0", "0.65", "0.35", "0.75", "0.95")
HATCHES = ("", "//", "", "..", "xx", "\\\\", "++")  # no multiple of the greys
MARKS = "osD^vP*Xdh<>"
STYLES = ("-", "--", ":", "-.")


def fills(count: int) -> list[dict[str, Any]]:
    """Return the looks of bars."""
    pairs = zip(cycle(GREYS), cycle(HATCHES), strict=False)
    looks = [
        {"color": g, "hatch": h, "edgecolor": "0.3"} for g, h in _first(pairs, count)
    ]
    return [{**look, "linewidth": 0.6} for look in looks]


def strokes(count: int) -> list[dict[str, Any]]:
    """Return the looks of lines."""
    grey = ("0.0", "0.45", "0.65")
    looks = zip(cycle(MARKS), cycle(STYLES), cycle(grey), strict=False)
    return [
        {"marker": m, "linestyle": s, "color": c, "ms": 4, "lw": 1.1}
        for m, s, c in _first(looks, count)
    ]


def _first(items: Any, count: int) -> list[Any]:
    return [item for item, _ in zip(items, range(count), strict=False)]


def bars(
    axes: Any,
    names: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    label: str,
    *,
    log: bool = False,
    one: bool = False,
) -> None:
    """Draw groups of bars, one group a name; None: no bar.

    one: draw a line where nothing is gained
    """
    width, shown = 0.8 / max(len(series), 1), False
    for k, ((title, values), look) in enumerate(
        zip(series.items(), fills(len(series)), strict=True)
    ):
        at = [x + (k - (len(series) - 1) / 2) * width for x in range(len(names))]
        heights = [float("nan") if value is None else value for value in values]
        shown = shown or any(height > 0 for height in heights)
        axes.bar(at, heights, width, label=title, **look)
    if one:
        axes.axhline(1, color="black", linewidth=0.8)
    _finish(axes, names, label, len(series), log=log and shown)


def stacked(
    axes: Any, names: Sequence[str], series: Mapping[str, Sequence[float]], label: str
) -> None:
    """Draw stacks of bars, one stack a name."""
    base = [0.0] * len(names)
    for (title, values), look in zip(series.items(), fills(len(series)), strict=True):
        axes.bar(range(len(names)), values, 0.7, bottom=base, label=title, **look)
        base = [a + b for a, b in zip(base, values, strict=True)]
    _finish(axes, names, label, len(series))


def lines(
    axes: Any,
    series: Mapping[str, tuple[Sequence[Any], Sequence[float]]],
    across: str,
    label: str,
    *,
    log: str = "",
) -> None:
    """Draw lines of (x, y); log: axes with a logarithmic scale, "x", "y" or "xy"."""
    for (title, (x, y)), look in zip(series.items(), strokes(len(series)), strict=True):
        axes.plot(x, y, label=title, **look)
    if "x" in log:
        axes.set_xscale("log", base=2)
    if "y" in log:
        axes.set_yscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)
    if len(series) > 1:
        axes.legend(fontsize=7, ncols=2 if len(series) > 4 else 1)


def _finish(
    axes: Any, names: Sequence[str], label: str, count: int, *, log: bool = False
) -> None:
    """Name the groups of bars and the axis; say what the looks mean, above."""
    axes.set_axisbelow(True)
    axes.grid(axis="y", alpha=0.3)
    long = max(map(len, map(str, names)), default=0) * len(names) > 80
    turned = {"rotation": 60, "ha": "right"} if long else {}
    axes.set_xticks(range(len(names)), names, fontsize=8, **turned)
    axes.set_ylabel(label)
    if log:
        axes.set_yscale("log")
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    axes.legend(fontsize=8, ncols=min(count, 5), frameon=False, **place)
