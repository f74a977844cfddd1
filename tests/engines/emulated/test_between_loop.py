"""Whole searches between domains in one launch, with the kernels run on the CPU."""

from device_parts import LARGE
from part_graphs import GRAPHS
from symmetric_threads import SymmetricThreads
from test_between_kernels import each_pair, streamed


def looped(source, parts, **options):
    """As ``streamed``; each search is one launch."""
    seen = []

    def before(runner, _):
        assert runner._loop is not None
        runner._levels = None  # a search level by level fails

    streamed(
        source,
        [1] * parts,
        exchange=SymmetricThreads,
        before=before,
        seen=seen,
        **options,
    )
    return seen


@each_pair(
    "parts, threshold, direction, name",
    *((2, 3, 5), (0, 4, LARGE), ("auto", "push", "pull"), list(GRAPHS)),
)
def test_levels_and_parents(device, id_bits, parts, threshold, direction, name):
    looped(GRAPHS[name], parts, threshold=threshold, direction=direction)
