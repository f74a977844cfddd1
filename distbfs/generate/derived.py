"""Edge tuples made of those of another source: permuted, reversed, or counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from distbfs.generate.hashing import Permutation
from distbfs.types import Ids, TupleSource


class Derived:
    """The tuples of another source, as they are (a TupleSource)."""

    def __init__(self, source: TupleSource) -> None:
        self.source = source
        self.n, self.tuples = source.n, source.tuples

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1."""
        return self.source.chunks(start, stop)

    def describe(self) -> dict[str, Any]:
        """Return the source's description."""
        return self.source.describe()


class Permuted(Derived):
    """The tuples of another source in internal ids, as stores spread them over parts.

    source: the tuples in input ids; seed: seed of the permutation
    """

    def __init__(self, source: TupleSource, seed: int) -> None:
        super().__init__(source)
        self.permutation = Permutation(source.n, seed)

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1."""
        forward = self.permutation.forward
        for u, v in super().chunks(start, stop):
            yield forward(u), forward(v)


class Turned(Derived):
    """The reversed tuples of another source, with their attributes."""

    def __init__(self, source: TupleSource) -> None:
        super().__init__(source)
        self.attributes: Mapping[str, Any] = getattr(source, "attributes", {})

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (v, u) int64 arrays of the tuples start … stop-1."""
        for u, v in super().chunks(start, stop):
            yield v, u

    def describe(self) -> dict[str, Any]:
        """Return the source's description, marked as turned."""
        return {**super().describe(), "turned": True}


class Counted(Derived):
    """The tuples of another source, counted while they are read.

    tell: called with the number of tuples read in this process since a pass began
    """

    def __init__(self, source: TupleSource, tell: Callable[[int], None]) -> None:
        super().__init__(source)
        self._tell = tell
        self._next = self._taken = 0

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1."""
        if start != self._next:  # a new pass
            self._taken = 0
        self._next = start
        for u, v in super().chunks(start, stop):
            self._next += len(u)
            self._taken += len(u)
            self._tell(self._taken)
            yield u, v
