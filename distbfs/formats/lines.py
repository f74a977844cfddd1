"""Pairs of ids from lines of text: the rule for a single line.

``parse.c`` applies it to whole blocks, and stops at the first bad line, which
``read_line`` then describes, so that errors are the same everywhere.
"""

from __future__ import annotations

import re

from distbfs.formats.line_rules import LARGEST_ID, LineRules

SHOWN = 40
DIGITS = len(str(LARGEST_ID))
GAP = re.compile(rb"[ \t]+")
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class LineFault(ValueError):  # noqa: N818
    """A line is not a pair of ids; the message says why."""


class UnledLine(LineFault):
    """A line does not begin as one with a pair must."""


def read_line(line: bytes, rules: LineRules) -> tuple[int, int, bool] | None:
    """Parse a line without its end to a zero-based pair, None for no pair.

    Also returns whether there are more than two columns. Blank lines and comments have
    no pair. Raises LineFault for a bad line.
    """
    line = line.removesuffix(b"\r")
    if rules.lead and line.strip(b" \t") and line[:1] not in rules.comments:
        led = line[1:].lstrip(b" \t")
        if line[:1] != rules.lead or led[:1] in rules.comments or led == line[1:]:
            raise UnledLine(rules.unled(line.rstrip(b"\r")))
        line = led
    rest = line.strip(b" \t")
    if not rest or rest[:1] in rules.comments:
        return None
    if rules.separator == b" ":
        columns = GAP.split(rest)
    else:
        columns = [column.strip(b" \t") for column in line.split(rules.separator)]
    if not all(columns[:2]):
        raise LineFault("an empty column")
    u = read_id(columns[0], rules.base, rules.most_u, rules.canonical)
    if len(columns) < 2:
        raise LineFault("one column, where two ids are expected")
    v = read_id(columns[1], rules.base, rules.most_v, rules.canonical)
    if b"\r" in line and any(b"\r" in more for more in columns[2:]):
        raise LineFault("a carriage return inside the line")
    if rules.fields and len(columns) != rules.fields:
        raise LineFault(f"{len(columns)} columns, where {rules.fields} are expected")
    if not rules.fields and b'"' in line:
        raise LineFault("a quote")
    if u == v and not rules.loops:
        raise LineFault("an entry on the diagonal, which must be empty")
    return u, v, any(columns[2:])


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
    """Describe the error of a column that is not an id; digits: without zeros first."""
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
    upper = f"to {most}" if most < LARGEST_ID else "or more"
    return f"id {int(digits)} is out of range; allowed: {base} {upper}"
