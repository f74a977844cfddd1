"""Ownership of vertices: global id <-> (part, local id), part <-> (rank, device).

A part that several devices of a domain search together is divided into shares, one per
device; shares are numbered and placed like parts.

Source: Pan, Pearce, Owens 2018, Section III-B (functions P and G of Algorithm 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TypeVar

import numpy as np

from distbfs.errors import LaunchError, UsageError
from distbfs.types import Array, Ids

Index = TypeVar("Index", int, Array)

MAX_LOCAL = 1 << 32  # most vertices of a part


def local_count(n: int, parts: int, part: int) -> int:
    """Return the number of vertices that a part has of all n."""
    return (n - part + parts - 1) // parts if part < n else 0


@dataclass(frozen=True)
class Layout:
    """``n`` vertices on p ``parts``; part k owns the vertices v with v mod p = k."""

    n: int
    parts: int

    def __post_init__(self) -> None:
        if self.n < 0 or self.parts < 1:
            raise UsageError(
                f"n must be at least 0 and parts at least 1, not {self.n}, {self.parts}"
            )
        if self.local_count(0) > MAX_LOCAL:
            raise UsageError(
                f"{self.n} vertices need at least {-(-self.n // MAX_LOCAL)} parts: "
                "a part serves at most 2^32 vertices"
            )

    def part_of(self, vertex: Index) -> Index:
        """Return the part that owns a vertex id (scalar or array)."""
        return vertex % self.parts

    def local_of(self, vertex: Index) -> Index:
        """Return the local id of a vertex on its part."""
        return vertex // self.parts

    def global_of(self, part: int, local: Index) -> Index:
        """Return the vertex id of a local id on a part (64-bit for arrays)."""
        if isinstance(local, np.ndarray):
            return local.astype(np.int64) * self.parts + part
        return local * self.parts + part

    def local_count(self, part: int) -> int:
        """Return the number of vertices of a part."""
        return local_count(self.n, self.parts, part)


def in_turn(counts: Sequence[int]) -> list[tuple[int, int]]:
    """Return (holder, index among the holder's items) of all items, in turn.

    The first items of all holders come first, then their second items, and so on;
    counts: number of items of each holder.
    """
    every = [(holder, k) for holder, count in enumerate(counts) for k in range(count)]
    return sorted(every, key=itemgetter(1, 0))


@dataclass(frozen=True)
class Domains:
    """The vertices distributed to the devices of domains, an equal share to each.

    sizes: number of devices of each domain. Shares go to domains in turn, see
    ``in_turn``: if there are p domains of D devices each, share q belongs to device q
    div p of domain q mod p.
    """

    sizes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def _turns(self) -> Ids:
        """The domain of each share, and the device within it, int64 [2, shares]."""
        return np.array(in_turn(self.sizes), dtype=np.int64).T

    @property
    def shares(self) -> int:
        """Number of devices of all domains."""
        return sum(self.sizes)

    @property
    def lanes(self) -> int:
        """The least common multiple of all sizes: see ``build.cuda.inner_part``."""
        return math.lcm(*self.sizes)

    def homes(self) -> Ids:
        """Return the share that owns a lane in a domain, int64 [domains, lanes]."""
        lanes = np.arange(self.lanes)
        own = (self.shares_of(domain) for domain in range(len(self)))
        return np.stack([shares[lanes % len(shares)] for shares in own])

    def domain_of(self, share: Index) -> Index:
        """Return the domain of a share."""
        return _entry(self._turns[0], share)

    def device_of(self, share: Index) -> Index:
        """Return the index of a share's device in its domain."""
        return _entry(self._turns[1], share)

    def shares_of(self, domain: int) -> Ids:
        """Return the shares of a domain by device, int64."""
        return np.flatnonzero(self._turns[0] == domain)

    def apart_from(self, share: int) -> list[int]:
        """Return the shares of all domains except that of this share, ascending."""
        return np.flatnonzero(self._turns[0] != self._turns[0][share]).tolist()

    @property
    def most_apart(self) -> int:
        """The largest number of shares outside a domain."""
        return self.shares - min(self.sizes)

    def lanes_of(self, share: int) -> range:
        """Return the delegate lanes of a share."""
        devices = self.sizes[self.domain_of(share)]
        return range(self.device_of(share), self.lanes, devices)


@dataclass(frozen=True)
class Placement:
    """Parts on ranks: the same number on each, or one for each device of a domain.

    parts, ranks: number of parts and of ranks
    owners: for each domain, the rank of each of its devices; part q is share q of
    ``domains``. Without owners, each part is a domain, and part q is on rank q mod
    ranks.
    """

    parts: int
    ranks: int
    owners: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.owners and self.parts % self.ranks:
            raise LaunchError(
                f"{self.parts} parts cannot be split evenly over {self.ranks} ranks; "
                f"start with a number of ranks that divides {self.parts}, or use "
                "distbfs partition"
            )

    @classmethod
    def of_domains(cls, owners: Sequence[Sequence[int]], ranks: int) -> Placement:
        """Place one part on each device; owners: see the class."""
        every = tuple(tuple(domain) for domain in owners)
        return cls(sum(len(domain) for domain in every), ranks, every)

    def check_items(self, local: int) -> None:
        """Raise UsageError if 32 bits cannot name a vertex among a rank's parts.

        local: number of vertices of a part
        """
        if local * self.per_rank > 1 << 32:
            raise UsageError(
                f"{self.per_rank} parts per rank are too many; use more ranks"
            )

    @cached_property
    def domains(self) -> Domains:
        """The domains whose shares the parts are."""
        return Domains(tuple(len(x) for x in self.owners) or (1,) * self.parts)

    @cached_property
    def _ranks(self) -> Ids:
        """The rank of each part, int64 [parts]."""
        if not self.owners:
            return np.arange(self.parts) % self.ranks
        turns = in_turn(self.domains.sizes)
        return np.array([self.owners[domain][device] for domain, device in turns])

    @cached_property
    def _parts(self) -> list[list[int]]:
        """The parts of each rank, sorted by domain."""
        every: list[list[int]] = [[] for _ in range(self.ranks)]
        domains = self.domains.domain_of(np.arange(self.parts))
        for part in np.argsort(domains, kind="stable").tolist():
            every[self._ranks[part]].append(part)
        return every

    @cached_property
    def _devices(self) -> Ids:
        """The place of each part among those of its rank, int64 [parts]."""
        places = np.zeros(self.parts, dtype=np.int64)
        for parts in self._parts:
            places[parts] = np.arange(len(parts))
        return places

    @property
    def per_rank(self) -> int:
        """The largest number of parts on a rank (p_gpu)."""
        return max(len(parts) for parts in self._parts)

    def rank_of(self, part: Index) -> Index:
        """Return the rank that holds a part."""
        return _entry(self._ranks, part)

    def device_of(self, part: Index) -> Index:
        """Return the device index of a part inside its rank."""
        return _entry(self._devices, part)

    def parts_of(self, rank: int) -> list[int]:
        """Return the parts of a rank in device order."""
        return self._parts[rank]

    def places_of(self, rank: int) -> dict[int, list[int]]:
        """Return the places of a rank's parts in ``parts_of``, by domain."""
        places: dict[int, list[int]] = {}
        for place, part in enumerate(self._parts[rank]):
            places.setdefault(self.domains.domain_of(part), []).append(place)
        return places


def _entry(table: Ids, index: Index) -> Index:
    """Return entries of a table, as an int for a single index."""
    return table[index] if isinstance(index, np.ndarray) else int(table[index])
