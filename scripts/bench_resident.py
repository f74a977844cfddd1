"""Measure searches that are resident on the devices of one host, from one process.

    python scripts/bench_resident.py --out results/resident.json
    python scripts/bench_resident.py --cells 4:26 2:27 --roots 16 --validate 2

A cell is DEVICES:SCALE of a Kronecker graph with 16 tuples a vertex, DEVICES:road, or
DEVICES:uniform-SCALE of mean degree 32.
On several devices, searches are resident in the input's ids and in internal ones; on
one, those of method fast in both.  A cell DEVICES:SCALE:1 has method fast on one
device beside them.  Mode "fast counts" is method fast on one device in ids, and then
the numbers of shortest paths, in uint64, whose time is added; where they are validated,
those of engine openmp must be the same, which takes long beyond scale 20:

    python scripts/bench_resident.py --cells 1:18 1:25 --modes fast "fast counts"

Mode "fast masked" is method fast on one device in ids, of searches that see half of the
edges, drawn at random; its rate is of the edges that are seen.  Where it is validated,
levels must be those of engine openmp, up to the same scale.  Mode "fast thin" is method
fast of a graph that has half of the tuples, to compare with.

Mode "fast half" is method fast on one device in ids, with so little device memory that
half of the columns are held back in host memory:

    python scripts/bench_resident.py --cells 1:uniform-25 --modes fast "fast half"

Modes take turns, root by root; each root's reached vertices and
levels must agree, and the first ones are validated by the tuples.  Times are device
events around a search, of the slowest device.  Where not all fits (DEVICES:31), --modes
names those that are wanted.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.benchmark.device_validation import validation_on_devices
from distbfs.benchmark.roots import choose_roots
from distbfs.device import cuda
from distbfs.device.arrays import host_array
from distbfs.device.rates import timed
from distbfs.errors import DistbfsError, OutOfMemory, UsageError
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.road import Road
from distbfs.generate.uniform import Uniform
from distbfs.options import SearchOptions
from distbfs.ranks.world import SoloWorld, run_guarded
from distbfs.report.provenance import provenance
from distbfs.report.tables import print_table
from distbfs.search.choose import Request
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.search.result import Result
from distbfs.search.session import Session

CELLS = ("1:22", "1:25", "4:22:1", "4:26", "2:27", "4:28", "2:road")
ROAD_VERTICES = 4_190_000
MODES = ("resident", "resident internal", "fast", "fast internal")
COUNTS, MASKED, HALF = "fast counts", "fast masked", "fast half"
THIN = "fast thin"
OTHERS = (COUNTS, MASKED, HALF, THIN)
LESS = (MASKED, THIN)  # which reach less than others
MORE = 4  # times as many roots to choose from
SAID = {MASKED: "half of the edges", HALF: "half of the columns held back"}
FACTOR = 16  # tuples a vertex of Kronecker graphs
DEGREE = 32  # mean, of uniform graphs
TRIES, NEAR, COLUMN = 40, 0.03, 4  # to hold back half of the columns, of 4 bytes
HOSTED = 20  # largest scale whose counts, or levels by a mask, are compared
HEAD = ("devices", "graph", "mode", "GTEPS", "ms", "us a level", "levels", "validated")


class Cell:
    """A graph on some devices, and the sessions that search it."""

    def __init__(self, text: str, modes: Sequence[str]) -> None:
        words = text.split(":")
        if len(words) not in (2, 3) or not words[0].isdigit():
            raise UsageError(f"cell is '{text}'; allowed: DEVICES:GRAPH[:1]")
        self.devices, self.graph = int(words[0]), words[1]
        self.source = source_of(self.graph)
        self.sessions: dict[str, Session] = {}
        self.seconds: dict[str, float] = {}
        counts: dict[str, int] = {}
        if self.devices > 1:
            counts |= dict.fromkeys(MODES[:2], self.devices)
        if self.devices == 1 or len(words) == 3:
            counts |= dict.fromkeys((*MODES[2:], *OTHERS), 1)
        for mode, count in counts.items():
            if mode in modes:
                began = time.perf_counter()
                if mode == HALF:
                    self.sessions[mode] = self._half()
                else:
                    self.sessions[mode] = self._opened(mode, count)
                self.seconds[mode] = time.perf_counter() - began

    def _opened(self, mode: str, count: int) -> Session:
        """Return a session on ``count`` devices; modes may share its graph."""
        source = Source(self.source.n, 1, tuples=self.tuples_of(mode))
        options = SearchOptions("xbfs", internal_ids=mode.endswith("internal"))
        request = Request(devices=count, domain=count)
        held = [
            x.held
            for other, x in self.sessions.items()
            if len(x.held.devices) == count and THIN not in (mode, other)
        ]
        return open_source(SoloWorld(), source, options, request, held=held)

    def tuples_of(self, mode: str) -> Any:
        """Return the tuples of the graph that a mode searches."""
        return source_of(self.graph, thin=True) if mode == THIN else self.source

    def _half(self) -> Session:
        """Return a session whose graph has half of its columns in host memory."""
        source = Source(self.source.n, 1, tuples=self.source)
        least, most = 0, cuda.free_bytes()  # nothing fits; all fits
        memory = 2 * COLUMN * self.source.tuples
        for _ in range(TRIES):
            options = SearchOptions("xbfs", device_memory=memory)
            try:
                session = open_source(SoloWorld(), source, options, Request(devices=1))
            except OutOfMemory:
                least, memory = memory, (memory + most) // 2
                continue
            graph = session.held.shares[0]
            over = graph.held_back / graph.m - 0.5
            if abs(over) < NEAR:
                return session
            if graph.held_back:
                memory += int(COLUMN * graph.m * over)
            else:
                most, memory = memory, (least + memory) // 2
            session.close()
            del session, graph
            gc.collect()
            cuda.release()
        raise DistbfsError(f"half of {self.graph} could not be held back")

    def mask(self, sessions: Sequence[Session], seed: int) -> None:
        """Let sessions of the whole graph see half of the edges."""
        edges = np.random.default_rng(seed).random(sessions[0].edges // 2) < 0.5
        for session in sessions:
            session.see(session.view(edges=edges))

    def close(self) -> None:
        """Free all sessions."""
        for session in self.sessions.values():
            session.close()
        self.sessions.clear()


def source_of(name: str, *, thin: bool = False) -> Any:
    """Return the tuples of a graph by its name in a cell; thin: half of them."""
    kind, _, scale = name.rpartition("-")
    if name == "road" and not thin:
        return Road(ROAD_VERTICES)
    if kind not in ("", "uniform") or not scale.isdigit():
        raise UsageError(f"graph is '{name}'; allowed: SCALE, road or uniform-SCALE")
    if kind:
        return Uniform.of_size(1 << int(scale), degree=DEGREE >> thin)
    return Kronecker(int(scale), FACTOR >> thin)


def measure(cell: Cell, roots: int, validate: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each mode of a cell."""
    hosts: dict[str, Any] = {}
    for mode in {COUNTS, MASKED} & cell.sessions.keys():
        hosts[mode] = host_session(cell) if validate else None
    if MASKED in cell.sessions:
        some = (cell.sessions[MASKED], hosts[MASKED])
        cell.mask([x for x in some if x is not None], seed)
    chosen = roots_of(cell, roots, seed)
    check = {
        mode: validation_on_devices(session, cell.tuples_of(mode))
        for mode, session in cell.sessions.items()
    }
    seen: dict[str, list[dict[str, Any]]] = {mode: [] for mode in cell.sessions}
    for mode, session in cell.sessions.items():
        result = session.search(chosen[0])
        if mode == COUNTS:
            result.path_counts()
    for k, root in enumerate(chosen):
        order = list(cell.sessions)
        answers = set()
        for mode in order if k % 2 == 0 else order[::-1]:
            session = cell.sessions[mode]
            result = session.search(root)
            errors: list[str] = []
            if mode not in LESS:
                answers.add((result.reached, result.depth))
            if mode != MASKED:
                errors += check[mode](result).errors if k < validate else []
            row = {"seconds": result.seconds, "levels": result.depth + 1}
            row |= {"edges": result.nedge, "validated": k < validate, "errors": errors}
            if mode == COUNTS:
                made: list[Any] = []
                row["seconds"] += timed(partial(count_paths, result, made))
                [counts] = made
                if k < validate and hosts[mode] is not None:
                    wanted = hosts[mode].search(root).path_counts()
                    same = np.array_equal(host_array(counts), wanted)
                    errors += [] if same else [f"root {root}: counts differ"]
            if mode == MASKED and k < validate:
                errors += masked_errors(result, hosts[mode])
                row["validated"] = hosts[mode] is not None
            seen[mode].append(row)
        if len(answers) > 1:
            raise DistbfsError(f"root {root}: modes disagree: {sorted(answers)}")
    return [summary(cell, mode, rows) for mode, rows in seen.items()]


def count_paths(result: Result, made: list[Any]) -> None:
    """Add the numbers of shortest paths of a search to a list."""
    made.append(result.path_counts())


def roots_of(cell: Cell, roots: int, seed: int) -> list[int]:
    """Return roots, ids, of the largest component also where fewer edges are seen."""
    first = next(iter(cell.sessions.values()))
    less = [cell.sessions[mode] for mode in LESS if mode in cell.sessions]
    many = roots * (MORE if less else 1)
    chosen = choose_roots(cell.source.n, many, seed, first.connected).tolist()
    for session in less:
        reached = [session.search(root).reached for root in chosen]
        chosen = [
            root
            for root, x in zip(chosen, reached, strict=True)
            if 2 * x > max(reached)
        ]
    return chosen[:roots]


def masked_errors(result: Any, host: Session | None) -> list[str]:
    """Return the errors in levels by a mask, found by a search on the host."""
    if host is None:
        return []
    root = result.root
    wanted = host.search(root).to_numpy()[0]
    same = np.array_equal(result.to_numpy()[0], wanted)
    return [] if same else [f"root {root}: levels differ"]


def host_session(cell: Cell) -> Session | None:
    """Return the session that counts on the host, None for too large graphs."""
    if cell.source.n > 1 << HOSTED and cell.graph != "road":
        return None
    source = Source(cell.source.n, 1, tuples=cell.source)
    return open_source(SoloWorld(), source, SearchOptions("openmp"), Request())


def summary(cell: Cell, mode: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Summarise a mode over all roots."""
    inverse = [x["seconds"] / max(x["edges"], 1) for x in rows]
    errors = [error for x in rows for error in x["errors"]]
    return {
        "devices": cell.devices if mode in MODES[:2] else 1,
        "graph": cell.graph,
        "mode": mode,
        "gteps": len(rows) / sum(inverse) * 1e-9,
        "median_ms": 1e3 * statistics.median(x["seconds"] for x in rows),
        "us_a_level": 1e6 * statistics.median(x["seconds"] / x["levels"] for x in rows),
        "levels": statistics.median(x["levels"] for x in rows),
        "roots": len(rows),
        "validated": sum(x["validated"] for x in rows),
        "errors": errors,
        "build_seconds": cell.seconds[mode],
        "seconds": [x["seconds"] for x in rows],
    }


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments of the command line."""
    text = __doc__ or ""
    parser = argparse.ArgumentParser(description=text.partition("\n")[0])
    parser.add_argument("--cells", nargs="+", default=list(CELLS))
    parser.add_argument(
        "--modes", nargs="+", default=list(MODES), choices=(*MODES, *OTHERS)
    )
    parser.add_argument("--roots", type=int, default=64)
    parser.add_argument("--validate", type=int, default=4, help="roots of each cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=170, help="seconds in all")
    parser.add_argument("--out", type=Path, help="a JSON file")
    return parser.parse_args(words)


def write(out: Path | None, rows: list[dict[str, Any]], skipped: list[str]) -> None:
    """Write the results so far."""
    if out is not None:
        facts = provenance(sys.argv, device=True)
        values = {"provenance": facts, "rows": rows, "skipped": skipped}
        out.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Measure all cells; return 1 if a result was wrong."""
    wanted = parse(words)
    began, rows, skipped = time.monotonic(), [], []
    many = int(cuda.cupy().cuda.runtime.getDeviceCount())
    for text in wanted.cells:
        late = time.monotonic() - began > wanted.budget
        if late or int(text.partition(":")[0]) > many:
            skipped.append(text)
            continue
        cell = Cell(text, wanted.modes)
        rows += measure(cell, wanted.roots, wanted.validate, wanted.seed)
        cell.close()
        del cell
        gc.collect()
        cuda.release()
        print(f"{text} after {time.monotonic() - began:.0f} s", file=sys.stderr)
        write(wanted.out, rows, skipped)
    write(wanted.out, rows, skipped)
    print_table(HEAD, [shown(row) for row in rows])
    for graph, ratio in counting_ratios(rows):
        print(f"{graph}: levels and counts at {ratio:.3f} of the rate of levels alone")
    rates = {(row["graph"], row["mode"]): row["gteps"] for row in rows}
    for (graph, mode), rate in rates.items():
        if mode in SAID and (graph, "fast") in rates:
            ratio = rate / rates[graph, "fast"]
            print(f"{graph}: {SAID[mode]} at {ratio:.3f} of the rate of all")
        if mode == MASKED and (graph, THIN) in rates:
            ratio = rate / rates[graph, THIN]
            print(
                f"{graph}: {SAID[mode]} at {ratio:.3f} of a graph with as many tuples"
            )
    for text in skipped:
        print(f"skipped: {text}")
    wrong = [error for row in rows for error in row["errors"]]
    for error in wrong:
        print(error, file=sys.stderr)
    return int(bool(wrong))


def counting_ratios(rows: Sequence[dict[str, Any]]) -> list[tuple[str, float]]:
    """Return (graph, median time of mode fast over that with counts) if both ran."""
    medians = {(row["graph"], row["mode"]): row["median_ms"] for row in rows}
    return [
        (graph, medians[graph, "fast"] / ms)
        for (graph, mode), ms in medians.items()
        if mode == COUNTS and (graph, "fast") in medians
    ]


def shown(row: dict[str, Any]) -> list[str]:
    """Return a row of the table."""
    return [
        str(row["devices"]),
        str(row["graph"]),
        row["mode"],
        f"{row['gteps']:.0f}",
        f"{row['median_ms']:.4f}",
        f"{row['us_a_level']:.2f}",
        f"{row['levels']:.0f}",
        f"{row['validated']} of {row['roots']}",
    ]


if __name__ == "__main__":
    sys.exit(run_guarded(None, main))
