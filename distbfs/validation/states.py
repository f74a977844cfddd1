"""The state of each vertex on a device during validation, and the bytes that it takes.

A state holds the code of a level in its low bits. The mark, its top bit, says that the
vertex's tree edge is among the tuples. Kernels read it in cuda.cu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from distbfs.device.array_table import ArrayPlan, ArrayTable

CHUNK = 1 << 25  # tuples of one piece
# With several devices a piece is CHUNK over one of these, the first with room for it.
DIVISORS = (2, 4, 8, 16)
TUPLES_PER_THREAD = 4
SPREAD = 1 << 24  # words of states that a device receives at a time
ROW = 32  # vertices; a part's row ends at a whole word for every size of state
WIDTHS = (4, 8, 16, 32)
MOST_CODE = 31


@dataclass(frozen=True)
class StateLayout:
    """The layout of states.

    bits: number of bits of a state in a device's table; code: bits of the level in it
    alone: whether there is one device; it looks up a level that its code cannot hold
    copied: bytes of each parent in a copy of the other devices' parents
    asked: whether the table has only the marks of own vertices; states are requested
    from their owners, and devices send each other pairs of a vertex and a possible
    parent
    """

    bits: int
    code: int
    alone: bool = False
    copied: int = 0
    asked: bool = False

    def words(self, vertices: int) -> int:
        """Return the words that a part of ``vertices`` vertices has in the table."""
        return row_length(vertices) * self.bits // 32


ALONE = StateLayout(WIDTHS[0], code=3, alone=True)  # of a single device


def row_length(vertices: int) -> int:
    """Return the number of table entries of a part of ``vertices`` vertices."""
    return -(-vertices // ROW) * ROW


def code_bits(deepest: int) -> int:
    """Return the number of bits for levels up to ``deepest`` and for unreached."""
    # mutant: (deepest + 1) -> deepest : test_depths
    return min(max((deepest + 1).bit_length(), 1), MOST_CODE)


def form_of_all(deepest: int, parent_bytes: int) -> StateLayout:
    """Return the form for several devices, each with states and parents of all.

    parent_bytes: bytes of a parent, 0 if there are only levels
    """
    code = code_bits(deepest)
    bits = next(x for x in WIDTHS if x > code)
    return StateLayout(bits, code, copied=parent_bytes)


def whole_threads(tuples: int) -> int:
    """Round ``tuples`` up to whole blocks of threads."""
    return -(-tuples // TUPLES_PER_THREAD) * TUPLES_PER_THREAD


def array_table(
    form: StateLayout,
    tuples: int,
    ids: DTypeLike,
    *,
    vertices: int,
    rows: int,
    others: int,
) -> ArrayTable:
    """Return the arrays of a device that grow with the graph or its pieces.

    tuples: number of tuples in a piece; ids: dtype of vertex ids
    vertices: number of vertices in the largest part
    rows: number of parts in the table; others: number of parts of other devices
    """
    width, words, word = whole_threads(tuples), form.words(vertices), np.uint32
    table: ArrayTable = {
        "states": ArrayPlan(word, (rows, words)),
        "turns": [ArrayPlan(ids, (2, width))] * 2,
    }
    if form.asked:
        table["pairs"] = ArrayPlan(ids, (2 * tuples, 2))
        table["dealt"] = ArrayPlan(ids, 2 * max(2 * tuples, width))
        if others:  # another device's pairs while this one looks at them
            table["came"] = ArrayPlan(ids, (2 * tuples, 2), later=True)
        table["slots"] = table["answers"] = ArrayPlan(word, 2 * width)
        table["sent"] = ArrayPlan(word, 2 * width, later=True)  # to other devices
    elif not form.alone:
        copied = others, vertices, form.copied
        table["copies"] = ArrayPlan(np.uint8, copied, later=True)
        table["marks"] = ArrayPlan(word, min(others * words, SPREAD), later=True)
    return table
