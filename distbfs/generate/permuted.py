"""Edge tuples with permuted vertices, as in stores, which spread them over parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from distbfs.generate.hashing import Permutation
from distbfs.types import Ids, TupleSource


class Permuted:
    """The tuples of another source in internal ids (a TupleSource).

    source: the tuples in input ids; seed: seed of the permutation
    """

    def __init__(self, source: TupleSource, seed: int) -> None:
        self.source, self.permutation = source, Permutation(source.n, seed)
        self.n, self.tuples = source.n, source.tuples

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1."""
        forward = self.permutation.forward
        for u, v in self.source.chunks(start, stop):
            yield forward(u), forward(v)

    def describe(self) -> dict[str, Any]:
        """Return the description of the tuples in input ids."""
        return self.source.describe()
