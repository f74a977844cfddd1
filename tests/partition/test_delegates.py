"""The numbers of delegates, of several vertices and of one."""

import numpy as np
import pytest

from distbfs.partition.delegates import DelegateNumbers


@pytest.mark.parametrize("n", [0, 20])
@pytest.mark.parametrize("limit", [0, 1 << 30])
@pytest.mark.parametrize(
    "delegates",
    [[], [-1, -1], [7], [9, 3, 12, 0], [2, -1, 0, 1], [5, -1, 2, -1, 1 << 41]],
)
def test_one_is_as_of_several(delegates, n, limit, monkeypatch):
    """Also below the smallest, between two, and above the largest; by a table, too."""
    monkeypatch.setattr("distbfs.partition.delegates.DENSE_VERTICES", limit)
    if max(delegates, default=0) >= n:
        n = 0
    numbers = DelegateNumbers(np.array(delegates, np.int64), n)
    held = [x for x in delegates if x >= 0]
    assert numbers.count == len(held)
    asked = sorted({0, 1, 4, 1 << 42, *held, *(x + 1 for x in held)})
    expected = [delegates.index(x) if x in held else -1 for x in asked]
    assert numbers.of(np.array(asked)).tolist() == expected
    assert [numbers.one(x) for x in asked] == expected
