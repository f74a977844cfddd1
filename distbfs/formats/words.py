"""Pairs of ids that may be any text, as edge lists hold them.

An id is what stands between blanks and commas, UTF-8 of at most LONGEST_WORD bytes,
without control characters.  Lines follow the rule of ``lines.read_line`` otherwise.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from distbfs.formats.lines import SHOWN, LineFault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.formats.text import TextFile
    from distbfs.types import Ids

LONGEST_WORD = 1024
LINE = re.compile(
    rb"[ \t]*(?:[#%].*|([^ \t,\r]+)(?:[ \t]*,[ \t]*|[ \t]+)([^ \t,\r]+)"
    rb"([ \t,][^\r]*)?)?\r?",
)
CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
ONE = re.compile(rb"[ \t]*[^ \t,\r]+[ \t,]*\r?")


class Words:
    """The distinct ids so far; ``index`` numbers them in the order of the file."""

    def __init__(self) -> None:
        self.index: dict[bytes, int] = {}

    def read_pairs(self, file: TextFile) -> Iterator[Ids]:
        """Yield the pairs of the rest of a file by number, int64 [k, 2], in order.

        Raises InputError ``FILE:LINE: what is wrong``.
        """
        for text in file.blocks():
            numbers: list[int] = []
            for line in text[:-1].split(b"\n"):
                match = LINE.fullmatch(line)
                if match is None:
                    raise file.refuse(_what(line))
                first, second, more = match.groups()
                if first is not None:
                    try:
                        numbers.append(self.number(first))
                        numbers.append(self.number(second))
                    except LineFault as fault:
                        raise file.refuse(str(fault)) from fault
                    file.extra += bool(more and more.strip(b" \t,"))
                file.line += 1
            if numbers:
                yield np.array(numbers, dtype=np.int64).reshape(-1, 2)

    def number(self, word: bytes) -> int:
        """Return the number of a word; LineFault says why it can be no id."""
        found = self.index.get(word)
        if found is None:
            fault = word_fault(word)
            if fault:
                raise LineFault(fault)
            found = self.index[word] = len(self.index)
        return found


def word_fault(word: bytes) -> str:
    """Return why some bytes are no id, "" if they are one."""
    shown = ascii(word[:SHOWN].decode("ascii", "backslashreplace"))
    if not word:
        return "an empty id"
    if len(word) > LONGEST_WORD:
        return f"id {shown} of {len(word)} bytes; allowed: {LONGEST_WORD}"
    if word.startswith(b'"'):
        return f"{shown} is quoted, which is not supported"
    if CONTROL.search(word):
        return f"id {shown} has control characters"
    try:
        word.decode()
    except UnicodeDecodeError:
        return f"id {shown} is not UTF-8"
    return ""


def _what(line: bytes) -> str:
    """Return what is wrong with a line that is no pair."""
    if ONE.fullmatch(line):
        return "one column, where two ids are expected"
    if b"\r" in line[:-1]:
        return "a carriage return inside the line"
    return "an empty column"
