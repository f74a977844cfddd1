"""cuGraph: ``pylibcugraph.bfs`` on a device, direction-optimizing."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from distbfs.benchmark.libraries.base import LibraryRows
from distbfs.device import cuda
from distbfs.types import Levels


class CugraphLibrary:
    """Distances and predecessors by id; the call waits for the device."""

    module: ClassVar[str] = "pylibcugraph"
    called: ClassVar[str] = "bfs, pylibcugraph"

    def __init__(self, rows: LibraryRows) -> None:
        import pylibcugraph as lib  # noqa: PLC0415

        self._lib, self._cp, self._n = lib, cuda.cupy(), rows.n
        self._handle, self._both = lib.ResourceHandle(), not rows.directed
        properties = lib.GraphProperties(
            is_symmetric=not rows.directed, is_multigraph=False
        )
        offsets = self._cp.asarray(rows.offsets.astype(np.int32))
        columns = self._cp.asarray(rows.columns)
        self._graph = lib.SGGraph(
            resource_handle=self._handle,
            graph_properties=properties,
            src_or_offset_array=offsets,
            dst_or_index_array=columns,
            weight_array=self._cp.ones(rows.m, dtype=self._cp.float32),
            store_transposed=False,
            renumber=False,
            do_expensive_check=False,
            input_array_format="CSR",
        )

    def search(self, root: int) -> Any:
        """Return (distances, predecessors, vertices) on the device."""
        source = self._cp.asarray([root], dtype=self._cp.int32)
        answer = self._lib.bfs(
            self._handle, self._graph, source, self._both, -1, True, False
        )
        self._cp.cuda.Device().synchronize()
        return answer

    def levels(self, answer: Any, root: int) -> Levels:  # noqa: ARG002
        """Convert distances, the largest int for unreached, to levels by id, int32."""
        far, vertices = answer[0].get(), answer[2].get()
        level = np.full(self._n, -1, np.int32)
        level[vertices] = np.where(far == np.iinfo(far.dtype).max, -1, far)
        return level
