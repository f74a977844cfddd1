"""The largest component, by searches."""

from __future__ import annotations

import numpy as np

from distbfs.multisearch.bits import LANE
from distbfs.multisearch.problem import Problem, State
from distbfs.multisearch.searchers import Searcher
from distbfs.types import Array

PROBLEM = Problem("component", (State("reachable", "bool", "pair"),), bits=True)


def largest_component(searcher: Searcher) -> Array:
    """Return the vertices of the largest component, int64, ascending (collective).

    Of a symmetric graph; of equally large components the one with the smallest id.
    Searches from the smallest unreached ids, until the remaining vertices are too few.
    """
    n, world = searcher.n, searcher.world
    seen, best = np.zeros(n, dtype=np.bool_), np.zeros(0, dtype=np.int64)
    while True:
        left = np.flatnonzero(~seen)[: min(LANE, searcher.at_once(1))]
        plan = left.tolist() if n - int(seen.sum()) > len(best) else []
        plan = world.broadcast(plan)
        if not plan:
            return np.concatenate(world.allgather(best))  # empty except on rank 0
        rows = searcher.run(PROBLEM, np.array(plan, dtype=np.int64))["reachable"]
        if world.rank == 0:
            for row in rows:
                if row.sum() > len(best):
                    best = np.flatnonzero(row)
            seen |= rows.any(axis=0)
