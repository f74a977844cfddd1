"""Pairs of ids by whole arrays, for text that has nothing unusual in it.

Serves where there is no C compiler; ``parse_regular`` declines what it is not sure of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from distbfs.formats.rules import LineRules
    from distbfs.types import Array, Ids

PIECE_BYTES = 1 << 20
SAFE_DIGITS = 18


def parse_regular(text: bytes, rules: LineRules) -> tuple[Ids, int] | None:
    r"""Return the zero-based pairs, int64 [k, 2], of lines that end with ``\n``.

    And how many lines have more than two columns.  None where a line may be bad: the
    caller then reads line by line.
    """
    data = np.frombuffer(text, dtype=np.uint8)
    newline = data == ord("\n")
    returns = np.flatnonzero(data == ord("\r"))
    if not newline[returns + 1].all():
        return None
    comma = data == ord(",") if rules.comma else np.zeros(len(data), dtype=np.bool_)
    gap = newline | (data == ord(" ")) | (data == ord("\t")) | comma
    gap[returns] = True
    begins = np.flatnonzero(~gap & np.concatenate(([True], gap[:-1])))
    ends = np.flatnonzero(gap & np.concatenate(([False], ~gap[:-1])))
    line = np.concatenate(([0], np.cumsum(newline)[:-1]))[begins]
    if comma.any() and not _commas_fit(comma, newline, begins, ends, line):
        return None
    leads = np.concatenate(([True], line[1:] != line[:-1]))[: len(begins)]
    first = np.flatnonzero(leads)
    fields = np.diff(np.concatenate((first, [len(begins)])))
    commented = np.isin(data[begins[first]], np.frombuffer(rules.comments, np.uint8))
    first, fields = first[~commented], fields[~commented]
    if np.any(fields < 2 if not rules.fields else fields != rules.fields):
        return None
    u = _numbers(data, begins[first], ends[first])
    v = _numbers(data, begins[first + 1], ends[first + 1])
    if u is None or v is None:
        return None
    pairs: Ids = np.stack((u, v), axis=1)
    most = np.array([rules.most_u, rules.most_v])
    bad = np.any(pairs < rules.base) or np.any(pairs > most)
    if bad or (not rules.loops and np.any(u == v)):
        return None
    return pairs - rules.base, int(np.count_nonzero(fields > 2))


def _commas_fit(
    comma: Array, newline: Array, begins: Array, ends: Array, line: Array
) -> bool:
    """Return whether no line has a comma before its first column, or an empty one.

    ``line``: the number of the line of each column.
    """
    before = np.concatenate(([0], np.cumsum(comma)))
    line_ends = np.flatnonzero(newline)
    line_begins = np.concatenate(([0], line_ends[:-1] + 1))
    columns = np.bincount(line, minlength=len(line_ends))
    if np.any((before[line_ends] > before[line_begins]) & (columns == 0)):
        return False
    first = np.concatenate(([True], line[1:] != line[:-1]))[: len(line)]
    if np.any(before[begins[first]] > before[line_begins[line[first]]]):
        return False
    second = np.flatnonzero(first[:-1] & ~first[1:]) + 1
    return not np.any(before[begins[second]] - before[ends[second - 1]] > 1)


def _numbers(data: Array, begins: Array, ends: Array) -> Ids | None:
    """Return the numbers of digits at begins … ends-1; None if one may be none."""
    values = np.zeros(len(begins), dtype=np.int64)
    length = ends - begins
    longest = int(length.max(initial=0))
    if longest > SAFE_DIGITS:
        return None
    for place in range(longest):
        active = np.flatnonzero(length > place)
        digit = data[begins[active] + place] - np.uint8(ord("0"))
        if np.any(digit > 9):
            return None
        values[active] = 10 * values[active] + digit
    return values
