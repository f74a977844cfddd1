"""Measure what one CUDA device reaches: searches of many graphs, every one validated.

For each graph 64 searches by engines xbfs (fast) and xbfs-paper (paper), in input ids
and in the numbers of the device's graph; harmonic mean of GTEPS (Graph500 counting) and
median times by events.  They take turns, pass by pass.  Results in numbers are turned
into ids before they are validated.  The table comes last; a JSON file holds the rest.

    python scripts/bench_gpu.py --rows kron22 road --repeats 3

With --directed, the tuples are also searched as arcs by xbfs (arcs), from roots that
reach at least half as many vertices as the root that reaches most; a second table has
the ratio of the median times.  With --pairs, a third one compares the levels of pairs,
found one by one from both ends, with searches by xbfs that end at the target.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import figures
import numpy as np

from distbfs.benchmark.limit import need_of
from distbfs.benchmark.statistics import rate_statistics
from distbfs.build.cuda.graph import build
from distbfs.device import cuda
from distbfs.device.rates import Rates, device_rates
from distbfs.engines.base import PRUNED, Until, WholeSearch
from distbfs.engines.cuda.common.host_results import host_levels
from distbfs.engines.cuda.papers.xbfs.engine import XbfsPaperEngine
from distbfs.engines.cuda.xbfs.engine import XbfsEngine
from distbfs.errors import ValidationError
from distbfs.generate.cuda import DeviceTuples, device_tuples
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.road import Road
from distbfs.generate.uniform import Uniform
from distbfs.multisearch.cuda_meet import MeetingSearches
from distbfs.options import SearchOptions
from distbfs.partition.share import Share
from distbfs.report.tables import print_table
from distbfs.types import TupleSource
from distbfs.validation.cuda import validate_on_device

KEPT_BYTES = 16 << 30  # most results waiting for validation
COUNTED_ROOTS = 4  # searches with counters, for the limit
FAST, PAPER, ARCS = "fast", "paper", "arcs"
ENGINES: dict[str, Any] = {FAST: XbfsEngine, PAPER: XbfsPaperEngine, ARCS: XbfsEngine}
IDS, NUMBERS = "ids", "numbers"
ALL = [(FAST, IDS), (FAST, NUMBERS), (PAPER, IDS), (PAPER, NUMBERS)]
INTERNAL = [(FAST, NUMBERS), (PAPER, NUMBERS)]
ROWS: dict[str, tuple[Callable[[], TupleSource], list[tuple[str, str]]]] = {
    "kron16": (lambda: Kronecker(16), ALL),
    "kron20": (lambda: Kronecker(20), ALL),
    "kron22": (lambda: Kronecker(22), ALL),
    "kron25": (lambda: Kronecker(25), ALL),
    "kron26": (lambda: Kronecker(26), INTERNAL),
    "uniform23": (lambda: Uniform.of_size(1 << 23, degree=32), ALL),
    "road22": (lambda: Road(1 << 22), ALL),
    "kron28": (lambda: Kronecker(28), [*ALL[:2], *INTERNAL[1:]]),
    "kron29": (lambda: Kronecker(29), INTERNAL[:1]),
    "kron12": (lambda: Kronecker(12), ALL),
    "road12": (lambda: Road(1 << 12), ALL),
}
USUAL = list(ROWS)[:8]
SMALL = ["kron12", "road12"]
LARGE = ["kron28", "kron29"]  # mostly their validation


@dataclass
class Variant:
    """A way to search, with the times and results of its searches.

    prepare: seconds to prepare it the second time (when everything is compiled)
    checks, pruned: edge checks, and vertices found without being searched, of a search
    """

    graph: Share
    method: str
    result: str
    search: WholeSearch
    prepare: float
    passes: list[list[float]] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    valid: int = 0
    checks: list[int] = field(default_factory=list)
    pruned: list[int] = field(default_factory=list)


def prepared(graph: Share, method: str, result: str) -> Variant:
    """Prepare a search twice; record the time of the second."""
    kind = ENGINES[method]
    options = SearchOptions(engine=kind.name, internal_ids=result == NUMBERS)

    def make() -> WholeSearch:
        cuda.release()
        search: WholeSearch = kind(options).on_graph(graph)
        return search

    make()
    began = time.perf_counter()
    search = make()
    cuda.cupy().cuda.Device().synchronize()
    return Variant(graph, method, result, search, time.perf_counter() - began)


def far_reaching(variant: Variant, roots: list[int]) -> list[int]:
    """Return the roots that reach at least half as many vertices as any of them."""
    sizes = [
        int((host_levels(variant.search.search(root).level) >= 0).sum())
        for root in roots
    ]
    most = max(sizes)
    return [root for root, size in zip(roots, sizes, strict=True) if 2 * size >= most]


def of_pairs(variant: Variant, root: int, count: int, seed: int) -> dict[str, Any]:
    """Measure levels of pairs from both ends, and searches that end at the target.

    The pairs are random vertices that ``root`` reaches; ValidationError if a level
    differs. Returns median times, and the median of their ratios; those of paths are by
    the clock of the host, and with the search where lookups do not suffice.
    """
    search, meeting = variant.search, MeetingSearches(variant.graph)
    ids = np.flatnonzero(host_levels(search.search(root).level) >= 0)
    pairs = np.random.default_rng(seed).choice(ids, (count, 2))
    times, find = np.empty((4, count)), search.path
    for k, (source, target) in enumerate(pairs.tolist()):
        ends = np.array([source]), np.array([0]), np.array([target])
        meeting.levels_at(*ends)
        times[0, k], (level,) = meeting.start(*ends).finish()
        until = Until(targets=ends[2])
        search.search(source, until=until)
        began = time.perf_counter()
        found = search.search(source, until=until)
        times[1, k], times[3, k] = found.seconds, time.perf_counter() - began
        if int(found.level[target]) != level:
            raise ValidationError(f"{source} to {target}: another level from both ends")
        began = time.perf_counter()
        shortest = None if find is None else find(source, target)
        times[2, k] = time.perf_counter() - began
        if shortest is None:
            times[2, k] += times[3, k]
        elif len(shortest.vertices) != level + 1:
            raise ValidationError(f"{source} to {target}: the path is not shortest")
    middle = np.median(times, axis=1) * 1e6
    return {
        "pairs": count,
        "both_ends_us": float(middle[0]),
        "to_target_us": float(middle[1]),
        "ratio": float(np.median(times[0] / times[1])),
        "path_us": float(middle[2]),
        "path_ratio": float(np.median(times[2] / times[3])),
    }


class Row:
    """The searches of one graph."""

    def __init__(
        self, name: str, source: TupleSource, kinds: list[tuple[str, str]], args: Any
    ) -> None:
        self.name, self.began = name, time.perf_counter()
        self.graph = figures.built(source)
        self.tuples: DeviceTuples = device_tuples(source)
        self.rates: Rates = device_rates(self.graph.active)
        self.roots, self.passed_over = figures.roots_of(
            self.graph, args.roots, args.seed
        )
        self.variants = [prepared(self.graph, *kind) for kind in kinds]
        if args.directed:
            arcs = prepared(build(source, directed=True), ARCS, IDS)
            self.roots = far_reaching(arcs, self.roots)
            self.variants.append(arcs)
        self.reached: dict[tuple[bool, int], int] = {}
        self.nedge: dict[tuple[bool, int], int] = {}
        for _ in range(args.repeats or (1 if name in LARGE else 2)):
            for variant in self.variants:
                self.run(variant)
        self.count()
        self.pairs = {
            variant.method: of_pairs(variant, self.roots[0], args.pairs, args.seed)
            for variant in self.variants
            if args.pairs and variant.result == IDS and variant.method != PAPER
        }
        self.seconds = time.perf_counter() - self.began

    def run(self, variant: Variant) -> None:
        """Search from every root; validate batch by batch."""
        for root in self.roots[:3]:
            variant.search.search(root)
        size = 9 * self.graph.n
        room = min(KEPT_BYTES, cuda.free_bytes() // 3)
        batch = min(max(room // size, 1), len(self.roots))
        taken: list[float] = []
        for first in range(0, len(self.roots), batch):
            kept = []
            for root in self.roots[first : first + batch]:
                began = time.perf_counter()
                answer = variant.search.search(root)
                variant.wall.append(time.perf_counter() - began)
                taken.append(answer.seconds)
                if variant.result == NUMBERS:
                    kept.append((root, *figures.by_id(variant.graph, answer)))
                else:
                    kept.append((root, answer.level.copy(), answer.parent.copy()))
            for result in kept:
                self.check(variant, *result)
        variant.passes.append(taken)

    def check(self, variant: Variant, root: int, level: Any, parent: Any) -> None:
        """Validate one search; ValidationError if it is wrong."""
        directed = variant.graph.directed
        said = validate_on_device(self.tuples, root, level, parent, directed=directed)
        if not said.valid:
            raise ValidationError(
                f"{self.name}, {variant.method}, {variant.result}, root {root}: "
                + "; ".join(said.errors)
            )
        variant.valid += 1
        key = directed, root
        self.reached[key], self.nedge[key] = said.reached, said.nedge

    def count(self) -> None:
        """Count edge checks and pruned vertices of each method on some roots."""
        for variant in self.variants:
            for root in self.roots[:COUNTED_ROOTS]:
                log = variant.search.search(root, records=True).records
                variant.checks.append(sum(record.checks for record in log))
                variant.pruned.append(sum(x.extra.get(PRUNED, 0) for x in log))

    def limit(self, variant: Variant) -> dict[str, Any]:
        """Return the least work of a search, by the fewest checks of any method."""
        graph = variant.graph
        alike = [v.checks for v in self.variants if v.graph is graph]
        fewest = [min(x) for x in zip(*alike, strict=True)]
        by_id = variant.result == IDS
        result = variant.search.search(self.roots[0])
        width = result.level.dtype.itemsize + 4
        needs = [
            need_of(
                m=graph.m,
                checks=checks,
                reached=self.reached[graph.directed, root],
                result_bytes=width * (graph.n if by_id else graph.active),
                pruned=pruned,
            )
            for root, checks, pruned in zip(
                self.roots, fewest, variant.pruned, strict=False
            )
        ]
        return {
            "bytes": statistics.mean(need.bytes for need in needs),
            "tests": statistics.mean(need.tests for need in needs),
            "copy_seconds": statistics.mean(n.copy_seconds(self.rates) for n in needs),
            "seconds": statistics.mean(need.seconds(self.rates) for need in needs),
        }

    def figures_of(self, variant: Variant) -> dict[str, Any]:
        """Return the figures of one variant."""
        edges = [self.nedge[variant.graph.directed, root] for root in self.roots]
        rates = [rate_statistics(edges, taken) for taken in variant.passes]
        times = [x for taken in variant.passes for x in taken]
        limit = self.limit(variant)
        low, median, high = np.quantile(times, [0.25, 0.5, 0.75]).tolist()
        return {
            "row": self.name,
            "method": variant.method,
            "result": variant.result,
            "searches": len(times),
            "valid": variant.valid,
            "harmonic_mean_GTEPS": statistics.median(
                rate["harmonic_mean"] / 1e9 for rate in rates
            ),
            "passes_GTEPS": [rate["harmonic_mean"] / 1e9 for rate in rates],
            "median_us": median * 1e6,
            "quartiles_us": [low * 1e6, high * 1e6],
            "min_us": min(times) * 1e6,
            "wall_median_us": statistics.median(variant.wall) * 1e6,
            "checks": statistics.mean(variant.checks),
            "pruned": statistics.mean(variant.pruned),
            "limit": limit,
            "over_limit": median / limit["seconds"],
            "prepare_seconds": variant.prepare,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        graph = self.graph
        phases = dict(graph.seconds)
        generation = phases.get("generation", 0.0)
        compiling = phases.get("compile", 0.0)
        construction = sum(phases.values()) - generation - compiling
        fast = next(v for v in self.variants if v.method == FAST)
        return {
            "row": self.name,
            "source": graph.source,
            "n": graph.n,
            "active": graph.active,
            "m": graph.m,
            "tuples": graph.tuples,
            "roots": len(self.roots),
            "roots_outside": self.passed_over,
            "generation_seconds": generation,
            "construction_seconds": construction + fast.prepare,
            "phases": phases,
            "rates": self.rates.as_dict(),
            "pairs": self.pairs,
            "variants": [self.figures_of(variant) for variant in self.variants],
            "seconds": self.seconds,
        }


def searches_table(rows: list[dict[str, Any]]) -> None:
    names = ("graph", "result", "fast GTEPS", "µs", "wall µs", "x limit")
    lines = []
    for row in rows:
        by_kind = {(v["result"], v["method"]): v for v in row["variants"]}
        for result in (IDS, NUMBERS):
            cells: list[Any] = [row["row"], result]
            for method, keys in (
                (FAST, ("median_us", "wall_median_us", "over_limit")),
                (PAPER, ("median_us", "over_limit")),
            ):
                figures_of = by_kind.get((result, method))
                wanted = ("harmonic_mean_GTEPS", *keys)
                cells += [
                    figures_of[key] if figures_of else float("nan") for key in wanted
                ]
            if any((result, method) in by_kind for method in (FAST, PAPER)):
                these = [v for v in row["variants"] if v["result"] == result]
                cells.append(these[0]["limit"]["seconds"] * 1e6)
                cells.append(sum(v["valid"] for v in these))
                lines.append(cells)
    more = ("paper GTEPS", "µs", "x limit", "limit µs", "valid")
    print_table((*names, *more), lines)


def directed_table(rows: list[dict[str, Any]]) -> None:
    """Print how much longer searches of the tuples as arcs take, where they are."""
    lines = []
    for row in rows:
        times = {
            v["method"]: v["median_us"] for v in row["variants"] if v["result"] == IDS
        }
        if ARCS in times:
            line = row["row"], row["roots"], times[FAST], times[ARCS]
            lines.append((*line, times[ARCS] / times[FAST]))
    if lines:
        print_table(("graph", "roots", "fast µs", "arcs µs", "arcs / fast"), lines)


def pairs_table(rows: list[dict[str, Any]]) -> None:
    """Print how long levels of pairs take from both ends, where they are measured."""
    lines = [
        (row["row"], method, *figures_of.values())
        for row in rows
        for method, figures_of in row["pairs"].items()
    ]
    names = ("graph", "tuples", "pairs", "both ends µs", "to target µs", "ratio")
    names += ("path µs", "ratio by the host")
    if lines:
        print_table(names, lines)


def build_table(rows: list[dict[str, Any]]) -> None:
    names = ("graph", "n", "m", "generation s", "kernel 1 s", "tuples M/s")
    more = ("copy TB/s", "bit tests G/s", "row s")
    lines = [
        (
            row["row"],
            row["n"],
            row["m"],
            row["generation_seconds"],
            row["construction_seconds"],
            row["tuples"] / row["construction_seconds"] / 1e6,
            row["rates"]["copy"] / 1e12,
            row["rates"]["tests"] / 1e9,
            row["seconds"],
        )
        for row in rows
    ]
    print_table((*names, *more), lines)


def main() -> None:
    parser = figures.arguments(__doc__, roots=64)
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=USUAL)
    parser.add_argument(
        "--repeats", type=int, help="passes over all roots; else 2, 1 for kron28 and 29"
    )
    parser.add_argument("--directed", action="store_true", help="tuples as arcs, too")
    parser.add_argument("--pairs", type=int, default=0, help="pairs of vertices")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    failure: Exception | None = None
    for name in SMALL if args.small else args.rows:
        make, kinds = ROWS[name]
        try:
            row = Row(name, make(), kinds, args)
        except ValidationError as error:
            failure = failure or error
            print(f"{name}: {error}", file=sys.stderr)
            continue
        rows.append(row.as_dict())
        del row
        cuda.release()
        print(f"{name}: {rows[-1]['seconds']:.1f} s", flush=True)
        figures.save(args.out, "bench_gpu", {"rows": rows})
    if rows:
        build_table(rows)
        searches_table(rows)
        directed_table(rows)
        pairs_table(rows)
    if failure is not None:
        raise failure


if __name__ == "__main__":
    figures.main(main)
