"""Transfers of arrays between devices through NCCL, on streams made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.exchange.buffer import Buffer, device_empty

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from distbfs.exchange.nccl_link import Link
    from distbfs.exchange.traffic import Traffic
    from distbfs.partition.layout import Placement


class NcclStreams:
    """Moves arrays between parts on streams of their devices; the host does not wait.

    Calls that move data are collective. A ``place`` is the index of a part among those
    of this rank, each of which has a device.

    link: the communicator of the devices
    streams: one for each part of this rank; each runs all operations of its part in
    order
    captures: whether ``cross`` may be captured in CUDA graphs, one per stream
    """

    captures = True

    def __init__(self, link: Link, placement: Placement, traffic: Traffic) -> None:
        self.link, self.traffic = link, traffic
        every = np.arange(placement.parts)
        ranks = placement.rank_of(every)
        # number of each part's device
        numbers = np.array(link.starts)[ranks] + placement.device_of(every)
        self._numbers: list[int] = numbers.tolist()
        self.streams = [end.stream for end in link.ends]
        self._rooms = [
            [Buffer(np.uint64, device_empty) for _ in range(2)] for _ in link.ends
        ]

    def connect(self, partners: Sequence[Sequence[int]]) -> None:
        """Create connections from each part of this rank to its ``partners``."""
        numbers = self._numbers
        self.link.connect([[numbers[part] for part in own] for own in partners])

    def here(self, place: int) -> AbstractContextManager[None]:
        """Make a device and its stream the current ones."""
        return self.link.ends[place].here()

    def cross(
        self,
        gathers: Sequence[tuple[int, Any, Any]],
        leaving: Sequence[tuple[int, int, Any]] = (),
        coming: Sequence[tuple[int, int, Any]] = (),
    ) -> None:
        """Gather arrays of all parts, and send and receive arrays, all at once.

        gathers: (place, array, result), always in the same order; the result has the
        arrays of all parts, [parts, shape of the array]
        leaving: (place, part, array to send); coming: (place, part, array to fill)

        Between two parts, arrays arrive in the order of sending.
        """
        if not (gathers or leaving or coming):
            return
        ends, numbers = self.link.ends, self._numbers
        with self.link.group():
            for place, array, whole in gathers:
                ends[place].gather(array, whole)
            for place, part, array in leaving:
                ends[place].send(array, numbers[part])
            for place, part, array in coming:
                ends[place].receive(array, numbers[part])

    def room(self, place: int, count: int) -> Any:
        """Return a receive buffer, uint64 [count].

        It stays valid until the second call after this one.
        """
        self._rooms[place].reverse()
        return self._rooms[place][0].take(count)
