"""A device's state of each vertex during validation, and its bytes.

A state is the code of a level in its low bits; above it is the mark (the top bit: its
tree edge is among the tuples), or, for another device's vertex, bits of the hash of its
parent. Kernels read it in cuda.cu.
"""

from __future__ import annotations

from dataclasses import dataclass

from distbfs.generate.cuda import id_word
from distbfs.partition.layout import local_count

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
USUAL_DEPTH = 14  # the deepest level that codes of 4 bits distinguish


@dataclass(frozen=True)
class StateLayout:
    """The layout of states.

    bits: of a state in the table, which one device has of each vertex
    far: bits of a state that may be another device's; code: bits of its level
    print: bits of a parent's hash below the mark
    alone: there is one device; a level beyond its code is looked up
    whole: each device has a copy of the other devices' parents, and marks of all
    copied: bytes of each parent of a copy
    asked: the table has only the marks of own vertices, and states are requested from
    their owners
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
        """Whether devices send each other vertices with what may be their parents."""
        return not (self.alone or self.whole)

    def copy_bytes(self, vertices: int, parts: int) -> int:
        """Return the bytes of copied parents, and marks, of ``parts`` other parts."""
        if not self.whole:
            return 0
        marks = min(self.table_bytes(vertices, parts), 4 * SPREAD)
        return parts * vertices * self.copied + marks

    def table_bytes(self, vertices: int, parts: int) -> int:
        """Return the bytes of a table of ``parts`` parts of ``vertices`` vertices."""
        return parts * row_length(vertices) * self.bits // 8


def row_length(vertices: int) -> int:
    """Return the table entries of a part of ``vertices`` vertices."""
    return -(-vertices // ROW) * ROW


def code_bits(deepest: int) -> int:
    """Return the bits for levels up to ``deepest`` and unreached."""
    # mutant: (deepest + 1) -> deepest : test_depths
    return min(max((deepest + 1).bit_length(), 1), MOST_CODE)


def form_alone() -> StateLayout:
    """Return the form for a single device."""
    return StateLayout(WIDTHS[0], WIDTHS[0], DEEP_CODE, alone=True)


def form_whole(deepest: int, parent_bytes: int) -> StateLayout:
    """Return the form where each device has states and parents of all vertices.

    parent_bytes: of a parent; 0 where there are levels only
    """
    code = code_bits(deepest)
    least = PRINT if parent_bytes else 0
    bits = next(x for x in WIDTHS if x >= min(code + least + 1, WIDTHS[-1]))
    prints = bits - code - 1 if parent_bytes else 0
    return StateLayout(bits, bits, code, prints, whole=True, copied=parent_bytes)


def form_of_all(deepest: int, *, parents: bool) -> StateLayout:
    """Return the form for several devices, each with a state of all vertices."""
    code = code_bits(deepest)
    need = min(2 * code, WIDTHS[-1]) if parents else code + 1
    bits = next(x for x in WIDTHS[parents:] if x >= need)
    return StateLayout(bits, bits, code, bits - code - 1 if parents else 0)


def form_asked(deepest: int) -> StateLayout:
    """Return the form where states are requested from their owners."""
    return StateLayout(1, ANSWER, code_bits(deepest), asked=True)


def piece_of(chunk: int, most: int) -> int:
    """Return the tuples of a piece; most: largest share of a device."""
    return max(min(chunk, most), 1)


def whole_threads(tuples: int) -> int:
    """Round ``tuples`` up to whole blocks of threads."""
    return -(-tuples // TUPLES_PER_THREAD) * TUPLES_PER_THREAD


def pair_room(form: StateLayout, tuples: int) -> int:
    """Return the capacity of the list of pairs, from the tuples of a piece."""
    return 2 * tuples * (1 if form.asked else PAIR_CHUNKS)


def work_bytes(tuples: int, form: StateLayout, id_bytes: int) -> int:
    """Estimate a device's bytes besides its table; tuples: of a piece."""
    width = whole_threads(tuples)
    chunks = 2 * 2 * width * id_bytes
    if not form.pairs:
        return chunks
    room = pair_room(form, tuples)
    pairs = 2 * (room + max(room, width)) * id_bytes  # also sorted by device
    asked = 3 * 2 * width * ANSWER // 8 if form.asked else 0  # slots, states; answers
    return chunks + pairs + asked


def arriving_bytes(tuples: int, form: StateLayout, id_bytes: int) -> int:
    """Return the most bytes of another device's pairs while this one looks at them."""
    return 2 * pair_room(form, tuples) * id_bytes if form.pairs else 0


def device_bytes(
    n: int,
    devices: int,
    *,
    parents: bool = True,
    deepest: int = USUAL_DEPTH,
    asked: bool = False,
) -> int:
    """Estimate the least bytes of validation on a device besides tuples and results.

    The result has as many parts as devices; asked: ``StateLayout.asked``
    """
    local, parts = local_count(n, devices, 0), devices
    form = form_of_all(deepest, parents=parents)
    if asked:
        form, parts = form_asked(deepest), 1
    elif devices == 1:
        form = form_alone()
    tuples = CHUNK if form.alone else CHUNK // DIVISORS[-1]
    id_bytes = 4 if id_word(n) == "u32" else 8
    work = work_bytes(tuples, form, id_bytes)
    if devices > 1:
        work += arriving_bytes(tuples, form, id_bytes)
    return form.table_bytes(local, parts) + work
