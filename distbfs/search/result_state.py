"""The state of a pickled result: its arrays in host memory, without the graph."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from distbfs.errors import UsageError
from distbfs.partition.layout import Layout
from distbfs.ranks.world import SoloWorld
from distbfs.search.paths import NoPaths
from distbfs.search.vertices import Shard, VertexMap, values_of

if TYPE_CHECKING:
    from distbfs.types import Array, Ids

NO_GRAPH = NoPaths(
    "counts and sets of shortest paths, and edges within hops, need the graph, which a "
    "pickled result lacks; call them where the search was made"
)


class KeptNames:
    """Names of all vertices, without their graph (``VertexNames``)."""

    def __init__(self, names: Array) -> None:
        self._names = names

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {name: k for k, name in enumerate(self._names.tolist())}

    def id_of(self, vertex: Any) -> int:
        """Return the id of a vertex; UsageError if there is none."""
        if vertex not in self:
            raise UsageError(f"{vertex!r:.60} is not a node of the graph")
        return self._index[vertex]

    def named(self, ids: Array) -> Array:
        """Return the names [k] of vertices, int64 [k]."""
        return self._names[ids]

    def __contains__(self, vertex: object) -> bool:
        try:
            return vertex in self._index
        except TypeError:  # it cannot be a name
            return False


def always() -> bool:
    """Return True: no session overwrites the result."""
    return True


def no_rows(_: Ids) -> NoReturn:
    """Raise UsageError: a pickled result has no graph."""
    raise UsageError(NO_GRAPH.refusal)


def without_graph(n: int, names: Array | None) -> dict[str, Any]:
    """Return attributes of a result that need no graph, session or device.

    names: names of all n vertices, None if vertices are named by id
    """
    shard = Shard(0, None, None, no_rows)
    return {
        "_vertices": VertexMap(SoloWorld(), Layout(n, 1), [shard]),
        "_names": None if names is None else KeptNames(names),
        "_lock": None,
        "_valid": always,
        "_take": values_of,
        "_paths": NO_GRAPH,
    }
