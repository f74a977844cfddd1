"""The rules for a line of a text file of edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LARGEST_ID = (1 << 63) - 1


@dataclass(frozen=True)
class LineRules:
    """The allowed content of a line.

    comments: one or two bytes that begin a comment line
    lead: a byte that begins each line with a pair, with blanks after it, or b""
    unled: describes a line that does not begin so
    separator: a comma, tab or semicolon, with or without blanks around it, or b" ":
    blanks
    fields: columns of each line; 0: two, and any number of ignored ones
    places: indices of the columns of both ids
    quotes: whether columns may be quoted, and hold separators, line ends and doubled
    quotes; a line with a quote and all after it are records, as Python's ``csv`` reads
    base: the lowest id as written, 0 or 1
    most_u, most_v: the largest id as written, in the first and second column
    loops: whether both ids may be the same
    canonical: whether a leading zero makes an id text, as in 007
    """

    comments: bytes = b"#%"
    lead: bytes = b""
    unled: Callable[[bytes], str] = repr
    separator: bytes = b" "
    fields: int = 0
    places: tuple[int, int] = (0, 1)
    quotes: bool = False
    base: int = 0
    most_u: int = LARGEST_ID
    most_v: int = LARGEST_ID
    loops: bool = True
    canonical: bool = False
