"""Engine ``edge-parallel``: a thread an edge (edge_parallel.cu).

Source: Jia, Lu, Hoberock, Garland, Hart: Edge v. Node Parallelism for Graph Centrality
Metrics, GPU Computing Gems Jade, 2011.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.engines.cuda.common.host_loop import LoopEngine, LoopSearch
from distbfs.graph.device_graph import DeviceGraph


class EdgeParallelEngine(LoopEngine):
    """Method: edge, which reads all edges in each level."""

    name = "edge-parallel"
    methods = ("edge",)
    kernels = Path(__file__).with_name("edge_parallel.cu")

    def arrays(self, graph: DeviceGraph) -> dict[str, Any]:
        """Return the row of each column."""
        return {"origin": cuda.cupy().empty(max(graph.m, 1), np.uint32)}

    def extra_bytes(self, graph: DeviceGraph) -> int:
        """Return the bytes of ``arrays``."""
        return 4 * graph.m

    def by_number(self, graph: DeviceGraph) -> LoopSearch:
        """Prepare searches by vertex number."""
        search = super().by_number(graph)
        search.run("sources")
        return search
