"""Text ids: UTF-8 of at most LONGEST_WORD bytes, without control characters."""

from __future__ import annotations

import re

from distbfs.formats.lines import SHOWN, LineFault

LONGEST_WORD = 1024
CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


class Words:
    """The distinct ids so far; ``index`` numbers them in the order of the file."""

    def __init__(self) -> None:
        self.index: dict[bytes, int] = {}

    def number(self, word: bytes) -> int:
        """Return the number of a word; LineFault if it cannot be an id."""
        known = self.index.get(word)
        if known is None:
            fault = word_fault(word)
            if fault:
                raise LineFault(fault)
            known = self.index[word] = len(self.index)
        return known


def word_fault(word: bytes) -> str:
    """Return why some bytes are not an id, "" if they are."""
    if not word:
        return "an empty id"
    fault = ""
    if len(word) > LONGEST_WORD:
        fault = f"of {len(word)} bytes; allowed: {LONGEST_WORD}"
    elif CONTROL.search(word):
        fault = "has control characters"
    else:
        try:
            word.decode()
        except UnicodeDecodeError:
            fault = "is not UTF-8"
    shown = word[:SHOWN].decode("ascii", "backslashreplace") if fault else ""
    return f"id {shown!a} {fault}" if fault else ""
