"""A graph in device memory that is searched many times; results stay there.

Results come to the host in ``DeviceSession.block`` alone.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.engines.base import DeviceEngine
from distbfs.engines.cuda.results import host_levels, host_parents
from distbfs.errors import SearchStopped, UsageError
from distbfs.graph.device_graph import ISOLATED, DeviceGraph
from distbfs.options import SearchOptions
from distbfs.partition.layout import Layout
from distbfs.partition.memory import readable
from distbfs.search.session import Outcome, check_roots, outcome_copied, records_of
from distbfs.timing import Trace, kept
from distbfs.types import Array, Ids, Stop, World

SOURCE = Path(__file__).with_suffix(".cu")
BLOCK = 256
BLOCKS = 8  # on each multiprocessor
LEVEL_NAMES = {"int8": "i8", "int32": "int"}


@cache
def _module(device: int, level: str) -> cuda.Module:  # noqa: ARG001
    """Return the kernels for a dtype of levels, loaded once on each device."""
    return cuda.Module(SOURCE, LEVEL=LEVEL_NAMES[level])


class DeviceSession:
    """One process with a graph on its device; see ``session.AnySession``.

    An outcome has one level and one parent array, CuPy's, as DeviceResult says; by
    number where ``options.internal_ids``.  Its ``seconds`` are device time, between
    events; ``wall`` is the host's.
    """

    def __init__(
        self,
        world: World,
        engine: DeviceEngine,
        graph: DeviceGraph,
        options: SearchOptions,
    ) -> None:
        self.world = world
        self.engine = engine
        self.graph = graph
        self.options = options
        self.layout = Layout(graph.n, 1)
        self._search = engine.on_graph(graph)
        self._trace: Trace | None = None
        self._grid = BLOCKS * cuda.multiprocessors()

    @property
    def mode(self) -> str:
        """How searches run: resident (no host between levels) or stepwise."""
        return "stepwise" if self.options.stepwise else "resident"

    @property
    def extent(self) -> int:
        """Rows of ``block``: vertices, or numbers with internal ids."""
        return self.graph.active if self.options.internal_ids else self.graph.n

    def describe(self) -> dict[str, Any]:
        """Return what searches run on, for reports."""
        graph = self.graph
        return {
            **self.engine.describe(),
            "mode": self.mode,
            "exchange": "none",
            "internal_ids": self.options.internal_ids,
            "graph": {
                "n": graph.n,
                "active": graph.active,
                "m": graph.m,
                "bytes": graph.nbytes,
                "seconds": dict(graph.seconds),
            },
        }

    def notes(self) -> dict[str, str]:
        """Return what the text of a report adds: name -> text."""
        told = cuda.describe()
        driver = f"{told['driver'] // 1000}.{told['driver'] % 1000 // 10}"
        return {
            "device": told["device"],
            "device memory": readable(told["memory_bytes"]),
            "CUDA driver": f"{driver}, CuPy {told['cupy']}",
            "time": "device events around each search",
        }

    def check(self, roots: Ids) -> None:
        """Raise UsageError for what cannot be searched from."""
        check_roots(roots, self.graph.n)
        if self.options.internal_ids and not self.connected(roots).all():
            alone = int(roots[np.argmin(self.connected(roots))])
            raise UsageError(
                f"source {alone} has no edges and so no internal id; leave the option "
                "of internal ids out"
            )

    def search(
        self,
        root: int,
        *,
        records: bool = False,
        parents: bool = True,
        stop: Stop | None = None,
    ) -> Outcome:
        """Search from an input id; UsageError where that cannot be.

        ``stop`` is asked before the search alone: no host sees its levels.
        """
        self.check(np.array([root]))
        if stop is not None and stop():
            raise SearchStopped("the search was stopped before it began")
        cuda.cupy().cuda.Device().synchronize()  # what is under way is not its time
        began = time.perf_counter()
        span = kept(self._trace, "search", root=root)
        with cuda.memory_of("a search"), span:
            found = self._search.search(root, records=records)
        wall = time.perf_counter() - began
        return Outcome(
            root,
            [found.level],
            [found.parent if parents else None],
            found.levels,
            found.seconds,
            records_of(found.records),
            wall=wall,
        )

    def watch(self, trace: Trace) -> None:
        """Keep the time of searches in a trace from now on."""
        self._trace = trace

    def at(self, outcome: Outcome, ids: Ids) -> tuple[Array, Array | None]:
        """Return level and parent of input ids; see ``session.AnySession``."""
        level, parent = outcome.level[0], outcome.parent[0]
        if self.options.internal_ids:
            level, parent = self.in_ids(outcome)
        places = cuda.cupy().asarray(ids)
        above = None if parent is None else host_parents(parent[places])
        return host_levels(level[places]), above

    def level_counts(self, outcome: Outcome) -> Ids:
        """Return how many vertices each level has, int64 [levels]."""
        level = outcome.level[0]
        return cuda.counts(level[level >= 0], outcome.levels)

    def keep(self, outcome: Outcome) -> Outcome:
        """Return a search whose results outlast the next one."""
        with cuda.memory_of("results that wait for validation"):
            return outcome_copied(outcome)

    def room(self, most: int) -> int:
        """Return the bytes that kept results may take: half of what is free."""
        return min(most, cuda.free_bytes() // 2)

    def in_ids(self, outcome: Outcome) -> tuple[Any, Any]:
        """Return (level, parent or None) by input id, in device memory."""
        level, parent = outcome.level[0], outcome.parent[0]
        if not self.options.internal_ids:
            return level, parent
        cp, graph, null = cuda.cupy(), self.graph, np.uint64(0)
        with cuda.memory_of("results in input ids"):
            level_out = cp.empty(graph.n, dtype=level.dtype)
            parent_out = None if parent is None else cp.empty(graph.n, dtype=np.int32)
        given = (level, null if parent is None else parent, np.uint64(graph.n))
        out = (level_out, null if parent_out is None else parent_out)
        kernel = self._kernel("by_id", level)
        kernel(self._grid, BLOCK, graph.numbers, graph.vertices, *given, *out)
        return level_out, parent_out

    def block(self, outcome: Outcome) -> tuple[Array, Array | None]:
        """Return the results on the host: level int32, parent int64 [extent].

        By input id; by number, parents too, with internal ids.
        """
        parent = outcome.parent[0]
        level = host_levels(outcome.level[0])
        return level, None if parent is None else host_parents(parent)

    def vertices(self) -> Ids | None:
        """Return number -> input id, int64 [extent], where results are by number."""
        if not self.options.internal_ids:
            return None
        ids: Array = self.graph.vertices[: self.graph.active].get()
        return ids.astype(np.int64)

    def reached(self, outcome: Outcome) -> tuple[int, int]:
        """Return (vertices reached, largest level)."""
        count, levels, _ = self._tally(outcome)
        return count, levels - 1

    def traversed(self, outcome: Outcome) -> int:
        """Return the input tuples with an end in the reached component."""
        return self._tally(outcome)[2] // 2

    def _tally(self, outcome: Outcome) -> tuple[int, int, int]:
        """Return (vertices, largest level + 1, ends of tuples) that were reached."""
        level, graph = outcome.level[0], self.graph
        sums = cuda.cupy().zeros(3, dtype=np.uint64)
        ids = graph.vertices if self.options.internal_ids else np.uint64(0)
        given = (level, ids, np.uint64(len(level)), graph.tuple_degrees, sums)
        self._kernel("tally", level)(self._grid, BLOCK, *given)
        count, levels, ends = (int(x) for x in sums.get())
        return count, levels, ends

    def _kernel(self, name: str, level: Any) -> cuda.Kernel:
        device = cuda.cupy().cuda.Device().id
        return _module(device, level.dtype.name).kernel(name)

    def connected(self, ids: Ids) -> Array:
        """Return which input ids have a neighbour besides themselves, bool."""
        numbers: Array = self.graph.numbers[cuda.cupy().asarray(ids)].get()
        return numbers != ISOLATED

    def close(self) -> None:
        """Give spare device memory back."""
        cuda.release()


def with_tuples(graph: DeviceGraph, tuples: int, ends: Ids) -> DeviceGraph:
    """Return a graph that was built from other tuples, with the input's counts.

    tuples: input tuples; ends: int64 [n], by id: their ends at each vertex
    """
    with cuda.memory_of("degrees of input tuples"):
        on_device = cuda.cupy().asarray(ends.astype(np.uint32))
    return replace(graph, tuples=tuples, loops=0, tuple_degrees=on_device)
