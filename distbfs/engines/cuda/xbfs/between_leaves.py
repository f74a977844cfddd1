"""Leaves on delegates, which searches between domains leave out."""

from __future__ import annotations

from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.take import take
from distbfs.engines.cuda.xbfs.shared import SharedMemory
from distbfs.errors import DistbfsError
from distbfs.graph.device_graph import WIDE
from distbfs.partition.share import Share
from distbfs.types import Array, Ids, Stream

HELD_CODES = 4096  # words of delegates whose codes a block holds: between_leaves.cuh
WAITED = (
    "a device of a domain did not answer another in time; this session cannot search "
    "any more"
)


class HungLeaves:
    """The leaves of one device, a ``LeftOut``; a domain has it on all devices or none.

    searched: how many of this device's numbers are searched
    """

    def __init__(self, part: Share, shared: SharedMemory) -> None:
        self._part, self._arrays = part, shared.arrays
        p, devices = shared.arrays.params, part.domain.devices
        self.searched, self._bound = p.active, p.bound
        shared.arrays.take_codes_of(devices * part.normals // 32, HELD_CODES)
        self._failed: Any = None  # of the devices that meet when a search ends
        if devices > 1:
            self._failed = cuda.HostCopy(shared.failed)

    def _of(self, numbers: Array) -> Array:
        """Return the positions on which leaves with a visible edge hang."""
        on = take(self._arrays.held["first"], numbers).astype(np.int64)
        seen: Array = on[on < self._bound]
        return seen

    def hung(self, numbers: Ids) -> tuple[Ids, Ids]:
        """Return (numbers that are not leaves, delegates of the leaves).

        numbers: int64 [k], as in ``Targets``; no search can reach those of WIDE or
        more. Delegates are vertex ids, int64, without repeats.
        """
        leaf = (numbers >= self.searched) & (numbers < WIDE)
        with self._part.ids.device:
            on = self._of(numbers[leaf])
        lost = np.full(int(leaf.sum()) - len(on), WIDE, np.int64)
        ids: Ids = np.unique(self._part.delegates[on])
        return np.concatenate([numbers[~leaf], lost]), ids

    def among(self, roots: Ids, delegates: Ids) -> tuple[int, int]:
        """Count roots that are leaves: those on other roots, and on other delegates.

        roots: numbers of roots, int64 [k]; delegates: the delegates that are roots,
        int64 [j]
        """
        on = self._of(roots[(roots >= self.searched) & (roots < WIDE)])
        with_roots = int(np.isin(on, delegates).sum())
        # mutant: with_roots, len(on) - with_roots -> 0, len(on)
        #   : test_between_leaves::test_records
        return with_roots, len(on) - with_roots

    def ends(self, stream: Stream) -> None:
        """Note, in stream order, whether devices have met; see ``check``."""
        if self._failed is not None:
            self._failed.begin(stream)

    def check(self) -> None:
        """Raise DistbfsError if devices of the domain did not meet in ``finish``.

        Call it when all devices have begun ``finish``; it waits for their end.
        """
        if self._failed is not None and self._failed.wait()[0]:
            raise DistbfsError(WAITED)
