"""Pairs of ids from a text: in C, or in Python where no compiler is.

The rules are those of ``read_line`` for lines, and of ``csv`` for records, from the
first line with a quote on, or of all lines where ids are text. The kernel (parse.c)
stops at what is unusual, which Python reads or refuses.
"""

from __future__ import annotations

import csv
import ctypes
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from distbfs.device import cc
from distbfs.device.structures import structure
from distbfs.formats.delimited import BLANKS, RecordLines, cut, quote_fault
from distbfs.formats.line_rules import LARGEST_ID, LineRules
from distbfs.formats.lines import LineFault, UnledLine, read_id, read_line

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from distbfs.formats.text import TextFile
    from distbfs.formats.text_ids import Words
    from distbfs.types import Ids

# pairs, piece by piece; returns the blocks that are left for csv, [] if none are
Reading: TypeAlias = "Generator[Ids, None, Iterable[bytes]]"

SOURCE = Path(__file__).with_name("parse.c")
SHORTEST_LINE = 4
PAIRS = 1 << 16
UNUSUAL = 1  # as in parse.c
SAME = ("base", "most_u", "most_v", "loops", "canonical", "fields", "quotes")


def read_pairs(
    file: TextFile,
    rules: LineRules,
    declared: int | None = None,
    *,
    words: Words | None = None,
    compiled: bool = True,
) -> Iterator[Ids]:
    """Yield the pairs in the rest of a file, zero-based int64 [k, 2], in order.

    declared: their number by the header; words: numbers ids that are text, None where
    ids are numbers; compiled: use the kernel if available. Raises InputError
    ``FILE:LINE: what is wrong`` at the first bad line, for the line where a record
    begins, at an entry beyond the declared ones, and at the end where there are fewer.
    """
    library = cc.load_or_none(SOURCE) if compiled else None
    blocks: Iterable[bytes] = file.blocks()
    if library is not None and (words is None or words.table is not None):
        blocks = yield from _compiled(library, file, blocks, rules, declared, words)
    elif words is None and rules.places == (0, 1):
        blocks = yield from _lines(file, blocks, rules, declared)
    if blocks:
        yield from _records(file, blocks, rules, words)
    if declared is not None and file.entries < declared:
        what = f"{declared} entries declared, {file.entries} found"
        raise file.refuse_last(what)


def _compiled(
    library: ctypes.CDLL,
    file: TextFile,
    blocks: Iterable[bytes],
    rules: LineRules,
    declared: int | None,
    words: Words | None,
) -> Reading:
    """Read pairs by the kernel."""
    table = None if words is None else words.table
    state = structure(SOURCE, "rules")(
        separator=ord(rules.separator),
        lead=ord(rules.lead or b"\0"),
        comment_a=rules.comments[0],
        comment_b=rules.comments[-1],
        u=rules.places[0],
        v=rules.places[1],
        records=table is not None or rules.places != (0, 1),
        **{name: getattr(rules, name) for name in SAME},
    )
    library.parse.restype = ctypes.c_int64
    rest = b""
    blocks = iter(blocks)
    for block in blocks:
        file.line -= rest.count(b"\n")
        whole = rest + block
        text = np.array(np.frombuffer(whole, dtype=np.uint8), copy=table is not None)
        left = LARGEST_ID if declared is None else declared - file.entries
        capacity = min(len(text) // SHORTEST_LINE + 1, left)
        pairs = np.empty((capacity, 2), dtype=np.int64)
        sizes = None if table is None else np.empty_like(pairs)
        state.set(capacity=capacity, sizes=sizes)
        size, arrays = ctypes.c_int64(len(text)), (cc.pointer(text), cc.pointer(pairs))
        pairs = pairs[: library.parse(ctypes.byref(state), size, *arrays)]
        if words is not None and table is not None and sizes is not None:
            known = table.count
            flat = sizes.ravel()[: pairs.size]
            pairs = table.number(text, pairs.ravel(), flat).reshape(-1, 2)
            if words.first_fault(known):
                words.leave_table(known)
                return chain([whole], blocks)
        file.entries += len(pairs)
        file.line += state.lines
        file.extra += state.extra
        if len(pairs):
            yield pairs
        rest = whole[state.at :]
        if state.end == UNUSUAL:
            blocks = chain([rest], blocks)
            if state.records:
                return blocks
            return (yield from _lines(file, blocks, rules, declared))
        file.line += rest.count(b"\n")  # as when the next block is checked
    file.line -= rest.count(b"\n")
    return [rest] if rest else []


def _lines(
    file: TextFile, blocks: Iterable[bytes], rules: LineRules, declared: int | None
) -> Reading:
    """Read pairs line by line."""
    blocks = iter(blocks)
    for block in blocks:
        pairs: list[tuple[int, int]] = []
        start, fault = 0, ""
        for line in block[:-1].split(b"\n"):
            try:
                pair = read_line(line, rules)
            except LineFault as error:
                unled = isinstance(error, UnledLine)
                pair, fault = None if unled else (0, 0, False), str(error)
            if pair is not None and file.entries + len(pairs) == declared:
                fault = f"more entries than the {declared} declared"
            if fault:
                break
            if pair is not None:
                pairs.append(pair[:2])
                file.extra += pair[2]
            file.line += 1
            start += len(line) + 1
        file.entries += len(pairs)
        if pairs:
            yield np.array(pairs, dtype=np.int64)
        if fault and rules.quotes and b'"' in line:
            return chain([block[start:]], blocks)
        if fault:
            raise file.refuse(fault)
    return []


def _records(
    file: TextFile, blocks: Iterable[bytes], rules: LineRules, words: Words | None
) -> Iterator[Ids]:
    """Yield the pairs of records of blocks of whole lines."""
    if words is not None:
        words.leave_table()
    lines = RecordLines(file, blocks)
    numbers: list[int] = []

    def number(word: bytes, most: int) -> int:
        if words is not None:
            return words.number(word)
        return read_id(word, rules.base, most, rules.canonical)

    sides = tuple(zip(rules.places, (rules.most_u, rules.most_v), strict=True))
    try:
        for row in cut(lines, rules.separator.decode()):
            for place, most in sides:
                numbers.append(number(_id(row, place), most))
            file.extra += len(row) > 2 and sum(map(bool, row)) > 2
            if len(numbers) >= 2 * PAIRS:
                yield np.array(numbers, dtype=np.int64).reshape(-1, 2)
                numbers = []
            lines.within = False
    except LineFault as fault:
        raise file.refuse(str(fault), lines.begin) from fault
    except csv.Error as error:
        raise file.refuse(quote_fault(error), lines.begin) from error
    if numbers:
        yield np.array(numbers, dtype=np.int64).reshape(-1, 2)


def _id(row: list[str], place: int) -> bytes:
    """Return a column of a record without blanks around it; LineFault for none."""
    if len(row) <= place or len(row) < 2:
        columns = "one column" if len(row) == 1 else f"{len(row)} columns"
        expected = "two ids are" if place < 2 else f"column {place + 1} is"
        raise LineFault(f"{columns}, where {expected} expected")
    column = row[place].strip(BLANKS)
    if not column:
        raise LineFault("an empty column")
    if column[0] == '"' and row[place][0] in BLANKS:
        raise LineFault("a quote after a tab")
    return column.encode(errors="surrogateescape")
