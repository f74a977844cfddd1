"""Names of vertices in requests and answers: numbers, or ids of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from distbfs.formats.ids import IdMap
from distbfs.types import Array, Ids


class Names:
    """The vertices 0 … n-1 and their names.

    ids: the vertices' ids in the graph's file, None if they are numbers there too
    """

    def __init__(self, n: int, ids: IdMap | None = None) -> None:
        self.n, self.ids = n, ids

    @property
    def kind(self) -> str:
        """Kind of the names: "number", or the kind of the ids ("integer", "text")."""
        return "number" if self.ids is None else self.ids.kind

    @property
    def allowed(self) -> str:
        """Description of valid names, for messages."""
        return f"vertices 0 to {self.n - 1}" if self.ids is None else "ids of the graph"

    def find(self, value: object) -> int:
        """Return the vertex that a JSON value names, -1 for an unknown name.

        With kept ids, an integer and its digits as text name the same vertex; 3.0 is an
        integer in JSON.
        """
        if type(value) is float and value.is_integer():
            value = int(value)
        if self.ids is not None:
            known = type(value) in (int, str)
            return self.ids.find(str(value)) if known else -1
        return value if type(value) is int and 0 <= value < self.n else -1

    def find_all(self, values: Sequence[object]) -> list[int]:
        """Return the vertices that JSON values name, at least one; -1 for unknown ones.

        Fast where all are numbers of vertices.
        """
        if self.ids is None and {*map(type, values)} == {int}:
            numbers = cast("Sequence[int]", values)
            if min(numbers) >= 0 and max(numbers) < self.n:
                return list(numbers)
        return [*map(self.find, values)]

    def of(self, vertex: int) -> int | str:
        """Return the name of a vertex."""
        if self.ids is None:
            return int(vertex)
        return self.ids.names(np.array([vertex], dtype=np.int64))[0]

    def each(self, vertices: Array) -> list[int | str | None]:
        """Return the names of vertices, integers [k]; of -1: -1, or None for ids."""
        if self.ids is None:
            numbers: list[int | str | None] = vertices.tolist()
            return numbers
        names: list[int | str | None] = [None] * len(vertices)
        named: Ids = np.flatnonzero(vertices >= 0)
        each: Sequence[int | str] = self.ids.names(vertices[named])
        for place, name in zip(named.tolist(), each, strict=True):
            names[place] = name
        return names

    def all(self) -> list[int | str | None]:
        """Return the names of all vertices in order."""
        return self.each(np.arange(self.n, dtype=np.int64))
