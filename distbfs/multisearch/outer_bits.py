"""Messages of a device to other domains in a shared traversal (bits_outer.cu).

Each level sends the new words of delegates and of the targets of outer edges.
``domain_bits`` calls it; ``part_messages`` delivers the items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import allocate
from distbfs.device.structures import copied, structure
from distbfs.exchange.peer_memory import on_device
from distbfs.multisearch.cuda_bits import KERNELS, THREADS, outer_table
from distbfs.partition.share import Share

if TYPE_CHECKING:
    from distbfs.device.structures import Record
    from distbfs.multisearch.part_messages import PartMessages
    from distbfs.partition.share import Outer as OuterEdges
    from distbfs.types import Array, DeviceArray

SOURCE = KERNELS / "bits_outer.cu"


class Sender:
    """The messages of one device to other domains; call methods with it current.

    params: arguments of the kernels; item: uint64 words of an item
    starts: where each share's items begin in the box, then those of delegates, in units
    of ``each`` items
    """

    def __init__(
        self, params: Record, item: int, starts: Array, own_lanes: int, each: int = 1
    ) -> None:
        self.item, self._params, self._starts, self._each = item, params, starts, each
        sizes = cuda.cupy().zeros(len(starts) - 1 + own_lanes, np.uint64)
        self._sizes_copy = cuda.HostCopy(sizes)
        params.set(sizes=sizes, shares=len(starts) - 1, lanes=own_lanes)
        self._steps: dict[str, programs.Launch] = {}

    def prepare(self, module: programs.Module, *names: str) -> None:
        """Prepare the launches of kernels."""
        grid = cuda.multiprocessors()
        for name in names:
            self._steps[name] = module.kernel(name).prepare(self._params, grid, THREADS)

    def _clear(self, *names: str) -> None:
        stream = cuda.cupy().cuda.get_current_stream()
        for name in names:
            cuda.clear(self._params.held[name], stream)

    def counts(self) -> Array:
        """Return how many items were collected for each share, then per own lane."""
        return self._sizes_copy.wait().astype(np.int64)

    def items(self, group: int, count: int) -> DeviceArray:
        """Return items of a group in ``counts``, uint64 [count * item]."""
        p = self._params
        first = int(self._starts[min(group, p.shares)])
        if group > p.shares:
            first += (group - p.shares) * (p.normals // p.lanes)
        first *= self._each
        box: DeviceArray = p.held["box"]
        return box[first * self.item : (first + count) * self.item]

    def take(self, items: DeviceArray, *, delegates: bool) -> None:
        """Process items that have arrived, uint64 [k * item]."""
        p = self._params
        p.items, p.count = items.data.ptr, items.size // self.item
        p.delegates = delegates
        self._steps["take"]()


def exchanged(
    messages: PartMessages, senders: Sequence[Sender], devices: Sequence[int]
) -> None:
    """Send the items that devices collected, and process arrivals (collective)."""
    arrived = messages.deliver(
        [sender.counts() for sender in senders],
        senders[0].item,
        lambda place, group, count: senders[place].items(group, count),
    )
    for route, items in arrived:
        with on_device(devices[route.place]):
            senders[route.place].take(items, delegates=route.delegates)


class Outside(Sender):
    """The messages of one device in searches that share a traversal.

    own: arguments of the searches inside the device's domain
    """

    def __init__(
        self, member: Share, outer: OuterEdges, lanes: int, own: Record
    ) -> None:
        cp, active, normals = cuda.cupy(), member.active, member.normals
        targets = len(outer.targets)
        arrays = allocate(outer_table(lanes, active, targets, normals), cp.zeros)
        row = arrays.pop("row")
        row[normals:] = outer.offsets
        self._targets = targets
        params = copied(own, structure(SOURCE, "Outer")())
        params.set(
            **arrays,
            out={"row": row, "adj": outer.columns},
            visited=own.seen,
            starts=cp.asarray(outer.starts.astype(np.uint32)),
            target=outer.targets,
            number=member.numbers,
            normals=normals,
            targets=targets,
        )
        super().__init__(params, 1 + 2 * lanes, outer.starts, member.domain.lanes)
        names = "push_outer", "collect_outer", "collect_delegates", "take"
        self.prepare(programs.Module(SOURCE, PIECES=lanes), *names)

    def clear(self) -> None:
        """Clear the record of messages."""
        self._clear("seen", "sends", "sending")

    def push(self, depth: int) -> None:
        """Push the frontier before ``depth`` along outer edges."""
        self._params.depth = depth
        if self._targets:
            self._steps["push_outer"]()

    def collect(self) -> None:
        """Collect the items to send; start copying their counts to the host."""
        self._clear("sizes")
        if self._targets:
            self._steps["collect_outer"]()
            self._clear("sending")
        if self._params.normals:
            self._steps["collect_delegates"]()
        self._sizes_copy.begin(cuda.cupy().cuda.get_current_stream())
