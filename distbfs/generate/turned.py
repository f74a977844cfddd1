"""Edge tuples in the opposite direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from distbfs.types import Ids, TupleSource


class Turned:
    """The reversed tuples of another source, with their attributes (a TupleSource)."""

    def __init__(self, source: TupleSource) -> None:
        self.source = source
        self.n, self.tuples = source.n, source.tuples
        self.attributes: Mapping[str, Any] = getattr(source, "attributes", {})

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (v, u) int64 arrays of the tuples start … stop-1."""
        for u, v in self.source.chunks(start, stop):
            yield v, u

    def describe(self) -> dict[str, Any]:
        """Return the source's description, marked as turned."""
        return {**self.source.describe(), "turned": True}
