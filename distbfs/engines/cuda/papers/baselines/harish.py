"""Engine ``harish``: a thread a vertex, with a frontier mask (harish.cu).

Source: Harish, Narayanan: Accelerating Large Graph Algorithms on the GPU Using CUDA,
HiPC 2007.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from distbfs.device import cuda
from distbfs.engines.cuda.common.host_loop import LoopEngine
from distbfs.graph.device_graph import DeviceGraph


class HarishEngine(LoopEngine):
    """Method: vertex, which reads all vertices twice a level."""

    name = "harish"
    methods = ("vertex",)
    kernels = Path(__file__).with_name("harish.cu")
    steps: ClassVar = {"push": ("push", "advance")}

    def arrays(self, graph: DeviceGraph) -> dict[str, Any]:
        """Return the masks of the frontier and of the vertices found."""
        cp, n = cuda.cupy(), max(graph.active, 1)
        return {name: cp.empty(n, np.uint8) for name in ("mask", "fresh")}

    def extra_bytes(self, graph: DeviceGraph) -> int:
        """Return the bytes of ``arrays``."""
        return 2 * graph.active
