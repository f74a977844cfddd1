"""Few edges between far ids of more than 2^31 vertices in two domains of one device."""

import gc

import numpy as np
import pytest
from graphs import Tuples
from sessions import open_tuples

from distbfs.benchmark.graph500 import validation_of
from distbfs.device import cuda
from distbfs.search.choose import Request

pytestmark = pytest.mark.solitary

N = (1 << 31) + 7
PATH = [N - 1, 0, 1 << 30, N - 2, 3, 12, N - 5, 1 << 29]
HUB = np.arange(40) * 53_687_091 + 17
SOURCE = Tuples(
    N,
    [*PATH[:-1], *np.repeat(PATH[3], len(HUB))],
    [*PATH[1:], *HUB],
)
NEED = 120 << 30  # bytes


@pytest.mark.parametrize("threshold", [8, 1 << 30])
def test_levels_and_parents(threshold):
    gc.collect()  # sessions of other tests
    if cuda.free_bytes() < NEED:
        pytest.skip(f"needs {NEED} bytes of device memory")
    request = Request(parts=2, domain=1)
    with open_tuples(SOURCE, request=request, threshold=threshold) as session:
        validated = validation_of(session, SOURCE)
        for root in (PATH[0], PATH[3], PATH[5], int(HUB[-1])):
            found = session.search(root)
            assert found.reached == len(PATH) + len(HUB)
            assert validated(found).valid
        at = PATH.index(12)
        found = session.search(12)
        levels, parents = found.at(np.array([*PATH, int(HUB[0]), 1]))
        hops = np.abs(np.arange(len(PATH)) - at)
        np.testing.assert_array_equal(levels, [*hops, 3, -1])
        above = [PATH[k + int(np.sign(at - k))] for k in range(len(PATH))]
        np.testing.assert_array_equal(parents, [*above, PATH[3], -1])
    cuda.release()
