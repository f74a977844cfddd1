"""Searches whose levels the host launches one by one, reading a count after each.

Engines of this kind are baselines: they run as their papers describe, with a round trip
to the host in every level.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayTable, allocate
from distbfs.engines.base import LevelRecord, Query, WholeResult, WholeSearch
from distbfs.engines.cuda.common.arguments import arguments
from distbfs.engines.cuda.common.goal import goal_of
from distbfs.engines.cuda.common.graph_engine import GraphEngine
from distbfs.engines.cuda.common.host_results import results_table
from distbfs.errors import SearchStopped
from distbfs.partition.share import Share
from distbfs.types import Root

THREADS, BLOCKS = 256, 8  # threads a block; most blocks on a multiprocessor
COUNTS = 3  # of a level; as in loop.cuh
DENSE = 32  # pull from a frontier of 1/32 of the vertices on


class LoopSearch(WholeSearch):
    """Searches a graph on one device by vertex number.

    source: file of the kernel ``begin`` and of those in ``steps``
    steps: kernels of a level by direction, in order
    hybrid: pull levels whose frontier has 1/32 of the vertices or more
    table: the arrays of kernels by argument name, including those of results
    width: log2 of a virtual warp

    Raises ResourceError.
    """

    def __init__(
        self,
        graph: Share,
        source: Path,
        steps: dict[str, tuple[str, ...]],
        table: ArrayTable,
        *,
        hybrid: bool = False,
        width: int = 0,
    ) -> None:
        cp = cuda.cupy()
        self.graph, self._steps = graph, steps
        self._hybrid = hybrid
        arrays = allocate(table, cp.empty)
        self.level, self.parent = arrays["level"], arrays.get("parent")
        self._counts = cp.zeros((4, COUNTS), np.uint64)
        self.params = arguments(
            source,
            "Params",
            graph,
            counts=self._counts,
            width=width,
            **arrays,
        )
        self._module = programs.Module(source)
        self._launches: dict[str, programs.Launch] = {}
        self._events = [cp.cuda.Event() for _ in range(4)]

    def run(self, name: str) -> None:
        """Launch a kernel with blocks for the whole device."""
        if name not in self._launches:
            kernel = self._module.kernel(name)
            grid = BLOCKS * cuda.multiprocessors()
            self._launches[name] = kernel.prepare(self.params, grid, THREADS)
        self._launches[name]()

    def answer(self, number: Root, query: Query) -> WholeResult:
        """Search from a vertex number; with records, edge checks are counted."""
        records, stop = query.records, query.stop
        elapsed = cuda.cupy().cuda.get_elapsed_time
        begin, end, before, after = self._events
        p = self.params
        p.root, p.depth, p.size, p.counting = number, 0, 1, records
        p.set(goal=goal_of(query.until, int(number), self.graph.active))
        left = self.graph.active - 1
        log: list[LevelRecord] = []
        begin.record()
        self.run("begin")
        reached = 0
        # mutant: p.depth != p.goal.last -> True
        #   : test_nothing_lies_beyond_the_last_level
        while p.size and p.depth != p.goal.last and not reached:
            if stop is not None and stop():
                raise SearchStopped(f"the search was stopped at level {p.depth}")
            # mutant: >= self -> >= 4 * self
            #   : test_levels_are_pulled_from_a_32nd_of_the_vertices_on
            pull = self._hybrid and p.size * DENSE >= self.graph.active
            direction = "pull" if pull else "push"
            if records:
                before.record()
            for name in self._steps[direction]:
                self.run(name)
            if records:
                after.record()
            # mutant: count -> count and p.depth % 2
            #   : test_nothing_lies_beyond_the_last_level
            if p.goal.count:
                self.run("seek")
            counts = self._counts[p.depth & 3].get()
            fresh, checks, reached = (int(x) for x in counts)
            if records:
                looked = left if pull else p.size
                spent = elapsed(before, after) * 1e-3
                log.append(LevelRecord(direction, looked, checks, fresh, spent))
            left -= fresh
            p.size = fresh
            p.depth += 1
        end.record()
        end.synchronize()
        seconds = float(elapsed(begin, end)) * 1e-3
        levels = p.depth + (p.size > 0)
        return WholeResult(self.level, self.parent, levels, seconds, log)


class LoopEngine(GraphEngine):
    """Base of engines whose levels the host launches.

    A subclass defines ``kernels`` and ``steps`` as in LoopSearch.
    """

    kernels: ClassVar[Path]
    steps: ClassVar[dict[str, tuple[str, ...]]] = {"push": ("push",)}

    def table(self, graph: Share) -> ArrayTable:
        """Return the arrays of searches by number, by argument name."""
        return results_table(graph.active, parents=self.options.parents)

    def width(self) -> int:
        """Return log2 of the virtual warp size."""
        return 0

    def by_number(self, graph: Share) -> LoopSearch:
        """Prepare searches by vertex number."""
        return LoopSearch(
            graph,
            self.kernels,
            self.steps,
            self.table(graph),
            # mutant: method == "hybrid" and self.options.direction == "auto" ->
            #   options.direction == "auto" and "pull" in self.steps :
            #   test_methods_that_push_never_pull
            hybrid=self.method == "hybrid" and self.options.direction == "auto",
            width=self.width(),
        )
