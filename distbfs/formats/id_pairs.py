"""Parse pairs of ids with whole arrays, for text without unusual parts.

Used without a C compiler; ``parse_regular`` returns None where it is not sure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from distbfs.formats.line_rules import LineRules
    from distbfs.types import Array, Ids

PIECE_BYTES = 1 << 20
SAFE_DIGITS = 18


def parse_regular(text: bytes, rules: LineRules) -> tuple[Ids, int] | None:
    """Parse complete lines to zero-based pairs, int64 [k, 2].

    Also returns the number of lines with more than two columns. Returns None where a
    line may be bad: the caller then reads line by line.
    """
    data = np.frombuffer(text, dtype=np.uint8)
    newline = data == ord("\n")
    returns = np.flatnonzero(data == ord("\r"))
    if not newline[returns + 1].all():
        return None
    separator = data == ord(rules.separator)
    gap = newline | (data == ord(" ")) | (data == ord("\t")) | separator
    gap[returns] = True
    begins = np.flatnonzero(~gap & np.concatenate(([True], gap[:-1])))
    ends = np.flatnonzero(gap & np.concatenate(([False], ~gap[:-1])))
    line = np.concatenate(([0], np.cumsum(newline)[:-1]))[begins]
    leads = np.concatenate(([True], line[1:] != line[:-1]))[: len(begins)]
    first = np.flatnonzero(leads)
    fields = np.diff(np.concatenate((first, [len(begins)])))
    commented = np.isin(data[begins[first]], np.frombuffer(rules.comments, np.uint8))
    plain, fields = first[~commented], fields[~commented]
    if np.any(fields < 2 if not rules.fields else fields != rules.fields):
        return None
    fit = rules.separator == b" " or (
        _none_leads(separator, newline, begins[first], line[first])
        and _separators_fit(separator, begins, ends, plain, fields)
    )
    if not fit or (not rules.fields and b'"' in text):
        return None
    first = plain
    u = _numbers(data, begins[first], ends[first], rules.canonical)
    v = _numbers(data, begins[first + 1], ends[first + 1], rules.canonical)
    if u is None or v is None:
        return None
    pairs: Ids = np.stack((u, v), axis=1)
    most = np.array([rules.most_u, rules.most_v])
    bad = np.any(pairs < rules.base) or np.any(pairs > most)
    if bad or (not rules.loops and np.any(u == v)):
        return None
    return pairs - rules.base, int(np.count_nonzero(fields > 2))


def _none_leads(separator: Array, newline: Array, begins: Array, line: Array) -> bool:
    """Return whether every line starts with a column, not with a separator.

    begins, line: of the first columns
    """
    before = np.concatenate(([0], np.cumsum(separator)))
    line_ends = np.flatnonzero(newline)
    line_begins = np.concatenate(([0], line_ends[:-1] + 1))
    stops = line_ends.copy()
    stops[line] = begins
    return bool(np.all(before[stops] == before[line_begins]))


def _separators_fit(
    separator: Array, begins: Array, ends: Array, first: Array, fields: Array
) -> bool:
    """Return whether one separator follows the first column, and some the second.

    first: indices of first columns; fields: columns a line, two or more
    """
    before = np.concatenate(([0], np.cumsum(separator)))
    more = first[fields > 2] + 2
    return bool(
        np.all(before[begins[first + 1]] - before[ends[first]] == 1)
        and np.all(before[begins[more]] > before[ends[more - 1]])
    )


def _numbers(data: Array, begins: Array, ends: Array, canonical: bool) -> Ids | None:
    """Parse the digits at begins … ends-1; None if one may be invalid."""
    values = np.zeros(len(begins), dtype=np.int64)
    length = ends - begins
    longest = int(length.max(initial=0))
    if longest > SAFE_DIGITS:
        return None
    if canonical and np.any((data[begins] == ord("0")) & (length > 1)):
        return None
    for place in range(longest):
        active = np.flatnonzero(length > place)
        digit = data[begins[active] + place] - np.uint8(ord("0"))
        if np.any(digit > 9):
            return None
        values[active] = 10 * values[active] + digit
    return values
