"""The searchers for CPUs: functions over arrays of edges, traversals in C or in NumPy.

With engine openmp, problems that need only levels, counts or reachability run
bit-parallel. Others find levels in the same way; then their functions are called for
each frontier. Engine reference does all in NumPy, on one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from distbfs.device import cc
from distbfs.errors import UsageError
from distbfs.multisearch import bits
from distbfs.multisearch.apps import betweenness
from distbfs.multisearch.base import BITS, RunOptions
from distbfs.multisearch.numpy_runner import NumpyWalk, run_batches
from distbfs.multisearch.part_bits import PartBitSearches
from distbfs.multisearch.part_loop import MOST_SEARCHES, Wanted
from distbfs.multisearch.problem import Problem
from distbfs.multisearch.searchers import WholeSearcher
from distbfs.options import MEMORY_OPTIONS
from distbfs.partition.part import Part
from distbfs.ranks.agreement import errors_of_all
from distbfs.ranks.world import SoloWorld
from distbfs.types import Array, Ids


class BitWalk(NumpyWalk):
    """Sorts levels of bit-parallel searches into frontiers.

    searches: keep their memory
    """

    most = MOST_SEARCHES

    def __init__(self, part: Part) -> None:
        if part.layout.parts != 1 or part.delegate_count:
            raise UsageError("many searches at once need a graph in one part")
        if part.local_count >= 1 << 31:
            raise UsageError("many searches at once allow up to 2^31 - 1 vertices")
        super().__init__(part)
        self.searches = PartBitSearches(SoloWorld(), [part])

    def frontiers(
        self, sources: Ids, level: Array, options: RunOptions
    ) -> Iterator[tuple[Ids, Ids]]:
        """Yield the frontier of each level; see ``NumpyWalk``."""
        searches, at_once = self.searches, replace(options, batch=len(sources))
        wanted = Wanted(levels=True, limit=options.depth, stop=options.stop)
        searches.run_first(sources, at_once, wanted)
        searches.put_levels(level)
        sizes = searches.counts().sum(axis=0).tolist()
        narrow = level.astype(np.min_scalar_type(-searches.deepest - 1))
        order = np.argsort(narrow.ravel(), kind="stable")
        rows, vertices = np.divmod(order[len(order) - sum(sizes) :], self.n)
        first = 0
        for size in sizes:
            yield rows[first : first + size], vertices[first : first + size]
            first += size


class ReferenceSearcher(WholeSearcher):
    """NumPy on one thread."""

    engine = "reference"
    methods: tuple[str, ...] = ("numpy",)
    graph: NumpyWalk
    walks: type[NumpyWalk] = NumpyWalk

    def _prepared(self) -> NumpyWalk:
        for name in MEMORY_OPTIONS:
            if getattr(self.options, name) is not None:
                raise UsageError(f"{name} is not an option of engine {self.engine}")
        return self.walks(self.part)

    def _by_functions(
        self, problem: Problem, sources: Ids
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        values, facts = run_batches(problem, self.graph, sources, self.options)
        return values, facts | {"method": self.methods[-1]}

    def _describe(self) -> dict[str, Any]:
        return {"engine": self.engine, "method": "numpy", "threads": 1}


class OpenMPSearcher(ReferenceSearcher):
    """C code; method "bits" runs problems that allow it, "arrays" all others."""

    engine = "openmp"
    methods = (BITS, "arrays")
    graph: BitWalk
    walks = BitWalk

    @staticmethod
    def check() -> None:
        """Raise CompilerMissing if an installed compiler fails."""
        bits.prepare()

    def _searches(self) -> AbstractContextManager[PartBitSearches]:
        """Return the bit-parallel searches of the graph, which keep their memory."""
        return nullcontext(self.graph.searches)

    def dependencies(self, sources: Ids) -> Array:
        """Return the sum of the dependencies of sources; see ``Searcher``."""
        share = self.share(sources)
        with errors_of_all(self.world):
            value = betweenness.dependencies(self.part, share, self.options)
        return self.world.allreduce(value)

    def _describe(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "threads": cc.thread_count(self.options.threads),
            "compiler": cc.made_by(),
        }
