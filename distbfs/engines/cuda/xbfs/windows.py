"""Windows of visited bits for pulls without hubs, from the places of neighbours.

Columns ascend in each row, so the k-th neighbours of all vertices lie around one place.
If there are hubs, this place is the front for all columns, and pulls keep its bits in
shared memory. If there are none, the places of later columns lie further back, and a
pull goes from column to column with a moving window of bits (``pull_windows.cuh``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from distbfs.types import Array

WINDOW_WORDS = 28000  # bits of a window: more would leave loads that wait too little L1
SAMPLE = 4096  # vertices whose neighbours are looked at
BEGINS = 0.1  # a window begins where that share of a column has come
ROWS_BEGIN = 0.35  # and the one for rows, by the last column
MOVES = 0.08  # a window moves where that share more of a column lies in it
PAYS = 0.25  # so much more of all columns lies in windows than in the bits of hubs


def place_windows(
    columns: Sequence[tuple[Any, int]], words: int, hub_words: int, forced: int | None
) -> tuple[int, list[int]]:
    """Return (words of a window, first words of windows); 0 words if they are slower.

    columns: for each k, the k-th neighbours, CuPy uint32, and the number of vertices
    that have one
    words: words of the whole bitmap; hub_words: words of the part that shared memory
    holds otherwise
    forced: words of a window that is used in any case; None: decide here
    """
    few = words < 2 * WINDOW_WORDS or min(size for _, size in columns) < SAMPLE
    if few and not forced:
        return 0, []
    room = min(forced or WINDOW_WORDS, words // 4 * 4)
    samples = [sample_of(column, size) for column, size in columns]
    starts = windows_of(samples, words, room)
    used = forced or pays(samples, starts, room, hub_words)
    return room if used else 0, starts


def sample_of(column: Any, size: int) -> Array:
    """Return the words of some of a column's neighbours, ascending, int64."""
    some = column[: max(size, 1) : max(size // SAMPLE, 1)].get()
    return np.sort(some.astype(np.int64) >> 5)


def windows_of(columns: Sequence[Array], words: int, room: int) -> list[int]:
    """Return the first words of windows, for each column and for the rest of rows.

    columns: for each k, the words of a sample's k-th neighbours, int64 [sample],
    ascending
    words: words of the whole bitmap; room: words of a window, a multiple of 4
    """
    top = max(words - room, 0) // 4 * 4

    def place(column: Array, share: float) -> int:
        return min(int(np.quantile(column, share)) // 4 * 4, top)

    def moved(now: int, column: Array) -> int:
        best = place(column, BEGINS)
        more = share_in(column, best, room) - share_in(column, now, room)
        return best if more > MOVES else now

    starts = list(accumulate(columns, moved, initial=0))[1:]
    return [*starts, place(columns[-1], ROWS_BEGIN)]


def share_in(column: Array, start: int, room: int) -> float:
    """Return the share of an ascending column that lies in a window."""
    low, high = np.searchsorted(column, [start, start + room])
    return float(high - low) / max(len(column), 1)


def pays(
    columns: Sequence[Array], starts: Sequence[int], room: int, hub_words: int
) -> bool:
    """Return whether windows hold enough more neighbours than the bits of hubs."""
    inside = np.mean(
        [share_in(c, s, room) for c, s in zip(columns, starts, strict=False)]
    )
    near = np.mean([share_in(c, 0, hub_words) for c in columns])
    return bool(inside - near >= PAYS)
