"""Tuple ends that stay in device memory from one validation to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distbfs.device import cuda

FREE_SHARE = 2  # of the memory that is free, one part of so many is taken at most

Piece = tuple[int, int]  # first tuple and the one after the last


class KeptEnds(dict[Piece, Any]):
    """The ends of a device's tuples by piece, of as many pieces as memory allows.

    A source's tuples do not change, so pieces kept from the first validation serve all
    later ones; the other pieces are generated again.  Memory is measured once.
    """

    _pieces: Sequence[Piece] = ()
    _most = 0

    def plan(self, pieces: Sequence[Piece], shape: tuple[int, int], dtype: Any) -> None:
        """Choose the pieces to keep; drop the pieces of earlier plans.

        shape, dtype: shape and dtype of the ends of each piece
        """
        if pieces == self._pieces:
            return
        self.clear()  # mutant: self.clear() -> pass : test_kept_tuples
        self._pieces = pieces
        each = shape[0] * shape[1] * dtype.itemsize
        free = cuda.available(FREE_SHARE * each * len(pieces))
        self._most = free // FREE_SHARE // each

    def missing(self) -> Sequence[Piece]:
        """Return the pieces to be kept that are still missing."""
        return [x for x in self._pieces[: self._most] if x not in self]

    @property
    def complete(self) -> bool:
        """Whether all pieces are in memory."""
        return len(self) == len(self._pieces)
