"""Engine ``frontier``: threads divide a queue of the frontier (frontier.cu).

Source: Sevilmis, Sivri, Aydin: CS406 project, 2019, Section 5.2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from distbfs.device import cuda
from distbfs.engines.cuda.common.host_loop import LoopEngine
from distbfs.graph.device_graph import DeviceGraph


class FrontierEngine(LoopEngine):
    """Methods: hybrid (pulls from n/32 frontier vertices on) and push.

    n counts the vertices that have edges.
    """

    name = "frontier"
    methods = ("hybrid", "push")
    kernels = Path(__file__).with_name("frontier.cu")
    steps: ClassVar = {"push": ("push",), "pull": ("clear", "mark", "pull")}

    def arrays(self, graph: DeviceGraph) -> dict[str, Any]:
        """Return the queues and the bitmap of the frontier."""
        cp, n = cuda.cupy(), max(graph.active, 1)
        bits = cp.empty(-(-n // 32), np.uint32)
        return {"queue": [cp.empty(n, np.uint32) for _ in range(2)], "bits": bits}

    def extra_bytes(self, graph: DeviceGraph) -> int:
        """Return the bytes of ``arrays``."""
        return 9 * graph.active
