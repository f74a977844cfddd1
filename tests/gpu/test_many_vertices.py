"""Few edges between far ids of 2^32 vertices per device, on one and on two: 64 bits."""

import numpy as np
import pytest
from graphs import Tuples
from sessions import open_tuples

from distbfs.benchmark.graph500 import validation_of
from distbfs.device import cuda
from distbfs.search.choose import Request

pytestmark = pytest.mark.solitary

EACH = 1 << 32
NEED = 100 << 30  # bytes of a device


class Far:
    """A path of six vertices far apart, loops, and a repeat; ``n`` is even."""

    def __init__(self, n):
        self.session = None  # while a test has it
        self.last, self.half = n - 1, n // 2
        self.path = [self.last, 0, self.half, self.last - 1, self.half - 1, 12]
        loops, repeats = [5, 5, self.last], [0, self.half]
        self.repeats = len(repeats)
        ends = self.path[1:] + loops + repeats[::-1]
        self.source = Tuples(n, self.path[:-1] + loops + repeats, ends)


@pytest.fixture(scope="module", params=[1, 2])
def far(request):
    count = request.param
    have = int(cuda.cupy().cuda.runtime.getDeviceCount())
    if have < count:
        pytest.skip(f"needs {count} devices, here are {have}")
    if cuda.free_bytes() < NEED:
        pytest.skip(f"needs {NEED} bytes of device memory")
    made = Far(count * EACH)
    way = Request(devices=count, domain=count if count > 1 else None)
    with open_tuples(made.source, request=way) as made.session:
        yield made
    cuda.release()


@pytest.mark.parametrize("at", [0, 2, 5])
def test_levels_and_parents(far, at):
    path = far.path
    found = far.session.search(path[at])
    levels, parents = found.at(np.array([*path, 5, 1, far.last - 2]))
    hops = np.abs(np.arange(len(path)) - at)
    np.testing.assert_array_equal(levels, [*hops, -1, -1, -1])
    above = [path[k + int(np.sign(at - k))] for k in range(len(path))]
    np.testing.assert_array_equal(parents, [*above, -1, -1, -1])
    assert found.reached == len(path)
    assert found.nedge == len(path) - 1 + 1 + far.repeats


def test_a_root_with_loops_alone_and_one_without_anything(far):
    for root, nedge in ((5, 2), (far.last - 2, 0)):
        found = far.session.search(root)
        assert (found.reached, found.depth, found.nedge) == (1, 0, nedge)
        assert [int(x[0]) for x in found.at(np.array([root]))] == [0, root]


def test_one_wrong_value_is_found(far):
    validated, layout = validation_of(far.session, far.source), far.session.layout
    found = far.session.search(far.last)
    answer = validated(found)
    assert (answer.valid, answer.nedge, answer.reached) == (True, found.nedge, 6)
    for what, vertex, value, kind in (
        ("parent", far.last - 1, 0, "rule 2"),
        ("parent", far.half, far.half - 1, "rule 2"),
        ("level", 1, 3, "rule 4"),
        ("level", far.last, 1, "rule 1"),
    ):
        shard = found.shards[int(layout.part_of(vertex))]
        array, at = shard[what == "parent"], int(layout.local_of(vertex))
        kept = int(array[at])
        array[at] = value
        errors = validated(found).errors
        assert any(error.startswith(kind) for error in errors), errors
        array[at] = kept
    assert validated(found).valid
