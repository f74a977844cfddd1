"""Masks of visible edges for the rows on a rank's devices; see ``sight``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from distbfs.build.cuda.seen import (
    SeenEdges,
    SeenMaker,
)
from distbfs.device import cuda
from distbfs.partition.share import numbers_of, positions_of

if TYPE_CHECKING:
    from distbfs.partition.share import Share
    from distbfs.types import DeviceArray, World


class MaskedRows:
    """Makes masks of visible edges: one bit per edge, on each device of this rank.

    world: the ranks that have the rows; shares: those of this rank
    whole: whether one device has all rows
    """

    def __init__(self, world: World, shares: Sequence[Share]) -> None:
        self.world, self._shares = world, shares
        alone = len(shares) == world.size == 1 and shares[0].domain.devices == 1
        self.whole = alone and shares[0].out.outer is None

    @cached_property
    def _makers(self) -> list[tuple[SeenMaker, SeenMaker | None]]:
        makers = []
        for share in self._shares:
            with share.ids.device, cuda.memory_of("the ids of other domains"):
                outer = None if share.out.outer is None else SeenMaker.of_outer(share)
                makers.append((SeenMaker.of_share(share), outer))
        return makers

    def made(self, make: Callable[[SeenMaker], SeenEdges]) -> list[SeenEdges]:
        """Return the visible edges of each device; make returns the bits of rows."""
        seen = []
        for share, (inner, outer) in zip(self._shares, self._makers, strict=True):
            with share.ids.device:
                seen.append(make(inner))
                seen[-1].outer = None if outer is None else make(outer)
        return seen

    def ends(self, seen: Sequence[SeenEdges]) -> list[DeviceArray]:
        """Count the ends of visible edges at each local id, by device (collective).

        The ends at a delegate are summed over all domains. In a directed graph, both
        ends of an edge count where it leaves.
        """
        positions = np.arange(len(self._shares[0].delegates))
        of_delegates = np.zeros(len(positions), np.int64)
        for share, edges in zip(self._shares, seen, strict=True):
            device, numbers = numbers_of(positions, share.domain.devices)
            here, rows = device == share.device, edges.ends[: share.normals].get()
            # mutant: += -> = : test_between_domains_of_one_device
            of_delegates[here] += rows[numbers[here]]
        of_delegates = self.world.allreduce(of_delegates)
        every = []
        for share, edges in zip(self._shares, seen, strict=True):
            owned, vertices = share.owned, share.vertices
            places = positions_of(owned, share.device, share.domain.devices)
            with share.ids.device:
                cp = cuda.cupy()
                ends = cp.zeros(share.n, np.uint32)
                normals = edges.ends[share.normals :]
                if edges.outer is not None:
                    normals = normals + edges.outer.ends
                ends[vertices[share.normals :]] = normals
                of_owned = cp.asarray(of_delegates[places].astype(np.uint32))
                ends[vertices[cp.asarray(owned)]] = of_owned
                # mutant: 1 + share.directed -> 1
                #   : test_masked_sessions::test_one_device
                ends *= np.uint32(1 + share.directed)
                every.append(ends)
        return every
