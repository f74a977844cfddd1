"""The roots and bitmaps with which a search on a device begins (seeds.cuh)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda
from distbfs.engines.cuda.xbfs.arrays import ELSEWHERE
from distbfs.engines.cuda.xbfs.search_table import BLOCK_EDGES, QUEUE_SHARE

if TYPE_CHECKING:
    from distbfs.device.structures import Record
    from distbfs.types import Array, Ids

BY_QUEUE, BY_PULL = 1, 2  # ``FromSet`` in search.cuh


def way_of(roots: int, active: int, *, push_only: bool) -> int:
    """Choose queue or pull for the first level of a search from a set.

    roots, active: of all devices together, so that the choice is equal on all
    """
    fits = push_only or roots <= max(BLOCK_EDGES, active // QUEUE_SHARE)
    return BY_QUEUE if fits else BY_PULL


def begin_at_set(
    params: Record, numbers: Array, local: Ids, ids: Ids, way: int
) -> None:
    """Make the next search begin at the roots of a set that this device has.

    numbers: integers [k], numbers of the roots that have one here; local, ids: int64
    [j], local ids and ids of the roots without a number, by ascending local id; way:
    see ``way_of``
    """
    params.root = params.root_id = ELSEWHERE
    params.from_set = way
    cp = cuda.cupy()
    with cuda.memory_of("the roots of a search"):
        lones = np.concatenate([local, ids]).astype(np.uint64)
        params.set(
            roots=cp.asarray(numbers.astype(np.uint32)) if len(numbers) else None,
            lones=cp.asarray(lones) if len(local) else None,
        )
    params.root_count, params.lone_count = len(numbers), len(local)


def begin_at_root(params: Record) -> None:
    """Make the next search begin at ``root`` alone."""
    params.from_set = params.root_count = params.lone_count = 0


def swap_bitmaps(params: Record) -> None:
    """Make a search begin with the bitmaps that the last one cleared."""
    p = params
    p.snapshot, p.next_snapshot = p.next_snapshot, p.snapshot
    p.by_first, p.next_by_first = p.next_by_first, p.by_first
