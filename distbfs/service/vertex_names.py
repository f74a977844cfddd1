"""Names of vertices in requests and answers: numbers, or ids of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from distbfs.formats.ids import CountedIds, IdMap, first_of, names_or
from distbfs.types import Array


class Names:
    """The vertices 0 … n-1 and their names.

    ids: the vertices' ids in the graph's file, None if they are 0 … n-1 there too
    first: name of the first vertex if names are consecutive numbers, else None
    """

    def __init__(self, n: int, ids: IdMap | None = None) -> None:
        self.n = n
        self._ids: IdMap = CountedIds(n, 0) if ids is None else ids
        self.first = first_of(self._ids)
        # with kept ids, an integer and its digits as text name the same vertex
        self._types = (int, str) if self.first is None else (int,)

    @property
    def allowed(self) -> str:
        """Description of valid names, for messages."""
        if self.first is None:
            return "ids of the graph"
        return f"vertices {self.first} to {self.first + self.n - 1}"

    def find(self, value: object) -> int:
        """Return the vertex that a JSON value names, -1 for an unknown name.

        3.0 is an integer in JSON.
        """
        if type(value) is float and value.is_integer():
            value = int(value)
        return self._ids.find(str(value)) if type(value) in self._types else -1

    def find_all(self, values: Sequence[object]) -> list[int]:
        """Return the vertices that JSON values name, at least one; -1 for unknown ones.

        This is fast if all values are numbers of vertices.
        """
        if self.first is not None and {*map(type, values)} == {int}:
            numbers = cast("Sequence[int]", values)
            if min(numbers) >= self.first and max(numbers) - self.first < self.n:
                return [number - self.first for number in numbers]
        return [*map(self.find, values)]

    def of(self, vertex: int) -> int | str:
        """Return the name of a vertex."""
        return self._ids.names(np.array([vertex]))[0]

    def each(self, vertices: Array) -> list[int | str | None]:
        """Return the names of vertices, integers [k].

        The name of -1 is -1, or None if the graph has ids.
        """
        if self.first is not None:
            numbers: list[int | str | None] = self.numbers(vertices).tolist()
            return numbers
        return names_or(self._ids, vertices, None)

    def numbers(self, vertices: Array) -> Array:
        """Return the names of vertices as integers [k], if numbers; -1 stays -1."""
        if not self.first:
            return vertices
        return np.where(vertices < 0, vertices, vertices + self.first)
