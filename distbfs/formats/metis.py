"""METIS graphs: after a header, line i lists the neighbours of vertex i.

Header: ``VERTICES EDGES [FMT [NCON]]``; FMT has three flags, from the left: sizes of
vertices, weights of vertices (NCON each), weights of edges. Ids start at 1, ``%``
begins a comment line, an edge is listed at both ends and passed on once; sizes and
weights are ignored. Source: Karypis, METIS manual 5.1.0 (2013), section 4.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import InputError
from distbfs.formats.base import EdgeFile, Reader, Take
from distbfs.formats.lines import SHOWN, LineFault, read_id
from distbfs.formats.packed import id_fault
from distbfs.formats.symmetry import Mirror
from distbfs.formats.text import LONGEST_LINE, SIZE, TextFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distbfs.types import Array, Ids, Marks

PIECE_BYTES = 2 << 20
SAFE_DIGITS = 18
NEWLINE, SPACE, TAB, RETURN, PERCENT = (ord(x) for x in "\n \t\r%")


class PieceFile(TextFile):
    """A text file split at blanks too, since the line of a hub may be very long."""

    def blocks(self) -> Iterator[bytes]:
        """Yield the rest of the file in pieces that end with a blank or line end."""
        carry, last = b"", b"\n"
        while data := self.next_block():
            self._check(data, b"")
            cut = max(data.rfind(x) for x in (b"\n", b" ", b"\t")) + 1
            if cut:
                yield carry + data[:cut]
                carry, last = data[cut:], data[cut - 1 : cut]
            else:
                carry += data
            if len(carry) > LONGEST_LINE:
                raise self.refuse(f"a column of more than {LONGEST_LINE} bytes")
        if carry or last != b"\n":
            yield carry + b"\n"


@dataclass(frozen=True)
class Header:
    """Sizes; numbers before the neighbours of a line; numbers a neighbour."""

    n: int
    m: int
    before: int
    step: int


@dataclass(frozen=True)
class ParsedNumbers:
    """The numbers of a piece, int64 [k] each, and facts about its lines.

    value; line: of the piece, from 0; vertex: zero-based; place: in their line
    counts: numbers of each line, including earlier pieces; full: lines that end here
    and are no comments; first: vertex of each line
    """

    value: Ids
    line: Ids
    vertex: Ids
    place: Ids
    counts: Ids
    full: Marks
    first: Ids


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
        """Return vertices and neighbours, zero-based int64 [k]; InputError at once."""
        data, starts, comments = self._plain(piece)
        newline = data == NEWLINE
        gap = newline | (data == SPACE) | (data == TAB)
        begins = np.flatnonzero(~gap & np.concatenate(([True], gap[:-1])))
        ends = np.flatnonzero(gap & np.concatenate(([False], ~gap[:-1])))
        line = np.cumsum(newline, dtype=np.int64)[begins]
        counts = np.bincount(line, minlength=len(starts))
        place = np.arange(len(begins)) - np.repeat(np.cumsum(counts) - counts, counts)
        counts[0] += self.seen or 0
        place[: np.searchsorted(line, 1)] += self.seen or 0
        first = self.vertex + np.cumsum(~comments) - ~comments
        odd = ~gap & (data - np.uint8(ord("0")) > 9)
        worst = np.append(begins[ends - begins > SAFE_DIGITS][:1], len(piece))[0]
        if odd.any():
            at = int(np.searchsorted(begins, np.argmax(odd), "right")) - 1
            worst = min(worst, begins[at])
        if worst < len(piece):
            at = int(np.searchsorted(begins, worst))
            token = data[begins[at] : ends[at]].tobytes()
            if worst:
                self.parse(piece[:worst])
            raise self.file.refuse(self._token_fault(token, int(place[at])))
        value = np.zeros(0, dtype=np.int64)
        if len(begins):
            value = np.fromstring(data.tobytes(), dtype=np.int64, sep=" ")
        full = ~comments
        full[-1] = False
        numbers = ParsedNumbers(value, line, first[line], place, counts, full, first)
        pairs = self._neighbours(numbers)
        self.vertex = int(first[-1])
        self.comment = bool(comments[-1])
        self.seen = None if starts[-1] == len(piece) else int(counts[-1])
        self.file.line += len(starts) - 1
        return pairs

    def _plain(self, piece: bytes) -> tuple[Array, Array, Array]:
        """Return the bytes with comments and line ends blanked, uint8; lines; comments.

        Lines: the start of each, and of the unfinished one after the last end.
        """
        data = np.frombuffer(piece, dtype=np.uint8)
        newline = data == NEWLINE
        starts = np.concatenate(([0], np.flatnonzero(newline) + 1))
        comments = data[np.minimum(starts, len(data) - 1)] == PERCENT
        comments &= starts < len(data)
        if self.seen is not None:
            comments[0] = self.comment
        blank = np.flatnonzero(data == RETURN)
        blank = blank[newline[blank + 1]]
        if len(blank) or comments.any():
            data = data.copy()
            lengths = np.diff(np.append(starts, len(data)))
            data[np.repeat(comments, lengths) & ~newline] = SPACE
            data[blank] = SPACE
        return data, starts, comments

    def _token_fault(self, token: bytes, place: int) -> str:
        """Describe the error of a column that is not an integer."""
        place -= self.header.before
        if place < 0 or place % self.header.step:
            shown = ascii(token[:SHOWN].decode("ascii", "backslashreplace"))
            return f"{shown} is not a size or weight"
        try:
            read_id(token, 1, self.header.n)
        except LineFault as fault:
            return str(fault)
        return f"a number of more than {SAFE_DIGITS} digits"

    def _neighbours(self, numbers: ParsedNumbers) -> tuple[Ids, Ids]:
        """Return vertices and neighbours; InputError for the first bad line."""
        n, before, step = self.header.n, self.header.before, self.header.step
        faults: list[tuple[int, str]] = []
        late = numbers.line[numbers.vertex >= n][:1]
        faults += [(int(x), f"more lines than the {n} vertices declared") for x in late]
        counts = numbers.counts - before
        lines = numbers.full & (numbers.first < n)
        lines &= (counts < 0) | (counts % step != 0)
        for bad in np.flatnonzero(lines)[:1].tolist():
            count = int(numbers.counts[bad])
            what = f"{count} numbers, where sizes and weights take {before}"
            if count >= before:
                what = "a neighbour without its weight"
            faults.append((bad, what))
        place = numbers.place - before
        ids = (place >= 0) & (place % step == 0)
        u, v, line = numbers.vertex[ids], numbers.value[ids], numbers.line[ids]
        fault = id_fault(v, n, 1)
        if fault:
            faults.append((int(line[fault[0]]), fault[1]))
        loops = np.flatnonzero(u == v - 1)[:1].tolist()
        faults += [(int(line[x]), f"vertex {v[x]} lists itself") for x in loops]
        if faults:
            bad, what = min(faults, key=lambda x: x[0])
            raise self.file.refuse(what, self.file.line + bad)
        return u, v - 1


class MetisReader(Reader):
    """Reads METIS graphs."""

    name = "metis"
    suffixes = (".graph", ".metis")
    sized = ("a METIS file", 1)

    def read(self, path: Path, take: Take) -> EdgeFile:
        """Read a file; InputError for any departure from the format."""
        self.options.check_undirected(path, "a METIS graph")
        neighbours = 0
        mirror = Mirror(self.options.compiled)
        with PieceFile(path, PIECE_BYTES, progress=self.options.progress) as file:
            header = _header(file)
            lists = ListParser(file, header)
            for piece in file.blocks():
                u, v = lists.parse(piece)
                neighbours += len(u)
                pairs = mirror.once(u, v)
                if len(pairs):
                    take(pairs)
            at = max(file.line - 1, 1)
            if lists.vertex < header.n:
                what = f"{header.n} vertices declared, {lists.vertex} found"
                raise file.refuse(what, at)
            if neighbours != 2 * header.m:
                what = f"{header.m} edges declared, {neighbours} neighbours found"
                raise file.refuse(f"{what}, where two an edge are expected", at)
            if not mirror.even():
                raise InputError(f"{path}: an edge is not listed from both ends")
            unread = "sizes and weights" if header.before or header.step > 1 else ""
            n, m, digest = header.n, header.m, file.digest
            return EdgeFile(self.name, n, m, digest, unread=unread, one_based=True)


def _header(file: TextFile) -> Header:
    """Read comments and the header."""
    line = file.header_line()
    if not line:
        raise file.refuse("the file is empty")
    while line.startswith(b"%"):
        line = file.header_line()
    at = max(file.line - 1, 1)
    words = line.split()
    usual = len(words) <= 4 and all(map(SIZE.fullmatch, words))
    lacking = "the header needs vertices, edges and, if so, fmt, ncon"
    n, m = file.sizes(words[:2] if usual else [], 2, lacking)
    if not n:
        raise file.refuse("no vertices", at)
    fmt = words[2] if len(words) > 2 else b"0"
    if not re.fullmatch(rb"[01]{1,3}", fmt):
        raise file.refuse(f"fmt {fmt.decode()!a}; allowed: three of 0, 1", at)
    sizes, weights, edges = (flag == ord("1") for flag in fmt.rjust(3, b"0"))
    ncon = int(words[3]) if len(words) > 3 else 0
    if ncon and not weights:
        raise file.refuse(f"ncon {ncon}, but by fmt {fmt.decode()} no weights", at)
    if ncon > LONGEST_LINE:
        raise file.refuse(f"ncon {ncon}; allowed: up to {LONGEST_LINE}", at)
    return Header(n, m, sizes + weights * max(ncon, 1), 1 + edges)
