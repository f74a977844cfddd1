"""The contract of an exchange: what crosses parts at the end of a level.

Source: Pan, Pearce, Owens 2018, Section V (Fig. 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from distbfs.types import Array, Words


@dataclass
class Traffic:
    """What this rank sent since the exchange was made; bytes exclude local copies."""

    mask_bytes: int = 0
    normal_bytes: int = 0
    messages: int = 0
    normals_sent: int = 0


class Exchange(Protocol):
    """Moves delegate masks and normal vertices between parts; all methods collective.

    One instance serves the parts of one rank for many searches.  A ``start`` returns
    as early as it can; the arrays given to it stay unchanged until its ``finish``.
    The two pairs may overlap each other and the visits in between.
    """

    name: str
    traffic: Traffic

    def start_masks(self, masks: Sequence[Words]) -> None:
        """Begin the OR-reduction of the delegate masks of this rank's parts.

        ``masks[i]``: uint64 [ceil(d/64)] of the i-th part of this rank.  Two phases:
        devices of the rank, then ranks (Section V-A).
        """

    def finish_masks(self) -> Words:
        """Return the OR over all parts of all ranks, uint64 [ceil(d/64)]."""

    def start_normals(self, bins: Sequence[Sequence[Array]]) -> None:
        """Begin to send normal vertices to their owners.

        ``bins[i][k]``: uint32 [any length] vertex numbers on part k, found by the i-th
        part of this rank (Section V-B).
        """

    def finish_normals(self) -> list[list[tuple[int, Array]]]:
        """Return for each part of this rank what arrived: (source rank, uint32 [k]).

        Sources come in ascending rank order; empty arrays are left out.
        """

    def close(self) -> None:
        """Free buffers and pending requests."""
