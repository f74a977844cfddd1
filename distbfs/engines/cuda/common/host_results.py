"""The results of a search on a device, and their copies on the host."""

from __future__ import annotations

import numpy as np

from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.types import Array, DeviceArray


def results_table(count: int, *, parents: bool) -> ArrayTable:
    """Return the arrays of levels and, if wanted, parents, int32 [count]."""
    names = ("level", "parent") if parents else ("level",)
    return dict.fromkeys(names, ArrayPlan(np.int32, count))


def host_levels(level: DeviceArray) -> Array:
    """Return levels as int32 on the host, -1 = unreached."""
    return level.get().astype(np.int32, copy=False)
