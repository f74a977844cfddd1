"""The number of vertices of a device's graph whose rows are long."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from distbfs.graph.device_graph import degree_class
from distbfs.partition.share import Share
from distbfs.types import Ids


def above(graph: Share, degree: int) -> int:
    """Estimate how many vertices, which come first, have at least ``degree`` edges.

    In a directed graph, outgoing and incoming edges count, by whose sum its vertices
    are numbered. The number is exact if no edge was repeated and ``degree`` is the
    least of a degree class.
    """
    if degree < len(graph.at_least):
        return int(graph.at_least[max(degree, 1)])

    def falling(count: Ids) -> int:
        return -int(degree_class(count)[0])

    # trees come last, whatever their degrees
    numbers, least = range(int(graph.at_least[-1])), falling(np.array([degree]))
    return bisect_right(numbers, least, key=lambda x: falling(sum_of_rows(graph, x)))


def sum_of_rows(graph: Share, number: int) -> Ids:
    """Return a vertex's number of outgoing and incoming edges together, int64 [1]."""
    sides = [side.lengths(number, number + 1) for side in graph.sides]
    return np.sum(sides, axis=0)
