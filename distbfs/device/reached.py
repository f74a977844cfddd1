"""Counts by kernels of the package, since CuPy takes seconds to compile a sum.

``cupy.bincount``, for example, calls ``any``, which takes 12 s to compile.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda, programs

if TYPE_CHECKING:
    from distbfs.types import DeviceArray, Ids

SOURCE = Path(__file__).with_suffix(".cu")
THREADS = 256  # of a block


def sum_reached(
    values: DeviceArray,
    ends: DeviceArray | None = None,
    rows: DeviceArray | None = None,
) -> tuple[int, int]:
    """Count the reached vertices, and the ends of tuples at them.

    values: levels or parents on the current device, contiguous integers, negative
    exactly for unreached vertices
    ends: the number of ends at each vertex, integers of at least 0; None to count
    vertices only, those of all values
    rows: uint32, the index in ``values`` for each entry of ``ends``; None for 0, 1, 2,
    …
    """
    sums = cuda.cupy().zeros(2, np.uint64)
    count = len(values) if ends is None else len(ends)
    grid = cuda.blocks_for(count, THREADS, most=8)
    if count:
        programs.kernel_here(SOURCE, "sum_reached")(
            grid,
            THREADS,
            values,
            np.uint32(values.dtype.itemsize),
            np.uint64(0) if rows is None else rows,
            np.uint64(0) if ends is None else ends,
            np.uint32(0 if ends is None else ends.dtype.itemsize),
            np.uint64(count),
            sums,
        )
    reached, at_them = sums.get().tolist()
    return reached, at_them


def value_counts(
    values: DeviceArray, kinds: int, rows: DeviceArray | None = None
) -> Ids:
    """Count the values 0 … kinds-1 of an array, int64 [kinds] on the host.

    values: a contiguous array of a signed type; values outside the range are not
    counted
    rows: uint32, indices of the values to count; None for all
    """
    count = len(values) if rows is None else len(rows)
    with values.device:
        sums = cuda.cupy().zeros(kinds, np.uint64)
        if count:
            programs.kernel_here(SOURCE, "count_values")(
                cuda.blocks_for(count, THREADS, most=8),
                THREADS,
                values,
                np.uint32(values.dtype.itemsize),
                np.uint64(0) if rows is None else rows,
                np.uint64(count),
                np.uint64(kinds),
                sums,
            )
        occurrences: Ids = sums.get().astype(np.int64)
    return occurrences
