"""The exchange of a single rank: everything stays in its memory.

Source: Pan, Pearce, Owens 2018, Section V; the part inside an MPI rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import UsageError
from distbfs.exchange.local_phase import LocalPhase
from distbfs.exchange.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from distbfs.exchange.bins import Bins
    from distbfs.options import ExchangeOptions
    from distbfs.partition.layout import Placement
    from distbfs.types import Array, Words, World


class SoloExchange:
    """Serves one rank with any number of parts; see ``base.Exchange``.

    Returned arrays stay valid until the level after the next one.
    """

    name = "solo"
    streamed = symmetric = needs_devices = False

    def __init__(
        self,
        world: World,
        placement: Placement,
        delegates: int,
        options: ExchangeOptions,
        *,
        item: npt.DTypeLike = np.uint32,
        on_device: bool = False,
    ) -> None:
        if world.size != 1:
            raise UsageError(
                f"exchange 'solo' serves 1 rank, not {world.size}; allowed: host"
            )
        self.on_device = on_device
        self.traffic = Traffic(len(placement.parts_of(world.rank)))
        self._local = LocalPhase(world, placement, delegates, item, on_device)
        self._options = options
        self._masks: Sequence[Words] = ()
        self._bins: list[list[Array]] = []

    def start_masks(self, masks: Sequence[Words]) -> None:
        """Store the masks; collective."""
        self._masks = masks

    def finish_masks(self) -> Words:
        """Return the OR over all parts, uint64 [ceil(d/64)]; collective."""
        masks, self._masks = self._masks, ()
        return self._local.reduce_masks(masks)

    def start_normals(self, bins: Sequence[Bins]) -> None:
        """Store the bins; collective."""
        self._bins, _ = self._local.deal(bins, self._options)

    def finish_normals(self) -> list[list[tuple[int, Array]]]:
        """Return the numbers received by each part: (0, numbers); collective."""
        self._local.next_level()
        bins, self._bins = self._bins, []
        return [
            [(0, self._local.collect(k, arrays))] if arrays else []
            for k, arrays in enumerate(bins)
        ]

    def max_delegates(self, values: Sequence[Array]) -> Array:
        """Return the maximum over all parts, a new array; collective."""
        return self._local.reduce_max(values)

    def close(self) -> None:
        """Free the buffers."""
        self._local.free()
