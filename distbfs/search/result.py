"""What one search of the Python interface found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distbfs.errors import UsageError
from distbfs.types import Array, Ids


@dataclass(frozen=True, eq=False)
class Result:
    """Levels and parents of one search; its arrays are the caller's to keep.

    source: the vertex that was searched from, as the caller named it
    level: int32 [n], hops from the source, -1 = unreached
    parent: int64 [n], -1 = unreached, the source is its own parent; None where parents
        were not asked for
    order: int64 [reached], vertices as a queue finds them, or None (method "ordered")
    engine: what searched

    Arrays are indexed by vertex id, which is the place of a node in ``graph.nodes``
    for a graph of named nodes; methods take and give the names.
    """

    source: Any
    level: Array
    parent: Ids | None
    order: Ids | None = None
    engine: str = ""
    _id_of: Callable[[Any], int] = field(default=int, repr=False)
    _names: Array | None = field(default=None, repr=False)

    @property
    def reached(self) -> int:
        """Number of vertices reached, the source among them."""
        return int(np.count_nonzero(self.level >= 0))

    @property
    def depth(self) -> int:
        """The largest level."""
        return int(self.level.max())

    def named(self, ids: Ids) -> Array:
        """Return what the vertices are called: int64 ids, or an array of names."""
        return ids if self._names is None else self._names[ids]

    def frontier(self, k: int) -> Array:
        """Return the vertices on level k, ascending by id; none beyond the last level.

        >>> import distbfs
        >>> star = distbfs.Graph.from_edges([0, 0, 0], [1, 2, 3])
        >>> distbfs.bfs(star, 1).frontier(2)
        array([2, 3])
        """
        if k < 0:
            raise UsageError(f"level is {k}; allowed: 0 or more")
        return self.named(np.flatnonzero(self.level == k))

    def path_to(self, vertex: Any) -> list[Any]:
        """Return a shortest path from the source to a vertex, both included.

        Raises UsageError where the vertex was not reached or parents are missing.

        >>> import distbfs
        >>> path = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> distbfs.bfs(path, 3).path_to(0)
        [3, 2, 1, 0]
        """
        parent, at = self._parents(), self._id_of(vertex)
        if self.level[at] < 0:
            raise UsageError(f"{vertex} was not reached from {self.source}")
        steps = [at]
        while parent[at] != at:
            at = int(parent[at])
            steps.append(at)
        steps.reverse()
        if self._names is None:
            return steps
        return [self._names[step] for step in steps]

    def tree(self) -> Array:
        """Return the edges (parent, child) of the search tree, [reached - 1, 2].

        By the level of the child, then by its id; in the order of the queue where that
        is known.

        >>> import distbfs
        >>> star = distbfs.Graph.from_edges([0, 0, 0], [1, 2, 3])
        >>> distbfs.bfs(star, 1).tree()
        array([[1, 0],
               [0, 2],
               [0, 3]])
        """
        parent = self._parents()
        if self.order is not None:
            child = self.order[1:]
        else:
            child = np.flatnonzero(self.level > 0)
            child = child[np.argsort(self.level[child], kind="stable")]
        return self.named(np.stack([parent[child], child], axis=1))

    def _parents(self) -> Ids:
        if self.parent is None:
            raise UsageError("the search was made without parents")
        return self.parent
