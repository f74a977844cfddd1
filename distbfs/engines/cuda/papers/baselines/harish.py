"""Engine ``harish``: one thread per vertex, with a frontier mask (harish.cu).

Source: Harish, Narayanan: Accelerating Large Graph Algorithms on the GPU Using CUDA,
HiPC 2007.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.engines.cuda.common.host_loop import LoopEngine
from distbfs.partition.share import Share


class HarishEngine(LoopEngine):
    """Its only method, vertex, reads all vertices twice in each level."""

    name = "harish"
    methods = ("vertex",)
    kernels = Path(__file__).with_name("harish.cu")
    steps: ClassVar = {"push": ("push", "advance")}

    def table(self, graph: Share) -> ArrayTable:
        """Return the arrays of results, and masks of the frontier and of finds."""
        flags = ArrayPlan(np.uint8, max(graph.active, 1))
        return super().table(graph) | {"mask": flags, "fresh": flags}
