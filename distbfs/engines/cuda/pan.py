"""The degree-separated search of parts as published, one device a domain.

Previsit and visits of nn, nd, dn and dd on two streams, dd balanced by merging, a
direction for each subgraph.  Source: Pan, Pearce, Owens 2018, Section IV.
"""

from __future__ import annotations

from typing import Any

from distbfs.device import cuda
from distbfs.engines.cuda.part import BALANCES, CudaPart
from distbfs.options import (
    EXCHANGE_OPTIONS,
    FACTOR_OPTIONS,
    SearchOptions,
    check_choice,
)
from distbfs.partition.device_part import DevicePart
from distbfs.partition.layout import Placement

METHOD = "parts"


class PanEngine:
    """Options: direction, the factors of dd, dn and nd, and balance, of pulls."""

    name = "pan"
    methods = (METHOD,)
    takes = ("balance", *FACTOR_OPTIONS, *EXCHANGE_OPTIONS)
    on_device = domains = True
    alone = directed = False
    devices = 1

    def __init__(self, options: SearchOptions) -> None:
        check_choice("method", options.method or METHOD, self.methods)
        check_choice("balance", options.balance, BALANCES)
        cuda.cupy()
        self.options = options

    def domain(self, part: DevicePart, placement: Placement) -> CudaPart:
        """Prepare the search of one part in device memory, level by level."""
        o = self.options
        return CudaPart(part, placement, parents=o.parents, balance=o.balance)

    def describe(self) -> dict[str, Any]:
        """Return what the engine runs on, for reports."""
        return {
            "engine": self.name,
            "method": METHOD,
            "threads": 1,
            **cuda.describe(),
        }
