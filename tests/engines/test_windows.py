"""Where windows of visited bits are, and for which graphs they are used."""

import numpy as np
import pytest

from distbfs.engines.cuda.xbfs.windows import (
    WINDOW_WORDS,
    pays,
    place_windows,
    share_in,
    windows_of,
)

WORDS, ROOM, HUBS, COLUMNS = 1 << 18, 28000, 16000, 8


def columns_of(rows):
    """Return the words of each of the first columns of rising rows, rising."""
    rows = np.sort(rows, axis=1)[:, :COLUMNS]
    return [np.sort(column) for column in rows.T]


def uniform(rng):
    return rng.integers(0, WORDS, (4096, 32))


def hubs(rng):
    return (WORDS * rng.random((4096, 32)) ** 8).astype(np.int64)


def nearby(rng):
    own = rng.integers(0, WORDS, (4096, 1))
    return np.clip(own + rng.integers(-4, 5, (4096, 32)), 0, WORDS - 1)


@pytest.mark.parametrize(
    ("rows", "used"), [(uniform, True), (hubs, False), (nearby, False)]
)
def test_windows_pay_where_columns_move(rows, used):
    columns = columns_of(rows(np.random.default_rng(5)))
    starts = windows_of(columns, WORDS, ROOM)
    assert pays(columns, starts, ROOM, HUBS) == used


def test_windows_follow_the_columns():
    columns = columns_of(uniform(np.random.default_rng(6)))
    starts = windows_of(columns, WORDS, ROOM)
    assert len(starts) == COLUMNS + 1
    assert starts == sorted(starts)
    assert starts[0] == 0
    assert starts[-1] > starts[-2] > 0
    assert all(start % 4 == 0 for start in starts)
    for column, start in zip(columns, starts, strict=False):
        best = max(share_in(column, at, ROOM) for at in range(0, WORDS - ROOM, 4000))
        assert share_in(column, start, ROOM) > 0.75 * best


def test_windows_lie_in_the_bitmap():
    columns = [np.full(100, 63)] * COLUMNS
    assert windows_of(columns, 64, 16) == [48] * (COLUMNS + 1)
    assert windows_of(columns, 12, 16) == [0] * (COLUMNS + 1)


class Column(np.ndarray):
    """A column of which ``get`` is a copy to the host."""

    def get(self):
        return np.asarray(self)


@pytest.mark.parametrize(("rows", "used"), [(uniform, True), (hubs, False)])
def test_windows_are_placed_by_a_sample(rows, used):
    words = columns_of(rows(np.random.default_rng(7)))
    columns = [((column << 5).astype(np.uint32).view(Column), 4096) for column in words]
    room, _ = place_windows(columns, WORDS, HUBS, None)
    assert room == (WINDOW_WORDS if used else 0)
    assert place_windows(columns, WORDS, HUBS, 64)[0] == 64
    few = [(column, 4000) for column, _ in columns]
    assert place_windows(few, WORDS, HUBS, None) == (0, [])
    assert place_windows(columns, 2 * WINDOW_WORDS - 4, HUBS, None) == (0, [])
