"""Measure many searches at once on one CUDA device, every result checked.

Levels of 1,024 sources of a Kronecker graph by bit-parallel batches and by each method,
betweenness from these sources, and the exact diameter of a road-like graph; seconds and
joules.  Levels of some sources are validated by the tuples, those of all others must be
the same by every way.

    python scripts/bench_multisearch_gpu.py --parts bits methods --seconds 1
"""

from __future__ import annotations

import time
from typing import Any

import figures
import many_searches as many
import numpy as np

from distbfs.device import cuda
from distbfs.engines.cuda.xbfs.engine import XbfsEngine
from distbfs.errors import ValidationError
from distbfs.generate.road import Road
from distbfs.multisearch.apps import betweenness
from distbfs.multisearch.apps.diameter import Bounds, extremes
from distbfs.multisearch.base import RunOptions, level_dtype
from distbfs.multisearch.cuda_problems import DeviceRunner, Sink
from distbfs.multisearch.part_loop import Wanted
from distbfs.options import SearchOptions
from distbfs.partition.share import Share
from distbfs.ranks.world import SoloWorld
from distbfs.report.tables import print_table

LEVELS = Wanted(levels=True, counts=False)
PARTS = ("bits", "methods", "betweenness", "diameter")
MUST = {"levels": 0.4, "hybrid": 4.0, "betweenness": 4.0, "diameter": 60.0}
AIM = {"levels": 0.1, "hybrid": 1.5, "betweenness": 1.5, "diameter": 10.0}


def comparing(wanted: Any, method: str) -> Sink:
    """Return a function that compares levels; ValidationError if some differ."""

    def check(first: int, last: int, arrays: Any) -> None:
        if bool((arrays["level"] != wanted[first:last]).any()):
            raise ValidationError(f"method {method}: other levels")

    return check


class Bench:
    """The measurements over one Kronecker graph."""

    def __init__(self, args: Any) -> None:
        self.args = args
        self.source = many.kronecker(args)
        self.graph: Share = figures.built(self.source)
        self.sources = many.sources_of(self.graph, args.roots, args.seed)
        self.edges, self.deepest = many.traversed(self.graph, self.sources)
        shape, dtype = (len(self.sources), self.graph.n), level_dtype(self.deepest)
        self.levels = cuda.cupy().empty(shape, dtype)
        searches = many.bit_searches(self.graph)
        for first, last in many.batches(searches, self.sources, LEVELS):
            many.write_levels(searches, self.levels[first:last])
        self.checked = many.check_levels(
            self.source, self.sources, self.levels, args.checked, "bit-parallel"
        )

    def bits(self) -> dict[str, Any]:
        """All levels into one matrix, and vertices by level."""
        rows = []
        for width in (512, 256, 128):
            searches = many.bit_searches(self.graph, width)
            out = cuda.cupy().empty(
                (len(self.sources), self.graph.n), level_dtype(self.deepest)
            )
            pulls = pushes = 0

            def run(searches: Any = searches, out: Any = out) -> float:
                nonlocal pulls, pushes
                seconds, made = 0.0, searches.launched
                for first, last in many.batches(searches, self.sources, LEVELS):
                    many.write_levels(searches, out[first:last])
                    seconds += made.seconds
                    pulls, pushes = made.pulls, made.pushes
                return seconds

            run()
            if bool((out != self.levels).any()):
                raise ValidationError(f"bit-parallel, width {width}: other levels")
            measured = many.timed(run, len(self.sources), self.edges, self.args.seconds)
            more = {"pulls": pulls, "pushes": pushes, "joules": measured.joules}
            rows.append({"width": width, **more, **measured.as_dict()})
            del searches, out
            cuda.release()
        counts: Any = many.bit_searches(self.graph)

        def count() -> float:
            done = many.batches(counts, self.sources, Wanted())
            return sum(counts.launched.seconds for _ in done)

        count()
        measured = many.timed(count, len(self.sources), self.edges, self.args.seconds)
        return {
            "levels": rows,
            "counts": {"joules": measured.joules, **measured.as_dict()},
        }

    def methods(self) -> list[dict[str, Any]]:
        """Path lengths by each method, levels by block; and the levels themselves."""
        rows = []
        ways = [(name, 16) for name in many.METHODS]
        for method, threshold in [*ways, ("hybrid", "auto")]:
            row = many.measure_method(
                self.graph,
                self.sources,
                method,
                self.args.seconds,
                self.deepest,
                self.edges,
                threshold,
            )
            row["name"] = method if threshold == 16 else f"{method}, T auto"
            rows.append(row)
            if row["levels"] is not None:
                continue
            options = RunOptions(method, threshold)
            step = max(len(self.sources) // 256, 1)
            some, check = self.sources[::step], comparing(self.levels[::step], method)
            DeviceRunner(
                many.PATHS, self.graph, some, options, check, levels=True
            ).run()
            del check
            cuda.release()
        return rows

    def betweenness(self) -> dict[str, Any]:
        """Brandes from all sources; one source is checked by sums over edges."""
        problem, one = betweenness.PROBLEM, self.sources[:1]
        value = DeviceRunner(problem, self.graph, one).run()["value"]
        wanted = self.dependencies(int(one[0]), self.levels[0])
        worst = float(abs(value - wanted).max() / max(float(wanted.max()), 1.0))
        if worst > 1e-9:
            raise ValidationError(f"betweenness: off by {worst} of the largest")

        runner = DeviceRunner(problem, self.graph, self.sources)

        def run() -> float:
            runner.run()
            return runner.seconds

        measured = many.timed(run, len(self.sources), self.edges, self.args.seconds)
        more = {"difference": worst, "joules": measured.joules, "blocks": runner.blocks}
        return {**more, **measured.as_dict()}

    def dependencies(self, source: int, levels: Any) -> Any:
        """Return Brandes' dependencies from one source, by id, CuPy float64 [n]."""
        cp, graph = cuda.cupy(), self.graph
        degrees = cp.diff(graph.out.offsets).astype(np.int64)
        ends = cp.cumsum(degrees)
        rows = cp.searchsorted(ends, cp.arange(graph.m), side="right")
        columns = graph.out.columns[: graph.m].astype(np.int64)
        level = levels[graph.vertices].astype(np.int64)
        ahead = level[columns] == level[rows] + 1
        u, v = rows[ahead], columns[ahead]
        del rows, columns, ahead
        n, at = graph.active, level[u]
        sigma = cp.zeros(n)
        sigma[int(graph.numbers[source])] = 1
        deepest = int(at.max()) + 1
        for d in range(deepest):
            here = at == d
            sigma += cp.bincount(v[here], sigma[u[here]], minlength=n)
        delta = cp.zeros(n)
        for d in reversed(range(deepest)):
            a, b = u[at == d], v[at == d]
            share = sigma[a] / sigma[b] * (1 + delta[b])
            delta += cp.bincount(a, share, minlength=n)
        delta[int(graph.numbers[source])] = 0
        out = cp.zeros(graph.n)
        out[graph.vertices] = delta
        return out


def diameter(args: Any) -> dict[str, Any]:
    """Exact diameter and radius of the road-like graph by bounds."""
    graph = figures.built(Road(1 << (12 if args.small else 22)))
    search = XbfsEngine(SearchOptions(engine="xbfs", parents=False)).on_graph(graph)
    roots, _ = figures.roots_of(graph, 1, args.seed)
    cp, result = cuda.cupy(), search.search(roots[0])
    ecc, inside = int(result.levels) - 1, cp.flatnonzero(result.level >= 0)
    ends = inside.tolist()

    def rows(places: Any) -> Any:
        for place in places.tolist():
            yield search.search(ends[place]).level[inside].astype(np.int32)

    began = time.perf_counter()
    bounds = Bounds(len(ends), cp)
    radius, longest, searches = extremes(rows, bounds, SoloWorld())
    seconds = time.perf_counter() - began
    if not radius <= ecc <= longest:
        raise ValidationError(f"{radius} to {longest}, but a vertex has {ecc}")
    row = {"n": graph.n, "m": graph.m, "seconds": seconds}
    return {**row, "diameter": longest, "radius": radius, "searches": searches}


def main() -> None:
    parser = figures.arguments(__doc__, roots=1024)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--scale", type=int, default=19, help="of the Kronecker graph")
    parser.add_argument("--seconds", type=float, default=5.0, help="a measurement")
    parser.add_argument("--checked", type=int, default=64, help="sources validated")
    args = parser.parse_args()
    values: dict[str, Any] = {"must": MUST, "aim": AIM}
    lines: list[tuple[Any, ...]] = []
    if set(args.parts) - {"diameter"}:
        bench = Bench(args)
        values["graph"] = {
            "source": bench.graph.source,
            "n": bench.graph.n,
            "active": bench.graph.active,
            "m": bench.graph.m,
            "sources": len(bench.sources),
            "edges": bench.edges,
            "deepest": bench.deepest,
            "validated": bench.checked,
        }
        for part in PARTS[:3]:
            if part not in args.parts:
                continue
            values[part] = getattr(bench, part)()
            lines += table_of(part, values[part])
            figures.save(args.out, "bench_multisearch_gpu", values)
        del bench
        cuda.release()
    if "diameter" in args.parts:
        values["diameter"] = diameter(args)
        name = f"diameter {values['diameter']['diameter']}"
        lines.append((name, values["diameter"]["seconds"], "-", "-"))
        figures.save(args.out, "bench_multisearch_gpu", values)
    print_table(("what", "wall s", "kernels s", "joules"), lines)


def table_of(part: str, values: Any) -> list[tuple[Any, ...]]:
    """Return lines (what, wall seconds, seconds of kernels, joules)."""

    def line(name: str, row: dict[str, Any], wall: str, kernels: str) -> Any:
        joules = row["joules"]
        return name, row[wall], row[kernels], "-" if joules is None else joules

    if part == "bits":
        rows = [(f"levels, {x['width']} a batch", x) for x in values["levels"]]
        rows.append(("vertices by level", values["counts"]))
    elif part == "methods":
        return [line(x["name"], x, "wall_seconds", "seconds") for x in values]
    else:
        rows = [("betweenness", values)]
    return [line(name, row, "seconds", "kernels") for name, row in rows]


if __name__ == "__main__":
    figures.main(main)
