"""Pairs of ids from lines of text: one strict rule, applied in three ways.

``read_line`` is the rule for a single line. ``parse_compiled`` (parse.c) and
``parse_numpy`` apply it to whole blocks; both stop at the first bad line, which
``read_line`` then describes, so that errors are the same everywhere.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cc
from distbfs.formats.id_pairs import PIECE_BYTES, parse_regular
from distbfs.formats.line_rules import LARGEST_ID, LineRules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distbfs.formats.text import TextFile
    from distbfs.types import Ids

SOURCE = Path(__file__).with_name("parse.c")
SHORTEST_LINE = 4
SHOWN = 40
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class LineFault(ValueError):  # noqa: N818
    """A line is not a pair of ids; the message says why."""


@dataclass(frozen=True)
class Parsed:
    """Pairs, zero-based int64 [k, 2]; lines read; offset of a bad line or -1.

    extra: lines with more than two columns
    """

    pairs: Ids
    lines: int
    bad: int
    extra: int = 0


def read_line(line: bytes, rules: LineRules) -> tuple[int, int] | None:
    """Parse a line without its end to a zero-based pair, None for no pair.

    Blank lines and comments have no pair. Raises LineFault for a bad line.
    """
    line = line[:-1] if line.endswith(b"\r") else line
    rest = line.strip(b" \t")
    if not rest or rest[:1] in rules.comments:
        return None
    columns = split_columns(line, rules.separator)
    if not all(columns[:2]):
        raise LineFault("an empty column")
    u = read_id(columns[0], rules.base, rules.most_u, rules.canonical)
    if len(columns) < 2:
        raise LineFault("one column, where two ids are expected")
    v = read_id(columns[1], rules.base, rules.most_v, rules.canonical)
    if any(b"\r" in more for more in columns[2:]):
        raise LineFault("a carriage return inside the line")
    if rules.fields and len(columns) != rules.fields:
        raise LineFault(f"{len(columns)} columns, where {rules.fields} are expected")
    if not rules.fields and b'"' in line:
        raise LineFault("a quote")
    if u == v and not rules.loops:
        raise LineFault("an entry on the diagonal, which must be empty")
    return u, v


def split_columns(line: bytes, separator: bytes) -> list[bytes]:
    """Split a line without its end into columns, stripped of blanks."""
    if separator == b" ":
        return re.split(rb"[ \t]+", line.strip(b" \t"))
    return [column.strip(b" \t") for column in line.split(separator)]


def read_id(token: bytes, base: int, most: int, canonical: bool = False) -> int:
    """Parse a column to a zero-based id; LineFault if it is invalid.

    canonical: as in ``LineRules``
    """
    shown = ascii(token[:SHOWN].decode("ascii", "backslashreplace"))
    if not re.fullmatch(rb"[0-9]+", token):
        if re.fullmatch(rb"-[0-9]+", token):
            raise LineFault(f"a negative id {shown}")
        kind = "an integer id" if NUMBER.fullmatch(token) else "an id"
        raise LineFault(f"{shown} is not {kind}")
    digits = token.lstrip(b"0") or b"0"
    if canonical and digits != token:
        raise LineFault(f"{shown} has a leading zero")
    if len(digits) > len(str(LARGEST_ID)) or int(digits) > LARGEST_ID:
        raise LineFault(f"id {shown} is above 2^63-1")
    value = int(digits)
    if not base <= value <= most:
        upper = f"to {most}" if most < LARGEST_ID else "or more"
        raise LineFault(f"id {value} is out of range; allowed: {base} {upper}")
    return value - base


def parse_compiled(
    library: ctypes.CDLL, text: bytes, rules: LineRules, capacity: int
) -> Parsed:
    r"""Parse a block that ends with ``\n`` into at most ``capacity`` pairs."""
    pairs = np.empty((capacity, 2), dtype=np.int64)
    packed = rules.packed()
    where = np.zeros(3, dtype=np.int64)
    parse = library.parse_pairs
    parse.restype = ctypes.c_int64
    count = parse(
        ctypes.c_int64(len(text)),
        ctypes.c_char_p(text),
        cc.pointer(packed),
        ctypes.c_int64(capacity),
        cc.pointer(pairs),
        cc.pointer(where),
    )
    return Parsed(pairs[:count], int(where[1]), int(where[0]), int(where[2]))


def parse_numpy(text: bytes, rules: LineRules, capacity: int) -> Parsed:
    """Parse like ``parse_compiled``: by whole arrays, unusual pieces line by line."""
    pairs: list[Ids] = [np.zeros((0, 2), dtype=np.int64)]
    lines, start, extra = 0, 0, 0
    while start < len(text):
        stop = text.find(b"\n", min(start + PIECE_BYTES, len(text)) - 1) + 1
        piece = text[start:stop]
        regular = parse_regular(piece, rules)
        if regular is None or len(regular[0]) > capacity:
            parsed = _parse_lines(piece, rules, capacity)
            if parsed.bad >= 0:
                every = np.concatenate([*pairs, parsed.pairs])
                bad, extra = start + parsed.bad, extra + parsed.extra
                return Parsed(every, lines + parsed.lines, bad, extra)
            regular = parsed.pairs, parsed.extra
        pairs.append(regular[0])
        extra += regular[1]
        capacity -= len(regular[0])
        lines += piece.count(b"\n")
        start = stop
    return Parsed(np.concatenate(pairs), lines, -1, extra)


def _parse_lines(text: bytes, rules: LineRules, capacity: int) -> Parsed:
    """Parse line by line."""
    pairs: list[tuple[int, int]] = []
    start, bad, number, extra = 0, -1, 0, 0
    for line in text[:-1].split(b"\n"):
        try:
            pair = read_line(line, rules)
        except LineFault:
            bad = start
            break
        if pair is not None and len(pairs) == capacity:
            bad = start
            break
        if pair is not None:
            pairs.append(pair)
            columns = split_columns(line.removesuffix(b"\r"), rules.separator)
            extra += sum(map(bool, columns)) > 2
        number += 1
        start += len(line) + 1
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Parsed(array, number, bad, extra)


def read_pairs(
    file: TextFile,
    rules: LineRules,
    declared: int | None = None,
    compiled: bool = True,
    quoted: Callable[[Iterator[bytes]], Iterator[Ids]] | None = None,
) -> Iterator[Ids]:
    """Yield the pairs in the rest of a file, zero-based int64 [k, 2], in order.

    declared: their number by the header; compiled: use the kernel if available; quoted:
    yields the pairs of blocks of lines, from the first with a quote on. Raises
    InputError ``FILE:LINE: what is wrong`` at the first bad line, at an entry beyond
    the declared ones, and at the end where there are fewer.
    """
    library = cc.load_or_none(SOURCE) if compiled else None
    entries = 0
    blocks = file.blocks()
    for text in blocks:
        capacity = len(text) // SHORTEST_LINE + 1
        if declared is not None:
            capacity = min(capacity, declared - entries)
        if library is None:
            parsed = parse_numpy(text, rules, capacity)
        else:
            parsed = parse_compiled(library, text, rules, capacity)
        file.line += parsed.lines
        file.extra += parsed.extra
        entries += len(parsed.pairs)
        line = b""
        if parsed.bad >= 0:
            line = text[parsed.bad : text.index(b"\n", parsed.bad)]
            if quoted is None or b'"' not in line:
                raise file.refuse(_fault(line, rules, declared, entries))
        if len(parsed.pairs):
            yield parsed.pairs
        if line and quoted is not None:
            yield from quoted(chain([text[parsed.bad :]], blocks))
    if declared is not None and entries < declared:
        what = f"{declared} entries declared, {entries} found"
        raise file.refuse(what, max(file.line - 1, 1))


def _fault(line: bytes, rules: LineRules, declared: int | None, entries: int) -> str:
    """Describe the error of a line at which a parser stopped."""
    if entries == declared:
        return f"more entries than the {declared} declared"
    try:
        read_line(line, rules)
    except LineFault as fault:
        return str(fault)
    return "the line cannot be read"
