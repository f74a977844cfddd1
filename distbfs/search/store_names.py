"""Names of vertices that differ from their ids, such as those in an input file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from distbfs.errors import UsageError
from distbfs.formats.ids import first_of, no_vertex

if TYPE_CHECKING:
    from distbfs.formats.ids import IdMap
    from distbfs.types import Array


class VertexNames(Protocol):
    """Names of vertices that differ from their ids."""

    def id_of(self, vertex: Any) -> int:
        """Return the id of a vertex; UsageError if there is none."""

    def named(self, ids: Array) -> Array:
        """Return the names [k] of vertices, int64 [k]."""

    def __contains__(self, vertex: object) -> bool: ...


class StoreNames:
    """Names of vertices, integers or text, from the id map of a store."""

    def __init__(self, ids: IdMap) -> None:
        self._ids = ids
        self._kind = int if ids.kind == "integer" else str

    def id_of(self, vertex: Any) -> int:
        """Return the id of a vertex; UsageError for an unknown one."""
        place = self._place(vertex)
        if place < 0:
            first = first_of(self._ids)
            why = "is not an id of the graph"
            if first is not None:
                why = no_vertex(self._ids.count, first)
            raise UsageError(f"{vertex!r:.60} {why}")
        return place

    def __contains__(self, vertex: object) -> bool:
        return self._place(vertex) >= 0

    def _place(self, vertex: object) -> int:
        """Return the id of a vertex, -1 for an unknown one."""
        plain = vertex.item() if isinstance(vertex, np.integer) else vertex
        return self._ids.find(str(plain)) if type(plain) is self._kind else -1

    def named(self, ids: Array) -> Array:
        """Return the names of vertices, integers of any shape: int64 or objects."""
        return self._ids.named(ids)
