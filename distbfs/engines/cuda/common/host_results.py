"""How the results of a search on a device become arrays of the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from distbfs.types import Array


def host_levels(level: Any) -> Array:
    """Return levels as int32 on the host, -1 = unreached."""
    levels: Array = level.get()
    return levels.astype(np.int32, copy=False)


def host_parents(parent: Any) -> Array:
    """Return parents as int64 on the host, -1 = unreached."""
    parents: Array = parent.get()
    return parents.astype(np.int64, copy=False)
