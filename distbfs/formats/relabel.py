"""New numbers for the vertices of a spool, from 0, in the order of their ids.

A spool holds int64 pairs, of numbers in the order in which ids come; it is rewritten in
place, piece by piece. Memory: a few copies of the distinct ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.distinct import distinct
from distbfs.formats.ids import IntegerIds
from distbfs.formats.word_table import WordTable, ranked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from distbfs.formats.ids import IdMap
    from distbfs.formats.text_ids import Words
    from distbfs.types import Ids

PAIRS = 1 << 20
PAIR_BYTES = 16


class Numbers:
    """Numbers vertices whose ids are numbers, while pairs are put into a spool.

    It uses a table if there is a compiler and it is wanted, else a ``dict``.
    """

    def __init__(self, *, compiled: bool = True) -> None:
        self._table = WordTable.or_none(compiled=compiled)
        self._index: dict[int, int] = {}

    def add(self, pairs: Ids) -> Ids:
        """Return the numbers of ids, int64 [k, 2], in the order in which they come."""
        if self._table is not None:
            return self._table.number(pairs.ravel()).reshape(pairs.shape)
        ids, index = distinct(pairs), self._index
        numbers = [index.setdefault(x, len(index)) for x in ids.tolist()]
        return np.array(numbers, dtype=np.int64)[np.searchsorted(ids, pairs)]

    def finish(self, spool: Path) -> IdMap:
        """Replace all numbers in the spool by vertices, in the order of their ids."""
        if self._table is None:
            known = np.fromiter(self._index, dtype=np.int64)
        else:
            known = self._table.numbers(np.int64)
        ids, ranks = ranked(known)
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
