"""A table of distinct words, numbered in the order of their first occurrence."""

from __future__ import annotations

import ctypes
import secrets
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cc
from distbfs.device.structures import structure

if TYPE_CHECKING:
    from distbfs.types import Array, Bytes, Ids

SOURCE = Path(__file__).with_name("words.c")
FEW_WORDS = 1 << 10  # room of a new table


class WordTable:
    """A hash table of byte strings, in C; ``record`` is its structure there."""

    def __init__(self) -> None:
        """Make an empty table; CompilerMissing without a compiler."""
        self._library = cc.load(SOURCE)
        self.record = structure(SOURCE, "word_table")(seed=secrets.randbits(64))
        self.offsets: Ids = np.zeros(1, dtype=np.int64)
        self.text: Bytes = np.zeros(0, dtype=np.uint8)
        self._take_room(FEW_WORDS, FEW_WORDS * 8)

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
            words = cc.arguments(count - done, *rest, data, numbers[done:])
            done += call(ctypes.byref(self.record), *words)
            if done == count:
                return numbers
            self.grow(text.nbytes)

    def ranked(self) -> tuple[Ids, Ids, Bytes]:
        """Return ranks of words by number, offsets and text of the sorted words."""
        ranks, offsets = np.empty(self.count, np.int64), np.empty_like(self.offsets)
        text = np.empty(self.offsets[self.count], np.uint8)
        arrays = cc.arguments(ctypes.byref(self.record), ranks, offsets, text)
        if self._library.sort_words(*arrays):
            raise MemoryError
        return ranks, offsets[: self.count + 1], text

    def numbers(self, dtype: Any) -> Array:
        """Return the words, of 8 bytes each, as integers of 64 bits, by number."""
        return self.text[: 8 * self.count].view(dtype)

    def since(self, first: int) -> tuple[Ids, Bytes]:
        """Return offsets and text of the words from a number on."""
        offsets = self.offsets[first : self.count + 1]
        return offsets - offsets[0], self.text[offsets[0] : offsets[-1]]


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
