"""Records of text, whose columns may be quoted, and the ids in them.

Quotes have the meaning that Python's ``csv`` gives them: a quoted column may contain
separators and line ends, and a quote inside it is doubled (RFC 4180).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distbfs.formats.ids import LARGEST_ID, out_of_range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distbfs.formats.text import TextFile

SHOWN = 40
DIGITS = len(str(LARGEST_ID))
BLANKS = " \t"
COMMENTS = "#%"
TAB = re.compile(r'"[^"]*"?|\t')
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
FAULTS = {
    "new-line": "a carriage return inside the line",
    "unexpected end": "a quote that does not end",
    "field larger": "a column too long, or a quote that does not end",
    "expected after": "a quoted column continues after its closing quote",
}


class LineFault(ValueError):  # noqa: N818
    """A record is not a pair of ids; the message says why."""


@dataclass(frozen=True)
class LineRules:
    """The allowed content of a record.

    comments: bytes that begin a comment line, eight at most
    lead: a letter that is the first column of each record, or ""
    unled: function that describes, from its columns, a record that lacks the letter
    separator: a comma, tab or semicolon, with or without blanks around it; " " stands
    for any blanks
    fields: number of columns of each record; 0 for both ids and any number of ignored
    columns
    places: indices of the columns of both ids
    quotes: whether columns may be quoted
    base: the lowest id in the file, 0 or 1
    most_u, most_v: the largest id in the first and in the second column of the file
    loops: whether both ids may be the same
    canonical: whether an id with a leading zero, as 007, counts as text
    """

    comments: str = COMMENTS
    lead: str = ""
    unled: Callable[[list[str]], str] = repr
    separator: str = " "
    fields: int = 0
    places: tuple[int, int] = (0, 1)
    quotes: bool = True
    base: int = 0
    most_u: int = LARGEST_ID
    most_v: int = LARGEST_ID
    loops: bool = True
    canonical: bool = False


class Records:
    """The records in blocks of whole lines, each a list of columns.

    ``begin`` is the number of the line, from 1, where the current record begins.
    Iteration raises InputError ``FILE:LINE: what is wrong`` for wrong quotes.
    """

    def __init__(
        self, file: TextFile, blocks: Iterable[bytes], rules: LineRules
    ) -> None:
        self.file = file
        self.blocks = blocks
        self.rules = rules
        self.begin = file.line
        self._within = self._blank_ends = False

    def __iter__(self) -> Iterator[list[str]]:
        rules = self.rules
        try:
            for row in cut(self._lines(), rules.separator, quotes=rules.quotes):
                self._within = False
                if rules.separator == " " and self._blank_ends and not row[-1]:
                    row.pop()
                yield row
        except csv.Error as error:
            raise self.file.refuse(quote_fault(error), self.begin) from error

    def _lines(self) -> Iterator[str]:
        """Yield the lines; skip comments and blank lines between records."""
        for block in self.blocks:
            text = block.decode(errors="surrogateescape")
            for line in io.StringIO(text, newline="\n"):
                self.file.line += 1
                if not self._within:
                    rest = line.lstrip(BLANKS)
                    if rest[0] in self.rules.comments or not rest.strip("\r\n"):
                        continue
                    self.begin = self.file.line - 1
                    self._within = True
                self._blank_ends = line.rstrip("\r\n").endswith(tuple(BLANKS))
                yield line


def column(row: list[str], place: int) -> bytes:
    """Return a column of a record without blanks around it; LineFault if missing."""
    if len(row) <= place:
        columns = "one column" if len(row) == 1 else f"{len(row)} columns"
        expected = "two ids are" if place < 2 else f"column {place + 1} is"
        raise LineFault(f"{columns}, where {expected} expected")
    word = row[place].strip(BLANKS)
    if not word:
        raise LineFault("an empty column")
    if word[0] == '"' and row[place][0] in BLANKS:
        raise LineFault("a quote after a tab")
    return word.encode(errors="surrogateescape")


def cut(
    lines: Iterable[str], separator: str, *, strict: bool = True, quotes: bool = True
) -> Any:
    r"""Return a ``csv.reader`` for lines that end with ``\n``."""
    if separator == " ":
        tabs = TAB if quotes else re.compile("\t")
        lines = (tabs.sub(_blank, line) if "\t" in line else line for line in lines)
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    form: dict[str, Any] = {"delimiter": separator, "quoting": quoting}
    return csv.reader(lines, skipinitialspace=True, strict=strict, **form)


def _blank(match: re.Match[str]) -> str:
    """Return a blank for a tab, and quoted text unchanged."""
    return " " if match[0] == "\t" else match[0]


def quote_fault(error: csv.Error) -> str:
    """Translate an error of Python's ``csv`` into a message."""
    return next((y for x, y in FAULTS.items() if x in str(error)), str(error))


def read_id(token: bytes, base: int, most: int, canonical: bool = False) -> int:
    """Parse a column to a zero-based id; LineFault if it is invalid.

    canonical: as in ``LineRules``
    """
    digits = token.lstrip(b"0") or b"0"
    if token.isdigit() and len(digits) <= DIGITS and (digits == token or not canonical):
        value = int(digits)
        if base <= value <= most:
            return value - base
    raise LineFault(_id_fault(token, digits, base, most, canonical))


def _id_fault(
    token: bytes, digits: bytes, base: int, most: int, canonical: bool
) -> str:
    """Describe why a column is not an id; digits: its text without leading zeros."""
    shown = ascii(token[:SHOWN].decode("ascii", "backslashreplace"))
    if not token.isdigit():
        if re.fullmatch(rb"-[0-9]+", token):
            return f"a negative id {shown}"
        kind = "an integer id" if NUMBER.fullmatch(token) else "an id"
        return f"{shown} is not {kind}"
    if canonical and digits != token:
        return f"{shown} has a leading zero"
    if len(digits) > DIGITS or int(digits) > LARGEST_ID:
        return f"id {shown} is above 2^63-1"
    return out_of_range(int(digits), base, most)
