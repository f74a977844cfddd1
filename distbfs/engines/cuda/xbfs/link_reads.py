"""Expected reads of tails in host memory, from a degree histogram alone.

Rows have tails beyond their first ``kept`` columns (``rows.cuh``). Levels are those of
the random graph of ``plan.search_work``, but from roots whose neighbours are drawn: the
mean of many roots hides that most searches push a few long rows on a first level, and
some none. Each level goes as ``search.cu`` chooses, by the limits of ``arrays.py``:

push    all of the tails of the frontier
pull    an unvisited vertex of degree k > kept reads on in its tail if none of its
        first kept neighbours, those of the highest degrees, was found on the level
        before. Of the ends of degrees above d, which are a share A of all, let V (of
        all) have been found: it enters with chance (1 - V/A)^kept, where A is
        distributed as the (kept + 1)-th smallest of k uniform numbers. From there on a
        warp reads 64 columns at a time until one was visited; each was with chance
        (V' - V) / (1 - A), where V' is V of all degrees

Tails begin anywhere in a line of 128 bytes: c columns of one row lie in (c + 31) / 32
lines, on average.

Between domains, p of them, a normal vertex has its inner edges only, and a delegate is
in every domain, with 1/p of its edges. Edges to other domains are not counted.

Sources: those of ``plan.search_work``; order statistics of the uniform distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distbfs.engines.cuda.xbfs.arrays import PushLimits, pull_tails
from distbfs.graph.degrees import DegreeHistogram
from distbfs.plan import pull_shares
from distbfs.plan.search_time import LinkReads
from distbfs.plan.threshold import LEAST, MOST_LEVELS, degree_classes, typical_roots
from distbfs.types import Array, Floats

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
    """Return the tail columns read in a search, as a mean over roots and devices.

    kept: columns of a row in device memory; largest_normal: TH, of any value for one
    domain; devices: of a domain, which share its rows
    """
    at = np.array([largest_normal], dtype=np.int64)
    degrees, counts, last = degree_classes(histogram, at)
    normal = (
        last <= largest_normal if domains > 1 else np.ones(len(degrees), dtype=bool)
    )
    rows = _Rows(degrees, counts, normal, domains, kept)
    roots = typical_roots(degrees, counts, DRAWN_ROOTS)
    if not roots:
        return LinkReads(0.0, 0.0, 0.0)
    draw = np.random.default_rng(SEED)
    sums = np.sum([rows.search(root, draw) for root in roots], axis=0)
    return LinkReads(*(sums / (len(roots) * devices)).tolist())


@dataclass(frozen=True)
class _Frontier:
    """A frontier in one domain: its vertices, its edges and its tails.

    reads: columns, lines, rows with tails, float64 [3]
    """

    vertices: float
    edges: float
    reads: Floats


class _Rows:
    """The rows of a domain, by classes of degrees."""

    def __init__(
        self, degrees: Floats, counts: Floats, normal: Array, domains: int, kept: int
    ) -> None:
        self._degrees, self._counts, self._kept = degrees, counts, kept
        self._normal, self._share = normal, 1 / domains
        self._all = max(float(degrees @ counts), 1.0)
        self._ends = degrees * counts / self._all
        away = float(self._ends[normal].sum()) * (1 - self._share)
        self._lengths = np.where(normal, degrees * (1 - away), degrees * self._share)
        self._held = np.where(normal, self._share, 1.0)  # of the vertices of a class
        self._tails = np.maximum(self._lengths - kept, 0)
        self._groups = [group for group in (normal, ~normal) if group.any()]
        here = counts * self._held
        self._active = float(here.sum())
        self._m = int(here @ self._lengths)
        mean_next = float(here @ self._lengths**2) / max(self._m, 1)
        self._limits = PushLimits.of(self._m, mean_next, pull_shares.DEVICE)
        self._pull_tails = pull_tails(self._m, kept)

    def search(self, root: float, draw: np.random.Generator) -> Floats:
        """Return (columns, lines, visits of tails) of a search, float64 [3].

        root: its degree; draw: what its neighbours are drawn with
        """
        neighbours = self._drawn(root, draw)
        q = self._unreached(root, float(neighbours @ self._degrees))
        total, pulling = np.zeros(3), False
        for t in range(1, len(q)):
            if t > 1:
                powers = [q[x] ** self._degrees for x in (t - 2, t - 1)]
                fresh = self._counts * (powers[0] - powers[1])
                frontier = self._frontier(neighbours if t == 2 else fresh)
            else:
                frontier = self._frontier((self._degrees == root) * 1.0)
            pulling = pulling or self._pulls_at_once(frontier)
            if not pulling:
                total += frontier.reads
                pulling = frontier.edges >= self._limits.mark_edges
                continue
            left = self._counts * q[t - 1] ** self._degrees
            total += self._pull(q, t, left)
            after = self._here(self._counts * q[t] ** self._degrees)
            found_here = self._here(left) - after
            pulling = found_here * TURN >= after or after * FEW <= self._active
        return total

    def _drawn(self, root: float, draw: np.random.Generator) -> Floats:
        """Count the neighbours of a root in each class."""
        number = round(root)
        if number > MOST_DRAWN:
            return root * self._ends
        at = np.searchsorted(np.cumsum(self._ends), draw.random(number))
        size = len(self._ends)
        return np.bincount(np.minimum(at, size - 1), minlength=size).astype(float)

    def _unreached(self, root: float, edges: float) -> Floats:
        """Return q_t as ``plan.threshold``; edges: of the neighbours of the root."""
        q = [1.0, 1 - root / self._all]
        q.append(max(q[1] - max(edges - root, 0.0) / self._all, 0.0))
        while len(q) <= MOST_LEVELS:
            q.append(q[1] * float(self._ends @ q[-1] ** (self._degrees - 1)))
            if self._counts @ (q[-2] ** self._degrees - q[-1] ** self._degrees) < 0.5:
                break
        return np.array(q)

    def _here(self, vertices: Floats) -> float:
        """Return the number of vertices of the whole graph that a domain searches."""
        return float(vertices @ self._held)

    def _frontier(self, vertices: Floats) -> _Frontier:
        """Return a frontier; vertices: in the whole graph, by class."""
        here = vertices * self._held
        columns, rows = float(here @ self._tails), float(here @ (self._tails > 0))
        lines = (columns + (LINE_COLUMNS - 1) * rows) / LINE_COLUMNS
        reads = np.array([columns, lines, rows])
        return _Frontier(float(here.sum()), float(here @ self._lengths), reads)

    def _pulls_at_once(self, x: _Frontier) -> bool:
        """Return whether a frontier is pulled without a push, as in ``rows.cuh``."""
        beyond = x.edges - x.vertices * self._kept
        return beyond >= self._pull_tails or x.edges >= self._limits.pull_edges

    def _pull(self, q: Floats, t: int, left: Floats) -> Floats:
        """Return (columns, lines, visits of tails) of a pull of level t."""
        k, total = self._degrees, np.zeros(3)
        before, after = (
            q[1] * self._ends * q[max(t - x, 0)] ** (k - 1) for x in (2, 1)
        )
        for group in self._groups:
            # of the neighbours of a normal vertex, other normals are in part outside
            inside = np.where(self._normal & self._normal[group][0], self._share, 1.0)
            whole = float((before * inside).sum())
            some = group & (self._tails > 0) & (left * self._held > LEFT)
            if whole <= 0 or not some.any():
                continue
            ends = np.append(0, np.cumsum((before * inside / whole)[::-1]))
            fresh = np.append(0, np.cumsum(((before - after) * inside / whole)[::-1]))
            vertices = (left * self._held)[some]
            chances = self._entering(ends, fresh, self._lengths[some])
            columns, visits = (float(vertices @ x) for x in chances)
            lines = (columns + (LINE_COLUMNS - 1) * visits) / LINE_COLUMNS
            total += np.array([columns, lines, visits])
        return total

    def _entering(
        self, ends: Floats, fresh: Floats, lengths: Floats
    ) -> tuple[Floats, Floats]:
        """Return (columns read of a tail, chance that it is entered) by length.

        ends, fresh: A and V from the highest degree down; lengths: above ``kept``
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
