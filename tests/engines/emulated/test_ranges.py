"""Destination ranges: of about equal load, short, and within the expected memory."""

import numpy as np
import pytest

from distbfs.device import cuda
from distbfs.engines.cuda.common import memory
from distbfs.engines.cuda.xbfs.arrays import range_bounds, range_count

ROOM = 64


@pytest.mark.parametrize("words", [1, 500, 4096, 100_000])
@pytest.mark.parametrize("heavy", [1, 50, 100_000])
def test_ranges_and_the_bytes_of_cuts(device, monkeypatch, words, heavy):
    """The first words have all edges from hubs, as on graphs sorted by degree."""
    edges = np.zeros(words)
    edges[:heavy] = np.random.default_rng(words + heavy).random(min(heavy, words)) + 0.1
    bounds, longest = range_bounds(cuda.cupy().asarray(edges), 4, ROOM)
    assert bounds[0] == 0
    assert bounds[-1] == words
    assert np.diff(bounds.astype(np.int64)).max() == longest <= ROOM
    assert longest >= words / (len(bounds) - 1)
    assert len(bounds) - 1 == range_count(words, 4, ROOM - 1) <= 4 + words / 20
    upto = np.concatenate([[0], np.cumsum(edges)])
    assert np.diff(upto[bounds]).max() <= 1.6 * upto[-1] / (len(bounds) - 1) + 1.1
    monkeypatch.setattr(memory, "RANGE_WORDS", ROOM - 1)  # cuts are at whole words
    hubs = 1000
    most = memory.split_bytes(hubs, 1 << 20, words, 4)
    assert 4 * hubs * len(bounds) <= most


@pytest.mark.parametrize(
    ("words", "each"), [(1, 1), (85, 1), (86, 4), (200, 4), (340, 4), (341, 5)]
)
def test_a_block_has_one_range_or_several(words, each):
    """With two, blocks whose ranges cost more are waited for."""
    assert range_count(words, 4, ROOM - 1) == 4 * each
