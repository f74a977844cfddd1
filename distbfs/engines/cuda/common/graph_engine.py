"""Shared base of engines that search whole graphs on one device.

An engine of this kind provides a ``WholeSearch`` by number; this module adds results by
id, searches of parts in host memory and errors for unsupported options.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayTable, allocate, total_bytes
from distbfs.engines.base import (
    Engine,
    LevelRecord,
    Query,
    Until,
    WholeResult,
    WholeSearch,
)
from distbfs.engines.cuda.common.arguments import arguments
from distbfs.engines.cuda.common.host_results import results_table
from distbfs.errors import UsageError
from distbfs.graph.device_graph import ISOLATED
from distbfs.options import SearchOptions, check_choice
from distbfs.partition.share import Share
from distbfs.types import DeviceArray, Root

SOURCE = Path(__file__).with_name("ids.cu")
COUNTERS = 1 << 20  # bytes of counters, control and records beside arrays, at most
THREADS, BLOCKS = 256, 8  # of the kernels in ids.cu; blocks on a multiprocessor


class ById(WholeSearch):
    """A search by number with results by id; their conversion counts in its time.

    results: arrays of the results; without them, results stay by number
    """

    def __init__(
        self,
        graph: Share,
        search: WholeSearch,
        results: ArrayTable,
        *,
        parents: bool,
    ) -> None:
        self.graph, self.in_ids, self._search = graph, bool(results), search
        self._parents = parents
        with cuda.memory_of("results"):
            made = allocate(results, cuda.cupy().empty)
        self._level: DeviceArray | None = made.get("level")
        self._parent: DeviceArray | None = made.get("parent")
        self._params = arguments(
            SOURCE, "Ids", graph, level_out=self._level, parent_out=self._parent
        )
        module = programs.Module(SOURCE)
        grid = BLOCKS * cuda.multiprocessors()
        self._to_ids, self._alone = (
            module.kernel(name).prepare(self._params, grid, THREADS)
            for name in ("to_ids", "alone")
        )

    def _by_number(self, until: Until) -> Until:
        """Convert ``until`` from ids to numbers.

        A target without edges has no number and cannot be reached from another vertex;
        if there is one, the search runs to its end.
        """
        if until.targets is None:
            return until
        numbers = self.graph.numbers[cuda.cupy().asarray(until.targets)].get()
        reachable = (numbers != ISOLATED).all()
        # mutant: .astype(np.int64) if reachable else None -> [numbers !=
        #   ISOLATED].astype(np.int64) : test_nothing_lies_beyond_the_last_level
        return Until(until.depth, numbers.astype(np.int64) if reachable else None)

    def answer(self, root: Root, query: Query) -> WholeResult:
        """Search from a vertex id; see ``WholeSearch``."""
        records = query.records
        if isinstance(root, np.ndarray):
            raise UsageError("this engine searches from one vertex, not from a set")
        if not 0 <= root < self.graph.n:
            raise UsageError(f"root is {root}; allowed: 0 to {self.graph.n - 1}")
        ends = self._by_number(query.until.beyond(root, self.graph.n))
        self._params.root = root
        number = int(self.graph.numbers[root])
        if number == ISOLATED:
            if self._level is None:
                return self._nothing(records=records)
            seconds = self._alone.timed()
            alone = [LevelRecord("alone", 1, 0, 0, seconds)] if records else []
            return WholeResult(self._level, self._parent, 1, seconds, alone)
        result = self._search.answer(number, query._replace(until=ends))
        if self._level is None:
            return result
        self._params.level = result.level.data.ptr
        self._params.parent = 0 if result.parent is None else result.parent.data.ptr
        seconds = result.seconds + self._to_ids.timed()
        log = result.records
        return WholeResult(self._level, self._parent, result.levels, seconds, log)

    def _nothing(self, *, records: bool) -> WholeResult:
        """Return the result of a search from a vertex without edges."""
        cp, began = cuda.cupy(), time.perf_counter()
        level = cp.full(self.graph.active, -1, dtype=cp.int32)
        parent = cp.full(self.graph.active, -1, dtype=cp.int32)
        cp.cuda.Device().synchronize()
        seconds = time.perf_counter() - began
        alone = [LevelRecord("alone", 1, 0, 0, seconds)] if records else []
        parents = parent if self._parents else None
        return WholeResult(level, parents, 1, seconds, alone)


class GraphEngine(Engine, ABC):
    """Base of engines that only search a graph of one part on one device.

    A subclass defines ``name``, ``methods``, ``source`` (the paper) and ``directions``,
    and creates searches by number in ``by_number``. For ``takes`` and ``own``, see
    ``Engine``.
    """

    directions: ClassVar[tuple[str, ...]] = ("auto", "push")
    takes: ClassVar[tuple[str, ...]] = ("internal_ids",)
    on_device = whole_graphs = directed = True

    def __init__(self, options: SearchOptions) -> None:
        self.own_options: Any = self.own(**dict(options.own))
        super().__init__(options)

    def check(self) -> None:
        """Raise UsageError for option values that the engine does not support."""
        super().check()
        check_choice("direction", self.options.direction, self.directions)

    @abstractmethod
    def by_number(self, graph: Share) -> WholeSearch:
        """Prepare searches by vertex number."""

    @abstractmethod
    def table(self, graph: Share) -> ArrayTable:
        """Return the arrays of searches by number, at their largest possible sizes."""

    def on_graph(self, graph: Share) -> ById:
        """Prepare the searches of a graph in device memory."""
        if graph.out.tails is not None:
            raise UsageError(
                f"engine {self.name} needs the whole graph on the device, and "
                f"{graph.held_back} of its edges are in host memory; use xbfs"
            )
        o = self.options
        results = {} if o.internal_ids else results_table(graph.n, parents=o.parents)
        need = total_bytes(self.table(graph)) + total_bytes(results) + COUNTERS
        cuda.require(need, f"a search by engine {self.name} of {graph.n} vertices")
        with cuda.memory_of("a search"):
            search = self.by_number(graph)
        return ById(graph, search, results, parents=o.parents)
