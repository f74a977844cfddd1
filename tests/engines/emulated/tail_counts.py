"""Count what a search reads of tails, in NumPy, by the rules of ``search.cu``."""

import numpy as np

from distbfs.engines.cuda.xbfs.limits import pull_tails, push_limits
from distbfs.plan import pull_shares

STEP, LAST_STEP, LINE = 64, 4, 32  # columns


def rows_of(source):
    """Return (offsets, columns) of the rows with edges, hubs first."""
    matrix = source.matrix.tocsr()
    degrees = np.diff(matrix.indptr)
    order = np.argsort(-degrees, kind="stable")[: int((degrees > 0).sum())]
    rows = matrix[order][:, order].tocsr()
    rows.sort_indices()
    return rows.indptr.astype(np.int64), rows.indices


def ranges(starts, counts):
    """Return the numbers start … start + count - 1 of all ranges, one after another."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(counts.sum())


def frontiers(offsets, columns, root):
    """Return the vertices of each level."""
    seen = np.zeros(len(offsets) - 1, dtype=bool)
    every = [np.array([root])]
    while len(every[-1]):
        at = every[-1]
        seen[at] = True
        ends = columns[ranges(offsets[at], offsets[at + 1] - offsets[at])]
        every.append(np.unique(ends[~seen[ends]]))
    return every[:-1]


def looks(offsets, columns, visited):
    """Return (looks at neighbours, degree) of each vertex that is not visited."""
    rest = np.flatnonzero(~visited)
    counts = offsets[rest + 1] - offsets[rest]
    hits = np.flatnonzero(visited[columns[ranges(offsets[rest], counts)]])
    starts = np.cumsum(counts) - counts
    first = np.append(hits, offsets[-1])[np.searchsorted(hits, starts)]
    return np.minimum(first - starts + 1, counts), counts


def tail_reads(offsets, columns, root, kept):
    """Return (columns, lines) that a search reads of tails; lines on average."""
    degrees, m, active = np.diff(offsets), int(offsets[-1]), len(offsets) - 1
    mean_next = float(degrees.astype(float) @ degrees) / m
    mark_edges, pull_edges = push_limits(m, mean_next, pull_shares.DEVICE)
    beyond, pulling = pull_tails(m, kept), False
    visited, left = np.zeros(active, dtype=bool), active - 1
    total = np.zeros(2)
    levels = frontiers(offsets, columns, root)
    for depth, frontier in enumerate(levels):
        visited[frontier] = True
        edges = int(degrees[frontier].sum())
        at_once = edges >= len(frontier) * kept + beyond or edges >= pull_edges
        pulling = pulling or at_once
        if pulling:
            made, counts = looks(offsets, columns, visited)
            step = LAST_STEP if left * 128 <= active else STEP
            tails = np.maximum(counts - kept, 0)
            reads = np.minimum(-(-np.maximum(made - kept, 0) // step) * step, tails)
            fresh = len(levels[depth + 1]) if depth + 1 < len(levels) else 0
            left -= fresh
            pulling = fresh * 8 >= left or left * 128 <= active
        else:
            reads = np.maximum(degrees[frontier] - kept, 0)
            pulling = edges >= mark_edges
            left -= len(levels[depth + 1]) if depth + 1 < len(levels) else 0
        total += (reads.sum(), ((reads + LINE - 1) / LINE)[reads > 0].sum())
    return total
