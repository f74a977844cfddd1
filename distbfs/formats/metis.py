"""METIS graphs: after a header, line i lists the neighbours of vertex i.

The header is ``VERTICES EDGES [FMT [NCON]]``. FMT has three flags, from the left: sizes
of vertices, weights of vertices (NCON each), weights of edges. Ids start at 1, and
``%`` begins a comment line. An edge is listed at both ends, and read once. Sizes and
weights are ignored. Source: Karypis, METIS manual 5.1.0 (2013), section 4.1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import InputError
from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.lines import SHOWN, LineFault, read_id
from distbfs.formats.packed import id_fault
from distbfs.formats.symmetry import MASK, once
from distbfs.formats.text import SIZE, TextFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Ids

BLOCK_BYTES = 2 << 20
SAFE_DIGITS = 18
ROW_END = -1  # in the numbers of lines
PLAIN = b"0123456789 \t\n"
COMMENT = re.compile(rb"^%[^\n]*\n", re.MULTILINE)
ODD = re.compile(rb"[^ \t\n]*[^0-9 \t\n][^ \t\n]*|0*[1-9][0-9]{%d,}" % SAFE_DIGITS)


class ListFile(TextFile):
    """A text file with long lines, as that of a hub is."""

    longest = 1 << 30


class ListParser:
    """Parses the header, then the lines after it, block by block.

    n, m: sizes of the graph; before, step: how many numbers precede the neighbours and
    belong to each of them; vertex: the next row
    """

    def __init__(self, file: TextFile) -> None:
        """Read the comments and the header."""
        self.file, self.vertex = file, 0
        line = file.header_line()
        if not line:
            raise file.refuse("the file is empty")
        while line.startswith(b"%"):
            line = file.header_line()
        words = line.split()
        usual = len(words) <= 4 and all(map(SIZE.fullmatch, words))
        lacking = "the header needs vertices, edges and, optionally, fmt and ncon"
        self.n, self.m = file.sizes(words[:2] if usual else [], 2, lacking)
        fmt = words[2] if len(words) > 2 else b"0"
        shown = fmt.decode()
        if not re.fullmatch("[01]{1,3}", shown):
            raise file.refuse_last(f"fmt {shown!a}; allowed: three of 0, 1")
        sizes, weights, edges = (flag == ord("1") for flag in fmt.rjust(3, b"0"))
        ncon = int(words[3]) if len(words) > 3 else 0
        if ncon and not weights:
            raise file.refuse_last(f"ncon {ncon}, but fmt {shown} has no weights")
        if ncon > file.longest:
            raise file.refuse_last(f"ncon {ncon}; allowed: up to {file.longest}")
        self.before, self.step = sizes + weights * max(ncon, 1), 1 + edges

    def parse(self, block: bytes) -> tuple[Ids, Ids]:
        """Return vertices and neighbours, zero-based int64 [k]; InputError on a fault.

        After a fault, the block of whole lines is parsed line by line to find its line.
        """
        try:
            pairs = self._pairs(block)
        except LineFault:
            for line in block.split(b"\n"):
                try:
                    self._pairs(line + b"\n")
                except LineFault as fault:
                    raise self.file.refuse(str(fault)) from fault
                self.file.line += 1
            raise
        self.file.line += block.count(b"\n")
        return pairs

    def _pairs(self, block: bytes) -> tuple[Ids, Ids]:
        """Return vertices and neighbours of whole lines; LineFault if a line is wrong.

        The fault is described as if it were in the first line. After it, the state of
        the parser is unchanged.
        """
        n, before, step = self.n, self.before, self.step
        text = block.replace(b"\r\n", b"\n")
        text = COMMENT.sub(b"", text) if b"%" in text else text
        odd = None
        if (
            text.translate(None, PLAIN)
            or (numbers := _numbers(text)).max(initial=0) >= 10**SAFE_DIGITS
        ) and (odd := ODD.search(text)):
            numbers = _numbers(text[: odd.start()] + b"\n")
        ends = np.flatnonzero(numbers == ROW_END)
        counts = np.diff(ends, prepend=-1) - 1
        vertices = self.vertex + np.arange(len(ends))
        if counts[vertices >= n].any():
            raise LineFault(f"more lines than the {n} vertices declared")
        behind = counts[vertices < n] - before
        if not odd and (behind < 0).any():
            what = f"{counts[0]} numbers, where sizes and weights take {before}"
            raise LineFault(what)
        if not odd and (behind % step).any():
            raise LineFault("a neighbour without its weight")
        numbers = numbers[numbers != ROW_END]
        place = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
        ids = (place >= before) & ((place - before) % step == 0)
        near = numbers[ids]
        if fault := id_fault(near, n, 1):
            raise LineFault(fault[1])
        u, v = np.repeat(vertices, counts)[ids], near - 1
        for loop in u[u == v][:1]:
            raise LineFault(f"vertex {loop + 1} lists itself")
        if odd:
            raise LineFault(self._token_fault(odd[0], int(counts[-1])))
        self.vertex += len(ends)
        return u, v

    def _token_fault(self, token: bytes, place: int) -> str:
        """Describe why a column is not an integer of at most 18 digits."""
        place -= self.before
        if place < 0 or place % self.step:
            shown = ascii(token[:SHOWN].decode("ascii", "backslashreplace"))
            return f"{shown} is not a size or weight"
        try:
            read_id(token, 1, self.n)
        except LineFault as fault:
            return str(fault)
        return f"a number of more than {SAFE_DIGITS} digits"


def _numbers(text: bytes) -> Ids:
    """Return the numbers in lines, with a mark after each line, int64 [k]."""
    text = text.replace(b"\n", b" %d " % ROW_END)
    if not text.strip():
        return np.zeros(0, dtype=np.int64)
    return np.fromstring(text, dtype=np.int64, sep=" ")


class MetisReader(Reader):
    """Reads METIS graphs."""

    name = "metis"
    suffixes = (".graph", ".metis")
    sized = ("a METIS file", 1)
    opens = ListFile

    def pairs(self, file: ListFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield each edge once; InputError for any departure from the format."""
        self.options.check_undirected(file.path, "a METIS graph")
        file.block_bytes = BLOCK_BYTES
        neighbours = excess = 0
        lists = ListParser(file)
        edges.n, edges.one_based = lists.n, True
        if lists.before or lists.step > 1:
            edges.unread = "sizes and weights"
        for block in file.blocks():
            u, v = lists.parse(block)
            neighbours += len(u)
            pairs, more = once(u, v)
            excess += more
            yield pairs
        if lists.vertex < lists.n:
            what = f"{lists.n} vertices declared, {lists.vertex} found"
            raise file.refuse_last(what)
        if neighbours != 2 * lists.m:
            what = f"{lists.m} edges declared, {neighbours} neighbours found"
            raise file.refuse_last(f"{what}, where two per edge are expected")
        if excess & MASK:
            raise InputError(f"{file.path}: an edge is not listed from both ends")
