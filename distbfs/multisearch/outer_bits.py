"""Messages of a device to other domains in a shared traversal (bits_outer.cu).

Of a level, these are the new words of delegates, and those of the targets of outer
edges. ``domain_bits`` calls it; ``part_messages`` delivers the items.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import allocate
from distbfs.device.structures import structure
from distbfs.multisearch.cuda_bits import KERNELS, THREADS, WIDE_DEGREE
from distbfs.multisearch.domain_members import Member, outer_table

if TYPE_CHECKING:
    from distbfs.build.cuda.inner_part import Outer as OuterEdges
    from distbfs.device.structures import Record
    from distbfs.types import Array, DeviceArray

SOURCE = KERNELS / "bits_outer.cu"


class Outside:
    """What one device sends to other domains; call it with the device current.

    own: of the searches inside the device's domain
    """

    def __init__(
        self, member: Member, outer: OuterEdges, lanes: int, own: Record
    ) -> None:
        cp, active, normals = cuda.cupy(), member.graph.active, member.normals
        domains = member.domains
        if domains is None:
            raise ValueError("one domain sends nothing")
        shares, targets = domains.shares, len(outer.targets)
        self.item = 1 + 2 * lanes
        self.sizes = cp.zeros(shares + member.own_lanes, np.uint64)
        self._sizes_copy = cuda.HostCopy(self.sizes)
        arrays = allocate(outer_table(lanes, active, targets, normals), cp.zeros)
        arrays["row"][normals:] = outer.offsets
        self._starts, self._targets = outer.starts, targets
        self._params = structure(SOURCE, "Outer")()
        ctypes.memmove(
            ctypes.byref(self._params), ctypes.byref(own), ctypes.sizeof(own)
        )
        self._params.set(
            **arrays,
            adj=outer.columns,
            visited=own.seen,
            starts=cp.asarray(outer.starts.astype(np.uint32)),
            target=outer.targets,
            number=member.graph.numbers,
            sizes=self.sizes,
            shares=shares,
            lanes=member.own_lanes,
            normals=normals,
            targets=targets,
            wide=WIDE_DEGREE,
        )
        module = programs.Module(SOURCE, PIECES=lanes)
        grid = cuda.multiprocessors()
        self._steps = {
            name: module.kernel(name).prepare(self._params, grid, THREADS)
            for name in ("push_outer", "collect_outer", "collect_delegates", "take")
        }

    def clear(self) -> None:
        """Clear the record of messages."""
        stream = cuda.cupy().cuda.get_current_stream()
        for name in ("seen", "sends", "sending"):
            cuda.clear(self._params.held[name], stream)

    def _run(self, name: str, depth: int) -> None:
        self._params.depth = depth
        self._steps[name]()

    def push(self, depth: int) -> None:
        """Push the frontier before ``depth`` along outer edges."""
        if self._targets:
            self._run("push_outer", depth)

    def collect(self, depth: int) -> None:
        """Collect the messages; start copying their sizes to the host."""
        stream = cuda.cupy().cuda.get_current_stream()
        cuda.clear(self.sizes, stream)
        if self._targets:
            self._run("collect_outer", depth)
            cuda.clear(self._params.held["sending"], stream)
        if self._params.normals:
            self._run("collect_delegates", depth)
        self._sizes_copy.begin(stream)

    def counts(self) -> Array:
        """Return the items for each share, then of each own lane, after ``collect``."""
        return self._sizes_copy.wait().astype(np.int64)

    def items(self, group: int, count: int) -> DeviceArray:
        """Return items of a group in ``counts``, uint64 [count * item]."""
        shares = self._params.shares
        if group < shares:
            first = int(self._starts[group])
        else:
            each = self._params.normals // self._params.lanes
            first = self._targets + (group - shares) * each
        box: DeviceArray = self._params.held["box"]
        return box[first * self.item : (first + count) * self.item]

    def take(self, depth: int, items: DeviceArray, *, delegates: bool) -> None:
        """Add words that have arrived, uint64 [k * item], to a level."""
        p = self._params
        p.items, p.count = items.data.ptr, items.size // self.item
        p.delegates = delegates
        self._run("take", depth)
