"""Levels of pairs of vertices, and shortest paths, by edge lookups (lookups.cu).

A pair is looked at from both ends: in a graph with hubs, paths of a few edges through
hubs join nearly all pairs.
Sources: Akiba, Iwata, Yoshida, Fast exact shortest-path distance queries, SIGMOD 2013;
Pohl, Bi-directional search, 1971.
"""

from __future__ import annotations

import numpy as np

from distbfs.device import cuda, programs
from distbfs.engines.base import NO_PATH, ShortestPath
from distbfs.engines.cuda.common.arguments import arguments
from distbfs.engines.cuda.xbfs.arrays import KERNELS
from distbfs.partition.share import Share
from distbfs.types import Ids

SOURCE = KERNELS / "lookups.cu"
THREADS = 128
STEPS = 128  # of a warp for a pair, of 32 lookups each
LONGEST = 6  # vertices of a path that is found
SOURCES = 1024  # of a path, at most


def has_hubs(graph: Share) -> bool:
    """Return whether a vertex has as many edges as the square root of their number.

    Without such vertices, few pairs have paths that lookups find.
    """
    if not graph.active or graph.out.tails is not None:
        return False
    longest = max(side.lengths(0, 1)[0] for side in graph.sides)
    return longest**2 >= graph.active


class DeviceLookups:
    """Looks up pairs of vertices of a graph that is on one device.

    near: the launch that finds levels; its arguments name the pairs
    """

    def __init__(self, graph: Share) -> None:
        self.pairs = arguments(SOURCE, "Pairs", graph, lookups=STEPS)
        module, blocks = programs.Module(SOURCE), 8 * cuda.multiprocessors()
        self.near, self._paths = (
            module.kernel(name).prepare(self.pairs, blocks, THREADS)
            for name in ("near", "paths")
        )

    def path(self, sources: Ids, target: int) -> ShortestPath | None:
        """Find a shortest path from the nearest source; None if lookups do not suffice.

        sources: int64 [k], ids
        """
        count = len(sources)
        if count > SOURCES:
            return None
        with cuda.memory_of("a path"):
            cp = cuda.cupy()
            ids = [sources, np.arange(count), np.full(count, target)]
            source, search, end = cp.asarray(np.stack(ids).astype(np.uint32))
            level = cp.empty(count, np.int32)
            path = cp.empty((count, LONGEST), np.uint32)
        self.pairs.set(source=source, search=search, target=end)
        self.pairs.set(level=level, path=path, count=count)
        self._paths()
        levels = level.get()
        if levels.min() < -1:  # bits.OPEN
            return None
        reached = np.flatnonzero(levels >= 0)
        if not len(reached):
            return NO_PATH
        nearest = reached[levels[reached].argmin()]
        vertices = path[nearest, : levels[nearest] + 1].get().astype(np.int64)
        vertices[0], vertices[-1] = sources[nearest], target
        return ShortestPath(vertices)
