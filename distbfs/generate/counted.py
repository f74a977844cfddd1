"""Edge tuples that are counted while they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from distbfs.types import Ids, TupleSource


class Counted:
    """A TupleSource that counts the tuples read from another one.

    tell: called with the number of tuples read in this process since a pass began
    """

    def __init__(self, source: TupleSource, tell: Callable[[int], None]) -> None:
        self._source, self._tell = source, tell
        self.n, self.tuples = source.n, source.tuples
        self._next = self._taken = 0

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1."""
        if start != self._next:  # a new pass
            self._taken = 0
        self._next = start
        for u, v in self._source.chunks(start, stop):
            self._next += len(u)
            self._taken += len(u)
            self._tell(self._taken)
            yield u, v

    def describe(self) -> dict[str, Any]:
        """Return the source's description."""
        return self._source.describe()
