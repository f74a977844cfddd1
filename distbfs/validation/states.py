"""The state of each vertex on a device during validation, and the bytes that it takes.

A state holds the code of a level in its low bits. Above that is the mark, a top bit
that says that the vertex's tree edge is among the tuples, or, for another device's
vertex, some bits of the hash of its parent. Kernels read it in cuda.cu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from distbfs.device.array_table import ArrayPlan, ArrayTable

CHUNK = 1 << 25  # tuples of one piece
# With several devices a piece is CHUNK over one of these, the first with room for its
# pairs: each piece costs a launch or two, and the host reads a number every few pieces.
DIVISORS = (2, 4, 8, 16)
PAIR_CHUNKS = 8  # chunks that may fill the list of pairs before it is passed on
TUPLES_PER_THREAD = 4
SPREAD = 1 << 24  # words of states that a device receives at a time
ROW = 32  # vertices; a part's row ends at a whole word for every size of state
WIDTHS = (4, 8, 16, 32)
DEEP_CODE = 3  # bits of a code where one device has all levels
PRINT = 3  # least bits of a parent's hash below a mark
MOST_CODE = 31
ANSWER = 32


@dataclass(frozen=True)
class StateLayout:
    """The layout of states.

    bits: number of bits of a state in a device's table
    far: bits of a state that may be another device's; code: bits of the level in it
    print: bits of a parent's hash below the mark
    alone: whether there is one device; it looks up a level that its code cannot hold
    whole: whether each device has a copy of the other devices' parents, and all marks
    copied: bytes of each parent in a copy
    asked: whether the table has only the marks of own vertices, and states are
    requested from their owners
    """

    bits: int
    far: int
    code: int
    print: int = 0
    alone: bool = False
    whole: bool = False
    copied: int = 0
    asked: bool = False

    @property
    def pairs(self) -> bool:
        """Whether devices send each other pairs of a vertex and a possible parent."""
        return not (self.alone or self.whole)

    def words(self, vertices: int) -> int:
        """Return the words that a part of ``vertices`` vertices has in the table."""
        return row_length(vertices) * self.bits // 32


def row_length(vertices: int) -> int:
    """Return the number of table entries of a part of ``vertices`` vertices."""
    return -(-vertices // ROW) * ROW


def code_bits(deepest: int) -> int:
    """Return the number of bits for levels up to ``deepest`` and for unreached."""
    # mutant: (deepest + 1) -> deepest : test_depths
    return min(max((deepest + 1).bit_length(), 1), MOST_CODE)


def form_alone() -> StateLayout:
    """Return the form for a single device."""
    return StateLayout(WIDTHS[0], WIDTHS[0], DEEP_CODE, alone=True)


def form_of_all(deepest: int, parent_bytes: int, *, whole: bool) -> StateLayout:
    """Return the form for several devices, each with a state of all vertices.

    parent_bytes: bytes of a parent, 0 if there are only levels
    whole: whether each device also has the parents of all vertices
    """
    code, parents = code_bits(deepest), parent_bytes > 0
    need = code + 1 + PRINT * parents
    if parents and not whole:
        need = max(2 * code, WIDTHS[1])
    bits = next(x for x in WIDTHS if x >= min(need, WIDTHS[-1]))
    prints = bits - code - 1 if parents else 0
    copied = parent_bytes if whole else 0
    return StateLayout(bits, bits, code, prints, whole=whole, copied=copied)


def form_asked(deepest: int) -> StateLayout:
    """Return the form in which states are requested from their owners."""
    return StateLayout(1, ANSWER, code_bits(deepest), asked=True)


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
    if form.pairs:
        room = 2 * tuples * (1 if form.asked else PAIR_CHUNKS)
        table["pairs"] = ArrayPlan(ids, (room, 2))
        table["dealt"] = ArrayPlan(ids, 2 * max(room, width))
        if others:  # another device's pairs while this one looks at them
            table["came"] = ArrayPlan(ids, (room, 2), later=True)
    if form.asked:
        table["slots"] = table["answers"] = ArrayPlan(word, 2 * width)
        table["sent"] = ArrayPlan(word, 2 * width, later=True)  # to other devices
    if form.whole:
        copied = others, vertices, form.copied
        table["copies"] = ArrayPlan(np.uint8, copied, later=True)
        table["marks"] = ArrayPlan(word, min(others * words, SPREAD), later=True)
    return table
