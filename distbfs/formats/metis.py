"""METIS graphs: after a header, line i lists the neighbours of vertex i.

The header is ``VERTICES EDGES [FMT [NCON]]``. FMT has three flags, from the left: sizes
of vertices, weights of vertices (NCON each), weights of edges. Ids start at 1, and
``%`` begins a comment line. An edge is listed at both ends, and read once. Sizes and
weights are ignored. Source: Karypis, METIS manual 5.1.0 (2013), section 4.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import InputError
from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.lines import SHOWN, LineFault, read_id
from distbfs.formats.packed import id_fault
from distbfs.formats.symmetry import MASK, once
from distbfs.formats.text import LONGEST_LINE, SIZE, TextFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Ids

PIECE_BYTES = 2 << 20
SAFE_DIGITS = 18
ROW_END, COMMENT_END = -1, -2  # in the numbers of lines
PLAIN = b"0123456789 \t\n\0"  # a zero stands for a comment, as no text holds one
COMMENT = re.compile(rb"^%[^\n]*\n", re.MULTILINE)
ODD = re.compile(
    rb"[^ \t\n\0]*[^0-9 \t\n\0][^ \t\n\0]*|0*[1-9][0-9]{%d,}" % SAFE_DIGITS
)
LINE = re.compile(rb"[^\n]*\n|[^\n]+")


class PieceFile(TextFile):
    """A text file that is also split at blanks: the line of a hub may be very long."""

    ends = (b"\n", b" ", b"\t")


@dataclass(frozen=True)
class Header:
    """Sizes, and how many numbers precede the neighbours and belong to each of them."""

    n: int
    m: int
    before: int
    step: int


class ListParser:
    """Parses the lines after the header, piece by piece.

    The next piece begins in the line of ``vertex``, of which ``seen`` numbers have been
    read; ``lead`` stands for the line's content so far: a comment, numbers or nothing.
    """

    def __init__(self, file: TextFile, header: Header) -> None:
        self.file = file
        self.header = header
        self.vertex = self.seen = 0
        self.lead = b""

    def parse(self, piece: bytes) -> tuple[Ids, Ids]:
        """Return vertices and neighbours, zero-based int64 [k]; InputError on a fault.

        After a fault, the piece is parsed line by line to find its line.
        """
        piece = piece.replace(b"\r\n", b"\n")
        try:
            pairs = self._pairs(piece)
        except LineFault:
            for line in LINE.findall(piece):
                try:
                    self._pairs(line)
                except LineFault as fault:
                    raise self.file.refuse(str(fault)) from fault
                self.file.line += line.endswith(b"\n")
            raise
        self.file.line += piece.count(b"\n")
        return pairs

    def _pairs(self, piece: bytes) -> tuple[Ids, Ids]:
        """Return vertices and neighbours of lines; LineFault if a line is wrong.

        The fault is described as if it were in the first line. After it, the state of
        the parser is unchanged.
        """
        n, before, step = self.header.n, self.header.before, self.header.step
        text = self.lead + piece
        last = text[text.rfind(b"\n") + 1 :]
        lead = b"%" if last.startswith(b"%") else b" " * (last != b"")
        if b"%" in text:
            text = COMMENT.sub(b"\0", text[: -len(last)] if lead == b"%" else text)
        odd = None
        if (
            text.translate(None, PLAIN)
            or (numbers := _numbers(text)).max(initial=0) >= 10**SAFE_DIGITS
        ):
            odd = ODD.search(text)
            numbers = _numbers(text[: odd.start()] if odd else text)
        marks = numbers < 0
        rows = numbers[marks] == ROW_END
        counts = np.diff(np.flatnonzero(marks), prepend=-1, append=len(numbers)) - 1
        vertices = self.vertex + np.concatenate(([0], np.cumsum(rows)))
        begins = np.cumsum(counts) - counts
        begins[0] -= self.seen
        sizes = counts.copy()
        sizes[0] += self.seen
        if sizes[vertices >= n].any():
            raise LineFault(f"more lines than the {n} vertices declared")
        behind = (sizes - before)[:-1][rows & (vertices[:-1] < n)]
        if (behind < 0).any():
            what = f"{sizes[0]} numbers, where sizes and weights take {before}"
            raise LineFault(what)
        if (behind % step).any():
            raise LineFault("a neighbour without its weight")
        numbers = numbers[~marks]
        place = np.arange(len(numbers)) - np.repeat(begins, counts)
        ids = (place >= before) & ((place - before) % step == 0)
        near = numbers[ids]
        if fault := id_fault(near, n, 1):
            raise LineFault(fault[1])
        u, v = np.repeat(vertices, counts)[ids], near - 1
        for loop in u[u == v][:1]:
            raise LineFault(f"vertex {loop + 1} lists itself")
        if odd:
            raise LineFault(self._token_fault(odd[0], int(sizes[-1])))
        self.vertex, self.seen, self.lead = int(vertices[-1]), int(sizes[-1]), lead
        return u, v

    def _token_fault(self, token: bytes, place: int) -> str:
        """Describe why a column is not an integer of at most 18 digits."""
        place -= self.header.before
        if place < 0 or place % self.header.step:
            shown = ascii(token[:SHOWN].decode("ascii", "backslashreplace"))
            return f"{shown} is not a size or weight"
        try:
            read_id(token, 1, self.header.n)
        except LineFault as fault:
            return str(fault)
        return f"a number of more than {SAFE_DIGITS} digits"


def _numbers(text: bytes) -> Ids:
    """Return the numbers in lines, with a mark after each line, int64 [k]."""
    for end, mark in ((b"\n", ROW_END), (b"\0", COMMENT_END)):
        text = text.replace(end, b" %d " % mark)
    if not text.strip():
        return np.zeros(0, dtype=np.int64)
    return np.fromstring(text, dtype=np.int64, sep=" ")


class MetisReader(Reader):
    """Reads METIS graphs."""

    name = "metis"
    suffixes = (".graph", ".metis")
    sized = ("a METIS file", 1)
    opens = PieceFile

    def pairs(self, file: PieceFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield each edge once; InputError for any departure from the format."""
        self.options.check_undirected(file.path, "a METIS graph")
        file.block_bytes = PIECE_BYTES
        neighbours = excess = 0
        header = _header(file)
        edges.n, edges.one_based = header.n, True
        if header.before or header.step > 1:
            edges.unread = "sizes and weights"
        lists = ListParser(file, header)
        for piece in file.blocks():
            u, v = lists.parse(piece)
            neighbours += len(u)
            pairs, more = once(u, v)
            excess += more
            yield pairs
        if lists.vertex < header.n:
            what = f"{header.n} vertices declared, {lists.vertex} found"
            raise file.refuse_last(what)
        if neighbours != 2 * header.m:
            what = f"{header.m} edges declared, {neighbours} neighbours found"
            raise file.refuse_last(f"{what}, where two per edge are expected")
        if excess & MASK:
            raise InputError(f"{file.path}: an edge is not listed from both ends")


def _header(file: TextFile) -> Header:
    """Read the comments and the header; return the header."""
    line = file.header_line()
    if not line:
        raise file.refuse("the file is empty")
    while line.startswith(b"%"):
        line = file.header_line()
    words = line.split()
    usual = len(words) <= 4 and all(map(SIZE.fullmatch, words))
    lacking = "the header needs vertices, edges and, optionally, fmt and ncon"
    n, m = file.sizes(words[:2] if usual else [], 2, lacking)
    fmt = words[2] if len(words) > 2 else b"0"
    if not re.fullmatch(rb"[01]{1,3}", fmt):
        raise file.refuse_last(f"fmt {fmt.decode()!a}; allowed: three of 0, 1")
    sizes, weights, edges = (flag == ord("1") for flag in fmt.rjust(3, b"0"))
    ncon = int(words[3]) if len(words) > 3 else 0
    if ncon and not weights:
        raise file.refuse_last(f"ncon {ncon}, but fmt {fmt.decode()} has no weights")
    if ncon > LONGEST_LINE:
        raise file.refuse_last(f"ncon {ncon}; allowed: up to {LONGEST_LINE}")
    return Header(n, m, sizes + weights * max(ncon, 1), 1 + edges)
