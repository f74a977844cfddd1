"""Text ids: UTF-8 of at most LONGEST_WORD bytes, without control characters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from distbfs.formats.ids import TextIds
from distbfs.formats.lines import SHOWN, LineFault
from distbfs.formats.word_table import WordTable, split

if TYPE_CHECKING:
    from distbfs.types import Bytes, Ids

LONGEST_WORD = 1024
CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


class Words:
    """The distinct ids so far, numbered in the order of the file.

    table: holds them where there is a compiler, and it is wanted; else ``index`` does
    """

    def __init__(self, *, compiled: bool = True) -> None:
        self.table = WordTable.or_none(compiled=compiled)
        self.index: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.index) if self.table is None else self.table.count

    def leave_table(self, known: int | None = None) -> None:
        """Hold the words, or the first ``known`` of them, in ``index`` from now on."""
        if self.table is not None:
            words = self.table.words()[:known]
            self.index = {word: k for k, word in enumerate(words)}
            self.table = None

    def first_fault(self, known: int) -> str:
        """Return the reason why a word of the table is not an id, "" if all are.

        known: how many words at the front are known to be ids
        """
        if self.table is None or self.table.count == known:
            return ""
        offsets = self.table.offsets[known : self.table.count + 1]
        sizes = np.diff(offsets)
        text = self.table.text[offsets[0] : offsets[-1]]
        if (
            # mutant: <= LONGEST_WORD -> : test_words_that_cannot_be_ids
            0 < sizes.min() <= sizes.max() <= LONGEST_WORD
            and (self.table.text[offsets[:-1]] & 0xC0 != 0x80).all()
            and not word_fault(text.tobytes(), len(text))
        ):
            return ""
        faults = map(word_fault, split(self.table.text, offsets))
        return next(filter(None, faults), "")

    def number(self, word: bytes) -> int:
        """Return a word's number, by ``index``; LineFault if it cannot be an id."""
        known = self.index.get(word)
        if known is None:
            fault = word_fault(word)
            if fault:
                raise LineFault(fault)
            known = self.index[word] = len(self.index)
        return known

    def numbers(self, text: Bytes, offsets: Ids) -> Ids:
        """Return the numbers of words of text, int64 [k]; offsets: int64 [k + 1].

        Raises LineFault if one cannot be an id.
        """
        if self.table is None:
            words = split(text, offsets)
            return np.array([self.number(word) for word in words], dtype=np.int64)
        known = self.table.count
        numbers = self.table.number(text, offsets[:-1], np.diff(offsets))
        if fault := self.first_fault(known):
            raise LineFault(fault)
        return numbers

    def ranked(self) -> tuple[TextIds, Ids]:
        """Return the words, sorted by their bytes, and the rank of each by number."""
        if self.table is not None:
            ranks, offsets, text = self.table.ranked()
            return TextIds(offsets, text), ranks
        words = sorted(self.index)
        ranks = np.empty(len(words), dtype=np.int64)
        ranks[[self.index[word] for word in words]] = np.arange(len(words))
        return TextIds.of(words), ranks


def word_fault(word: bytes, longest: int = LONGEST_WORD) -> str:
    """Return the reason why some bytes are not an id, "" if they are."""
    if not word:
        return "an empty id"
    fault = ""
    if len(word) > longest:
        fault = f"of {len(word)} bytes; allowed: {longest}"
    elif CONTROL.search(word):
        fault = "has control characters"
    else:
        try:
            word.decode()
        except UnicodeDecodeError:
            fault = "is not UTF-8"
    shown = word[:SHOWN].decode("ascii", "backslashreplace") if fault else ""
    return f"id {shown!a} {fault}" if fault else ""
