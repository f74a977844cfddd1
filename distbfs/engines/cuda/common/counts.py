"""Numbers of shortest paths on one device: the arrays and the launch of counts.cu."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.structures import structure
from distbfs.device.take import Back
from distbfs.engines.cuda.common.arguments import arguments
from distbfs.graph.device_graph import DeviceGraph

SOURCE = Path(__file__).with_name("counts.cu")
THREADS = 1024
LONG = 128  # as in counts.cu
STATIC_BYTES = 8 << 10  # most shared memory
CODES = 16  # of a vector
TABLE_EDGES = 1 << 20
TYPES = {"uint64": "u64", "float64": "f64"}


class DeviceCounter:
    """A ``PathCounter`` of a graph on a device; it runs one count at a time.

    seconds: device time of the last count. Besides the graph, it needs 8 bytes for each
    vertex of the result, and keeps about 16 for each vertex with edges between counts.
    table_edges: number of edges of a level's rows from which the codes of hubs are
    copied to shared memory
    """

    def __init__(self, graph: DeviceGraph, table_edges: int = TABLE_EDGES) -> None:
        self._graph, self.seconds = graph, 0.0
        self._launches: dict[tuple[str, str], programs.Launch] = {}
        self._params = arguments(SOURCE, "Params", graph, table_edges=table_edges)
        self._back: Back | None = None

    def _prepare(self) -> Back:
        """Allocate the arrays that all counts share; return the control structure."""
        cp, g = cuda.cupy(), self._graph
        control = structure(SOURCE, "Control")
        pieces = 2 * (g.m // LONG) + 1
        back = Back(cp.zeros(ctypes.sizeof(control) // 4, dtype=np.uint32))
        room = cuda.shared_limit() - STATIC_BYTES
        self._params.set(
            sigma=cp.empty(g.active, dtype=np.uint64),
            code=cp.empty(g.active + CODES, dtype=np.uint8),
            order=cp.empty(g.active, dtype=np.uint32),
            piece=cp.empty(2 * pieces, dtype=np.uint32),
            control=back.array,
            hubs=min(room, g.active + CODES - 1) // CODES * CODES,
        )
        return back

    def _launch(self, level: str, dtype: str) -> programs.Launch:
        """Return the launch for the dtypes of levels and counts."""
        key = level, dtype
        if key not in self._launches:
            module = programs.Module(
                SOURCE,
                LEVEL=f"i{8 * np.dtype(level).itemsize}",
                COUNT=TYPES[dtype],
            )
            self._launches[key] = module.kernel("count_paths").prepare(
                self._params,
                cuda.multiprocessors(),
                THREADS,
                shared=self._params.hubs,
                cooperative=True,
            )
        return self._launches[key]

    def counts(self, level: Any, levels: int, dtype: str) -> tuple[Any, int]:
        """Return counts [n] by id, a CuPy array; see ``PathCounter``.

        Raises ResourceError if device memory is short.
        """
        cp = cuda.cupy()
        with cuda.memory_of("numbers of shortest paths"):
            back = self._back = self._back or self._prepare()
            # sums of levels, and a size of 0 after the last of them
            sums = cp.zeros(4 * (levels + 2), dtype=np.uint64)
            out = cp.empty(self._graph.n, dtype=dtype)
            at = cp.empty(self._graph.active, dtype=level.dtype)
        names = ("begin", "edges", "into", "cursor")
        parts = dict(zip(names, sums.reshape(4, -1), strict=True))
        self._params.set(level=level, at=at, out=out, **parts, levels=levels + 1)
        back.array.fill(0)
        launch = self._launch(level.dtype.name, dtype)
        self.seconds = launch.timed(back=back)
        control = structure(SOURCE, "Control")
        passed = control.from_buffer_copy(back.pinned.tobytes()).passed
        return out, int(passed)
