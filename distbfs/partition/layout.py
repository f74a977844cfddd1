"""Who owns which vertex: global id <-> (part, local id), part <-> (rank, device).

Source: Pan, Pearce, Owens 2018, Section III-B (functions P and G of Algorithm 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from distbfs.errors import LaunchError, UsageError
from distbfs.types import Array

Index = TypeVar("Index", int, Array)

MAX_LOCAL = 1 << 32


@dataclass(frozen=True)
class Layout:
    """``n`` vertices on p ``parts``; part k serves the vertices v with v mod p = k."""

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
        """Return the part that serves a vertex id (scalar or array)."""
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
        """Return how many vertices a part serves."""
        return (self.n - part + self.parts - 1) // self.parts if part < self.n else 0


@dataclass(frozen=True)
class Placement:
    """Parts on ranks, where ``together`` ranks that follow each other have a domain.

    Part q is a device's share of domain q mod p, p domains; that is its (q div p)-th
    device, which the ranks of the domain have in turn.  With a rank for each domain, or
    for several, rank = part mod p_rank, device = part div p_rank.
    """

    parts: int
    ranks: int
    together: int = 1

    def __post_init__(self) -> None:
        if self.parts % self.ranks:
            raise LaunchError(
                f"{self.parts} parts do not divide by {self.ranks} ranks; start with a "
                f"number of ranks that divides {self.parts}, or use distbfs partition"
            )
        if self.ranks % self.together:
            raise LaunchError(
                f"{self.ranks} ranks do not divide by {self.together} of a domain"
            )

    @property
    def per_rank(self) -> int:
        """Parts per rank (p_gpu)."""
        return self.parts // self.ranks

    def rank_of(self, part: Index) -> Index:
        """Return the rank that holds a part."""
        groups = self.ranks // self.together
        return part % groups * self.together + part // groups % self.together

    def device_of(self, part: Index) -> Index:
        """Return the device index of a part inside its rank."""
        return part // self.ranks

    def parts_of(self, rank: int) -> list[int]:
        """Return the parts of a rank in device order."""
        groups = self.ranks // self.together
        first = rank // self.together + rank % self.together * groups
        return list(range(first, self.parts, self.ranks))
