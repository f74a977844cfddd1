"""The end of a search by number, as a kernel argument (goal.cuh)."""

from __future__ import annotations

from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.engines.base import Until
from distbfs.errors import UsageError

NO_LIMIT = (1 << 31) - 1


def goal_of(until: Until, root: int, active: int) -> dict[str, Any]:
    """Return the members of ``Goal`` for a search from a number.

    until: targets by number, possibly with the root; active: how many numbers there are
    Raises UsageError if the root or a target is not one of these numbers.
    """
    if not 0 <= root < active:
        raise UsageError(f"vertex number is {root}; allowed: 0 to {active - 1}")
    until = until.beyond(root, active)
    last = NO_LIMIT if until.depth is None else until.depth
    if until.targets is None:
        return {"last": last, "count": 0, "targets": None}
    targets = cuda.cupy().asarray(until.targets.astype(np.uint32))
    return {"last": last, "count": len(targets), "targets": targets}
