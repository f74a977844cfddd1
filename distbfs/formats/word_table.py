"""A table of distinct words, numbered in the order of their first occurrence."""

from __future__ import annotations

import ctypes
import secrets
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cc
from distbfs.device.structures import structure
from distbfs.formats.ids import packed

if TYPE_CHECKING:
    from typing_extensions import Self

    from distbfs.types import Array, Bytes, Ids

SOURCE = Path(__file__).with_name("words.c")
FEW_WORDS = 1 << 10  # room of a new table


class WordTable:
    """A hash table of byte strings; ``record`` is its structure in C."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.record = structure(SOURCE, "word_table")(seed=secrets.randbits(64))
        self.offsets: Ids = np.zeros(1, dtype=np.int64)
        self.text: Bytes = np.zeros(0, dtype=np.uint8)
        self._take_room(FEW_WORDS, FEW_WORDS * 8)

    @classmethod
    def or_none(cls) -> Self | None:
        """Return a new table, or None if there is no compiler."""
        library = cc.load_or_none(SOURCE)
        return None if library is None else cls(library)

    @property
    def count(self) -> int:
        """Number of words."""
        return int(self.record.count)

    def grow(self, more: int) -> None:
        """Make room for twice as many words, or for their text and ``more`` bytes."""
        room, size = len(self.offsets) - 1, len(self.text)
        full = self.count == room
        self._take_room(room << full, size if full else 2 * size + more)

    def _take_room(self, room: int, size: int) -> None:
        offsets, text = np.empty(room + 1, np.int64), np.empty(size, np.uint8)
        used = int(self.offsets[self.count])
        offsets[: self.count + 1] = self.offsets[: self.count + 1]
        text[:used] = self.text[:used]
        new = room + 1 != len(self.offsets)
        self.offsets, self.text = offsets, text
        self.record.set(offsets=offsets, text=text, room=room, bytes=size)
        if new:
            slots = np.zeros(2 * room, dtype=np.uint64)
            self.record.set(slots=slots, mask=2 * room - 1)
            self._library.fill_slots(ctypes.byref(self.record))

    def number(
        self, text: Array, begins: Ids | None = None, sizes: Ids | None = None
    ) -> Ids:
        """Return the numbers of words, int64 [k].

        text: the words as uint8, of which each has a start and a size, int64 [k]; or
        words of 8 bytes each, 64 bits [k]
        """
        count = len(text if begins is None else begins)
        numbers = np.empty(count, dtype=np.int64)
        call = self._library.number_words
        call.restype = ctypes.c_int64
        done = 0
        while True:
            rest = [None if x is None else x[done:] for x in (begins, sizes)]
            data = text[done:] if begins is None else text
            done += call(
                ctypes.byref(self.record),
                ctypes.c_int64(count - done),
                *map(cc.pointer, (*rest, data, numbers[done:])),
            )
            if done == count:
                return numbers
            self.grow(text.nbytes)

    def ranked(self) -> tuple[Ids, Ids, Bytes]:
        """Return ranks of words by number, offsets and text of the sorted words."""
        ranks, offsets = np.empty(self.count, np.int64), np.empty_like(self.offsets)
        text = np.empty(self.offsets[self.count], np.uint8)
        arrays = map(cc.pointer, (ranks, offsets, text))
        if self._library.sort_words(ctypes.byref(self.record), *arrays):
            raise MemoryError
        return ranks, offsets[: self.count + 1], text

    def numbers(self, dtype: Any) -> Array:
        """Return the words, of 8 bytes each, as integers of 64 bits, by number."""
        return self.text[: 8 * self.count].view(dtype)

    def since(self, first: int) -> tuple[Ids, Bytes]:
        """Return offsets and text of the words from a number on."""
        offsets = self.offsets[first : self.count + 1]
        return offsets - offsets[0], self.text[offsets[0] : offsets[-1]]


class PlainTable:
    """The same as ``WordTable``, made of a ``dict``, for use without a compiler."""

    def __init__(self) -> None:
        self._index: dict[bytes, int] = {}

    @property
    def count(self) -> int:
        """Number of words."""
        return len(self._index)

    def number(
        self, text: Array, begins: Ids | None = None, sizes: Ids | None = None
    ) -> Ids:
        """Return the numbers of words, int64 [k]; see ``WordTable``."""
        if begins is None or sizes is None:
            begins, sizes = 8 * np.arange(len(text)), np.full(len(text), 8)
        data, index = text.tobytes(), self._index
        ends = zip(begins.tolist(), (begins + sizes).tolist(), strict=True)
        numbers = [index.setdefault(data[a:b], len(index)) for a, b in ends]
        return np.array(numbers, dtype=np.int64)

    def ranked(self) -> tuple[Ids, Ids, Bytes]:
        """Return ranks of words by number, offsets and text of the sorted words."""
        words = sorted(self._index)
        ranks = np.empty(len(words), dtype=np.int64)
        ranks[[self._index[word] for word in words]] = np.arange(len(words))
        return ranks, *packed(words)

    def numbers(self, dtype: Any) -> Array:
        """Return the words, of 8 bytes each, as integers of 64 bits, by number."""
        return np.frombuffer(b"".join(self._index), dtype)

    def since(self, first: int) -> tuple[Ids, Bytes]:
        """Return offsets and text of the words from a number on."""
        return packed([*islice(self._index, first, None)])


def make_table() -> WordTable | PlainTable:
    """Return a new table, which is in C if there is a compiler."""
    return WordTable.or_none() or PlainTable()


def split(text: Bytes, offsets: Ids) -> list[bytes]:
    """Split a text into words that begin at offsets, int64 [k + 1]."""
    data = text.tobytes()
    return [data[a:b] for a, b in pairwise(offsets.tolist())]


def ranked(values: Array) -> tuple[Array, Ids]:
    """Return distinct values, ascending, and the rank of each, int64 [k]."""
    order = np.argsort(values)
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(len(values))
    return values[order], ranks
