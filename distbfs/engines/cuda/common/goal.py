"""Where a search by number ends, as a kernel argument (goal.cuh)."""

from __future__ import annotations

import ctypes

import numpy as np

from distbfs.device import cuda
from distbfs.engines.base import Until
from distbfs.types import DeviceArray

NO_LIMIT = (1 << 31) - 1


class Goal(ctypes.Structure):
    """``Goal`` in goal.cuh; holds its targets in device memory."""

    _fields_ = (
        ("targets", ctypes.c_void_p),
        ("count", ctypes.c_uint32),
        ("last", ctypes.c_int32),
    )

    held: DeviceArray

    @classmethod
    def of(cls, until: Until, root: int) -> Goal:
        """Return the goal of a search from a number.

        until: targets by number, the root may be among them
        """
        goal = cls(last=NO_LIMIT if until.depth is None else until.depth)
        if until.targets is None:
            return goal
        others = until.targets[until.targets != root].astype(np.uint32)
        if not len(others):
            # mutant: = 0 -> = 1 : test_nothing_lies_beyond_the_last_level
            goal.last = 0
            return goal
        goal.held = cuda.cupy().asarray(others)
        goal.targets, goal.count = goal.held.data.ptr, len(others)
        return goal
