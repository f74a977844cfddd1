"""Rows of a table about vertices, sent to the ranks that own these vertices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from distbfs.exchange.router import send
from distbfs.partition.part import NUMBER_MASK, PART_SHIFT

if TYPE_CHECKING:
    from distbfs.partition.layout import Placement
    from distbfs.partition.part import Part
    from distbfs.types import Ids, Words, World


def to_parts(
    world: World, placement: Placement, parts: Sequence[Part], table: Words
) -> Iterator[tuple[int, Ids, Words]]:
    """Send rows to the parts of their vertices; yield (place of part, numbers, rest).

    parts: the parts of this rank
    table: uint64 [k, w]; the first word of a row is a vertex as in columns of nn, the
    others are its data
    """
    shift = np.uint64(PART_SHIFT)
    ranks = placement.rank_of((table[:, 0] >> shift).astype(np.int64))
    arrived = send(world, table, ranks)
    owner = (arrived[:, 0] >> shift).astype(np.int64)
    numbers = (arrived[:, 0] & np.uint64(NUMBER_MASK)).astype(np.int64)
    for place, part in enumerate(parts):
        own = owner == part.index
        yield place, numbers[own], arrived[own, 1:]
