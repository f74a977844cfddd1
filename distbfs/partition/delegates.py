"""Which vertices are delegates, and their numbers."""

from __future__ import annotations

import numpy as np

from distbfs.types import Ids


class DelegateNumbers:
    """The delegate numbers of vertices; delegates: [d] global ids, -1 for none.

    count: number of delegates
    """

    def __init__(self, delegates: Ids) -> None:
        self._order = np.argsort(delegates)
        self._sorted = delegates[self._order]
        self.count = int(np.count_nonzero(delegates >= 0))

    def of(self, vertices: Ids) -> Ids:
        """Return the delegate number of each vertex, int64 [k], -1 for a normal one."""
        if not len(self._order):
            return np.full(len(vertices), -1, dtype=np.int64)
        places = np.searchsorted(self._sorted, vertices)
        places = np.minimum(places, len(self._order) - 1)
        return np.where(self._sorted[places] == vertices, self._order[places], -1)

    def one(self, vertex: int) -> int:
        """Return the delegate number of a vertex, -1 for a normal one."""
        place = int(self._sorted.searchsorted(vertex))
        if place == len(self._sorted) or self._sorted[place] != vertex:
            return -1
        return int(self._order[place])
