"""Sums along shortest paths on devices, level by level (paths.cu).

Many searches over parts (``multisearch.domain_paths``) sum up dependencies as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.structures import Record, structure
from distbfs.engines.cuda.common.hubs import above
from distbfs.partition.share import Share

SOURCE = Path(__file__).with_name("paths.cu")
THREADS = 1024
HUB_DEGREE = 2048  # degree from which a block reads a row
VALUES = {"uint64": "u64", "float64": "f64"}


class Sweeps:
    """Sweeps over the levels of searches on one device.

    params: arguments of the kernels, a ``Paths``; width: number of searches at a time
    dtype: uint64 or, with a sweep backward, float64
    """

    def __init__(self, params: Record, width: int, dtype: str = "float64") -> None:
        self._params = params
        self.module = programs.Module(SOURCE, WIDTH=width, VALUE=VALUES[dtype])
        grid = cuda.multiprocessors()
        self._list_levels, self._carry = (
            self.module.kernel(name).prepare(params, grid, THREADS)
            for name in ("list_levels", "carry")
        )
        self._begins: list[int] = []  # where levels begin in ``order``

    def begin(self, deepest: int) -> None:
        """List vertices by level, of which ``digit`` has the digits."""
        cp, params = cuda.cupy(), self._params
        cursor = cp.zeros(deepest + 1, np.uint64)
        params.set(cursor=cursor, order=None)
        self._list_levels()
        begins = np.append(0, np.cumsum(cursor.get()))
        order = cp.empty(max(int(begins[-1]), 1), np.uint32)
        cursor = cp.asarray(begins.astype(np.uint64))
        params.set(cursor=cursor, order=order)
        self._list_levels()
        self._begins = begins.astype(int).tolist()
        for bits in params.held["bits"]:  # of searches before these
            # mutant: cuda.clear -> print : test_domain_paths::test_domains_of_all_kinds
            cuda.clear(bits, cp.cuda.get_current_stream())

    def carry(self, level: int, *, back: bool = False, begins: bool) -> None:
        """Sum up values of the level before, or after it if ``back``."""
        p, old = self._params, level + 2 if back else level - 2
        p.level, p.back, p.begins = level, back, begins
        p.begin, p.end = self._begins[level : level + 2]
        p.old_begin, p.old_end = p.begin, p.begin
        if 0 <= old < len(self._begins) - 1:
            p.old_begin, p.old_end = self._begins[old : old + 2]
        self._carry()


class DeviceCounter:
    """Counts the shortest paths of a graph on a device, for one search at a time.

    Besides the graph, it needs 8 bytes for each vertex of the result and 8 for each
    vertex with edges, and keeps 16 for each of these between counts.
    """

    def __init__(self, graph: Share) -> None:
        self._graph = graph
        self._params: Record | None = None
        self._sweeps: dict[str, Sweeps] = {}

    def _arguments(self) -> Record:
        """Allocate the arrays that all counts share; return the arguments."""
        cp, graph = cuda.cupy(), self._graph
        values, *bits = (
            cp.empty(max(graph.active, 1), dtype)
            for dtype in (np.uint64, np.uint32, np.uint32)
        )
        return structure(SOURCE, "Paths")(
            row=graph.into.offsets,
            adj=graph.into.columns,
            values=values,
            paths=values,
            bits=bits,
            passed=cp.empty(1, np.uint32),
            active=graph.active,
            hubs=above(graph, HUB_DEGREE) // 32 * 32,
            parts=1,
        )

    def counts(self, level: Any, levels: int, dtype: str) -> tuple[Any, int]:
        """Return (counts [n] by id, the first level where one exceeds uint64, or 0).

        level: CuPy integers [n] by id, -1 = unreached; levels: upper bound of ``level``
        dtype: "uint64", or "float64", whose sums are rounded

        Raises ResourceError if device memory is short.
        """
        cp, vertices = cuda.cupy(), self._graph.vertices[: self._graph.active]
        with cuda.memory_of("numbers of shortest paths"):
            params = self._params = self._params or self._arguments()
            if dtype not in self._sweeps:
                self._sweeps[dtype] = Sweeps(params, 1, dtype)
            sweeps, held = self._sweeps[dtype], params.held
            out = cp.empty(self._graph.n, dtype)
            params.set(digit=level[vertices].astype(np.uint32))
            for array in (held["values"], held["passed"]):
                cuda.clear(array, cp.cuda.get_current_stream())
            sweeps.begin(levels)
            for depth in range(levels + 1):
                sweeps.carry(depth, begins=depth == 0)
            out[...] = level == 0
            out[vertices] = held["values"].view(dtype)[: len(vertices)]
        return out, int(held["passed"].get()[0])
