"""The runner for CPUs: traversal in C, functions over arrays of edges.

Problems that need only levels, counts or reachability run bit-parallel (``bits``).
Others find levels in the same way; then their functions are called for each frontier.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from distbfs.device import cc
from distbfs.errors import UsageError
from distbfs.graph.csr import CSR
from distbfs.multisearch import bits
from distbfs.multisearch.base import ProblemRunner, Results, RunOptions
from distbfs.multisearch.bit_batches import Search, run_in_batches, wanted_of
from distbfs.multisearch.bits import BitSearch
from distbfs.multisearch.numpy_runner import (
    NumpyWalk,
    Outputs,
    check_memory,
    rows_by_id,
    run_batches,
)
from distbfs.multisearch.part_loop import Wanted
from distbfs.multisearch.problem import Problem
from distbfs.partition.part import Part
from distbfs.types import Array, Ids, Stop

SPAN = 4096  # depth assumed in planning memory


class HostGraph:
    """A whole graph, and the memory of its last searches."""

    def __init__(self, part: Part) -> None:
        if part.layout.parts != 1 or part.delegate_count:
            raise UsageError("many searches at once need a graph in one part")
        if part.local_count >= 1 << 31:
            raise UsageError("many searches at once allow up to 2^31 - 1 vertices")
        self.part, self.n = part, part.layout.n
        self._held: tuple[tuple[int, int], BitSearch] | None = None

    @cached_property
    def rows(self) -> CSR:
        """The rows of neighbours by id, for problems with functions."""
        return rows_by_id(self.part)

    def searches(self, count: int, threads: int) -> BitSearch:
        """Return a BitSearch for up to ``bits.MOST_SEARCHES`` searches at once."""
        key = (bits.width_for(count), threads)
        if self._held is None or self._held[0] != key:
            self._held = None  # free the old one before allocating another
            self._held = (key, BitSearch(self.part, *key))
        return self._held[1]


class BitWalk(NumpyWalk):
    """Sorts levels of bit-parallel searches into frontiers."""

    def __init__(
        self, graph: HostGraph, threads: int, limit: int | None, stop: Stop | None
    ) -> None:
        super().__init__(graph.rows)
        self._graph, self._threads = graph, threads
        self._wanted = Wanted(levels=True, limit=limit, stop=stop)

    def frontiers(self, sources: Ids, level: Array) -> Iterator[tuple[Ids, Ids]]:
        """Yield the frontier of each level; see ``NumpyWalk``."""
        search = self._graph.searches(len(sources), self._threads)
        search.run(sources, self._wanted)
        search.levels(out=level)
        sizes = search.counts().sum(axis=0).tolist()
        order = np.argsort(search.levels().ravel(), kind="stable")  # of a narrow type
        rows, vertices = np.divmod(order[len(order) - sum(sizes) :], self.n)
        first = 0
        for size in sizes:
            yield rows[first : first + size], vertices[first : first + size]
            first += size


class OpenMPRunner(ProblemRunner):
    """C code; method "bits" runs problems that allow it, "arrays" all others."""

    name = "openmp"
    methods = ("bits", "arrays")

    def __init__(self) -> None:
        bits.prepare()  # an installed compiler may still fail
        self._threads = cc.thread_count()

    def prepare(self, part: Part, options: RunOptions | None = None) -> HostGraph:
        """Wrap a whole graph, with memory for searches."""
        check_memory(self, options)
        return HostGraph(part)

    def _run(
        self, problem: Problem, graph: HostGraph, sources: Ids, options: RunOptions
    ) -> Results:
        if options.method == "bits" and not problem.bits:
            raise UsageError(f"problem {problem.name} cannot run with method bits")
        self._threads = cc.thread_count(options.threads)
        n, by_bits = graph.n, options.bits and options.method != "arrays"
        if problem.bits and by_bits:
            outputs = Outputs(problem, len(sources), n)
            search = self._searching(problem, graph, len(sources), options)
            facts = run_in_batches(problem, sources, outputs, search)
            values = outputs.results()
            return Results(values, {**self.describe(), "method": "bits", **facts})
        walk = BitWalk(graph, self._threads, options.depth, options.stop)
        values, facts = run_batches(
            problem, walk, n, sources, options, bits.MOST_SEARCHES
        )
        return Results(values, {**self.describe(), "method": "arrays", **facts})

    def _searching(
        self, problem: Problem, graph: HostGraph, count: int, options: RunOptions
    ) -> Search:
        """Return a function that searches from the first of some sources."""
        n, wanted = graph.n, wanted_of(problem, options)

        def need(lanes: int) -> int:
            return bits.bytes_needed(n, lanes, levels=wanted.levels, depth=SPAN)

        size = bits.sources_at_once(count, options, need)

        def search(sources: Ids) -> tuple[BitSearch, int]:
            searches = graph.searches(min(size, count), self._threads)
            searches.run(sources[:size], wanted, options.direction)
            return searches, len(sources[:size])

        return search

    def describe(self) -> dict[str, Any]:
        """Return the runner's hardware and settings, for reports."""
        return {
            "engine": self.name,
            "threads": self._threads,
            "compiler": cc.made_by(),
        }
