"""The degree-separated search of parts as published, one device per domain.

The previsit and the visits of nn, nd, dn and dd run on two streams, dd is balanced by
merging, and each subgraph has its own direction. Source: Pan, Pearce, Owens 2018,
Section IV.
"""

from __future__ import annotations

from distbfs.engines.base import Engine
from distbfs.engines.cuda.pan.search import CudaPart
from distbfs.options import FACTOR_OPTIONS
from distbfs.partition.layout import Placement
from distbfs.partition.part import Part


class PanEngine(Engine):
    """Its options are direction and the factors of dd, dn and nd."""

    name = "pan"
    methods = ("parts",)
    takes = FACTOR_OPTIONS
    on_device = domains = True

    def domain(self, part: Part, placement: Placement) -> CudaPart:
        """Prepare the search of one part in device memory, level by level."""
        return CudaPart(part, placement, parents=self.options.parents)
