"""Engine ``layer``: every level reads all vertices (layer.cu).

Source: Sevilmis, Sivri, Aydin: CS406 project, 2019, Section 5.1.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from distbfs.engines.cuda.common.host_loop import LoopEngine


class LayerEngine(LoopEngine):
    """Its methods are hybrid (pulls from n/32 frontier vertices on) and push.

    Here n is the number of vertices that have edges.
    """

    name = "layer"
    methods = ("hybrid", "push")
    kernels = Path(__file__).with_name("layer.cu")
    steps: ClassVar = {"push": ("push",), "pull": ("pull",)}
