"""Estimate the memory of a search besides its part, before it exists.

Counts each array of ``OpenMPWhole`` (method fast) and ``OpenMPPart``; each begins on a
cache line, which may add 64 bytes.
"""

from __future__ import annotations

from distbfs.device.array_table import total_bytes
from distbfs.engines.base import COUNTS
from distbfs.engines.openmp.whole import array_table
from distbfs.graph.csr import index_dtype
from distbfs.partition.part import mask_words
from distbfs.plan.memory import PartShape
from distbfs.types import SUBGRAPHS


def bytes_needed(shape: PartShape, *, parents: bool = True) -> int:
    """Return the bytes of a search, kept from search to search.

    One part without delegates is searched whole, all others level by level.
    """
    if shape.whole:
        return total_bytes(array_table(shape.local, shape.active, parents=parents))
    return part_bytes(shape, parents=parents)


def part_bytes(shape: PartShape, *, parents: bool) -> int:
    """Return the bytes of an ``OpenMPPart``, without the bins of a level."""
    n, d = shape.local, shape.delegates
    words, delegate_words = mask_words(shape.active), mask_words(d)
    vertex = 4 if shape.n < 1 << 31 else 8
    results = (4 + vertex * parents) * n  # level, parent by local id
    vertices = 4 * max(n, 64 * words)
    first = 4 * 64 * (words + 2 * delegate_words)  # of nd, dn and dd
    masks = 8 * (5 * words + 3 * delegate_words)
    bounds = shape.parts + 1  # of bins
    counts = 8 * (COUNTS + len(SUBGRAPHS) + bounds)  # work, checks
    dirty = 2 * 4 * words
    delegates = (2 * vertex + 4) * d  # ids, parent, level
    owned = 3 * 4 * shape.owned  # numbers, local ids, orphans
    delivered = 4 * shape.active
    copies = widened_bytes(shape)
    return sum(
        (results, vertices, first, masks, dirty, delegates, owned, delivered)
    ) + (counts + copies)


def widened_bytes(shape: PartShape) -> int:
    """Return the bytes of 64-bit copies of offsets: if one is wide, all are."""
    rows = {
        "nn": shape.local,
        "nd": shape.local,
        "dn": shape.delegates,
        "dd": shape.delegates,
    }
    narrow = [k for k, e in shape.edges.items() if index_dtype(e)(0).itemsize == 4]
    if len(narrow) == len(rows):
        return 0
    return sum(8 * (rows[name] + 1) for name in narrow)
