"""Engine ``virtual-warp``: a fixed-size group of threads per vertex (virtual_warp.cu).

Source: Hong, Kim, Oguntebi, Olukotun: Accelerating CUDA Graph Algorithms at Maximum
Warp, PPoPP 2011.
"""

from __future__ import annotations

from pathlib import Path

from distbfs.engines.cuda.common.host_loop import LoopEngine

SIZES = {"w4": 2, "w1": 0, "w2": 1, "w8": 3, "w16": 4, "w32": 5}  # log2 of the threads


class VirtualWarpEngine(LoopEngine):
    """Its methods w4, w1, w2, w8, w16 and w32 name the threads of a virtual warp."""

    name = "virtual-warp"
    methods = tuple(SIZES)
    kernels = Path(__file__).with_name("virtual_warp.cu")

    def width(self) -> int:
        """Return log2 of the virtual warp size."""
        # mutant: self.method -> "w4" : test_virtual_warps_have_the_size_of_their_method
        return SIZES[self.method]
