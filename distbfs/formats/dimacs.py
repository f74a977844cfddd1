"""DIMACS graphs of the shortest-path challenge: ``.gr`` text, each arc a tuple.

Lines: ``c`` and any text, ``p sp NODES ARCS`` once before all arcs, ``a U V WEIGHT``;
nodes start at 1, weights are ignored. Source: 9th DIMACS Implementation Challenge, file
formats (2006).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from distbfs.formats.base import EdgeFile, Reader, Take
from distbfs.formats.line_rules import LineRules
from distbfs.formats.lines import SHOWN
from distbfs.formats.pairs import read_pairs
from distbfs.formats.text import TextFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distbfs.types import Array

MARK = re.compile(rb"(?:c[^\n]*\n|[ \t\r]*\n)*p[ \t]+sp[ \t]")
ARC = re.compile(rb"a[ \t]+[^ \t\r\nc]")
EMPTY = re.compile(rb"[ \t]*\r?\n")
A, C, NEWLINE, SPACE, TAB, RETURN = (ord(x) for x in "ac\n \t\r")


class ArcFile(TextFile):
    """A file after its problem line, read as lines of three columns, one an arc."""

    def blocks(self) -> Iterator[bytes]:
        """Yield blocks with each ``a`` replaced by a blank.

        Raises InputError for a line that is neither an arc nor a comment nor blank.
        """
        for text in super().blocks():
            data = np.frombuffer(text, dtype=np.uint8).copy()
            starts = np.flatnonzero(data == NEWLINE)
            starts = np.concatenate(([0], starts[:-1] + 1))
            bad = _first_bad(text, data, starts)
            stop = len(text) if bad < 0 else bad
            data[starts[data[starts] == A]] = SPACE
            if stop:
                yield data[:stop].tobytes()
            if bad >= 0:
                line = text[bad : text.index(b"\n", bad)]
                raise self.refuse(_what(line.rstrip(b"\r")))


def _first_bad(text: bytes, data: Array, starts: Array) -> int:
    """Return the start of the first line that is invalid after the problem line.

    data: the text, uint8; starts: of its lines. -1: all are valid.
    """
    first = data[starts]
    last = len(data) - 1
    second = data[np.minimum(starts + 1, last)]
    third = data[np.minimum(starts + 2, last)]
    usual = (second == SPACE) & (third >= ord("0")) & (third <= ord("9"))
    good = (first == C) | (first == NEWLINE) | ((first == A) & usual)
    for start in starts[~good].tolist():
        if not (ARC.match(text, start) or EMPTY.match(text, start)):
            return int(start)
    return -1


def _what(line: bytes) -> str:
    """Describe the error of a line that is not an arc."""
    if line.split()[:1] == [b"p"]:
        return "a second problem line"
    shown = ascii(line[:SHOWN].decode("ascii", "backslashreplace"))
    return f"{shown} is neither an arc 'a U V WEIGHT' nor a comment 'c'"


class DimacsReader(Reader):
    """Reads DIMACS shortest-path graphs."""

    name = "dimacs"
    suffixes = (".gr",)
    sized = ("a DIMACS file", 1)

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Return whether the first line that is no comment is a problem line of sp."""
        return bool(MARK.match(head))

    def read(self, path: Path, take: Take) -> EdgeFile:
        """Read a file; InputError for any departure from the format."""
        tuples = 0
        with ArcFile(path, progress=self.options.progress) as file:
            nodes, arcs = _problem(file)
            rules = LineRules(
                comments=b"c",
                fields=3,
                base=1,
                most_u=nodes,
                most_v=nodes,
            )
            for pairs in read_pairs(file, rules, arcs, compiled=self.options.compiled):
                take(pairs)
                tuples += len(pairs)
            digest = file.digest
            return EdgeFile(
                self.name, nodes, tuples, digest, unread="weights", one_based=True
            )


def _problem(file: TextFile) -> tuple[int, int]:
    """Read comments and the problem line; return nodes and arcs."""
    line = file.header_line()
    if not line:
        raise file.refuse("the file is empty")
    while line and (line.startswith(b"c") or not line.strip()):
        line = file.header_line()
    at = max(file.line - 1, 1)
    words = line.split()
    if words[:1] != [b"p"]:
        raise file.refuse("no problem line 'p sp NODES ARCS'", at)
    kind = b"".join(words[1:2])[:SHOWN].decode("ascii", "backslashreplace")
    if kind != "sp":
        raise file.refuse(f"problem {kind!a}; allowed: sp", at)
    nodes, arcs = file.sizes(words[2:], 2, "the problem line needs nodes and arcs")
    if not nodes:
        raise file.refuse("no vertices", at)
    return nodes, arcs
