"""Copy the results of a search on a device to host arrays."""

from __future__ import annotations

import numpy as np

from distbfs.types import Array, DeviceArray


def host_levels(level: DeviceArray) -> Array:
    """Return levels as int32 on the host, -1 = unreached."""
    return level.get().astype(np.int32, copy=False)


def host_parents(parent: DeviceArray) -> Array:
    """Return parents as int64 on the host, -1 = unreached."""
    return parent.get().astype(np.int64, copy=False)
