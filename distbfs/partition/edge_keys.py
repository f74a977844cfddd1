"""Keys of stored edges, equal for both directions of an edge and on any part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import UsageError
from distbfs.partition.part import INTO, KIND, Part, ids_of_nn
from distbfs.types import SUBGRAPHS

if TYPE_CHECKING:
    from distbfs.types import Ids, Words, World

HALF = np.uint64(32)


def names_read(*, directed: bool) -> tuple[str, ...]:
    """Return the subgraphs that have all edges together, each once.

    In an undirected graph, dn repeats the edges of nd.
    """
    return SUBGRAPHS if directed else ("nn", "nd", "dd")


def keys_of(u: Ids, v: Ids, *, directed: bool) -> Words:
    """Return a key for each edge, ids int64 [k] below 2^32, uint64 [k].

    Keys ascend with (u, v), for undirected edges with (smaller, larger).
    """
    if not directed:
        u, v = np.minimum(u, v), np.maximum(u, v)
    keys: Words = u.astype(np.uint64) << HALF | v.astype(np.uint64)
    return keys


def ends_of(
    part: Part,
    name: str,
    delegates: Ids,
    ids_of: Callable[[int], Ids],
    start: int = 0,
    stop: int | None = None,
) -> tuple[Ids, Ids]:
    """Return the ids of row and column of the edges start … stop-1 of a subgraph.

    By default all edges. delegates: ids of the delegates; ids_of: function from a part
    to the ids of its vertex numbers
    """
    rows, kind = part.subgraphs[name], KIND[name]
    row, column = rows.sources(start, stop), rows.columns[start:stop]
    u = delegates[row] if kind in ("dn", "dd") else ids_of(part.index)[row]
    if kind in ("nd", "dd"):
        return u, delegates[column]
    if kind == "nn" and part.layout.parts > 1:
        return u, ids_of_nn(column, ids_of)
    return u, ids_of(part.index)[column]


class EdgeIds:
    """The ids of both ends of the edges of this rank's parts (created collectively).

    outside: a function from internal ids to the ids that are returned, int64
    """

    def __init__(
        self, world: World, parts: Sequence[Part], outside: Callable[[Ids], Ids]
    ) -> None:
        self._outside = outside
        self._ids: dict[int, Ids] = {}
        self._layout = layout = parts[0].layout
        for part in parts:  # the same number on each rank
            indices = world.allgather(np.array([part.index]))
            vertices = world.allgather(part.vertices)
            for index, held in zip(indices, vertices, strict=True):
                ids = layout.global_of(int(index[0]), held)
                self._ids[int(index[0])] = outside(ids)

    def ends(self, part: Part, name: str) -> tuple[Ids, Ids]:
        """Return (source, target) of the stored edges of a subgraph, int64 [edges].

        Edges in are returned in the direction in which they lead.
        """
        delegates = self._outside(part.delegates)
        u, v = ends_of(part, name, delegates, self._ids.__getitem__)
        return (v, u) if name in INTO.values() else (u, v)

    def keys(self, part: Part, name: str) -> Words:
        """Return the keys of the stored edges of a subgraph, uint64 [edges].

        Raises UsageError if ids do not fit.
        """
        n = self._layout.n
        if n > 1 << 32:
            raise UsageError(
                f"attributes and masks of edges go up to 2^32 vertices, not {n}"
            )
        return keys_of(*self.ends(part, name), directed=part.directed)


class Listing:
    """All edges of a graph in the order of their keys; an undirected edge occurs once.

    Created collectively. If a graph in one part without delegates is numbered by id,
    its edges are in the order of its rows.
    """

    def __init__(self, world: World, parts: Sequence[Part], ids: EdgeIds) -> None:
        self._ids = ids
        listed: list[Words] = []
        for part in parts:
            for name in names_read(directed=part.directed):
                keys, (u, v) = ids.keys(part, name), ids.ends(part, name)
                once = part.directed or name == "nd"
                listed.append(keys if once else keys[u <= v])
        own: Words = np.concatenate(listed)
        keys = np.concatenate(world.allgather(own))
        first = parts[0]
        self._order: Ids | None = None
        straight = np.arange(first.local_count)
        whole = first.layout.parts == 1 and not first.delegate_count
        if whole and np.array_equal(first.vertices, straight):
            self._order = np.argsort(keys, kind="stable")
            self._keys = keys[self._order]
        else:
            self._keys = np.sort(keys)

    @property
    def edges(self) -> int:
        """Number of edges."""
        return len(self._keys)

    def places(self, part: Part, name: str) -> Ids:
        """Return the index of each stored edge of a subgraph, int64 [edges]."""
        places = np.searchsorted(self._keys, self._ids.keys(part, name))
        return places if self._order is None else self._order[places]
