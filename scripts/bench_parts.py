"""Measure the search of parts over many ranks: every variant on a graph built once.

    mpirun -n 4 python scripts/bench_parts.py --engine pan --scales 22 28 --out results

For each graph and threshold the parts are built once, as ``distbfs graph500`` does, and
searched with each variant of the options; results are validated.  A few searches run
once more with a look at every part of the work, level by level from the host: each is
waited for, and with counters, so that they add up and take longer than a search as it
runs.  A table comes last; rows
are written to a JSON file as they are found.

A variant is made of names joined by "+": default, push (no direction optimisation), IR
and BR (nonblocking and blocking reduction of masks), L (local all2all), U (uniquify),
levels (no parents), an exchange, or a direction factor as dd=0.5.
Source: Pan, Pearce, Owens 2018, Section VI.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pan_runs as runs

from distbfs import registry
from distbfs.benchmark.graph500 import run_searches
from distbfs.benchmark.graph500_report import SearchFigures
from distbfs.benchmark.roots import choose_roots
from distbfs.benchmark.statistics import rate_statistics
from distbfs.device import cuda
from distbfs.errors import UsageError, ValidationError
from distbfs.exchange.world import Ranks, run_guarded
from distbfs.generate.families import from_description
from distbfs.generate.kronecker import Kronecker
from distbfs.options import BuildOptions, SearchOptions
from distbfs.report.provenance import provenance
from distbfs.report.tables import print_table
from distbfs.search.choose import Request, kind_of
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.search.result import Result
from distbfs.search.session import Held, Session
from distbfs.store.hdf5 import open_store
from distbfs.store.tuples import StoreTuples
from distbfs.terminal.shared import open_terminal, share_of_cores
from distbfs.types import SUBGRAPHS, Ids, TupleSource

SUGGESTED = "auto"
OUTSIDE = "outside"  # what a session does around a search
VARIANTS = ["default", "host", "IR", "L", "U", "L+U", "push"]
SEARCH_CALLS = dict.fromkeys(("work", "advance", "accept"), "queues")
EXCHANGE_CALLS = {
    **dict.fromkeys(("start_masks", "finish_masks"), "masks"),
    **dict.fromkeys(("start_normals", "finish_normals"), "normals"),
}
LOCAL_CALLS = ("reduce_masks", "deal", "collect", "bring")


class Ledger:
    """Tells what a search spends its time with, level by level.

    rows: seconds by part of the work (pan_runs.PARTS): the start, each level, the end.
    What calls another watched one does not count for both.
    """

    def __init__(self, session: Session) -> None:
        runner: Any = inner(session._runner, "_runner")  # without its clock
        self.rows: list[dict[str, float]] = []
        self._parts = [OUTSIDE]
        self._last = 0.0
        self._device = bool(session.held.devices)
        self._watched: list[tuple[Any, str]] = []
        for k, one in enumerate(runner._searches):
            search = inner(one, "_search")  # where its device is current already
            for name, part in SEARCH_CALLS.items():
                self._watch(search, name, part, begins=not k and name == "work")
            self._watch(search, "visit", "")  # of the subgraph that it is given
        for name, part in EXCHANGE_CALLS.items():
            self._watch(runner._exchange, name, part)
        for name in LOCAL_CALLS:
            self._watch(getattr(runner._exchange, "_local", None), name, "local")
        self._watch(runner._parents, "complete", "parents")
        self._watch(runner, "search", "rest")

    def begin(self) -> None:
        """Forget what was seen; a search starts."""
        self.rows, self._parts = [], [OUTSIDE]
        self._new_row()
        self._last = time.perf_counter()

    def seconds(self) -> list[list[float]]:
        """Return seconds by row and part, in the order of pan_runs.PARTS."""
        return [[row[name] for name in runs.PARTS] for row in self.rows]

    def close(self) -> None:
        """Let go of what is watched."""
        for owner, name in self._watched:
            delattr(owner, name)

    def _new_row(self) -> None:
        self.rows.append(dict.fromkeys((*runs.PARTS, OUTSIDE), 0.0))

    def _turn(self) -> None:
        """Count the time since the last turn towards what is under way."""
        now = time.perf_counter()
        self.rows[-1][self._parts[-1]] += now - self._last
        self._last = now

    def _watch(self, owner: Any, name: str, part: str, *, begins: bool = False) -> None:
        method = getattr(owner, name, None)
        if method is None:
            return

        def timed(*args: Any, **more: Any) -> Any:
            self._turn()
            if begins:
                self._new_row()
            self._parts.append(part or args[0])
            result = method(*args, **more)
            if self._device:
                cuda.cupy().cuda.Device().synchronize()
            self._turn()
            self._parts.pop()
            return result

        setattr(owner, name, timed)
        self._watched.append((owner, name))


def inner(wrapper: Any, name: str) -> Any:
    """Return what a runner or search calls for each call, itself where it is none."""
    return vars(wrapper).get(name, wrapper)


def looked_at(session: Session, roots: list[int]) -> list[dict[str, Any]]:
    """Return the levels of searches and their seconds, means over ranks (collective).

    One search before the first is not counted.
    """
    searches = []
    ledger, world = Ledger(session), session.world
    for root in [*roots[:1], *roots]:
        ledger.begin()
        result = session.search(root, records=True)
        mine = np.array(ledger.seconds())
        mean = world.allreduce(mine) / world.size
        most = world.allreduce(mine.sum(axis=0), "max")
        searches.append(
            {
                "root": root,
                "records": result.records,
                "seconds": [
                    dict(zip(runs.PARTS, row, strict=True)) for row in mean.tolist()
                ],
                "slowest": dict(zip(runs.PARTS, most.tolist(), strict=True)),
            }
        )
    ledger.close()
    return searches[1:]


def breakdown_ms(searches: list[dict[str, Any]]) -> dict[str, float]:
    """Return milliseconds a search by part of the work, means."""
    rows = [row for search in searches for row in search["seconds"]]
    return {
        name: 1e3 * sum(row[name] for row in rows) / len(searches)
        for name in runs.PARTS
        if searches
    }


class Graph:
    """A graph in parts, which stay while sessions come and go."""

    def __init__(
        self,
        world: Ranks,
        source: TupleSource,
        options: SearchOptions,
        args: argparse.Namespace,
        threshold: int | None,
    ) -> None:
        self.source, self.world = source, world
        count, build = args.per_rank * world.size, BuildOptions(threshold=threshold)
        self._made = Source(source.n, count, tuples=source, build=build)
        self._request = Request(count, "--per-rank", keep=True)
        self.held: Sequence[Held] = ()
        session = self.session(options)
        held = session.held
        self.held = [held]
        self.roots: Ids = choose_roots(
            source.n, args.roots, args.seed, session.connected
        )
        if not len(self.roots):
            raise ValidationError("no vertex has a neighbour besides itself: no search")
        session.close()
        parts: Sequence[Any] = held.device_parts or held.parts
        part = parts[0]
        sizes = [[getattr(x, name).edges for name in SUBGRAPHS] for x in parts]
        edges = world.allreduce(np.array(sizes, dtype=np.int64).sum(axis=0))
        stored = np.array([sum(x.graph_bytes for x in parts)], dtype=np.int64)
        taken = np.array([held.generation_seconds, held.construction_seconds])
        generation, construction = world.allreduce(taken, "max").tolist()
        m = int(edges.sum())
        self.facts: dict[str, Any] = {
            "n": source.n,
            "m": m,
            "tuples": source.tuples,
            "edges": dict(zip(SUBGRAPHS, edges.tolist(), strict=True)),
            "delegates": part.delegate_count,
            "threshold": part.threshold,
            "suggested": threshold is None,
            "bytes_per_edge": int(world.allreduce(stored)[0]) / max(m, 1),
            "generation_seconds": generation,
            "construction_seconds": construction,
        }
        # of a store, nn and dd edges are there in both directions
        once = isinstance(source, StoreTuples)
        self.weight = m / 2 / source.tuples if once else 1.0

    def session(self, options: SearchOptions) -> Session:
        """Return a session over the parts (collective)."""
        request, held = self._request, self.held
        return open_source(self.world, self._made, options, request, held=held)


class Variant:
    """The searches of one graph with some options (collective)."""

    def __init__(
        self, graph: Graph, name: str, options: SearchOptions, args: argparse.Namespace
    ) -> None:
        self.graph, self.name, self.options = graph, name, options
        began = time.perf_counter()
        session = graph.session(options)
        self.prepare = time.perf_counter() - began
        self.phases: list[dict[str, float]] = []
        self.levels: list[int] = []
        checked = len(graph.roots) if args.validate is None else args.validate
        self.searches = run_searches(
            session,
            graph.source,
            graph.roots,
            exact=True,
            check=checked,
            stop=lambda: False,
            report=self._note,
        )
        self.validated = min(checked, len(self.searches))
        self.description = session.describe()
        few = graph.roots[: args.records].tolist()
        self.looked = looked_at(session, few)
        session.close()

    def _note(self, result: Result, _: SearchFigures) -> None:
        self.phases.append(result.phases)
        self.levels.append(result.depth + 1)

    def errors(self) -> list[str]:
        """Return what validation found."""
        return [f"root {x.root}: {x.error}" for x in self.searches if not x.valid]

    def row(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        seconds = [x.seconds for x in self.searches]
        edges = [x.nedge * self.graph.weight for x in self.searches]
        walls = [x.wall_seconds for x in self.searches if x.wall_seconds]
        rates = rate_statistics(edges, seconds)
        logs = [math.log(e / s) for e, s in zip(edges, seconds, strict=True)]
        low, median, high = np.quantile(seconds, [0.25, 0.5, 0.75]).tolist()
        names = dict.fromkeys(name for phases in self.phases for name in phases)
        return {
            "variant": self.name,
            "engine": self.description["engine"],
            "exchange": self.description["exchange"],
            "where": self.description.get("device"),
            "options": self.options.as_dict(),
            "searches": len(seconds),
            "validated": self.validated,
            "valid": sum(x.valid for x in self.searches[: self.validated]),
            "GTEPS": rates.harmonic_mean / 1e9,
            "GTEPS_quartiles": [rates.firstquartile / 1e9, rates.thirdquartile / 1e9],
            "geometric_mean_GTEPS": math.exp(statistics.mean(logs)) / 1e9,
            "median_ms": 1e3 * median,
            "quartiles_ms": [1e3 * low, 1e3 * high],
            "wall_median_ms": 1e3 * statistics.median(walls) if walls else None,
            "depth": statistics.median(self.levels),
            "prepare_seconds": self.prepare,
            "host_phases_ms": {
                name: 1e3 * statistics.mean(x.get(name, 0.0) for x in self.phases)
                for name in names
            },
            "breakdown_ms": breakdown_ms(self.looked),
            "seconds": seconds,
            "levels": self.looked,
            "mode": self.description["mode"],
        }


def options() -> argparse.Namespace:
    """Return what the command line says, checked."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--scales", type=int, nargs="+", default=[], help="of Kronecker graphs")
    add("--graph", type=Path, help="a store whose edges are built anew")
    add("--thresholds", nargs="+", default=[SUGGESTED], help="TH, or auto")
    add("--variants", nargs="*", help="ways to search")
    add("--factors", nargs="+", help="values of each direction factor, or sweep")
    add("--engine", choices=list(registry.ENGINES), default="pan")
    exchanges = ["auto", *registry.EXCHANGES]
    add("--exchange", choices=exchanges, default="auto", help="where none is named")
    add("--per-rank", type=int, default=1, help="parts of a rank")
    add("--roots", type=int, default=64, help="searches a variant")
    add("--seed", type=int, default=1, help="of graphs and roots")
    add("--validate", type=int, help="roots that are validated; else all")
    add("--records", type=int, default=2, help="roots that are looked at by level")
    add("--share-device", action="store_true", help="ranks may share a device")
    add("--seconds", type=float, default=math.inf, help="begin nothing after so long")
    add("--out", type=Path, required=True, help="output folder")
    add("--name", help="of the JSON file; else parts_ENGINE_RANKS")
    args = parser.parse_args()
    if bool(args.scales) == (args.graph is not None):
        raise UsageError("give either --scales or --graph")
    if not all(1 <= scale <= 48 for scale in args.scales):
        raise UsageError("scales go from 1 to 48")
    low = min(args.per_rank, args.roots, 1 + args.records, 1 + (args.validate or 0))
    if low < 1:
        raise UsageError("--per-rank and --roots are 1 or more, the others 0 or more")
    if args.variants is None:
        args.variants = ["default"] if args.factors else VARIANTS
    if args.factors:
        args.variants += runs.sweep(numbers(args.factors))
    args.thresholds = [
        None if word == SUGGESTED else number(word, int) for word in args.thresholds
    ]
    return args


def numbers(words: list[str]) -> list[float]:
    """Return direction factors."""
    if words == ["sweep"]:
        return list(runs.DECADES)
    return [number(word, float) for word in words]


def number(word: str, kind: type) -> Any:
    """Return a word of the command line as a number."""
    try:
        return kind(word)
    except ValueError as error:
        raise UsageError(f"'{word}' is no number") from error


def sources(args: argparse.Namespace, threads: int) -> Iterator[tuple[Any, ...]]:
    """Yield (what a row says of the graph, its tuples)."""
    for scale in args.scales:
        yield {"scale": scale, "graph": None}, Kronecker(scale, 16, args.seed, threads)
    if args.graph is not None:
        store = open_store(args.graph)
        manifest = store.manifest
        tuples = from_description(manifest.source, threads)
        size = (manifest.n, manifest.tuples)
        if tuples is None or (tuples.n, tuples.tuples) != size:
            tuples = StoreTuples(store)
        yield {"scale": None, "graph": store.folder.name}, tuples


def base_options(args: argparse.Namespace, world: Ranks) -> dict[str, Any]:
    """Return the options that variants change; on the host, levels are the host's."""
    return {
        "engine": args.engine,
        "exchange": args.exchange,
        "threads": share_of_cores(world),
        "stepwise": not kind_of(args.engine).on_device,
        "share_device": args.share_device,
    }


def table(rows: list[dict[str, Any]]) -> None:
    names = ("graph", "TH", "variant", "exchange", "GTEPS", "median ms", "wall ms")
    more = ("construction s", "delegates", "bytes/edge", "valid", "searches")
    lines = [
        (
            row["graph"] or f"kron{row['scale']}",
            row["threshold"],
            row["variant"],
            row["exchange"],
            row["GTEPS"],
            row["median_ms"],
            row["wall_median_ms"] or float("nan"),
            row["construction_seconds"],
            row["delegates"],
            row["bytes_per_edge"],
            row["valid"],
            row["searches"],
        )
        for row in rows
    ]
    print_table((*names, *more), lines)


class Output:
    """Writes rows as they come; rank 0 alone."""

    def __init__(self, args: argparse.Namespace, world: Ranks) -> None:
        self.rows: list[dict[str, Any]] = []
        self._first = world.rank == 0
        name = args.name or f"parts_{args.engine}_{world.size}"
        self._path = args.out / f"{name}.json"
        if self._first:
            args.out.mkdir(parents=True, exist_ok=True)
            self._head = provenance(sys.argv, device=args.engine == "pan")
            self._head |= {"world": world.describe()}

    def add(self, row: dict[str, Any]) -> None:
        """Add a row and write all."""
        self.rows.append(row)
        if self._first:
            text = json.dumps({**self._head, "rows": self.rows}, indent=1)
            self._path.write_text(text + "\n", encoding="utf-8")
            print(
                f"{row['graph'] or row['scale']}, TH {row['threshold']}, "
                f"{row['variant']}: {row['GTEPS']:.4g} GTEPS",
                flush=True,
            )

    def end(self) -> None:
        """Print the table."""
        if self._first and self.rows:
            table(self.rows)
            print(f"wrote {self._path}")


def work() -> int:
    args = options()
    world = open_terminal(json_output=False, log_format="text").world
    began = time.perf_counter()
    values = base_options(args, world)
    base = SearchOptions.named(**values)
    wanted = {
        name: SearchOptions.named(**values | runs.changes_of(name))
        for name in args.variants
    }
    output, errors = Output(args, world), list[str]()

    def late() -> bool:
        spent = np.array([time.perf_counter() - began])
        return float(world.allreduce(spent, "max")[0]) > args.seconds

    for about, source in sources(args, base.threads):
        for threshold in args.thresholds:
            if late():
                break
            graph = Graph(world, source, base, args, threshold)
            shape = {"devices": world.size, "parts": world.size * args.per_rank}
            for name, chosen in wanted.items():
                if late():
                    break
                variant = Variant(graph, name, chosen, args)
                output.add({**about, **shape, **graph.facts, **variant.row()})
                errors += [f"{name}: {line}" for line in variant.errors()]
                del variant
                gc.collect()
            device = bool(graph.held[0].devices)
            del graph
            gc.collect()
            if device:
                cuda.release()
    output.end()
    if errors:
        raise ValidationError("; ".join(errors[:3]))
    return 0


if __name__ == "__main__":
    sys.exit(run_guarded(None, work))
