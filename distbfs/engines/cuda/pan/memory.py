"""What the search of a part takes in device memory, before there is one.

Counted array by array as ``CudaPart`` allocates; what parts send each other is not
known before, only how much it is at most.
"""

from __future__ import annotations

from distbfs.engines.cuda.pan.search import FIRST
from distbfs.partition.part import mask_words
from distbfs.plan import memory
from distbfs.plan.memory import PartShape
from distbfs.types import SUBGRAPHS

NARROW_VERTICES = 1 << 31  # ids of a larger graph have 64 bits
WIDE = 1 << 32  # edges from which the offsets of a subgraph have 64 bits
NUMBERED_VERTEX = 12  # vertices, numbers, tuple_degrees
LEVEL = 4
QUEUED_DELEGATE = 2 * 16  # queues of dd and dn
OWNED_DELEGATE = 2 * 4
BITMAPS, DELEGATE_BITMAPS = 5, 5  # visited, fresh, front, rows of two subgraphs
ITEM = 8  # a normal vertex that is sent, with where its parent is


def part_bytes(shape: PartShape, *, parents: bool = True) -> dict[str, int]:
    """Return the device memory of one part that is searched on a GPU, bytes by kind.

    graph: Table I (Pan et al. 2018); numbering: of the vertices; search: levels,
    parents, queues, bitmaps and first columns; messages: the most that the other parts
    can send in a search, and what was sent to them already; total: all
    """
    local, d, parts = shape.local, shape.delegates, shape.parts
    sizes = memory.array_bytes(shape)
    graph = sum(sizes[f"{k}/{x}"] for k in SUBGRAPHS for x in ("offsets", "columns"))
    vertex = 4 if shape.n < NARROW_VERTICES else 8
    words, dwords = mask_words(shape.active), mask_words(d)  # of 64 bits
    search = (LEVEL + vertex * parents) * local
    search += (vertex * (1 + parents) + LEVEL + QUEUED_DELEGATE) * d
    search += OWNED_DELEGATE * shape.owned
    search += 8 * (BITMAPS * words + DELEGATE_BITMAPS * dwords)
    search += 4 * FIRST * 64 * (words + dwords)
    if any(shape.edges[name] >= WIDE for name in SUBGRAPHS):  # then those of all have
        rows = {"nn": local, "nd": local, "dn": d, "dd": d}
        narrow = [name for name in SUBGRAPHS if shape.edges[name] < WIDE]
        search += sum(8 * (rows[name] + 1) for name in narrow)
    boxes = min(-(-shape.edges["nn"] // parts), local) * (parts - 1)
    sent = 4 * -(-local // 32) * parts if parts > 1 else 0
    needs = {
        "graph": graph,
        "numbering": NUMBERED_VERTEX * local,
        "search": search,
        "messages": ITEM * boxes + sent,
    }
    return needs | {"total": sum(needs.values())}
