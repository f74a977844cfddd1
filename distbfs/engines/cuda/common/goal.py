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
    Raises UsageError if the root is not one of these numbers.
    """
    if not 0 <= root < active:
        raise UsageError(f"vertex number is {root}; allowed: 0 to {active - 1}")
    last = NO_LIMIT if until.depth is None else until.depth
    if until.targets is None:
        return {"last": last, "count": 0, "targets": None}
    others = until.targets[until.targets != root].astype(np.uint32)
    if not len(others):
        # mutant: "last": 0 -> "last": 1 : test_nothing_lies_beyond_the_last_level
        return {"last": 0, "count": 0, "targets": None}
    targets = cuda.cupy().asarray(others)
    return {"last": last, "count": len(others), "targets": targets}
