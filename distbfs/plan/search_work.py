"""The expected looks of searches by engine xbfs, from a degree histogram alone.

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

Between domains, p of them, a normal vertex has its inner edges only, and a delegate is
in every domain, with 1/p of its edges.

Source: the direction is that of Beamer, Asanovic, Patterson 2012; hubs first as in the
RIKEN code of Graph500.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

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

    levels: of a search, the last one finds nothing
    near, far: looks at the status of a vertex, in cache and beyond it
    words: of the bitmap of visited vertices that change, summed over the levels
    vertices: of the domain that are searched: its normals with edges, and delegates
    partners: of the ``others``, those that something is sent to, summed over the levels
    """

    levels: float
    near: float
    far: float
    words: float
    vertices: float
    partners: float

    @classmethod
    def mean(cls, every: list[SearchWork]) -> SearchWork:
        """Return the mean of the counts."""
        names = [field.name for field in fields(cls)]
        return cls(*(sum(getattr(x, n) for x in every) / len(every) for n in names))


def expected_work(
    histogram: DegreeHistogram, domains: int, threshold: int, devices: int = 1
) -> SearchWork:
    """Return the expected work of one domain of ``devices``; fast at any scale."""
    at = np.array([threshold], dtype=np.int64)
    degrees, counts, last = degree_classes(histogram, at)
    normal = last <= threshold if domains > 1 else np.ones(len(degrees), dtype=bool)
    graph = _Inner(degrees, counts, normal, domains, devices)
    roots = typical_roots(degrees, counts)
    if not roots:
        return SearchWork(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return SearchWork.mean([graph.search(root) for root in roots])


class _Inner:
    """The inner graph of a domain, by classes of degrees."""

    def __init__(
        self, degrees: Floats, counts: Floats, normal: Array, domains: int, devices: int
    ) -> None:
        ends = degrees * counts
        self._degrees, self._counts, self._normal = degrees, counts, normal
        self._ends = ends / max(ends.sum(), 1.0)
        self._edges = float(ends.sum()) / domains
        self._share = 1 / domains
        away = float(self._ends[normal].sum()) * (1 - self._share)
        self._inside = np.where(normal, degrees * (1 - away), degrees * self._share)
        self._leaving = 1 - (1 - min(away, 1 - 1e-9)) ** degrees
        self._held = np.where(normal, counts * self._share, counts)
        above = np.append(np.cumsum(self._held[::-1])[::-1], 0.0)
        size = np.maximum(above[:-1] - above[1:], LEAST)
        self._near = np.clip((CACHED - above[1:]) / size, 0, 1)
        self._groups = [group for group in (normal, ~normal) if group.any()]
        self._others = (domains - 1) * devices
        self._shares = domains * devices

    def search(self, root: float) -> SearchWork:
        """Return the work of a search from a root of a given degree."""
        k, held, q = (
            self._degrees,
            self._held,
            unreached(self._degrees, self._counts, root),
        )
        near, far, words, partners = root * self._share, 0.0, 0.0, 0.0
        vertices = float(held.sum())
        for t in range(2, len(q)):
            fresh, left = q[t - 2] ** k - q[t - 1] ** k, q[t - 1] ** k
            frontier = float((self._counts * k) @ fresh) * self._share
            looks = self._pull(q, t, left)
            if PUSH * frontier < looks.sum():
                looks = frontier * self._ends
            near += float(looks @ self._near)
            far += float(looks @ (1 - self._near))
            share = float(held @ (left - q[t] ** k)) / max(vertices, 1.0)
            words += vertices / WORD * (1 - (1 - min(share, 1.0)) ** WORD)
            if self._others:
                normals = (self._counts * self._leaving)[self._normal]
                some = float(normals @ fresh[self._normal]) / self._shares
                partners += self._others * -np.expm1(-some / self._others)
        return SearchWork(len(q) - 1.0, near, far, words, vertices, partners)

    def _pull(self, q: Floats, t: int, left: Floats) -> Floats:
        """Return the edge checks of a pull of level t, by degree of the neighbour."""
        k = self._degrees
        before, after = (q[1] * self._ends * q[t - x] ** (k - 1) for x in (2, 1))
        looks = np.zeros_like(k)
        for group in self._groups:
            # of the neighbours of a normal vertex, other normals are in part outside
            kept = np.where(self._normal & self._normal[group][0], self._share, 1.0)
            whole = float((before * kept).sum())
            if whole <= 0:
                continue
            visited = (before - after) * kept / whole
            above = np.append(np.cumsum(visited[::-1])[::-1][1:], 0.0)
            rows = np.maximum(self._inside[group] - 1, 0)
            unseen = np.exp(np.outer(rows, np.log(np.maximum(1 - above, LEAST))))
            vertices = (self._held * left * self._inside)[group]
            looks += vertices @ unseen * (before * kept / whole)
        return looks
