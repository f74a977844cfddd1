"""What the scripts of Pan, Pearce, Owens 2018 that need no device share.

Counting edges by the degrees of their ends, the styles of the figures, results.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import figures
import numpy as np

from distbfs.build.host.parts import BuildSummary, construct
from distbfs.errors import DistbfsError
from distbfs.exchange.world import SoloWorld
from distbfs.generate.histogram import separate
from distbfs.generate.kronecker import Kronecker
from distbfs.graph.csr import row_blocks
from distbfs.options import BuildOptions
from distbfs.partition.part import NUMBER_MASK, PART_SHIFT, Part
from distbfs.types import Array, Ids

RESULTS = figures.RESULTS
SHARES = {
    "nn": ("nn edges", "tab:red", "-"),
    "nd_dn": ("nd and dn edges", "tab:green", "-"),
    "dd": ("dd edges", "tab:blue", "-"),
    "delegates": ("delegates, of all vertices", "black", "--"),
}


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every script has."""
    parser = argparse.ArgumentParser(
        description=(description or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="output folder")
    parser.add_argument("--small", action="store_true", help="a quick check")
    return parser


def main(work: Callable[[], None]) -> None:
    """Run a script; an error of the package is one line and its exit code."""
    try:
        work()
    except DistbfsError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def save(
    folder: Path,
    name: str,
    values: dict[str, Any],
    draw: Callable[[Any], None],
    size: tuple[float, float] = (7, 4),
) -> None:
    """Write NAME.json and NAME.png as ``figures.save`` does, without a device."""
    figures.save(folder, name, values, draw, device=False, size=size)


@dataclass(frozen=True)
class Ends:
    """How many directed edges have ends of which degrees; int64 arrays by degree.

    vertices[k]: of degree k; low[k], high[k]: edges whose end of the lower, higher
    degree has degree k
    """

    vertices: Ids
    low: Ids
    high: Ids

    def shares(self, threshold: int) -> dict[str, float]:
        """Return delegates over n, and nn, nd+dn and dd over m."""
        m = max(int(self.low.sum()), 1)
        nn = int(self.high[: threshold + 1].sum())
        dd = int(self.low[threshold + 1 :].sum())
        delegates = int(self.vertices[threshold + 1 :].sum())
        return {
            "delegates": delegates / max(int(self.vertices.sum()), 1),
            "nn": nn / m,
            "nd_dn": (m - nn - dd) / m,
            "dd": dd / m,
        }


def count_ends(parts: Callable[[], Iterable[Part]]) -> Ends:
    """Count the ends of all edges of a graph.

    parts: gives all parts in order, one after another; called twice
    """
    degrees = [part.degrees for part in parts()]
    starts = np.concatenate([[0], np.cumsum([len(x) for x in degrees])])
    every = np.concatenate(degrees)
    size = 1 + int(every.max(initial=0))
    low, high = np.zeros((2, size), dtype=np.int64)
    for part, mine in zip(parts(), degrees, strict=True):
        hubs = part.delegate_degrees
        places = partial(places_of, starts=starts, alone=part.layout.parts == 1)
        for graph, rows, of_column, times in (
            (part.nn, mine, lambda x, at=places: every[at(x)], 1),
            (part.nd, mine, lambda x, of=hubs: of[x], 2),  # and dn, its reverse
            (part.dd, hubs, lambda x, of=hubs: of[x], 1),
        ):
            for first, last in row_blocks(graph.offsets):
                offsets = graph.offsets[first : last + 1].astype(np.int64)
                a = np.repeat(rows[first:last], np.diff(offsets))
                b = of_column(graph.columns[offsets[0] : offsets[-1]])
                low += times * np.bincount(np.minimum(a, b), minlength=size)
                high += times * np.bincount(np.maximum(a, b), minlength=size)
    return Ends(np.bincount(every, minlength=size), low, high)


def places_of(columns: Array, starts: Ids, *, alone: bool) -> Array:
    """Return where the vertices of nn columns are among those of all parts.

    starts: int64 [parts + 1], of each part; alone: there is one part
    """
    if alone:
        return columns
    part = (columns >> PART_SHIFT).astype(np.int64)
    return starts[part] + (columns & NUMBER_MASK).astype(np.int64)


def built(scale: int, parts: int, threshold: int | None) -> tuple[list[Part], Any]:
    """Return (parts, summary) of a Kronecker graph."""
    made: list[Part] = []
    options = BuildOptions(threshold=threshold)
    source = Kronecker(scale)
    summary: BuildSummary = construct(source, SoloWorld(), parts, options, made.append)
    return made, summary


def thresholds(largest: int, steps: int = 2) -> list[int]:
    """Return rising thresholds from 1 on, some for each power of two."""
    rounded = {round(2 ** (k / steps)) for k in range(steps * largest.bit_length() + 1)}
    return sorted(x for x in rounded if x <= largest)


def expected_shares(scale: int, at: Sequence[int]) -> dict[str, list[float]]:
    """Return the expected shares of a Kronecker graph over thresholds."""
    return columns_of([x.shares() for x in separate(scale, at)])


def columns_of(rows: Sequence[dict[str, float]]) -> dict[str, list[float]]:
    """Return lists by name from dicts."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def draw_shares(
    axes: Any,
    lines: tuple[Sequence[int], dict[str, list[float]]] | None,
    dots: tuple[Sequence[int], dict[str, list[float]]] | None,
) -> None:
    """Draw shares in percent over thresholds: expected as lines, counted as dots."""
    for name, (label, colour, style) in SHARES.items():
        if lines is not None:
            values = [100 * x for x in lines[1][name]]
            axes.plot(lines[0], values, style, color=colour, label=label)
        if dots is not None:
            values = [100 * x for x in dots[1][name]]
            shown_label = None if lines is not None else label
            marks = {"marker": "o", "ms": 3.5, "color": colour, "label": shown_label}
            axes.plot(dots[0], values, linestyle="none" if lines else style, **marks)
    axes.set_xscale("log", base=2)
    axes.set_ylim(-2, 102)
    axes.grid(alpha=0.3)
    axes.set_xlabel("degree threshold TH")


def shared_legend(figure: Any, axes: Any, columns: int) -> None:
    """Show what the colours mean, above all axes."""
    handles, labels = axes.get_legend_handles_labels()
    place = {"loc": "outside upper center", "ncols": columns}
    figure.legend(handles, labels, fontsize=8, frameon=False, **place)
