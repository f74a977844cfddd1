"""The runners for CPUs: functions over arrays of edges, traversals in C or in NumPy.

With engine openmp, problems that need only levels, counts or reachability run
bit-parallel. Others find levels in the same way; then their functions are called for
each frontier. Engine reference does all in NumPy, on one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from distbfs.device import cc
from distbfs.errors import UsageError
from distbfs.graph.csr import CSR
from distbfs.multisearch import bits
from distbfs.multisearch.base import BITS, Results, RunOptions
from distbfs.multisearch.numpy_runner import NumpyWalk, rows_by_id, run_batches
from distbfs.multisearch.part_bits import PartBitSearches
from distbfs.multisearch.part_loop import MOST_SEARCHES, Wanted
from distbfs.multisearch.problem import Problem
from distbfs.multisearch.runner import ProblemRunner
from distbfs.options import MEMORY_OPTIONS
from distbfs.partition.part import Part
from distbfs.ranks.world import SoloWorld
from distbfs.types import Array, Ids


class HostGraph:
    """A whole graph, and its searches, which keep their memory."""

    def __init__(self, part: Part) -> None:
        if part.layout.parts != 1 or part.delegate_count:
            raise UsageError("many searches at once need a graph in one part")
        if part.local_count >= 1 << 31:
            raise UsageError("many searches at once allow up to 2^31 - 1 vertices")
        self.part, self.n = part, part.layout.n
        self.searches = PartBitSearches(SoloWorld(), [part])

    @cached_property
    def rows(self) -> CSR:
        """The rows of neighbours by id, for problems with functions."""
        return rows_by_id(self.part)


class BitWalk(NumpyWalk):
    """Sorts levels of bit-parallel searches into frontiers."""

    def __init__(self, graph: HostGraph, options: RunOptions) -> None:
        super().__init__(graph.rows)
        self._searches, self._options = graph.searches, options
        self._wanted = Wanted(levels=True, limit=options.depth, stop=options.stop)

    def frontiers(self, sources: Ids, level: Array) -> Iterator[tuple[Ids, Ids]]:
        """Yield the frontier of each level; see ``NumpyWalk``."""
        options, searches = replace(self._options, batch=len(sources)), self._searches
        searches.run_first(sources, options, self._wanted)
        searches.put_levels(level)
        sizes = searches.counts().sum(axis=0).tolist()
        narrow = level.astype(np.min_scalar_type(-searches.deepest - 1))
        order = np.argsort(narrow.ravel(), kind="stable")
        rows, vertices = np.divmod(order[len(order) - sum(sizes) :], self.n)
        first = 0
        for size in sizes:
            yield rows[first : first + size], vertices[first : first + size]
            first += size


class ReferenceRunner(ProblemRunner):
    """NumPy on one thread."""

    name = "reference"
    methods: tuple[str, ...] = ("numpy",)

    def prepare(self, part: Part, options: RunOptions | None = None) -> Any:
        """Return a whole graph in the form that the runner needs."""
        for name in MEMORY_OPTIONS:
            if options is not None and getattr(options, name) is not None:
                raise UsageError(f"{name} is not an option of engine {self.name}")
        return self._prepared(part)

    def _prepared(self, part: Part) -> Any:
        """Return the rows of a whole graph by id."""
        return NumpyWalk(rows_by_id(part))

    def _run(
        self, problem: Problem, graph: NumpyWalk, sources: Ids, options: RunOptions
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        return run_batches(problem, graph, graph.n, sources, options)

    def describe(self) -> dict[str, Any]:
        """Return the runner's hardware and settings, for reports."""
        return {"engine": self.name, "method": "numpy", "threads": 1}


class OpenMPRunner(ReferenceRunner):
    """C code; method "bits" runs problems that allow it, "arrays" all others."""

    name = "openmp"
    methods = (BITS, "arrays")

    def __init__(self) -> None:
        bits.prepare()  # an installed compiler may still fail
        self._threads = cc.thread_count()

    def _prepared(self, part: Part) -> HostGraph:
        """Wrap a whole graph, with memory for searches."""
        return HostGraph(part)

    def searches(self, graph: HostGraph) -> AbstractContextManager[PartBitSearches]:
        """Return the bit-parallel searches of a graph, which keep their memory."""
        return nullcontext(graph.searches)

    def run(
        self, problem: Problem, graph: Any, sources: Ids, options: RunOptions
    ) -> Results:
        """Run a problem from sources; see ``ProblemRunner``."""
        self._threads = cc.thread_count(options.threads)
        return super().run(problem, graph, sources, options)

    def _run(
        self, problem: Problem, graph: Any, sources: Ids, options: RunOptions
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        walk, most = BitWalk(graph, options), MOST_SEARCHES
        values, facts = run_batches(problem, walk, graph.n, sources, options, most)
        return values, facts | {"method": "arrays"}

    def describe(self) -> dict[str, Any]:
        """Return the runner's hardware and settings, for reports."""
        return {
            "engine": self.name,
            "threads": self._threads,
            "compiler": cc.made_by(),
        }
