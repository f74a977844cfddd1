"""The expected work of searches by engine xbfs, from a degree histogram.

The graph is a random one with these degrees, as in ``plan.threshold``: c_k vertices of
degree k, and q_t the chance that an end of an edge was not reached within t levels.
Rows begin with the neighbours of the highest degree, which a pull looks at first. A
neighbour of degree d of an unvisited vertex was found on the level before with chance
v_d; V_d is the sum of v over degrees above d. So a pull of a vertex of degree k makes

    k sum_d f_d (1 - V_d)^(k-1)

edge checks: it looks at a neighbour if no neighbour before it was visited. f_d is the
share of neighbours of degree d among those not visited earlier. A push of the level
looks at all edges of the frontier; the level takes the direction of less time, where an
edge of a push costs ``PUSH`` checks of a pull.

Between p domains, a normal vertex has its inner edges only, and a delegate is in every
domain, with 1/p of its edges.

Source: the direction is that of Beamer, Asanovic, Patterson 2012; hubs first as in the
RIKEN code of Graph500.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass

import numpy as np

from distbfs.graph.degrees import DegreeHistogram
from distbfs.plan.threshold import (
    LEAST,
    degree_classes,
    typical_roots,
    unreached,
)
from distbfs.types import Array, Floats

PUSH = 2.0  # edge checks of a pull that take as long as an edge that is pushed
CACHED = 2e8  # vertices whose bits stay in the second-level cache: half of 50 MB, as
# each half of the device keeps what it reads
WORD = 32


@dataclass(frozen=True)
class SearchWork:
    """Expected counts of a search in one domain, mean over typical roots.

    levels: number of levels of a search, including the last, which finds nothing
    near, far: number of looks at a vertex's status, in cache and beyond it
    words: number of words of the bitmap of visited vertices that change, summed over
    the levels
    vertices: number of the domain's normal vertices with edges, and of its delegates
    partners: number of devices among the ``others`` that receive messages, summed over
    the levels
    """

    levels: float
    near: float
    far: float
    words: float
    vertices: float
    partners: float


def expected_work(
    histogram: DegreeHistogram, domains: int, threshold: int, devices: int = 1
) -> SearchWork:
    """Return the expected work of one domain of ``devices``; fast at any scale."""
    graph = _Work(histogram, domains, threshold, devices)
    roots = typical_roots(graph.degrees, graph.counts)
    counts = [astuple(graph.search(root)) for root in roots] or np.zeros((1, 6))
    return SearchWork(*np.mean(counts, axis=0).tolist())


class InnerGraph:
    """The inner graph of a domain, by classes of degrees.

    normal: whether each class is of normal vertices; share: a domain's share of these
    all: number of ends of edges; ends: share of each class in them; away: share of
    outer edges
    lengths: length of the rows of each class in a domain; held: number of vertices that
    a domain searches; part: share of each class in these
    """

    def __init__(
        self, histogram: DegreeHistogram, domains: int, threshold: int
    ) -> None:
        at = np.array([threshold], dtype=np.int64)
        self.degrees, self.counts, last = degree_classes(histogram, at)
        degrees, normal = self.degrees, np.ones(len(last), dtype=bool)
        if domains > 1:
            normal = last <= threshold
        self.normal, self.share = normal, 1 / domains
        self.all = max(float(degrees @ self.counts), 1.0)
        self.ends = degrees * self.counts / self.all
        self.away = float(self.ends[normal].sum()) * (1 - self.share)
        inside = np.where(normal, 1 - self.away, self.share)
        self.lengths = degrees * inside
        self.part = np.where(normal, self.share, 1.0)
        self.held = self.counts * self.part

    def neighbours(self, q: Floats, t: int) -> Iterator[tuple[Array, Floats, Floats]]:
        """Yield the neighbours at pulls of level t: of normals, then of delegates.

        Each item says which classes these are; the share of each class in the ends that
        were not reached two levels before; and the share of ends reached on the level
        before.
        q: a value for each level, see ``unreached``
        """
        before, after = (
            q[1] * self.ends * q[max(t - x, 0)] ** (self.degrees - 1) for x in (2, 1)
        )
        for group in (self.normal, ~self.normal):
            if not group.any():
                continue
            # of the neighbours of a normal vertex, other normals are in part outside
            inside = np.where(self.normal & self.normal[group][0], self.share, 1.0)
            whole = float((before * inside).sum())
            if whole > 0:
                shares = before * inside / whole
                yield group, shares, (before - after) * inside / whole


class _Work(InnerGraph):
    """The work of searches in a domain."""

    def __init__(
        self, histogram: DegreeHistogram, domains: int, threshold: int, devices: int
    ) -> None:
        super().__init__(histogram, domains, threshold)
        self._leaving = 1 - (1 - min(self.away, 1 - 1e-9)) ** self.degrees
        above = np.append(np.cumsum(self.held[::-1])[::-1], 0.0)
        size = np.maximum(above[:-1] - above[1:], LEAST)
        self._near = np.clip((CACHED - above[1:]) / size, 0, 1)
        self._others = (domains - 1) * devices
        self._shares = domains * devices

    def search(self, root: float) -> SearchWork:
        """Return the work of a search from a root of a given degree."""
        k, held = self.degrees, self.held
        q = unreached(k, self.counts, root)
        near, far, words, partners = root * self.share, 0.0, 0.0, 0.0
        vertices = float(held.sum())
        for t in range(2, len(q)):
            fresh, left = q[t - 2] ** k - q[t - 1] ** k, q[t - 1] ** k
            frontier = float((self.counts * k) @ fresh) * self.share
            looks = self._pull(q, t, left)
            if PUSH * frontier < looks.sum():
                looks = frontier * self.ends
            near += float(looks @ self._near)
            far += float(looks @ (1 - self._near))
            share = float(held @ (left - q[t] ** k)) / max(vertices, 1.0)
            words += vertices / WORD * (1 - (1 - min(share, 1.0)) ** WORD)
            if self._others:
                normals = (self.counts * self._leaving)[self.normal]
                some = float(normals @ fresh[self.normal]) / self._shares
                partners += self._others * -np.expm1(-some / self._others)
        return SearchWork(len(q) - 1.0, near, far, words, vertices, partners)

    def _pull(self, q: Floats, t: int, left: Floats) -> Floats:
        """Return the edge checks of a pull of level t, by degree of the neighbour."""
        looks = np.zeros_like(self.degrees)
        for group, shares, visited in self.neighbours(q, t):
            above = np.append(np.cumsum(visited[::-1])[::-1][1:], 0.0)
            rows = np.maximum(self.lengths[group] - 1, 0)
            unseen = np.exp(np.outer(rows, np.log(np.maximum(1 - above, LEAST))))
            vertices = (self.held * left * self.lengths)[group]
            looks += vertices @ unseen * shares
        return looks
