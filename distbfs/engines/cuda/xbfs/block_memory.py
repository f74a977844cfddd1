"""Shared memory of the blocks of a search by method ``fast`` (search.cuh)."""

from __future__ import annotations

from distbfs.engines.cuda.xbfs.ranges import TABLE_BYTES
from distbfs.engines.cuda.xbfs.search_table import RESULT_THREADS

THREADS, WARPS = 1024, 32
TILE_WORDS = 8
WAIT, HALF, LATER = 160, 64, 64  # as in search.cuh and trees.cuh
QUEUE_WORDS = WAIT + WAIT // 4 + 2 * HALF  # of a warp, STAGE_AT in search.cuh
WARP_WORDS = QUEUE_WORDS + 2 * TILE_WORDS * 32 + TILE_WORDS * 16 + 16
HUB_WORDS = 16000  # bits of hubs in shared memory
HUB_SHARE, LEAST_HUB_WORDS = 3, 1024  # no more than a share of all, or that, pays
CODE_BYTES = 8  # of a word of trees.cuh
LATER_BYTES = 4 * LATER * WARPS  # of vertices that wait there


def hub_words_of(shared: int, words: int) -> int:
    """Return the words of hubs' bits in shared memory.

    shared: bytes of a block; words: words of the bitmap of all columns
    """
    room = (shared - WARPS * WARP_WORDS * 4) // 4
    most = max(words // HUB_SHARE, LEAST_HUB_WORDS)
    return min(HUB_WORDS, room, words, most) // 4 * 4


def tile_bytes(hub_words: int, longest_range: int) -> int:
    """Return the bytes of a block for pulls and for destination ranges.

    longest_range: words of the longest range
    """
    return max(
        WARPS * WARP_WORDS * 4 + max(hub_words, 4) * 4,
        RESULT_THREADS,
        4 * (longest_range + 4) + TABLE_BYTES,
    )


def window_bytes(window_words: int, coded: int, longest_range: int) -> int:
    """Return the bytes of a block for pulls column by column; the rest is L1.

    coded: words of tree vertices whose codes are in shared memory
    """
    return max(
        WARPS * QUEUE_WORDS * 4 + window_words * 4,
        LATER_BYTES + CODE_BYTES * coded,
        tile_bytes(0, longest_range),
    )
