"""Rows of neighbours in device memory, and the edges of selected rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.types import DeviceArray


@dataclass(frozen=True)
class DeviceRows:
    """A ``graph.CSR`` on a device: CuPy offsets [rows + 1] and columns."""

    offsets: DeviceArray
    columns: DeviceArray

    def edges_of(self, rows: DeviceArray) -> tuple[Any, Any]:
        """Return (index into ``rows`` int64, column) of every edge of rows, in order.

        rows: integers [k]
        """
        cp = cuda.cupy()
        start = self.offsets[rows].astype(np.int64)
        ends = cp.cumsum(self.offsets[rows + 1].astype(np.int64) - start)
        edges = cp.arange(int(ends[-1]) if len(rows) else 0, dtype=np.int64)
        index = cp.searchsorted(ends, edges, side="right")
        before = cp.concatenate([cp.zeros(1, dtype=np.int64), ends])
        return index, self.columns[start[index] + edges - before[index]]
