"""Destination ranges: of about equal load, short, and within the expected memory."""

import numpy as np
import pytest

from distbfs.engines.cuda.xbfs import search_table
from distbfs.engines.cuda.xbfs.block_memory import HUB_WORDS, WARP_WORDS, WARPS
from distbfs.engines.cuda.xbfs.ranges import (
    TABLE_BYTES,
    range_bounds,
    range_count,
    range_group,
    range_room,
)

ROOM = 64


@pytest.mark.parametrize("words", [1, 500, 4096, 100_000])
@pytest.mark.parametrize("heavy", [1, 50, 100_000])
@pytest.mark.parametrize("group", [1, 3])
def test_ranges_and_the_bytes_of_cuts(monkeypatch, words, heavy, group):
    """The first words have all edges from hubs, as on graphs sorted by degree."""
    edges = np.zeros(words)
    edges[:heavy] = np.random.default_rng(words + heavy).random(min(heavy, words)) + 0.1
    bounds, longest = range_bounds(edges, 4, ROOM, group)
    assert bounds[0] == 0
    assert bounds[-1] == words
    assert np.diff(bounds.astype(np.int64)).max() == longest <= ROOM // group
    assert longest >= words / (len(bounds) - 1)
    ranges = range_count(words, 4, ROOM - 1)
    assert len(bounds) - 1 == ranges * group <= (4 + words / 20) * group
    upto = np.concatenate([[0], np.cumsum(edges)])
    assert np.diff(upto[bounds]).max() <= 1.6 * upto[-1] / (len(bounds) - 1) + 1.1
    monkeypatch.setattr(
        search_table, "RANGE_WORDS", ROOM - 1
    )  # cuts are at whole words
    monkeypatch.setattr(search_table, "range_group", lambda *_: group)
    assert len(bounds) - 1 == search_table.most_cuts(words, 4, 4)


def test_searches_leave_60_kb_of_l1():
    """Multiprocessors set 196 KB apart as shared memory, or 228 of their 256.

    3 KB are for static arrays and the system.
    """
    most = (196 - 3) << 10
    assert most >= WARPS * WARP_WORDS * 4 + HUB_WORDS * 4
    assert 4 * (range_room(227 << 10) + 8) + TABLE_BYTES <= most
    small = 64 << 10
    assert 4 * (range_room(small) + 8) + TABLE_BYTES <= small


@pytest.mark.parametrize(
    ("words", "each"), [(1, 1), (85, 1), (86, 4), (200, 4), (340, 4), (341, 5)]
)
def test_a_block_has_one_range_or_several(words, each):
    """With two, blocks whose ranges cost more are waited for."""
    assert range_count(words, 4, ROOM - 1) == 4 * each


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (1000, 1),
        (403_000, 2),
        (800_000, 4),
        (1_600_000, 8),
        (2_000_000, 8),
        (4_000_000, 2),
    ],
)
def test_parents_of_ranges_lie_in_l2(words, parts):
    """Unless cuts would need too much memory: at most eight ranges of a block."""
    ranges = range_count(words, 132, search_table.RANGE_WORDS)
    assert range_group(words, ranges, 132) == parts
    assert ranges * parts <= 8 * 132
