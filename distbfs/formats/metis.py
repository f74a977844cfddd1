"""METIS graphs: after a header, line i lists the neighbours of vertex i.

Header: ``VERTICES EDGES [FMT [NCON]]``; FMT has three flags, from the left: sizes of
vertices, weights of vertices (NCON each), weights of edges. Ids start at 1, ``%``
begins a comment line, an edge is listed at both ends and passed on once; sizes and
weights are ignored. Source: Karypis, METIS manual 5.1.0 (2013), section 4.1.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import InputError
from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.lines import SHOWN, LineFault, read_id
from distbfs.formats.packed import id_fault
from distbfs.formats.symmetry import ONCE, Mirror
from distbfs.formats.text import LONGEST_LINE, SIZE, TextFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Ids

PIECE_BYTES = 2 << 20
PLAIN = b"0123456789 \t\n"
SAFE_DIGITS = 18
WORD = re.compile(rb"0*[0-9]{1,18}")
LINE = re.compile(rb"[^\n]*\n|[^\n]+")


class PieceFile(TextFile):
    """A text file also split at blanks, since the line of a hub may be very long."""

    ends = (b"\n", b" ", b"\t")


@dataclass(frozen=True)
class Header:
    """Sizes; numbers before the neighbours of a line; numbers per neighbour."""

    n: int
    m: int
    before: int
    step: int


class ListParser:
    """Parses the lines after the header, piece by piece.

    ``vertex`` is that of the line where the next piece begins; ``seen``: its numbers so
    far, None at its start; ``comment``: whether it is a comment.
    """

    def __init__(self, file: TextFile, header: Header) -> None:
        self.file = file
        self.header = header
        self.vertex = 0
        self.seen: int | None = None
        self.comment = False

    def parse(self, piece: bytes) -> tuple[Ids, Ids]:
        """Return vertices and neighbours, zero-based int64 [k]; InputError at once.

        Comments and errors are looked for line by line.
        """
        piece = piece.replace(b"\r\n", b"\n")
        if not (self.comment or piece.translate(None, PLAIN)):
            with suppress(LineFault):
                pairs = self._all_lines(piece)
                self.file.line += piece.count(b"\n")
                return pairs
        parts = []
        for line in LINE.findall(piece):
            parts.append(self._line(line))
            self.file.line += line.endswith(b"\n")
        u, v = (np.concatenate(side) for side in zip(*parts, strict=True))
        return u, v

    def _all_lines(self, piece: bytes) -> tuple[Ids, Ids]:
        """Return vertices and neighbours of lines; LineFault for a fault of any."""
        data = np.frombuffer(piece, dtype=np.uint8)
        gap = data <= ord(" ")
        begins = ~gap
        begins[1:] &= gap[:-1]
        lines = np.cumsum(data == ord("\n"))
        sizes = np.bincount(lines[begins], minlength=int(lines[-1]) + 1)
        numbers = np.zeros(0, dtype=np.int64)
        if begins.any():
            numbers = np.fromstring(piece, dtype=np.int64, sep=" ")
            if numbers.max() >= 10**SAFE_DIGITS:
                raise LineFault("a number of more digits")
        return self._neighbours(sizes, numbers, piece)

    def _line(self, line: bytes) -> tuple[Ids, Ids]:
        """Return vertices and neighbours of a line, or of its part read so far."""
        if self.seen is None:
            self.comment = line.startswith(b"%")
        ends = line.endswith(b"\n")
        if self.comment:
            self.seen = None if ends else 0
            self.comment = not ends
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        words = re.findall(rb"[^ \t\n]+", line)
        odd = [k for k, x in enumerate(words) if not WORD.fullmatch(x)]
        sound = words[: odd[0]] if odd else words
        place = (self.seen or 0) + len(sound)
        try:
            sizes = np.array([len(sound), 0][: 1 + (ends and not odd)])
            numbers = np.array([*map(int, sound)], dtype=np.int64)
            pairs = self._neighbours(sizes, numbers, line)
            if odd:
                raise LineFault(self._token_fault(words[odd[0]], place))
        except LineFault as error:
            raise self.file.refuse(str(error)) from error
        return pairs

    def _token_fault(self, token: bytes, place: int) -> str:
        """Describe the error of a column that is not an integer of 18 digits."""
        place -= self.header.before
        if place < 0 or place % self.header.step:
            shown = ascii(token[:SHOWN].decode("ascii", "backslashreplace"))
            return f"{shown} is not a size or weight"
        try:
            read_id(token, 1, self.header.n)
        except LineFault as fault:
            return str(fault)
        return f"a number of more than {SAFE_DIGITS} digits"

    def _neighbours(self, sizes: Ids, numbers: Ids, text: bytes) -> tuple[Ids, Ids]:
        """Return vertices and neighbours of lines; the last line goes on.

        sizes: numbers of each; text: the lines. Raises LineFault, which describes the
        first of them.
        """
        n, before, step = self.header.n, self.header.before, self.header.step
        vertices, seen = self.vertex + np.arange(len(sizes)), self.seen or 0
        place = np.arange(seen, seen + len(numbers))
        place[sizes[0] :] -= np.repeat((seen + np.cumsum(sizes))[:-1], sizes[1:])
        sizes[0] += seen
        if sizes[vertices >= n].any():
            raise LineFault(f"more lines than the {n} vertices declared")
        behind = (sizes - before)[:-1][vertices[:-1] < n]
        if (behind < 0).any():
            what = f"{sizes[0]} numbers, where sizes and weights take {before}"
            raise LineFault(what)
        if (behind % step).any():
            raise LineFault("a neighbour without its weight")
        ids = (place >= before) & ((place - before) % step == 0)
        near = numbers[ids]
        if fault := id_fault(near, n, 1):
            raise LineFault(fault[1])
        sizes[0] -= seen
        u, v = np.repeat(vertices, sizes)[ids], near - 1
        for loop in u[u == v][:1]:
            raise LineFault(f"vertex {loop + 1} lists itself")
        rest = self.seen is not None and len(sizes) == 1
        self.vertex = int(vertices[-1])
        begun = rest or not text.endswith(b"\n")
        self.seen = int(sizes[-1]) + seen * rest if begun else None
        return u, v


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
        neighbours = 0
        mirror = Mirror(self.options.compiled)
        header = _header(file)
        edges.n, edges.one_based = header.n, True
        if header.before or header.step > 1:
            edges.unread = "sizes and weights"
        lists = ListParser(file, header)
        for piece in file.blocks():
            u, v = lists.parse(piece)
            neighbours += len(u)
            if len(u):
                yield mirror.count(
                    mirror.lists(int(u[0]), np.bincount(u - u[0]), v, header.n, ONCE)
                )
        if lists.vertex < header.n:
            what = f"{header.n} vertices declared, {lists.vertex} found"
            raise file.refuse_last(what)
        if neighbours != 2 * header.m:
            what = f"{header.m} edges declared, {neighbours} neighbours found"
            raise file.refuse_last(f"{what}, where two per edge are expected")
        if not mirror.even():
            raise InputError(f"{file.path}: an edge is not listed from both ends")


def _header(file: TextFile) -> Header:
    """Read comments and the header."""
    line = file.header_line()
    if not line:
        raise file.refuse("the file is empty")
    while line.startswith(b"%"):
        line = file.header_line()
    words = line.split()
    usual = len(words) <= 4 and all(map(SIZE.fullmatch, words))
    lacking = "the header needs vertices, edges and, if so, fmt, ncon"
    n, m = file.sizes(words[:2] if usual else [], 2, lacking)
    fmt = words[2] if len(words) > 2 else b"0"
    if not re.fullmatch(rb"[01]{1,3}", fmt):
        raise file.refuse_last(f"fmt {fmt.decode()!a}; allowed: three of 0, 1")
    sizes, weights, edges = (flag == ord("1") for flag in fmt.rjust(3, b"0"))
    ncon = int(words[3]) if len(words) > 3 else 0
    if ncon and not weights:
        raise file.refuse_last(f"ncon {ncon}, but by fmt {fmt.decode()} no weights")
    if ncon > LONGEST_LINE:
        raise file.refuse_last(f"ncon {ncon}; allowed: up to {LONGEST_LINE}")
    return Header(n, m, sizes + weights * max(ncon, 1), 1 + edges)
