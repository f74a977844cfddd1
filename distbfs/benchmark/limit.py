"""The least work of a search, and the time that memory needs for it.

Counted, for any algorithm:

- bytes: 4 for each neighbour read, at least one for every reached vertex but the root;
  the level and parent of every vertex written once; a bit for every reached vertex,
  written once and read once;
- tests: one random read of such a bit for every edge check;
- link: the bytes that the search read of columns in host memory, whole lines of 128
  bytes, as it counted them itself (``tail_bytes`` of its records); none where all
  columns are on the device.

An engine that prunes trees does none of this for their vertices: each only takes the
level of its neighbour nearer to the root, in a pass over all of them.  For each of
these, the neighbour's number counts 4 bytes, its level one, and the results as for
other vertices.

Not counted: row offsets, queues, vertex numbers, bitmaps of single levels, whole cache
lines read for single words, launches and barriers between levels. So a search of many
small levels stays far from its limit. Tests are assumed as random as those of the
measured rate; a search that keeps often tested vertices close together tests faster and
can, on a large skewed graph, go below the limit.
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

        Raises ValueError if there are such bytes but no rate of the link.
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

    m: stored directed edges, an upper bound of the checks; checks: edge checks, ideally
    of the engine that makes the fewest; reached: vertices, including the root;
    result_bytes: of all levels and parents; pruned: reached vertices that were not
    searched and whose edges need no check; link: bytes read of columns in host memory
    """
    searched = reached - pruned
    edges = m - 2 * pruned  # one to each pruned vertex, and one back
    tests = max(min(checks, edges), searched - 1, 0)
    bitmap = 2 * (-(-searched // 8))
    hung = (NEIGHBOUR_BYTES + LEVEL_BYTES) * pruned
    return Need(NEIGHBOUR_BYTES * tests + bitmap + hung + result_bytes, tests, link)
