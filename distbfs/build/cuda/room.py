"""Memory of a build on one device: for keys, and for later searches.

If the columns of all rows do not fit beside the state of searches, each row keeps its
first columns on the device, equally many for all rows and as many as fit; the rest goes
to host memory (``Rows.tails``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from distbfs.build.cuda.chunks import longest
from distbfs.build.cuda.numbering import Numbering
from distbfs.build.cuda.ranges import KEY_BYTES, RESERVE, Ranges
from distbfs.device import cuda
from distbfs.device.array_table import total_bytes
from distbfs.errors import OutOfMemory, ResourceError
from distbfs.graph.device_graph import COLUMN_PAD, vertices_table
from distbfs.partition.share import ShareCounts, whole_counts
from distbfs.plan.memory import PAIR_BYTES, memory_limit, readable
from distbfs.ranks.agreement import errors_of_all
from distbfs.types import World

BUFFER_BYTES = 96 << 30  # most for keys, by default
VERTEX_BYTES = 28  # most for all arrays by vertex at once
MOST_RANGES = 64  # most ranges of rows, so most passes over the tuples, by default
LEAST_KEPT = 8  # least columns of a row on the device: pulls read them first
DEALT_BYTES = KEY_BYTES + 4  # a key, its place in the sort, and its column
MOST_DEALT = 5 << 29  # most keys split between device and host at once
EVERY = 1 << 32  # more columns than any row has
SPARE, SPARE_VERTEX = 5 << 29, 2  # device memory left for validation and other work
OTHERS = 50  # 1 / OTHERS of limited host memory is left for other uses


class Split(NamedTuple):
    """Rows in two pieces.

    kept, tailed: as in ``Tails``; heads: number of columns on the device; tails: number
    in host memory; both are upper bounds, since repeats are counted
    """

    kept: int
    tailed: int
    heads: int
    tails: int

    @property
    def device_bytes(self) -> int:
        """Bytes on the device, without the offsets of rows."""
        return 4 * (self.heads + COLUMN_PAD) + 8 * (self.tailed + 1)


@dataclass(frozen=True)
class Fit:
    """The memory of a device for the rows of a graph.

    what: beginning of messages, up to the number of edges
    fixed: bytes of everything but columns, including searches
    have: bytes that the device has while rows are built; after: and once they are built
    at_least_of: function from a length to a number above those of all rows of at least
    this length; sides: numbers of keys of the rows: of outgoing and, in a directed
    graph, of incoming edges
    """

    what: str
    fixed: int
    have: int
    after: int
    at_least_of: Callable[[int], int]
    sides: Sequence[Ranges]

    @property
    def total(self) -> int:
        """Number of keys of all rows."""
        return sum(side.total for side in self.sides)

    def most(self) -> int:
        """Return the largest number of columns of a row that fit, EVERY if all do.

        A result below LEAST_KEPT means that not even LEAST_KEPT columns fit.
        """
        if self.fixed + 4 * (self.total + COLUMN_PAD) <= self.after:
            return EVERY
        low, high = LEAST_KEPT - 1, max(x.longest for x in self.sides)
        while low < high:
            kept = (low + high + 1) // 2
            # mutant: fixed + self. ->
            #   : test_rows_from_little_to_all_of_them_on_the_device
            if self.fixed + self.at(kept).device_bytes <= self.have:
                low = kept
            else:
                high = kept - 1
        return low

    def at(self, kept: int, sides: Sequence[Ranges] = ()) -> Split:
        """Split rows after ``kept`` columns: those of some sides, by default of all."""
        sides, tailed = sides or self.sides, self.at_least_of(kept)
        beyond = sum(side.beyond(tailed, kept) for side in sides)
        return Split(kept, tailed, sum(side.total for side in sides) - beyond, beyond)

    def problem(self) -> str:
        """Return a message which says that LEAST_KEPT columns of a row do not fit."""
        split = self.at(LEAST_KEPT)
        return (
            f"{self.what} {self.total} directed edges needs "
            f"{readable(self.fixed + split.device_bytes, needed=True)} of device "
            f"memory with {LEAST_KEPT} columns of a row there, and "
            f"{readable(4 * split.tails, needed=True)} of host memory; the device has "
            f"{readable(self.have)}"
        )


@dataclass(frozen=True)
class Room:
    """Memory limits of a graph and its searches.

    device_bytes: limit on the device, None: what is free; host_bytes: limit on the host
    for tails of all its devices, None: what this process may use
    state: function from the counts of a share to the bytes of its searches
    """

    device_bytes: int | None
    host_bytes: int | None
    state: Callable[[ShareCounts], int]

    def fit(self, n: int, numbering: Numbering, sides: Sequence[Ranges]) -> Fit:
        """Compute how much of a whole graph fits the device; sides: as in ``Fit``."""
        count, active = len(sides), numbering.active
        held = total_bytes(vertices_table(n, active))
        fixed = held + 8 * count * (active + 1)
        m, at_least = sum(x.total for x in sides) // count, numbering.at_least
        fixed += self.state(whole_counts(n, active, m, at_least, directed=count > 1))
        have = self.free(held + 4 * count * active, SPARE_VERTEX * n)
        what = f"a graph of {n} vertices and"
        return Fit(what, fixed, have, have, numbering.at_least_of, sides)

    def free(self, held: int = 0, spare: int = 0, sharing: int = 1) -> int:
        """Return the free device bytes, plus ``held`` and less ``spare``.

        sharing: number of graphs among which the device is divided equally
        """
        free = (cuda.free_bytes() - SPARE) // sharing + held - spare
        if self.device_bytes is None:
            return free
        return min(free, self.device_bytes // sharing)

    def spills(self, size: int, more: int, sharing: int, of_host: int) -> bool:
        """Return whether a part's subgraphs wait in host memory until rows are made.

        They do if a device lacks ``size`` bytes for them and ``more``, and the host has
        room. sharing: number of parts of the device; of_host: of the host
        """
        limit = self.host_limit()
        if limit is not None and of_host * size > limit:
            return False
        return size + more > self.free(sharing=sharing)

    def host_limit(self) -> int | None:
        """Return the bytes that the host has for tails; None if no limit is known."""
        if self.host_bytes is not None:
            return self.host_bytes
        limit = memory_limit()
        return None if limit is None else limit - limit // OTHERS


def agreed_splits(
    world: World, room: Room, fits: Sequence[Fit], others: int = 0
) -> list[list[Split | None]]:
    """Return how rows of each side are split, alike on all devices (collective).

    fits: of each part of this rank; others: as in ``check_hosts``

    The result has a list for each fit, of None if the devices keep all columns. Raises
    OutOfMemory on all ranks if a device lacks room for LEAST_KEPT columns of a row, or
    a host for the tails.
    """
    most = [EVERY]
    with errors_of_all(world, ResourceError):
        for fit in fits:
            most.append(fit.most())
            if most[-1] < LEAST_KEPT:
                raise OutOfMemory(fit.problem())
    # mutant: -int(world.allreduce(np.array([-min(most)]), "max")[0]) -> min(most)
    #   : test_split_domains::test_passes
    kept = -int(world.allreduce(np.array([-min(most)]), "max")[0])
    if kept == EVERY:
        return [[None for _ in fit.sides] for fit in fits]
    splits = [[fit.at(kept, [side]) for side in fit.sides] for fit in fits]
    tails = sum(split.tails for some in splits for split in some)
    check_hosts(world, room, tails, others)
    return [list(some) for some in splits]


def check_total(world: World, room: Room, m: int, free: int) -> None:
    """Raise OutOfMemory on all ranks if m columns fit in no memory (collective).

    m: number of columns of all parts; free: free bytes of this rank's devices

    It is called before rows are made, and so counts only their columns.
    """
    limit = room.host_limit()
    own = np.array([free, -1 if limit is None else limit])
    every = np.stack(world.allgather(own))
    hosts = dict(zip(world.hosts, every[:, 1].tolist(), strict=True))
    device, host = int(every[:, 0].sum()), sum(hosts.values())
    if min(hosts.values()) >= 0 and 4 * m > device + host:
        raise OutOfMemory(
            f"{m} directed edges need {readable(4 * m)}; devices have "
            f"{readable(device)} for a graph and its searches, hosts {readable(host)}"
        )


def check_hosts(world: World, room: Room, tails: int, others: int = 0) -> None:
    """Raise OutOfMemory on all ranks if a host has no room for tails (collective).

    tails: number of columns in tails of this rank's rows; others: bytes of outer edges
    and of the subgraphs from which rows are made, if they are on the host
    """
    hosts = world.hosts
    what = "tails of rows"
    if others:
        what += ", outer edges and the subgraphs of parts"
    every = zip(hosts, world.allgather(np.array([4 * tails + others])), strict=True)
    need = sum(int(count[0]) for host, count in every if host == hosts[world.rank])
    have = room.host_limit()
    with errors_of_all(world, ResourceError):
        if have is not None and need > have:
            raise OutOfMemory(
                f"{what} need {readable(need)} of host memory; there are "
                f"{readable(have)}"
            )


class Budget:
    """Bytes for keys, and whether the pairs can be kept.

    n: number of vertices; count: number of pairs; keys: largest number of keys;
    buffer_bytes: limit for keys
    room: memory limits of the graph and its searches if rows may be split, else None

    Raises ResourceError if rows may not be split and the memory that is left beside the
    graph is less than MOST_RANGES ranges of keys need (or less than buffer_bytes, if
    that is smaller).
    """

    def __init__(
        self,
        n: int,
        keys: int,
        count: int,
        buffer_bytes: int | None,
        *,
        cheap: bool,
        room: Room | None = None,
    ) -> None:
        self._n, self._room = n, room
        final = VERTEX_BYTES * n + 4 * keys
        most = BUFFER_BYTES if buffer_bytes is None else buffer_bytes
        least = min(most, KEY_BYTES * keys // MOST_RANGES)
        need = final + PAIR_BYTES * longest(count)
        free = cuda.free_bytes()
        if room is None:
            what = f"building a graph of {n} vertices and {keys} directed edges"
            cuda.require(need + least + RESERVE // 4, what)
        else:
            free = room.free()
        spare = max(free - need - RESERVE, least)
        self.buffer = min(most, spare)
        single = KEY_BYTES * keys <= self.buffer
        self.hold = single or (not cheap and PAIR_BYTES * count <= spare - self.buffer)

    def keys_at_once(self, active: int, ranges: Ranges, split: Split | None) -> int:
        """Return the number of keys to sort at once, at least the longest row's."""
        capacity = self.buffer // KEY_BYTES
        if self._room is not None and split is not None:
            held = total_bytes(vertices_table(self._n, active))
            spare = self._room.free(held) - held - 8 * (active + 1)
            capacity = min((spare - split.device_bytes) // DEALT_BYTES, MOST_DEALT)
        return min(max(capacity, ranges.longest), ranges.total)
