"""The least work of a search, and the time that memory needs for it.

Counted, for any algorithm:

- bytes: 4 for each neighbour that is read, which is at least one for every reached
vertex except the root; the level and parent of every vertex, written once; a bit for
every reached vertex, written once and read once;
- tests: one random read of such a bit for every edge check;
- link: the bytes of columns that the search read from host memory, in whole lines of
128 bytes, as it counted them itself (``tail_bytes`` of its records); none if all
columns are on the device.

An engine that prunes trees does none of this for the vertices of trees: in one pass
over all of them, each takes its level from its neighbour that is nearer to the root.
For each of these vertices, the neighbour's number counts 4 bytes, its level one byte,
and the results count as for other vertices.

Not counted: row offsets, queues, vertex numbers, bitmaps of single levels, the rest of
cache lines that are read for single words, launches and barriers between levels. So a
search with many small levels stays far above its limit. Tests are assumed to be as
random as in the measured rate; a search that keeps frequently tested vertices close
together tests faster and can, on a large skewed graph, take less time than the limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from distbfs.device.rates import Rates

NEIGHBOUR_BYTES, LEVEL_BYTES = 4, 1


@dataclass(frozen=True)
class Need:
    """The least work of a search; see the module."""

    bytes: int
    tests: int
    link: int = 0

    def copy_seconds(self, rates: Rates) -> float:
        """Return the seconds to move the bytes at the copy rate."""
        return self.bytes / rates.copy

    def seconds(self, rates: Rates) -> float:
        """Return ``copy_seconds`` plus tests and bytes of the link over their rates.

        Raises ValueError if the link has bytes but no rate.
        """
        seconds = self.copy_seconds(rates) + self.tests / rates.tests
        if not self.link:
            return seconds
        if rates.link is None:
            raise ValueError("columns in host memory need the rate of the link")
        return seconds + self.link / rates.link


def need_of(
    *,
    m: int,
    checks: int,
    reached: int,
    result_bytes: int,
    pruned: int = 0,
    link: int = 0,
) -> Need:
    """Return the least work of a search.

    m: number of stored directed edges, an upper bound of the checks
    checks: number of edge checks, ideally of the engine that makes the fewest
    reached: number of reached vertices, including the root
    result_bytes: size of all levels and parents
    pruned: number of reached vertices that were not searched, whose edges need no check
    link: bytes of columns that were read from host memory
    """
    searched = reached - pruned
    edges = m - 2 * pruned  # one to each pruned vertex, and one back
    tests = max(min(checks, edges), searched - 1, 0)
    bitmap = 2 * (-(-searched // 8))
    hung = (NEIGHBOUR_BYTES + LEVEL_BYTES) * pruned
    return Need(NEIGHBOUR_BYTES * tests + bitmap + hung + result_bytes, tests, link)
