"""Pairs of ids from lines of text: the rule for a single line.

``parse.c`` applies it to whole blocks, and stops at the first bad line, which
``read_line`` then describes, so that errors are the same everywhere.
"""

from __future__ import annotations

import re

from distbfs.formats.line_rules import LARGEST_ID, LineRules

SHOWN = 40
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class LineFault(ValueError):  # noqa: N818
    """A line is not a pair of ids; the message says why."""


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
