"""Detection of the layout of delimited text: its separator and its columns of ids.

Tabs, semicolons, commas or blanks separate the columns, whichever gives two columns in
the first lines, and nothing else does. Blanks around a column are ignored. Lines
between records that begin with ``#`` or ``%`` are comments.
"""

from __future__ import annotations

import csv
import io
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from distbfs.formats.base import HEAD_BYTES
from distbfs.formats.columns import choose, usual
from distbfs.formats.lines import BLANKS, COMMENTS, NUMBER, cut

SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas", " ": "blanks"}
SAMPLE_RECORDS = 100
BRACKET = re.compile("[][{}<>]")
INTEGER = re.compile(r"[0-9]+")
SIGN = re.compile(r"[^\w\s]+")
END_SIGN = re.compile("[:|=>]")
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True)
class LineLayout:
    """How the lines of a file are split.

    separator: a tab, semicolon or comma; a blank stands for any blanks and tabs
    columns: indices of the two id columns in a record
    names: names of these columns in the first record, empty if that is an edge
    header: number of lines of a first record that names columns
    first: the columns of the first record if it is an edge
    """

    separator: str = " "
    columns: tuple[int, int] = (0, 1)
    names: tuple[str, ...] = ()
    header: int = 0
    first: tuple[str, ...] = ()

    def of_part(self, sample: bytes) -> LineLayout:
        """Return the layout of another part of the text from its first lines.

        Its first record names the columns if it equals the first part's first record.
        """
        rows = _rows(_lines_of(sample), self.separator)[:1]
        names = [tuple(x[k] for k in self.columns if k < len(x)) for x in rows]
        header = self.header if self.names and names == [self.names] else 0
        return replace(self, header=header, first=())


def find_layout(
    sample: bytes,
    wanted: tuple[str, str] | None,
    where: str,
    header: bool | None = None,
) -> LineLayout:
    """Detect the layout of a text from its first lines.

    The first record names the columns if ``header`` says so or ``wanted`` requires it.
    If ``header`` is None, it does so too if two of its names are usual ones and are not
    ids of the next records, or if two columns are integers from the second record on.
    Raises InputError for a missing name.
    """
    lines = _lines_of(sample)

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
    names = tuple(first[k] for k in columns if k < len(first))
    return LineLayout(separator, columns, names, records.line_num)


def doubt_of_edges(sample: bytes, header: bool | None) -> str:
    """Return why the first lines of a text are not an edge list, "" if they are.

    The reason is that lines have different numbers of columns, or that a sign such as
    -> stands between the ids. Files whose columns have usual names are edge lists.
    """
    lines = _lines_of(sample)
    layout = find_layout(sample, None, "", header)
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
        said = f"{sign!a} stands between the ids of its lines; allowed: {allowed}"
        return f"{said}; sed 's/{sign}/ /' replaces it"
    if len(widths) < 2 or max(widths) < 3:
        return ""
    return (
        f"lines have {min(widths)} to {max(widths)} columns, as in an adjacency list, "
        "which cannot be read; --format edge-list takes two columns of each line, "
        "--header leaves out the first line"
    )


def _sign(rows: list[list[str]]) -> str:
    """Return the text, such as ->, between the ids of all records; "" if none."""
    between = {row[1] if len(row) > 2 else "" for row in rows}
    ends = {row[0][-1:] for row in rows}
    for signs, allowed in ((between, SIGN), (ends, END_SIGN)):
        if len(signs) == 1 and allowed.fullmatch(sign := signs.pop()):
            return sign
    return ""


def resembles_edges(sample: bytes) -> bool:
    """Return whether the first lines of a text look like an edge list.

    They do if all records have the same number of columns, and the ids are integers, or
    names without brackets that are not separated by blanks.
    """
    if CONTROL.search(sample):
        return False
    lines = _lines_of(sample)
    separator = find_layout(sample, None, "").separator
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
