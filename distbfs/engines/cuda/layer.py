"""Engine ``layer``: every level looks at all vertices (layer.cu).

Source: Sevilmis, Sivri, Aydin: CS406 project, 2019, Section 5.1.
"""

from __future__ import annotations

from typing import ClassVar

from distbfs.engines.cuda.loop import LoopEngine


class LayerEngine(LoopEngine):
    """Methods: hybrid (pulls from n/32 frontier vertices on) and push."""

    name = "layer"
    methods = ("hybrid", "push")
    file = "layer.cu"
    steps: ClassVar = {"push": ("push",), "pull": ("pull",)}
