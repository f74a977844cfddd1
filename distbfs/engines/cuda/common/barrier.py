"""A barrier of all blocks of a cooperative launch; the device code is in base.cuh."""

from __future__ import annotations

import ctypes

TURNS, STEP = 4, 16  # counters used in turn, and 64-bit words between them


class Barrier(ctypes.Structure):
    """``Barrier`` in base.cuh; zeros before the first launch."""

    _fields_ = (("slot", ctypes.c_uint64 * (TURNS * STEP)),)
