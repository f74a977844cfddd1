"""The searcher for one CUDA device: bit-parallel batches, or one block a search."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import Any

from distbfs.build.cuda.graph_of_rows import graph_of_part
from distbfs.build.cuda.room import Room
from distbfs.device import cuda
from distbfs.engines.cuda.common.host_results import host_levels
from distbfs.engines.cuda.xbfs.engine import XbfsEngine
from distbfs.errors import UsageError
from distbfs.multisearch.base import BITS, KEPT
from distbfs.multisearch.cuda_bits import bytes_beside
from distbfs.multisearch.cuda_problems import METHODS, DeviceRunner
from distbfs.multisearch.domain_bits import DomainBitSearches
from distbfs.multisearch.numpy_runner import Outputs, kept_value
from distbfs.multisearch.problem import Problem
from distbfs.multisearch.searchers import WholeSearcher
from distbfs.options import SearchOptions
from distbfs.partition.share import Share, ShareCounts
from distbfs.ranks.world import SoloWorld
from distbfs.search.device_opening import where_rows_are
from distbfs.types import Array, DeviceArray, Ids

ONE = SearchOptions(engine="xbfs", parents=False)  # of a search from one source


class CudaSearcher(WholeSearcher):
    """Runs problems on the current device; methods but "bits" use a block a search."""

    engine = "xbfs"
    methods = (BITS, *METHODS)
    graph: Share

    @staticmethod
    def check() -> None:
        """Raise DeviceMissing if there is no device."""
        cuda.cupy()

    def _prepared(self) -> Share:
        """Copy the graph to device memory.

        Columns that do not fit beside its searches go to host memory.
        """
        engine, limits = XbfsEngine(ONE), self.options

        def state(share: ShareCounts) -> int:
            return max(bytes_beside(share), engine.search_bytes(share))

        room = Room(limits.device_memory, limits.host_memory, state)
        graph = graph_of_part(self.engine, self.part, room)
        self.where = where_rows_are(SoloWorld(), [graph])
        return graph

    def _searches(self) -> AbstractContextManager[DomainBitSearches]:
        """Return bit-parallel searches, whose memory is freed afterwards."""
        return closing(DomainBitSearches(SoloWorld(), [self.graph]))

    def _by_functions(
        self, problem: Problem, sources: Ids
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Run a problem by its CUDA text, with a block for each search."""
        if problem.functions and not problem.cuda:
            raise UsageError(
                f"problem {problem.name} has no CUDA text; engines openmp and "
                "reference run its functions"
            )
        outputs, graph = Outputs(problem, len(sources), self.n), self.graph
        kept = [s for s in problem.state if s.name in KEPT and s.result]
        own = tuple(s for s in problem.state if s.name not in KEPT)
        pairs = [s.name for s in own if s.per == "pair" and s.result]

        def sink(first: int, last: int, arrays: dict[str, DeviceArray]) -> None:
            rows = slice(first, last)
            if kept:
                level = host_levels(arrays["level"])
            for state in kept:
                outputs.put(state.name, rows, kept_value(state, level))
            for name in pairs:
                outputs.values[name][rows] = arrays[name].get()

        text = replace(problem, state=own, bits=False)
        runner = DeviceRunner(
            text, graph, sources, self.options, sink, levels=bool(kept)
        )
        for name, array in runner.run().items():
            if name in outputs.values:
                outputs.values[name][...] = array.get()
        return outputs.results(), {
            "method": runner.method,
            "threshold": runner.warp_degree,
            "batches": runner.batches,
        }

    def levels_from(self) -> Callable[[int], DeviceArray]:
        """Return a function that searches from one vertex; see ``Searcher``."""
        search = XbfsEngine(ONE).on_graph(self.graph)
        return lambda vertex: search.search(vertex).level

    def _describe(self) -> dict[str, Any]:
        return {"engine": self.engine, **cuda.describe()}
