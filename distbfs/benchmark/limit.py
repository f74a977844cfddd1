"""What a search must do at least, and how long memory takes for that.

Counted, for any way of searching:

- bytes: 4 for the first neighbour of every reached vertex but the root, since each is
  found over one edge, and 4 for every further neighbour that was looked at; the level
  and parent of every vertex written once; a bit for every reached vertex, written once
  and read once;
- tests: one look at such a bit for every edge check.

Not counted: row offsets, queues, numbers of vertices, bitmaps of single levels, whole
lines of memory for single words, launches and barriers between levels.  So a search of
many small levels stays far from its limit.  Tests are taken to be as random as those of
the measured rate; a search that keeps the vertices most asked for together tests faster
and, on a large skewed graph, can come below the limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from distbfs.device.rates import Rates

NEIGHBOUR_BYTES = 4


@dataclass(frozen=True)
class Need:
    """What a search must do at least; see above."""

    bytes: int
    tests: int

    def copy_seconds(self, rates: Rates) -> float:
        """Return the bytes over the copy rate."""
        return self.bytes / rates.copy

    def seconds(self, rates: Rates) -> float:
        """Return the time of it: ``copy_seconds`` and the tests over the test rate."""
        return self.copy_seconds(rates) + self.tests / rates.tests


def need_of(*, m: int, checks: int, reached: int, result_bytes: int) -> Need:
    """Return what a search must do at least.

    m: stored directed edges, more than which need no check; checks: edge checks, best
    those of the engine that made the fewest; reached: vertices, the root among them;
    result_bytes: of all levels and parents together
    """
    tests = max(min(checks, m), reached - 1, 0)
    bitmap = 2 * (-(-reached // 8))
    return Need(NEIGHBOUR_BYTES * tests + bitmap + result_bytes, tests)
