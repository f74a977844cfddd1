"""The state of a pickled result: its arrays in host memory, without the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from distbfs.errors import UsageError
from distbfs.partition.layout import Layout
from distbfs.ranks.world import SoloWorld
from distbfs.search.paths import NoPaths
from distbfs.search.store_names import NodeNames
from distbfs.search.vertices import Shard, VertexMap

if TYPE_CHECKING:
    from distbfs.types import Array, Ids

NO_GRAPH = NoPaths(
    "counts and sets of shortest paths, and edges within hops, need the graph, which a "
    "pickled result lacks; call them where the search was made"
)


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
        "_names": None if names is None else NodeNames(names),
        "_lock": None,
        "_valid": always,
        "_paths": NO_GRAPH,
    }
