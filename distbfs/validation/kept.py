"""Tuple ends that stay in device memory from one validation to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distbfs.device import cuda

FREE_SHARE = 2  # of the memory that is free, one part of so many is taken at most

Piece = tuple[int, int]  # first tuple and the one after the last


class KeptEnds:
    """The ends of a device's tuples, in as many pieces as memory allows.

    A source's tuples do not change, so pieces kept from the first validation serve all
    later ones; the other pieces are generated again.  Memory is measured once.
    """

    def __init__(self) -> None:
        self._pieces: Sequence[Piece] = ()
        self._ends: dict[Piece, Any] = {}
        self._most = 0

    def plan(self, pieces: Sequence[Piece], shape: tuple[int, int], dtype: Any) -> None:
        """Choose the pieces to keep; drop the pieces of earlier plans.

        shape, dtype: shape and dtype of the ends of each piece
        """
        if pieces == self._pieces:
            return
        self._ends.clear()  # mutant: self._ends.clear() -> pass : test_kept_tuples
        self._pieces = pieces
        each = shape[0] * shape[1] * dtype.itemsize
        free = cuda.available(FREE_SHARE * each * len(pieces))
        self._most = free // FREE_SHARE // each

    def missing(self) -> Sequence[Piece]:
        """Return the pieces to be kept that are still missing."""
        return [x for x in self._pieces[: self._most] if x not in self._ends]

    def keep(self, piece: Piece, ends: Any) -> None:
        """Keep the ends of a piece, which must not be written again."""
        self._ends[piece] = ends

    def get(self, piece: Piece) -> Any | None:
        """Return the ends of a piece, None if they are not kept."""
        return self._ends.get(piece)

    @property
    def complete(self) -> bool:
        """Whether all pieces are in memory."""
        return len(self._ends) == len(self._pieces)
