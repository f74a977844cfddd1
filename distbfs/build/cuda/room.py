"""Memory of a build on one device: for keys, and for what searches will need.

Where the columns of all rows do not fit beside what searches take, rows keep their
first columns on the device, the same number each, as many as fit; the rest goes to host
memory (``DeviceGraph.tails``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from distbfs.build.cuda.chunks import longest
from distbfs.build.cuda.numbering import Numbering
from distbfs.build.cuda.ranges import KEY_BYTES, RESERVE, Ranges
from distbfs.device import cuda
from distbfs.errors import OutOfMemory
from distbfs.graph.device_graph import COLUMN_PAD
from distbfs.plan.memory import memory_limit, readable
from distbfs.types import Ids

PAIR_BYTES = 8
BUFFER_BYTES = 96 << 30  # for keys, at most, where nothing else is said
VERTEX_BYTES = 28  # of all arrays by vertex at once, at most
MOST_RANGES = 64  # of rows, and so passes over the tuples, unless told otherwise
LEAST_KEPT = 8  # columns of a row on the device, at least: pulls read them first
DEALT_BYTES = KEY_BYTES + 4  # a key, its place in the sort, and its column
MOST_DEALT = 5 << 29  # keys that are dealt out at once
SPARE, SPARE_VERTEX = 3 << 29, 2  # of the device, for validation and other work
OTHERS = 50  # 1 / OTHERS of limited host memory is not for tails


class Split(NamedTuple):
    """Rows in two pieces.

    kept, tailed: as of ``Tails``; heads: columns on the device, tails: in host memory,
    both at most, as repeats are counted
    """

    kept: int
    tailed: int
    heads: int
    tails: int

    @classmethod
    def at(cls, kept: int, numbering: Numbering, ranges: Ranges) -> Split:
        """Return rows with so many columns on the device; ranges: of their keys."""
        tailed = numbering.at_least_of(kept)
        beyond = ranges.beyond(tailed, kept)
        return cls(kept, tailed, ranges.total - beyond, beyond)

    @property
    def device_bytes(self) -> int:
        """Bytes on the device besides offsets of all rows."""
        return 4 * (self.heads + COLUMN_PAD) + 8 * (self.tailed + 1)


@dataclass(frozen=True)
class Room:
    """What a graph and its searches may take.

    device_bytes: of the device, None: what is free; host_bytes: of the host, for tails,
        None: what this process may use
    state: (n, active, m, at_least as in DeviceGraph) -> bytes that searches take
    """

    device_bytes: int | None
    host_bytes: int | None
    state: Callable[[int, int, int, Ids], int]

    def split(self, n: int, numbering: Numbering, ranges: Ranges) -> Split | None:
        """Return how rows are split, None where the device has room for all of them.

        ranges: of the keys of rows, by number.  Raises OutOfMemory where the device has
        no room for the beginnings of rows, or the host for their tails.
        """
        total, active = ranges.total, numbering.active
        fixed = held_bytes(n, active) + 8 * (active + 1)
        fixed += self.state(n, active, total, numbering.at_least)
        have = self.free(held_bytes(n, active) + 4 * active, SPARE_VERTEX * n)
        if fixed + 4 * (total + COLUMN_PAD) <= have:
            return None
        low, high = LEAST_KEPT - 1, ranges.longest
        while low < high:
            kept = (low + high + 1) // 2
            if fixed + Split.at(kept, numbering, ranges).device_bytes <= have:
                low = kept
            else:
                high = kept - 1
        split = Split.at(max(low, LEAST_KEPT), numbering, ranges)
        if low < LEAST_KEPT:
            raise OutOfMemory(
                f"a graph of {n} vertices and {total} directed edges needs "
                f"{readable(fixed + split.device_bytes)} of device memory with "
                f"{LEAST_KEPT} columns of a row there, and {readable(4 * split.tails)} "
                f"of host memory; the device has {readable(have)}"
            )
        self._check_host(4 * split.tails)
        return split

    def free(self, held: int = 0, spare: int = 0) -> int:
        """Return the bytes of the device for what is ``held`` and what is not yet."""
        free = cuda.free_bytes() + held - SPARE - spare
        return free if self.device_bytes is None else min(free, self.device_bytes)

    def _check_host(self, need: int) -> None:
        have = self.host_bytes
        if have is None:
            limit = memory_limit()
            have = need if limit is None else limit - limit // OTHERS
        if need > have:
            raise OutOfMemory(
                f"tails of rows need {readable(need)} of host memory; there are "
                f"{readable(have)}"
            )


def held_bytes(n: int, active: int) -> int:
    """Return the bytes of numbers, tuple degrees and vertices."""
    return 8 * n + 4 * active


class Budget:
    """Bytes for keys, and whether the pairs can be kept.

    n: vertices; count: pairs; keys: at most; buffer_bytes: what keys may take
    room: of the graph and its searches, where rows may be split, else None
    Raises ResourceError where the graph would leave less than MOST_RANGES ranges of
    keys need, or than buffer_bytes if that is less, and rows may not be split.
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

    def split(self, numbering: Numbering, ranges: Ranges) -> Split | None:
        """Return how rows are split, None where they are not; see ``Room.split``."""
        if self._room is None:
            return None
        return self._room.split(self._n, numbering, ranges)

    def keys_at_once(self, active: int, ranges: Ranges, split: Split | None) -> int:
        """Return how many keys of rows are sorted at once; those of one row are."""
        capacity = self.buffer // KEY_BYTES
        if self._room is not None and split is not None:
            held = held_bytes(self._n, active)
            spare = self._room.free(held) - held - 8 * (active + 1)
            capacity = min((spare - split.device_bytes) // DEALT_BYTES, MOST_DEALT)
        return min(max(capacity, ranges.longest), ranges.total)
