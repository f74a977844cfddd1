"""How the results of a search on a device become arrays of the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from distbfs.types import Array

BYTE_UNREACHED = 255
NO_PARENT = (1 << 32) - 1


def host_levels(level: Any) -> Array:
    """Return levels as int32 on the host, -1 = unreached."""
    found: Array = level.get()
    if found.dtype != np.uint8:
        return found
    wide = found.astype(np.int32)
    wide[found == BYTE_UNREACHED] = -1
    return wide


def host_parents(parent: Any) -> Array:
    """Return parents as int64 on the host, -1 = unreached."""
    found: Array = parent.get()
    wide = found.astype(np.int64)
    wide[found == NO_PARENT] = -1
    return wide
