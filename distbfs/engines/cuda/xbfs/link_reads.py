"""Expected reads of tails in host memory, computed from a degree histogram alone.

Rows have tails beyond their first ``kept`` columns (``rows.cuh``). Levels are those of
the random graph of ``plan.search_work``, but the neighbours of roots are drawn at
random: a mean over roots would hide that most searches push a few long rows on the
first level, and some push none. Each level goes as ``search.cu`` chooses, by the limits
of ``arrays.py``:

push    all of the tails of the frontier
pull    an unvisited vertex of degree k > kept reads on in its tail if none of its
        first kept neighbours, those of the highest degrees, was found on the level
        before. Ends of degrees above d are a share A of all ends; V of all are ends
        above d that were found. The vertex enters its tail with chance (1 - V/A)^kept,
        where A is distributed as the (kept + 1)-th smallest of k uniform numbers. From
        there on a warp reads 64 columns at a time until one was visited; each was with
        chance (V' - V) / (1 - A), where V' is V of all degrees

Tails begin anywhere in a line of 128 bytes, so c columns of one row lie in (c + 31) /
32 lines on average.

Between p domains, a normal vertex has only its inner edges, and a delegate is in every
domain, with 1/p of its edges. Edges to other domains are not counted.

Sources: those of ``plan.search_work``; order statistics of the uniform distribution.
"""

from __future__ import annotations

import numpy as np

from distbfs.engines.cuda.xbfs.limits import pull_tails, push_limits
from distbfs.graph.degrees import DegreeHistogram
from distbfs.plan import pull_shares
from distbfs.plan.search_time import LinkReads
from distbfs.plan.search_work import InnerGraph
from distbfs.plan.threshold import LEAST, typical_roots, unreached
from distbfs.types import Floats

LEFT = 1e-6  # vertices of a class that are too few to count
DRAWN_ROOTS, SEED = 128, 1  # whose neighbours are drawn; the mean is over these
MOST_DRAWN = 1 << 12  # neighbours of a root; those of more are as expected
NODES = np.linspace(-5, 5, 41)  # of A, in standard deviations from its mean
STEP = 64  # columns of a tail that a warp reads at a time, as ``scan_rest`` in pull.cuh
LINE_COLUMNS = 32
FEW = 128  # as in search.cuh: with one vertex in so many left, pulls go on
TURN = 8  # as in search.cu: pulls end when they find fewer than one in so many


def expected_reads(
    histogram: DegreeHistogram,
    kept: int,
    domains: int = 1,
    largest_normal: int = 0,
    devices: int = 1,
) -> LinkReads:
    """Return the tail columns that a search reads, as a mean over roots and devices.

    kept: columns of a row in device memory; largest_normal: TH, which may have any
    value if there is one domain; devices: number of devices of a domain, which share
    its rows
    """
    rows = _Rows(histogram, domains, largest_normal, kept)
    roots = typical_roots(rows.degrees, rows.counts, DRAWN_ROOTS)
    if not roots:
        return LinkReads(0.0, 0.0, 0.0)
    draw = np.random.default_rng(SEED)
    sums = np.sum([rows.search(root, draw) for root in roots], axis=0)
    return LinkReads(*(sums / (len(roots) * devices)).tolist())


class _Rows(InnerGraph):
    """The rows of a domain, by classes of degrees."""

    def __init__(
        self, histogram: DegreeHistogram, domains: int, largest_normal: int, kept: int
    ) -> None:
        super().__init__(histogram, domains, largest_normal)
        self._kept, self._tails = kept, np.maximum(self.lengths - kept, 0)
        self._active = float(self.held.sum())
        self._m = int(self.held @ self.lengths)
        mean_next = float(self.held @ self.lengths**2) / max(self._m, 1)
        limits = push_limits(self._m, mean_next, pull_shares.DEVICE)
        self._mark_edges, self._pull_edges = limits
        self._pull_tails = pull_tails(self._m, kept)

    def search(self, root: float, draw: np.random.Generator) -> Floats:
        """Return (columns, lines, visits of tails) of a search, float64 [3].

        root: degree of the root; draw: the generator that draws its neighbours
        """
        neighbours = self._drawn(root, draw)
        beyond = max(float(neighbours @ self.degrees) - root, 0.0)
        q = unreached(self.degrees, self.counts, root, beyond)
        total, pulling = np.zeros(3), False
        for t in range(1, len(q)):
            if t > 1:
                powers = [q[x] ** self.degrees for x in (t - 2, t - 1)]
                fresh = self.counts * (powers[0] - powers[1])
                frontier = neighbours if t == 2 else fresh
            else:
                frontier = (self.degrees == root) * 1.0
            edges, after_kept, reads = self._frontier(frontier)
            # a pull at once, as in ``rows.cuh``
            at_once = after_kept >= self._pull_tails or edges >= self._pull_edges
            pulling = pulling or at_once
            if not pulling:
                total += reads
                pulling = edges >= self._mark_edges
                continue
            left = self.counts * q[t - 1] ** self.degrees
            total += self._pull(q, t, left)
            after = self._here(self.counts * q[t] ** self.degrees)
            found_here = self._here(left) - after
            pulling = found_here * TURN >= after or after * FEW <= self._active
        return total

    def _drawn(self, root: float, draw: np.random.Generator) -> Floats:
        """Count the neighbours of a root in each class."""
        number = round(root)
        if number > MOST_DRAWN:
            return root * self.ends
        at = np.searchsorted(np.cumsum(self.ends), draw.random(number))
        size = len(self.ends)
        return np.bincount(np.minimum(at, size - 1), minlength=size).astype(float)

    def _here(self, vertices: Floats) -> float:
        """Return how many of the whole graph's vertices a domain searches."""
        return float(vertices @ self.part)

    def _frontier(self, vertices: Floats) -> tuple[float, float, Floats]:
        """Return (edges, edges beyond ``kept`` a row, reads of tails) in one domain.

        vertices: those of the frontier in the whole graph, by class; reads: columns,
        lines, rows with tails, float64 [3]
        """
        here = vertices * self.part
        columns, rows = float(here @ self._tails), float(here @ (self._tails > 0))
        lines = (columns + (LINE_COLUMNS - 1) * rows) / LINE_COLUMNS
        edges, reads = float(here @ self.lengths), np.array([columns, lines, rows])
        return edges, edges - float(here.sum()) * self._kept, reads

    def _pull(self, q: Floats, t: int, left: Floats) -> Floats:
        """Return (columns, lines, visits of tails) of a pull of level t."""
        total = np.zeros(3)
        for group, shares, visited in self.neighbours(q, t):
            some = group & (self._tails > 0) & (left * self.part > LEFT)
            if not some.any():
                continue
            ends = np.append(0, np.cumsum(shares[::-1]))
            fresh = np.append(0, np.cumsum(visited[::-1]))
            vertices = (left * self.part)[some]
            chances = self._entering(ends, fresh, self.lengths[some])
            columns, visits = (float(vertices @ x) for x in chances)
            lines = (columns + (LINE_COLUMNS - 1) * visits) / LINE_COLUMNS
            total += np.array([columns, lines, visits])
        return total

    def _entering(
        self, ends: Floats, fresh: Floats, lengths: Floats
    ) -> tuple[Floats, Floats]:
        """Return (columns read of a tail, chance that it is entered) by length.

        ends, fresh: A and V from the highest degree down; lengths: row lengths above
        ``kept``
        """
        kept, k = self._kept, lengths[:, None]
        beyond = k - kept
        mean = (kept + 1) / (k + 1)
        a = mean + np.sqrt(np.maximum(mean * (1 - mean), 0) / (k + 2)) * NODES
        a = np.clip(a, 1e-12, 1 - 1e-12)
        logs = kept * np.log(a) + np.maximum(beyond - 1, 0) * np.log1p(-a)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        above = np.interp(a, ends, fresh)
        enters = weights * np.clip(1 - above / a, LEAST, 1) ** kept
        x = np.clip((fresh[-1] - above) / (1 - a), 1e-15, 1 - 1e-15)
        step, missed = np.minimum(STEP, beyond), np.log1p(-x)
        columns = step * np.expm1(beyond * missed) / np.expm1(step * missed)
        return (enters * columns).sum(axis=1), enters.sum(axis=1)
