"""Few edges between far ids of 2^32 vertices on one device: ids of 64 bits."""

import numpy as np
import pytest
from graphs import Tuples
from sessions import open_tuples

from distbfs.benchmark.graph500 import validation_of
from distbfs.device import cuda

LAST, HALF = (1 << 32) - 1, 1 << 31
PATH = [LAST, 0, HALF, LAST - 1, HALF - 1, 12]
LOOPS, REPEATS = [5, 5, LAST], [0, HALF]
NEED = 100 << 30  # bytes
SOURCE = Tuples(LAST + 1, PATH[:-1] + LOOPS + REPEATS, PATH[1:] + LOOPS + REPEATS[::-1])


@pytest.fixture(scope="module")
def session():
    if cuda.free_bytes() < NEED:
        pytest.skip(f"needs {NEED} bytes of device memory")
    with open_tuples(SOURCE) as opened:
        yield opened
    cuda.release()


@pytest.mark.parametrize("root", [LAST, HALF, 12])
def test_levels_and_parents(session, root):
    found = session.search(root)
    at = PATH.index(root)
    ids = np.array([*PATH, 5, 1, LAST - 2])
    levels, parents = found.at(ids)
    hops = np.abs(np.arange(len(PATH)) - at)
    np.testing.assert_array_equal(levels, [*hops, -1, -1, -1])
    above = [PATH[k + int(np.sign(at - k))] for k in range(len(PATH))]
    np.testing.assert_array_equal(parents, [*above, -1, -1, -1])
    assert found.reached == len(PATH)
    assert found.nedge == len(PATH) - 1 + 1 + len(REPEATS)


def test_a_root_with_loops_alone_and_one_without_anything(session):
    for root, nedge in ((5, 2), (LAST - 2, 0)):
        found = session.search(root)
        assert (found.reached, found.depth, found.nedge) == (1, 0, nedge)
        assert [int(x[0]) for x in found.at(np.array([root]))] == [0, root]


def test_one_wrong_value_is_found(session):
    validated = validation_of(session, SOURCE)
    found = session.search(LAST)
    [(level, parent)] = found.shards
    answer = validated(found)
    assert (answer.valid, answer.nedge, answer.reached) == (True, found.nedge, 6)
    for array, at, value, kind in (
        (parent, LAST - 1, 0, "rule 2"),
        (parent, HALF, HALF - 1, "rule 2"),
        (level, 1, 3, "rule 4"),
        (level, LAST, 1, "rule 1"),
    ):
        kept = int(array[at])
        array[at] = value
        errors = validated(found).errors
        assert any(error.startswith(kind) for error in errors), errors
        array[at] = kept
    assert validated(found).valid
