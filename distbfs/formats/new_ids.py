"""New numbers for the ids of a file, which are numbers of any size or text.

Ids are numbered in the order of their first occurrence. Text ids are UTF-8 of at most
LONGEST_WORD bytes, without control characters.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from distbfs.formats.ids import IntegerIds, TextIds, packed
from distbfs.formats.lines import SHOWN, LineFault
from distbfs.formats.word_table import WordTable, ranked, split

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from distbfs.formats.ids import IdMap
    from distbfs.types import Bytes, Ids

LONGEST_WORD = 1024
CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
KNOWN = 1 << 16  # words whose check is remembered
NUMBERS = 1 << 21  # replaced at a time


class Numbers:
    """The distinct ids read so far, from a file whose ids are numbers."""

    def __init__(self) -> None:
        self._table = WordTable()

    def numbers(self, ids: Ids) -> Ids:
        """Return the numbers of ids, int64 of the same shape."""
        return self._table.number(ids.ravel()).reshape(ids.shape)

    def ranked(self) -> tuple[IdMap, Ids]:
        """Return the ids, ascending, and the rank of each id by number."""
        ids, ranks = ranked(self._table.numbers(np.int64))
        return IntegerIds(ids), ranks


class Words:
    """The distinct ids read so far, from a file whose ids are text."""

    def __init__(self) -> None:
        self._table = WordTable()

    def numbers(self, text: Bytes, begins: Ids, sizes: Ids) -> Ids:
        """Return the numbers of words, int64 [k]; see ``WordTable.number``.

        Raises LineFault if a word cannot be an id.
        """
        first = self._table.count
        numbers = self._table.number(text, begins, sizes)
        if self._table.count > first:
            _check_words(*self._table.since(first))
        return numbers

    def numbers_of(self, words: Sequence[bytes]) -> Ids:
        """Return the numbers of words, int64 [k]; see ``numbers``."""
        offsets, text = packed(words)
        return self.numbers(text, offsets[:-1], np.diff(offsets))

    def ranked(self) -> tuple[IdMap, Ids]:
        """Return the words, sorted by bytes, and the rank of each word by number."""
        ranks, offsets, text = self._table.ranked()
        return TextIds(offsets, text), ranks


def _check_words(offsets: Ids, text: Bytes) -> None:
    """Raise LineFault for the first word that cannot be an id."""
    sizes = np.diff(offsets)
    if (
        # mutant: <= LONGEST_WORD -> : test_words_that_cannot_be_ids
        0 < sizes.min() <= sizes.max() <= LONGEST_WORD
        and (text[offsets[:-1]] & 0xC0 != 0x80).all()
        and not _fault(text.tobytes(), len(text))
    ):
        return
    for word in split(text, offsets):
        check_word(word)


@lru_cache(KNOWN)
def check_word(word: bytes) -> None:
    """Raise LineFault for bytes that cannot be an id."""
    if not word:
        raise LineFault("an empty id")
    if fault := _fault(word, LONGEST_WORD):
        shown = word[:SHOWN].decode("ascii", "backslashreplace")
        raise LineFault(f"id {shown!a} {fault}")


def _fault(word: bytes, longest: int) -> str:
    """Return what is wrong with bytes that cannot be an id, "" if they can."""
    if len(word) > longest:
        return f"of {len(word)} bytes; allowed: {longest}"
    if CONTROL.search(word):
        return "has control characters"
    try:
        word.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    return ""


def number_anew(spool: Path, known: Numbers | Words) -> IdMap:
    """Replace the numbers of ids in a spool by the ranks of the ids; return the ids.

    The ranks are the vertices. The spool holds int64 pairs; it is rewritten in place,
    piece by piece.
    """
    ids, ranks = known.ranked()
    if ids.count:
        numbers = np.memmap(spool, np.int64, mode="r+")
        for start in range(0, len(numbers), NUMBERS):
            some = numbers[start : start + NUMBERS]
            some[:] = ranks[some]
    return ids
