"""Number the vertices of a spool anew, from 0, in the order of their ids.

A spool holds int64 pairs; it is rewritten in place, piece by piece. Memory: a few
copies of the distinct ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.distinct import distinct
from distbfs.formats.ids import IntegerIds
from distbfs.formats.word_table import WordTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from distbfs.formats.ids import IdMap
    from distbfs.formats.text_ids import Words
    from distbfs.types import Ids

PAIRS = 1 << 20
PAIR_BYTES = 16


class Distinct:
    """The distinct ids of arrays that are added one by one."""

    def __init__(self) -> None:
        self._known: Ids = np.zeros(0, dtype=np.int64)
        self._new: list[Ids] = []
        self._waiting = 0

    def add(self, ids: Ids) -> None:
        """Add ids, int64 of any shape."""
        self._new.append(distinct(ids))
        self._waiting += len(self._new[-1])
        if self._waiting > max(len(self._known), PAIRS):
            self._merge()

    def ids(self) -> Ids:
        """Return the distinct ids, rising, int64 [n]."""
        self._merge()
        return self._known

    def _merge(self) -> None:
        self._known = distinct(np.concatenate([self._known, *self._new]))
        self._new, self._waiting = [], 0


class Numbers:
    """Numbers vertices whose ids are numbers, while pairs are put into a spool.

    By a table where there is a compiler, and it is wanted, else in the end.
    """

    def __init__(self, *, compiled: bool = True) -> None:
        self._table = WordTable.or_none(compiled=compiled)
        self._distinct = Distinct()

    def add(self, pairs: Ids) -> Ids:
        """Return what to put into the spool for pairs of ids, int64 [k, 2]."""
        if self._table is None:
            self._distinct.add(pairs)
            return pairs
        return self._table.number(pairs.ravel()).reshape(pairs.shape)

    def finish(self, spool: Path) -> IdMap:
        """Replace all that was put into the spool by vertices, in the order of ids."""
        if self._table is None:
            ids = self._distinct.ids()
            _rewrite(spool, lambda pairs: np.searchsorted(ids, pairs))
            return IntegerIds(ids)
        ids, ranks = self._table.ranked_numbers(np.int64)
        _rewrite(spool, ranks.__getitem__)
        return IntegerIds(ids)


def relabel_words(spool: Path, words: Words) -> IdMap:
    """Replace each word number in the spool by the word's rank in byte order."""
    ids, ranks = words.ranked()
    _rewrite(spool, ranks.__getitem__)
    return ids


def _rewrite(spool: Path, change: Callable[[Ids], Ids]) -> None:
    """Change all pairs of a spool, int64 [k, 2] at a time."""
    with spool.open("r+b") as file:
        position = 0
        while data := file.read(PAIRS * PAIR_BYTES):
            pairs = np.frombuffer(data, dtype=np.int64).reshape(-1, 2)
            file.seek(position)
            file.write(change(pairs).astype(np.int64, copy=False).tobytes())
            position += len(data)
            file.seek(position)
