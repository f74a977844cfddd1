"""Measure many searches at once on several devices over one, their levels compared.

Levels of 1,024 sources of a Kronecker graph: on one device; replicated, each rank with
the whole graph and a share of the sources; and by parts: rows of one domain of all
devices, of one process or of a rank each, and domains of one device with what goes
between them.

    mpirun -n 2 python scripts/bench_searches_devices.py --ways one replicated domains
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import figures
import many_searches as many
import numpy as np

from distbfs.device import cuda
from distbfs.errors import LaunchError, UsageError, ValidationError
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.part_loop import Wanted
from distbfs.multisearch.searchers import searches_of
from distbfs.options import BuildOptions, SearchOptions
from distbfs.ranks.world import SoloWorld, start
from distbfs.report.tables import print_table
from distbfs.search.choose import Request
from distbfs.search.holding import Source
from distbfs.search.open import open_source

TARGETS = 2000  # vertices whose levels of all sources are compared
MUST = {"replicated": 1.8, "by parts": 1.5}  # two devices over one
PARTS = {  # whether a domain has all devices or one, and whether rank 0 has all
    "domain": (True, True),
    "domain of ranks": (True, False),
    "domains": (False, False),
    "domains of a process": (False, True),
}
WAYS = ("one", "replicated", *(name.replace(" ", "-") for name in PARTS))


class Bench:
    """The measurements; methods are collective over all ranks, each with a device.

    levels: of all sources at some vertices, on rank 0
    """

    def __init__(self, args: Any) -> None:
        self.args, self.world = args, start()
        ranks = self.world.size
        if ranks < 2:
            raise LaunchError("one rank; start as many as there are devices to measure")
        if (count := cuda.cupy().cuda.runtime.getDeviceCount()) < ranks:
            raise UsageError(f"{ranks} ranks need a device each; here are {count}")
        cuda.cupy().cuda.Device(self.world.rank).use()
        self.source = many.kronecker(args)
        graph = figures.built(self.source)
        self.sources = many.sources_of(graph, args.roots, args.seed)
        rng = np.random.default_rng(args.seed)
        self.targets = rng.integers(0, graph.n, TARGETS)
        self.edges, self.deepest = many.traversed(graph, self.sources)
        self.levels: Any = None
        self.rows: list[dict[str, Any]] = []
        self._close: Callable[[], None] | None = None
        self._whole(graph)

    def _whole(self, graph: Any) -> None:
        """Measure searches of the whole graph, on one device and on all."""
        searches = many.bit_searches(graph)
        wanted = Wanted(levels=True, counts=self.args.counts)

        def run(sources: Any, kept: list[Any] | None = None) -> None:
            for first, last in many.batches(searches, sources, wanted):
                if self.args.counts:
                    searches.counts()
                if kept is not None:
                    rows, targets = self._pairs(last - first)
                    kept.append(searches.levels_at(rows, targets))
            cuda.cupy().cuda.Device().synchronize()

        first = self.world.rank == 0
        kept: list[Any] = []
        if first:
            run(self.sources, kept)
            self.levels = np.concatenate(kept)
        if "one" in self.args.ways:
            self._measure("one", (lambda: run(self.sources)) if first else None)
        if "replicated" in self.args.ways:
            some = np.array_split(self.sources, self.world.size)[self.world.rank]
            self._measure("replicated", lambda: run(some))

    def _pairs(self, count: int) -> tuple[Any, Any]:
        """Return (searches, targets) of all pairs of searches and targets."""
        rows = np.repeat(np.arange(count), len(self.targets))
        return rows, np.tile(self.targets, count)

    def parts(self, name: str) -> None:
        """Measure searches of parts, and compare their levels."""
        whole, alone = PARTS[name]
        ranks = self.world.size
        domain = ranks if whole else 1
        if not alone:
            self._measure(name, self._of_session(self.world, domain))
            return
        run = None
        if self.world.rank == 0:
            run = self._of_session(SoloWorld(), domain, devices=list(range(ranks)))
        self._measure(name, run)

    def _of_session(self, world: Any, domain: int, **more: Any) -> Callable[[], None]:
        """Open a session of parts; return what searches from all sources."""
        cuda.release()
        graph = Source(
            self.source.n, world.size, tuples=self.source, build=BuildOptions()
        )
        options = SearchOptions.named(engine="xbfs", parents=False)
        asked = Request(domain=domain, divided=True, **more)
        session = open_source(world, graph, options, asked)
        searches = searches_of(session)
        print(f"rank {self.world.rank}: {session.why}", flush=True)

        wanted = Wanted(levels=True, counts=self.args.counts)

        def run(kept: list[Any] | None = None) -> None:
            first = 0
            while first < len(self.sources):
                rest = self.sources[first:]
                some = searches.run_first(rest, RunOptions(), wanted)
                if self.args.counts:
                    searches.counts()
                if kept is not None:
                    rows, targets = self._pairs(some)
                    within = session.vertices.inside(targets)
                    kept.append(searches.levels_at(rows, within))
                first += some

        kept: list[Any] = []
        run(kept)
        if self.world.rank == 0 and (np.concatenate(kept) != self.levels).any():
            raise ValidationError("searches of parts: other levels")
        self._close = session.close
        return run

    def _measure(self, name: str, run: Callable[[], None] | None) -> None:
        """Run once, then --runs times, timed by the slowest rank; None: only wait."""
        times: list[float] = []
        for k in range(self.args.runs + 1):
            self.world.barrier()
            began = time.perf_counter()
            if run is not None:
                run()
            self.world.barrier()
            times += [time.perf_counter() - began] if k else []
        if run is not None and self._close is not None:
            self._close()
            self._close = None
        row: dict[str, Any] = {"way": name, "seconds": float(np.median(times))}
        row |= {"least": min(times), "most": max(times)}
        row["GTEPS"] = self.edges / 2 / row["seconds"] / 1e9
        self.rows.append(row)


def main() -> None:
    parser = figures.arguments(__doc__, roots=1024)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--scale", type=int, default=24, help="of the Kronecker graph")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each way")
    parser.add_argument("--counts", action="store_true", help="count levels as well")
    args = parser.parse_args()
    bench = Bench(args)
    for name in PARTS:
        if name.replace(" ", "-") in args.ways:
            bench.parts(name)
    bench.world.finish()
    if bench.world.rank:
        return
    one = next((x["seconds"] for x in bench.rows if x["way"] == "one"), None)
    for row in bench.rows:
        row["over one"] = None if one is None else one / row["seconds"]
    must = MUST if bench.world.size == 2 else None
    values: dict[str, Any] = {"devices": bench.world.size, "must": must}
    values |= {"edges": bench.edges, "deepest": bench.deepest}
    values |= {"sources": len(bench.sources), "scale": args.scale, "rows": bench.rows}
    figures.save(args.out, "bench_searches_devices", values)
    head = ("way", "seconds", "least", "most", "GTEPS", "over one")
    lines = [
        tuple("-" if row[x] is None else row[x] for x in head) for row in bench.rows
    ]
    print_table(head, lines)


if __name__ == "__main__":
    figures.main(main)
