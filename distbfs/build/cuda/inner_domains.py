"""The build of the shares of domains by the ranks that have their devices.

Rows of delegates are made range by range, a piece on each device; all devices of all
domains keep equally many columns of a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from distbfs.build.cuda.inner import InnerBuilder, InnerSide
from distbfs.build.cuda.inner_part import Delegates
from distbfs.build.cuda.places import name_targets
from distbfs.build.cuda.room import (
    LEAST_KEPT,
    Fit,
    Room,
    agreed_splits,
    check_hosts,
)
from distbfs.device import cuda
from distbfs.device.arrays import joined
from distbfs.errors import ResourceError, UsageError
from distbfs.exchange.router import gather_all, swap
from distbfs.graph.csr import CSR
from distbfs.graph.device_graph import COLUMN_PAD, WIDE
from distbfs.partition.layout import Domains
from distbfs.partition.part import Part
from distbfs.partition.share import GRANULE, Domain, Share
from distbfs.ranks.agreement import errors_of_all
from distbfs.types import Ids, World


def inner_domains(
    groups: Sequence[Sequence[Part]],
    domains: Domains,
    ranks: World,
    world: World,
    room: Room | None,
) -> list[list[Share]]:
    """Build the shares of the domains of this rank (collective).

    groups: the parts of each of these domains, in the order of its devices; domains:
    all domains
    ranks: the ranks that have devices of these domains; world: all ranks
    room: memory limits of each device, if rows may have tails in the memory of their
    host, all after the same number of columns

    Raises UsageError if positions do not fit 32 bits, OutOfMemory on all ranks if a
    device or a host lacks memory.
    """
    builders = [DomainBuilder(parts, domains, ranks) for parts in groups]
    for one in builders:
        one.measure()
    shares = [share for one in builders for share in one.builders]
    if len(domains) > 1:
        indices = world.allgather(np.array([share.part.index for share in shares]))
        held, ranks_of = [x.part for x in shares], [x.tolist() for x in indices]
        for sides in zip(*(share.sides for share in shares), strict=True):
            targets = [(side.outer.targets, side.outer.starts) for side in sides]
            name_targets(held, targets, ranks_of, world)

    if room is not None:
        _split_rows(shares, world, room)
    with errors_of_all(world, ResourceError):
        for share in shares:
            with on_device_of(share.part):
                for side in share.sides:
                    side.allocate()
    return [one.build() for one in builders]


def _split_rows(shares: Sequence[InnerBuilder], world: World, room: Room) -> None:
    """Choose how rows are split, alike on all devices (collective)."""
    on_device = Counter(int(share.part.vertices.device) for share in shares)

    def fit(share: InnerBuilder) -> Fit:
        with on_device_of(share.part):
            sharing = on_device[int(share.part.vertices.device)]
            return share.fit(room, sharing)

    fits = [fit(share) for share in shares]
    subgraphs = sum(share.part.host_bytes for share in shares)
    full = [
        k
        for k, x in enumerate(fits)
        # mutant: x.most() < LEAST_KEPT -> False : test_outer_edges_in_host_memory
        if x.most() < LEAST_KEPT and shares[k].outer_bytes
    ]
    outer = sum(shares[k].outer_bytes for k in full)

    if world.allreduce(np.array([outer]))[0]:
        check_hosts(world, room, 0, outer + subgraphs)
        with errors_of_all(world, ResourceError):
            for k in full:
                with on_device_of(shares[k].part):
                    for side in shares[k].sides:
                        side.outer_to_host()
        for k in full:
            fits[k] = fit(shares[k])
    every = agreed_splits(world, room, fits, outer + subgraphs)
    for share, splits in zip(shares, every, strict=True):
        for side, split in zip(share.sides, splits, strict=True):
            side.split = split


@contextmanager
def on_device_of(part: Part) -> Iterator[None]:
    """Make the device of a part current inside the ``with`` block."""
    what = cuda.memory_of(f"the inner graph of part {part.index}")
    with part.vertices.device, what:
        yield


def let_go(part: Part, *names: str) -> None:
    """Free the subgraphs of these names, unless the part is kept."""
    if part.kept:
        return
    for name in names:
        pad = cuda.cupy().zeros(COLUMN_PAD, getattr(part, name).columns.dtype)
        none = CSR(getattr(part, name).offsets[:1].copy(), pad[:0])
        setattr(part, name, none)
        if part.directed:
            part.incoming = {**part.incoming, name: none}
    cuda.release()


class DomainBuilder:
    """Builds the shares of a domain on the devices of this rank."""

    def __init__(self, parts: Sequence[Part], domains: Domains, world: World) -> None:
        self._world, self._domains, first = world, domains, parts[0]
        self._index = domains.domain_of(first.index)
        self._devices = domains.sizes[self._index]
        self._delegates = Delegates(first.delegates, domains, self._index)
        self.builders: list[InnerBuilder] = []
        for part in parts:
            with on_device_of(part):
                made = InnerBuilder(part, domains, self._delegates)
                self.builders.append(made)
        own = np.array([one.device for one in self.builders])
        self._on_ranks = [devices.tolist() for devices in world.allgather(own)]
        counts = np.array(
            [[x.count, x.count - x.leaves, -x.count] for x in self.builders]
        )
        # mutant: world.allreduce(counts.max(axis=0), "max") -> counts.max(axis=0)
        #   : test_most_of_what_is_searched_is_on_one_device
        ends = world.allreduce(counts.max(axis=0), "max").tolist()
        most, searched = ends[0], -(-ends[1] // GRANULE) * GRANULE
        if searched < -ends[2]:  # whole granules, filled up with leaves
            for one in self.builders:
                one.leave_out(searched)
        self._granules = max(-(-most // GRANULE), 1)
        rows = most if self._devices == 1 else self._granules * GRANULE * self._devices
        slots = max(part.active for part in parts) + first.delegate_count
        local = first.layout.local_count(0)
        if local >= WIDE:
            raise UsageError(
                f"a part has {local} vertices; allowed between domains: {WIDE - 1}"
            )
        if rows + slots + 512 >= WIDE:
            raise UsageError(
                f"part {first.index} has {first.delegate_count} delegates and "
                f"{first.active} normal vertices on each of {self._devices} devices; "
                f"allowed: about {WIDE // 2} together"
            )

    def measure(self) -> None:
        """Count the columns of rows, and make the outer edges (collective)."""
        self._tell_names()
        self._lengths = []
        for sides in self._sides:
            lengths = np.zeros(len(self._delegates.ids), np.int64)
            for side in sides:
                lengths += side.delegate_lengths()
            self._lengths.append(self._world.allreduce(lengths))
        for one in self.builders:
            with on_device_of(one.part):
                one.measure(self._lengths)

    def build(self) -> list[Share]:
        """Build this rank's shares, whose columns have been allocated (collective)."""
        for sides, lengths in zip(self._sides, self._lengths, strict=True):
            self._write_delegates(sides, lengths)
        for one in self.builders:
            with on_device_of(one.part):
                let_go(one.part, "dd", "dn")
        counts = np.array([[one.sides[0].edges, one.count] for one in self.builders])
        edges, count = self._world.allreduce(counts.sum(axis=0)).tolist()
        domain = Domain(self._domains, self._index, self._granules, count, edges)
        shares = []
        for one in self.builders:
            with on_device_of(one.part):
                for side in one.sides:
                    side.write_normals()
                let_go(one.part, "nd")
                shares.append(one.finish(domain))
                let_go(one.part, "nn")
        return shares

    @property
    def _sides(self) -> list[tuple[InnerSide, ...]]:
        """The rows of all builders: of edges out and, if there are any, of edges in."""
        return list(zip(*(one.sides for one in self.builders), strict=True))

    def _tell_names(self) -> None:
        """Give all devices the positions and ids of the normal vertices."""
        every = [[x.positions for x in self.builders], [x.names for x in self.builders]]
        if self._devices > 1:
            seats = self._on_ranks
            every = [
                gather_all(self._world, [x.get() for x in arrays], seats)
                for arrays in every
            ]
        starts = np.cumsum([0, *map(len, every[1][:-1])])
        for one in self.builders:
            with on_device_of(one.part):
                positions, names = map(joined, every)
                one.take_names(positions, names, starts, self._granules)

    def _write_delegates(self, sides: Sequence[InnerSide], lengths: Ids) -> None:
        """Write the rows of delegates range by range; each device makes pieces of rows.

        sides: of each builder; lengths: lengths of the whole rows, int64 [d]
        """
        rooms = []
        for one in self.builders:
            with on_device_of(one.part):
                rooms.append(one.keys_room())
        room = int(self._world.allreduce(np.array([min(rooms)]), "min")[0])
        upto, low = np.concatenate([[0], np.cumsum(lengths)]), 0
        while low < len(lengths):
            high = int(np.searchsorted(upto, upto[low] + room, "right")) - 1
            high = min(max(high, low + 1), len(lengths))
            self._write_range(sides, low, high)
            for one in self.builders:
                with on_device_of(one.part):
                    cuda.release()  # frees the keys
            low = high

    def _write_range(self, sides: Sequence[InnerSide], low: int, high: int) -> None:
        """Write the rows of delegates from ``low`` up to ``high``."""
        boxes = []
        for side in sides:
            with on_device_of(side.part):
                boxes.append(side.delegate_keys(low, high))
        arrived = swap(self._world, boxes, self._on_ranks, np.dtype(np.uint64))
        for side, keys in zip(sides, arrived, strict=True):
            with on_device_of(side.part):
                side.take_delegates(joined(keys), low, high)
