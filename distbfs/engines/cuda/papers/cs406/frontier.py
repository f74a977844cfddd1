"""Engine ``frontier``: threads divide a queue of the frontier (frontier.cu).

Source: Sevilmis, Sivri, Aydin: CS406 project, 2019, Section 5.2.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.engines.cuda.common.host_loop import LoopEngine
from distbfs.partition.share import Share


class FrontierEngine(LoopEngine):
    """Its methods are hybrid (pulls from n/32 frontier vertices on) and push.

    Here n is the number of vertices that have edges.
    """

    name = "frontier"
    methods = ("hybrid", "push")
    kernels = Path(__file__).with_name("frontier.cu")
    steps: ClassVar = {"push": ("push",), "pull": ("clear", "mark", "pull")}

    def table(self, graph: Share) -> ArrayTable:
        """Return the arrays of results, queues and the bitmap of the frontier."""
        n = max(graph.active, 1)
        bits = ArrayPlan(np.uint32, -(-n // 32))
        queues = [ArrayPlan(np.uint32, n)] * 2
        return super().table(graph) | {"queue": queues, "bits": bits}
