"""Names of vertices that differ from their ids, such as those in an input file."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from distbfs.errors import UsageError
from distbfs.formats.ids import unknown

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


class NodeNames:
    """Names of all vertices in an array of objects (``VertexNames``).

    index: name -> id, if it exists already
    """

    def __init__(self, names: Array, index: dict[Any, int] | None = None) -> None:
        self._names = names
        if index is not None:
            self.index = index

    @cached_property
    def index(self) -> dict[Any, int]:
        """The ids by name."""
        return {name: k for k, name in enumerate(self._names.tolist())}

    def id_of(self, vertex: Any) -> int:
        """Return the id of a vertex; UsageError if there is none."""
        if vertex not in self:
            raise UsageError(f"{vertex!r:.60} is not a node of the graph")
        return self.index[vertex]

    def named(self, ids: Array) -> Array:
        """Return the names [k] of vertices, int64 [k]."""
        return self._names[ids]

    def __contains__(self, vertex: object) -> bool:
        try:
            return vertex in self.index
        except TypeError:  # it, or what is in it, cannot be a name
            return False


class StoreNames:
    """Names of vertices, integers or text, from the id map of a store."""

    def __init__(self, ids: IdMap) -> None:
        self._ids = ids
        self._kind = int if ids.kind == "integer" else str

    def id_of(self, vertex: Any) -> int:
        """Return the id of a vertex; UsageError for an unknown one."""
        place = self._place(vertex)
        if place < 0:
            raise UsageError(f"{vertex!r:.60} {unknown(self._ids)}")
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
