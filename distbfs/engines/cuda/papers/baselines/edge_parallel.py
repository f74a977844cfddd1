"""Engine ``edge-parallel``: one thread per edge (edge_parallel.cu).

Source: Jia, Lu, Hoberock, Garland, Hart: Edge v. Node Parallelism for Graph Centrality
Metrics, GPU Computing Gems Jade, 2011.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.engines.cuda.common.host_loop import LoopEngine, LoopSearch
from distbfs.partition.share import Share


class EdgeParallelEngine(LoopEngine):
    """Its only method, edge, reads all edges in each level."""

    name = "edge-parallel"
    methods = ("edge",)
    kernels = Path(__file__).with_name("edge_parallel.cu")

    def table(self, graph: Share) -> ArrayTable:
        """Return the arrays of results, and the row of each column."""
        origin = ArrayPlan(np.uint32, max(graph.m, 1))
        return super().table(graph) | {"origin": origin}

    def by_number(self, graph: Share) -> LoopSearch:
        """Prepare searches by vertex number."""
        search = super().by_number(graph)
        search.run("sources")
        return search
