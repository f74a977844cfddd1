"""Delimited text: its separator, its columns of ids, and its records.

Columns are separated by tabs, semicolons, commas or blanks, whichever gives two columns
in the first lines, and by nothing else; blanks around a column are ignored. A quoted
column may contain separators and line ends; a quote within is doubled (RFC 4180). Lines
that begin with ``#`` or ``%`` between records are comments.
"""

from __future__ import annotations

import csv
import ctypes
import io
import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cc
from distbfs.device.structures import structure
from distbfs.formats.base import HEAD_BYTES
from distbfs.formats.columns import choose, usual
from distbfs.formats.lines import NUMBER, SHORTEST_LINE, SOURCE, LineFault, read_id

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from distbfs.formats.line_rules import LineRules
    from distbfs.formats.text import TextFile
    from distbfs.formats.text_ids import Words
    from distbfs.types import Ids

SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas", " ": "blanks"}
SAMPLE_RECORDS = 100
PAIRS = 1 << 16
UNUSUAL, NO_ROOM = 1, 3  # as in parse.c
BLANKS = " \t"
COMMENTS = "#%"
BRACKET = re.compile("[][{}<>]")
TAB = re.compile(r'"[^"]*"?|\t')
INTEGER = re.compile(r"[0-9]+")
SIGN = re.compile(r"[^\w\s]+")
END_SIGN = re.compile("[:|=>]")
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
FAULTS = {
    "new-line": "a carriage return inside the line",
    "unexpected end": "a quote that does not end",
    "field larger": "a column too long, or a quote that does not end",
    "expected after": "a quoted column goes on after its quote",
}


@dataclass(frozen=True)
class LineLayout:
    """How the lines of a file are split.

    separator: a tab, semicolon or comma; a blank for any blanks and tabs
    columns: indices of both ids in a record
    names: their names in the first record, empty if it is an edge
    header: lines of such a first record
    first: the columns of the first record if it is an edge
    """

    separator: str = " "
    columns: tuple[int, int] = (0, 1)
    names: tuple[str, ...] = ()
    header: int = 0
    first: tuple[str, ...] = ()


def find_layout(
    sample: bytes,
    wanted: tuple[str, str] | None,
    where: str,
    header: bool | None = None,
) -> LineLayout:
    """Detect the layout of a text from its first lines.

    The first record names the columns if ``header`` says so or ``wanted`` requires it;
    else, unless ``header`` is False, if two of its names are usual ones and no ids of
    the next records, or if two columns are integers from the second record on. Raises
    InputError for a missing name.
    """
    return _layout(_lines_of(sample), wanted, where, header)


def doubt_of_edges(sample: bytes, header: bool | None) -> str:
    """Return why the first lines of a text may not be an edge list, "" if they are.

    Their numbers of columns differ, or a sign such as -> stands between the ids. Files
    whose columns have usual names are edge lists.
    """
    lines = _lines_of(sample)
    layout = _layout(lines, None, "", header)
    if usual(layout.names):
        return ""
    rows = _rows(lines, layout.separator)[bool(layout.names) :]
    if len(sample) >= HEAD_BYTES:
        rows = rows[:-1]  # the last may have been cut inside quotes
    blanks = layout.separator == " "
    widths = {sum(map(bool, row)) if blanks else len(row) for row in rows}
    sign = _sign(rows)
    if sign:
        allowed = ", ".join(SEPARATORS.values())
        return f"{sign!a} stands between the ids of its lines; allowed: {allowed}"
    if len(widths) < 2 or max(widths) < 3:
        return ""
    return (
        f"lines have {min(widths)} to {max(widths)} columns, as in an adjacency list, "
        "which cannot be read; --format edge-list takes two columns of each line, "
        "--header leaves out the first line"
    )


def _sign(rows: list[list[str]]) -> str:
    """Return what all records have between the ids besides separators, or ""."""
    between = {row[1] if len(row) > 2 else "" for row in rows}
    ends = {row[0][-1:] for row in rows}
    for signs, allowed in ((between, SIGN), (ends, END_SIGN)):
        if len(signs) == 1 and allowed.fullmatch(sign := signs.pop()):
            return sign
    return ""


def resembles_edges(sample: bytes) -> bool:
    """Return whether the first lines of a text look like an edge list.

    All records have the same number of columns, and ids that are integers, or names
    without brackets that are not separated by blanks.
    """
    if CONTROL.search(sample):
        return False
    lines = _lines_of(sample)
    separator = _layout(lines, None, "", None).separator
    rows = _rows(lines, separator)
    counts = {len(row) for row in rows}
    even = len(counts) == 1 and min(counts) > 1
    names = not any(BRACKET.search(x) for row in rows for x in row[:2])
    return even and (_integers(rows[1:] or rows) or (names and separator != " "))


def _lines_of(sample: bytes) -> list[str]:
    """Return the complete lines of a sample that are neither comments nor blank."""
    if len(sample) >= HEAD_BYTES:
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    text = sample.partition(b"\0")[0].decode(errors="surrogateescape")
    lines = io.StringIO(text, newline="\n")
    return [x for x in lines if x.strip() and x.lstrip(BLANKS)[0] not in COMMENTS]


def _layout(
    lines: list[str],
    wanted: tuple[str, str] | None,
    where: str,
    header: bool | None,
) -> LineLayout:
    def fit(separator: str) -> tuple[bool, bool, float]:
        rows = _rows(lines, separator)
        named = wanted is not None and bool(rows) and set(wanted) <= set(rows[0])
        wide = sum(len(row) > 1 and all(row[:2]) for row in rows)
        numbers = bool(rows) and len(rows[0]) > 1 and _integers(rows[1:] or rows)
        return named, numbers, wide / max(len(rows), 1)

    separator = max(SEPARATORS, key=fit) if lines else " "
    first, *rest = _rows(lines, separator) or [[]]
    columns = choose(first, wanted, where) if wanted and first else usual(first)
    if columns is None:
        columns = (0, 1)
        numbers = any(NUMBER.fullmatch(x.encode(errors="replace")) for x in first[:2])
        named = len(first) > 1 and _integers(rest) and not numbers
    else:
        used = {row[k] for row in rest for k in columns if k < len(row)}
        named = wanted is not None or not used & {first[k] for k in columns}
    named = named if header is None else header
    if not named or not first:
        return LineLayout(separator, first=tuple(first))
    records = cut(lines, separator, strict=False)
    next(records)
    names = tuple(first[k] for k in columns)
    return LineLayout(separator, columns, names, records.line_num)


def _rows(lines: list[str], separator: str) -> list[list[str]]:
    """Return the columns of the first records."""
    rows: list[list[str]] = []
    with suppress(csv.Error):
        rows.extend(
            [column.strip(BLANKS) for column in row]
            for row in islice(cut(lines, separator, strict=False), SAMPLE_RECORDS)
        )
    return rows


def _integers(rows: list[list[str]]) -> bool:
    """Return whether there are records and their first two columns are integers."""
    return bool(rows) and all(
        len(row) > 1 and INTEGER.fullmatch(row[0]) and INTEGER.fullmatch(row[1])
        for row in rows
    )


def cut(lines: Iterable[str], separator: str, *, strict: bool = True) -> Any:
    r"""Return a ``csv.reader`` of lines that end with ``\n``."""
    if separator == " ":
        lines = (TAB.sub(_blank, line) if "\t" in line else line for line in lines)
    return csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=strict)


def _blank(match: re.Match[str]) -> str:
    """Return a blank for a tab; quoted text unchanged."""
    return " " if match[0] == "\t" else match[0]


class RecordLines:
    """The lines of records, one by one, without comments and blank lines between them.

    ``begin`` is the line, from 1, where the current record begins; after each record
    the caller sets ``within`` to False.
    """

    def __init__(self, file: TextFile, blocks: Iterable[bytes]) -> None:
        self.file = file
        self.blocks = blocks
        self.begin = file.line
        self.within = False

    def __iter__(self) -> Iterator[str]:
        for block in self.blocks:
            text = block.decode(errors="surrogateescape")
            for line in io.StringIO(text, newline="\n"):
                self.file.line += 1
                if not self.within:
                    rest = line.lstrip(BLANKS)
                    if rest[0] in COMMENTS or rest in ("\n", "\r\n"):
                        continue
                    self.begin = self.file.line - 1
                    self.within = True
                yield line


def read_records(
    file: TextFile,
    blocks: Iterable[bytes],
    layout: LineLayout,
    rules: LineRules,
    words: Words | None,
    compiled: bool = True,
) -> Iterator[Ids]:
    """Yield the pairs of blocks of whole lines, int64 [k, 2], in order.

    rules: of ids that are numbers; words: number ids that are text, None for numbers;
    compiled: use the kernel if available. Raises InputError ``FILE:LINE: what is
    wrong``, for the line where a record begins.
    """
    library = cc.load_or_none(SOURCE) if compiled else None
    kind = layout, rules, words
    if library is not None:
        rest = yield from _compiled_records(library, file, iter(blocks), *kind)
        if rest is None:
            return
        blocks = rest
    if words is not None:
        words.leave_table()
    yield from _plain_records(file, blocks, *kind)


def _compiled_records(
    library: ctypes.CDLL,
    file: TextFile,
    blocks: Iterator[bytes],
    layout: LineLayout,
    rules: LineRules,
    words: Words | None,
) -> Generator[Ids, None, Iterable[bytes] | None]:
    """Yield pairs like ``read_records``.

    Returns the blocks from an unusual record on, None if there is none.
    """
    table = None if words is None else words.table
    state = structure(SOURCE, "records")(
        separator=ord(layout.separator),
        u=layout.columns[0],
        v=layout.columns[1],
        base=rules.base,
        most_u=rules.most_u,
        most_v=rules.most_v,
        canonical=rules.canonical,
        words=None if table is None else ctypes.addressof(table.record),
    )
    library.parse_records.restype = ctypes.c_int64
    rest = b""
    for block in blocks:
        file.line -= rest.count(b"\n")
        text, end = rest + block, NO_ROOM
        while end == NO_ROOM:
            pairs = np.empty((len(text) // SHORTEST_LINE + 1, 2), dtype=np.int64)
            size = ctypes.c_int64(len(text))
            arguments = ctypes.byref(state), size, text, cc.pointer(pairs)
            count = library.parse_records(*arguments)
            file.line += state.lines
            file.extra += state.extra
            if count:
                yield pairs[:count]
            text, end = text[state.at :], state.end
            if end == NO_ROOM and table is not None:
                table.grow(len(text))
        if end == UNUSUAL:
            return chain([text], blocks)
        rest = text
        file.line += rest.count(b"\n")  # as when the next block is checked
    file.line -= rest.count(b"\n")
    return [rest] if rest else None


def _plain_records(
    file: TextFile,
    blocks: Iterable[bytes],
    layout: LineLayout,
    rules: LineRules,
    words: Words | None,
) -> Iterator[Ids]:
    """Do the work of ``read_records`` with Python's ``csv``."""
    lines = RecordLines(file, blocks)
    numbers: list[int] = []

    def number(word: bytes, most: int) -> int:
        if words is not None:
            return words.number(word)
        return read_id(word, rules.base, most, rules.canonical)

    sides = tuple(zip(layout.columns, (rules.most_u, rules.most_v), strict=True))
    try:
        for row in cut(lines, layout.separator):
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


def quote_fault(error: csv.Error) -> str:
    """Return what an error of Python's ``csv`` means."""
    return next((y for x, y in FAULTS.items() if x in str(error)), str(error))


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
