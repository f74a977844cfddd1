"""Edges as 64-bit keys: their format, their rows, and their directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distbfs.errors import InputError, UsageError
from distbfs.types import Array, Ids, Words

BOTH, FORTH, BACK = range(3)  # directions of a tuple that are edges
HALF = 32  # bits of the row, and of the column, of given keys
RUN = 1 << 22  # most keys grouped together
OUTSIDE = "an edge tuple has an end outside 0 … {}"


@dataclass(frozen=True)
class KeyFormat:
    """Format of (row, column) as a key: row · 2^bits + column."""

    bits: int

    @classmethod
    def for_graph(cls, n: int, rows: int) -> KeyFormat:
        """Return the format for ``rows`` rows; UsageError if 64 bits are too few."""
        bits = max(n - 1, 1).bit_length()
        if bits + max(rows - 1, 1).bit_length() > 64:
            raise UsageError(
                f"{rows} vertices per part of {n} in all do not fit 64-bit keys; "
                "use more parts"
            )
        return cls(bits)

    def pack(self, row: Array, column: Array) -> Words:
        """Return uint64 keys."""
        return row.astype(np.uint64) << np.uint64(self.bits) | column.astype(np.uint64)

    def row(self, key: Words) -> Ids:
        """Return the row of each key, int64."""
        return (key >> np.uint64(self.bits)).view(np.int64)

    def column(self, key: Words) -> Ids:
        """Return the column of each key, int64."""
        return (key & np.uint64((1 << self.bits) - 1)).view(np.int64)


@dataclass(frozen=True)
class Deal:
    """Assignment of vertices to rows of a rank: slot * local + vertex // parts.

    group: device indices; the device at position ``slot`` has part device * ranks +
    rank
    """

    n: int
    parts: int
    ranks: int
    rank: int
    group: tuple[int, ...]

    @property
    def local(self) -> int:
        """The largest number of rows of a part."""
        return -(-self.n // self.parts)

    @property
    def rows(self) -> int:
        """Number of rows of all parts of the group."""
        return self.local * len(self.group)

    @cached_property
    def form(self) -> KeyFormat:
        """Key format of these rows' edges; UsageError if 64 bits are too few."""
        return KeyFormat.for_graph(self.n, self.rows)

    @cached_property
    def slots(self) -> Ids:
        """The slot of each device, int64, -1 for devices outside the group."""
        slots = np.full(self.parts // self.ranks, -1, dtype=np.int64)
        slots[list(self.group)] = np.arange(len(self.group))
        return slots

    @cached_property
    def part_of(self) -> Ids:
        """The part of each slot, int64."""
        return np.array(self.group, dtype=np.int64) * self.ranks + self.rank


@dataclass(frozen=True)
class Items:
    """Tuples whose edges belong to a deal, or keys ``row << 32 | column``.

    u, v: ends of the tuples, int64 [count]; or u: keys, uint64 [count], without v and
    deal
    way: direction of the edges: FORTH (u, v), BACK (v, u) or BOTH; a loop gives one key
    """

    way: int
    u: Array
    v: Array | None = None
    deal: Deal | None = None

    def pieces(self) -> Iterator[Items]:
        """Yield the items in pieces of at most RUN keys."""
        for k in range(0, len(self.u), RUN // 2):
            v = None if self.v is None else self.v[k : k + RUN // 2]
            yield Items(self.way, self.u[k : k + RUN // 2], v, self.deal)

    def keys(self) -> tuple[Words, Ids]:
        """Return (keys uint64, rank of each), by NumPy."""
        if self.deal is None or self.v is None:
            keys, half = self.u, np.uint64(HALF)
            turned = keys << half | keys >> half
            if self.way == BOTH:
                turned = np.concatenate([keys, turned[turned != keys]])
            return keys if self.way == FORTH else turned, np.zeros(0, dtype=np.int64)
        u, v, deal = self.u, self.v, self.deal
        check_range(u, v, deal.n)
        if self.way == BACK:
            u, v = v, u
        elif self.way == BOTH:
            proper = u != v
            u, v = np.concatenate([u, v[proper]]), np.concatenate([v, u[proper]])
        part = u % deal.parts
        slot = deal.slots[part // deal.ranks]
        keys = deal.form.pack(slot * deal.local + u // deal.parts, v)
        served = slot >= 0
        return keys[served], (part % deal.ranks)[served]


def check_range(u: Ids, v: Ids, n: int) -> None:
    """Raise InputError unless all ids, int64, are in 0 … n-1."""
    for ids in (u, v):
        if len(ids) and (ids.min() < 0 or ids.max() >= n):
            raise InputError(OUTSIDE.format(n - 1))
