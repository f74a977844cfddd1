"""The degree-separated search of parts as published, one device per domain.

The previsit and the visits of nn, nd, dn and dd run on two streams, dd is balanced by
merging, and each subgraph has its own direction. Source: Pan, Pearce, Owens 2018,
Section IV.
"""

from __future__ import annotations

from typing import Any

from distbfs.device import cuda
from distbfs.engines.base import NoOptions
from distbfs.engines.cuda.pan.search import CudaPart
from distbfs.options import FACTOR_OPTIONS, SearchOptions, check_choice
from distbfs.partition.device_part import DevicePart
from distbfs.partition.layout import Placement

METHOD = "parts"


class PanEngine:
    """Its options are direction and the factors of dd, dn and nd."""

    name = "pan"
    methods = (METHOD,)
    takes = FACTOR_OPTIONS
    needless = ()
    own = NoOptions
    on_device = domains = sets = True
    whole_graphs = directed = masks = False
    devices = 1

    def __init__(self, options: SearchOptions) -> None:
        check_choice("method", options.method or METHOD, self.methods)
        cuda.cupy()
        self.options = options

    def domain(self, part: DevicePart, placement: Placement) -> CudaPart:
        """Prepare the search of one part in device memory, level by level."""
        return CudaPart(part, placement, parents=self.options.parents)

    def describe(self) -> dict[str, Any]:
        """Return the engine's hardware and settings, for reports."""
        return {
            "engine": self.name,
            "method": METHOD,
            "threads": 1,
            **cuda.describe(),
        }
