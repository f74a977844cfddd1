"""What a pickled result has: all that it found, in host memory, but not the graph."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from distbfs.errors import UsageError, WrongTypeError
from distbfs.partition.layout import Layout
from distbfs.ranks.world import SoloWorld
from distbfs.search.paths import NoPaths
from distbfs.search.vertices import Shard, VertexMap, host_array, values_of

if TYPE_CHECKING:
    from distbfs.search.result import Result
    from distbfs.types import Array, Ids

NO_GRAPH = NoPaths(
    "counts and sets of shortest paths, and edges within hops, need the graph, which a "
    "pickled result has not; ask where the search was made"
)


class KeptNames:
    """Names of all vertices, apart from their graph; see ``result.Names``."""

    def __init__(self, names: Array) -> None:
        self._names = names

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {name: k for k, name in enumerate(self._names.tolist())}

    def id_of(self, vertex: Any) -> int:
        """Return the id of a vertex; UsageError where there is none."""
        if vertex not in self:
            raise UsageError(f"{vertex!r:.60} is no node of the graph")
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
    """Raise UsageError: the graph is not there."""
    raise UsageError(NO_GRAPH.refusal)


def state_alone(result: Result) -> dict[str, Any]:
    """Return the attributes of a copy that needs no graph, session or device.

    Raises UsageError where the result is overwritten, WrongTypeError on several ranks.
    """
    vertices, (level, parent) = result._vertices, result._arrays()
    n, names = vertices.layout.n, result._names
    if vertices.world.size > 1:
        raise WrongTypeError(
            "a result on several ranks cannot be pickled; allowed: to_numpy() on all "
            "ranks, and its arrays"
        )
    arrays: tuple[Any, Any] = result._numpy()
    if vertices.whole_here:  # of the width that they have
        arrays = (level[0], parent[0])
    held = [[None if x is None else host_array(x)] for x in arrays]
    return {
        **vars(result),
        "_kept": {x: getattr(result, x) for x in ("reached", "depth", "nedge")},
        "_outcome": replace(result._outcome.copy_with(*held), give=None),
        "_vertices": VertexMap(
            SoloWorld(), Layout(n, 1), [Shard(0, None, None, no_rows)]
        ),
        "_names": None if names is None else KeptNames(result.named(np.arange(n))),
        "_lock": None,
        "_valid": always,
        "_take": values_of,
        "_paths": NO_GRAPH,
    }
