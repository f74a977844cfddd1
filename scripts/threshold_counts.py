"""Count the traffic of a search between domains at every TH, beside the model.

Graphs are separated and searched normally, all parts in one process; the levels
determine what each part sends, in the directions that ``search.direction`` chooses:
numbers once each, or questions and answers. The model uses the degrees alone
(``distbfs.plan.threshold``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import figures
import numpy as np

from distbfs.benchmark.roots import choose_roots
from distbfs.build.host.parts import construct
from distbfs.engines.base import Work
from distbfs.errors import UsageError
from distbfs.generate.families import maker
from distbfs.options import BuildOptions, SearchOptions
from distbfs.partition.part import NUMBER_MASK, PART_SHIFT, Part
from distbfs.plan.threshold import (
    ThresholdCost,
    price,
    suggest_threshold,
    weigh_thresholds,
)
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import Request
from distbfs.search.direction import OUTER, DirectionPolicy
from distbfs.search.holding import Source, held_parts
from distbfs.search.open import open_source
from distbfs.types import Ids, Marks, TupleSource

FAMILIES = ("kronecker", "road", "geometric", "uniform")
SHOWN = (
    *("delegates", "outer_edges", "levels", "pushed_edges"),
    *("items", "questions", "parents"),
)
OPTIONS = SearchOptions.named(engine="openmp", threads=1)
LARGEST = 22


class Outer:
    """The outer edges of a graph in parts, and the traffic of searches along them.

    source, target: int64 [outer edges], vertex ids; normal: bool [n], with such edges
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        layout = parts[0].layout
        self._n, self._parts = layout.n, layout.parts
        self._delegates = parts[0].delegates
        self._rows: list[tuple[Ids, Ids]] = []  # of delegates: (delegate, neighbour)
        rows, columns, inner_rows, inner_columns = [], [], [], []
        ids = [part.ids() for part in parts]
        for part, own in zip(parts, ids, strict=True):
            index, column = part.nn.edges_of(np.arange(part.local_count))
            owner = (column >> PART_SHIFT).astype(np.int64)
            number = (column & NUMBER_MASK).astype(np.int64)
            start = np.cumsum([0, *(len(x) for x in ids)])
            target = np.concatenate(ids)[start[owner] + number]
            away = owner != part.index
            rows.append(own[index[away]])
            columns.append(target[away])
            nd_index, delegate = part.nd.edges_of(np.arange(part.local_count))
            inner_rows += [own[index[~away]], own[nd_index]]
            inner_columns += [target[~away], part.delegates[delegate]]
            every = np.arange(part.delegate_count)
            (dd, other), (dn, number) = (x.edges_of(every) for x in (part.dd, part.dn))
            ends = np.concatenate([part.delegates[other], own[number]])
            self._rows.append((part.delegates[np.concatenate([dd, dn])], ends))
        self.source, self.target = np.concatenate(rows), np.concatenate(columns)
        self._inner = np.concatenate(inner_rows), np.concatenate(inner_columns)
        self.normal = np.bincount(self.source, minlength=self._n) > 0

    def pairs(self, chosen: Marks) -> Ids:
        """Return distinct pairs (vertex, part that sends it) of some outer edges."""
        part = self.source[chosen] % self._parts
        return np.unique(self.target[chosen] * self._parts + part)

    def search(self, levels: Ids) -> list[int]:
        """Return the counts of ``plan.threshold.price`` of a search; levels: [n]."""
        policy = DirectionPolicy((OUTER,), OPTIONS, delegates=len(self._delegates) > 0)
        of_source = levels[self.source]
        rows, columns = self._inner
        inside = np.zeros(self._n, dtype=bool)  # found along an inner edge
        inside[rows[levels[columns] == levels[rows] - 1]] = True
        pushed = np.zeros(len(self.source), dtype=bool)
        questions = 0
        for level in range(int(levels.max()) + 1):
            left = self.normal & ((levels < 0) | (levels > level))
            frontier = int((self.normal & (levels == level)).sum())
            if not frontier:
                continue
            work = Work(nn=frontier, open=int(left.sum()))
            if policy.choose(work)[OUTER] == "push":
                pushed |= of_source == level
                continue
            asks = (left & ~(inside & (levels == level + 1)))[self.target]
            questions += int(asks.sum())
        parents = self._parents(levels)
        return [int(pushed.sum()), len(self.pairs(pushed)), questions, parents]

    def mask_levels(self, levels: Ids) -> int:
        """Return how many levels exchange masks: until all delegates are found."""
        of_delegates = levels[self._delegates]
        every = int(levels.max()) + 1
        if not len(of_delegates):
            return 0
        return every if of_delegates.min() < 0 else int(of_delegates.max())

    def _parents(self, levels: Ids) -> int:
        """Return the traffic for the parents of delegates."""
        knows = np.zeros((self._parts, self._n), dtype=bool)
        for own, (delegate, neighbour) in zip(knows, self._rows, strict=True):
            own[delegate[levels[neighbour] == levels[delegate] - 1]] = True
        reached = self._delegates[levels[self._delegates] > 0]
        asking = reached[~knows[reached % self._parts, reached]]
        return (self._parts - 1) * len(asking) + int(knows[:, asking].sum())


def count(source: TupleSource, parts: int, threshold: int, roots: int) -> list[Any]:
    """Return the cost of a threshold: counted, modelled."""
    made: list[Part] = []
    options = BuildOptions(threshold=threshold)
    summary = construct(source, SoloWorld(), parts, options, made.append)
    outer = Outer(made)
    degrees = np.zeros(source.n, dtype=np.int64)
    for part in made:
        degrees[part.ids()] = part.degrees
    chosen = choose_roots(source.n, roots, 1, lambda ids: degrees[ids] > 0).tolist()
    held = held_parts(SoloWorld(), made, None)
    where = Source(source.n, parts)
    with open_source(SoloWorld(), where, OPTIONS, Request(), held=[held]) as session:
        levels = [session.search(root).level.copy() for root in chosen]
    counts = np.mean([outer.search(x) for x in levels], axis=0).tolist()
    depth = float(np.mean([x.max() + 1 for x in levels]))
    with_masks = float(np.mean([outer.mask_levels(x) for x in levels]))
    graph, edges = summary.histogram, len(outer.source)
    counted = price(graph, parts, threshold, edges, depth, with_masks, counts)
    return [counted, *weigh_thresholds(graph, parts, [threshold])]


def source_of(family: str, scale: int) -> TupleSource:
    """Return a graph of about 2^scale vertices."""
    make = maker(family)
    if "scale" in inspect.signature(make).parameters:
        return make(scale=scale)
    return make(vertices=1 << scale)


def main() -> None:
    parser = figures.arguments(__doc__, roots=8)
    parser.add_argument("--scales", type=int, nargs="+", default=[16, 18])
    parser.add_argument("--parts", type=int, nargs="+", default=[2, 8, 64])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--thresholds", type=int, nargs="+", help="not powers of two")
    args = parser.parse_args()
    if not 1 <= min(args.scales) <= max(args.scales) <= LARGEST:
        raise UsageError(f"scales go from 1 to {LARGEST}")
    if min(args.parts) < 2 or args.roots < 1:
        raise UsageError("parts go from 2, roots from 1")
    rows, roots = [], args.roots
    if args.small:
        args.scales, args.parts, roots = [8], [2], 1
    for family, scale, parts in product(args.families, args.scales, args.parts):
        source = source_of(family, scale)
        made: list[Part] = []
        whole = construct(source, SoloWorld(), 1, BuildOptions(), made.append)
        histogram = whole.histogram
        best = suggest_threshold(histogram, parts)
        print(f"{family} {scale}, {parts} parts: TH {best} is suggested")
        powers = [1 << k for k in range((2 * histogram.largest).bit_length())]
        for threshold in sorted({best, *(args.thresholds or powers)}):
            counted, modelled = count(source, parts, threshold, roots)
            costs = {"counted": counted, "modelled": modelled}
            rows.append(
                {"family": family, "scale": scale, "parts": parts, "suggested": best}
                | {name: vars(x) | {"total": x.total} for name, x in costs.items()}
            )
            pairs = [
                f"{name} {getattr(counted, name):.4g} {getattr(modelled, name):.4g}"
                for name in SHOWN
            ]
            times = f"us {1e6 * above(counted):.4g} {1e6 * above(modelled):.4g}"
            print(f"  TH {threshold:6}  {'  '.join(pairs)}  {times}", flush=True)
    values = {"roots": roots, "rows": rows}
    figures.save(args.out, "threshold_counts", values, draw_of(rows), device=False)


def above(cost: ThresholdCost) -> float:
    """Return the seconds that depend on TH."""
    return cost.total - cost.seconds["latency"]


def draw_of(rows: list[dict[str, Any]]) -> Callable[[Any], None]:
    """Return a function that draws modelled over counted bytes of normals."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for family in dict.fromkeys(row["family"] for row in rows):
            some = [row for row in rows if row["family"] == family]
            points = [
                [row[kind]["bytes"]["normals"] for row in some]
                for kind in ("counted", "modelled")
            ]
            axes.plot(*points, "o", ms=3, label=family)
        axes.axline((1, 1), slope=1, color="grey", lw=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("bytes of normal vertices a part and search, counted")
        axes.set_ylabel("modelled")
        axes.legend(fontsize=7)

    return draw


if __name__ == "__main__":
    figures.main(main, device=False)
