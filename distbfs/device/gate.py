"""A gate that work of several devices waits at, so that all begin together."""

from __future__ import annotations

import ctypes

import numpy as np

from distbfs.device import cuda

AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ
NOT_SUPPORTED = 801


class Gate:
    """A word of the host's memory that streams of all devices wait for.

    Where a device cannot wait so, it does not wait: its work begins when it is given.
    """

    def __init__(self) -> None:
        self._memory = cuda.cupy().cuda.alloc_pinned_memory(4)
        self._word = np.frombuffer(self._memory, np.uint32, 1)
        self._word[0] = self._turn = 0

    def hold(self) -> None:
        """Let what the current device is given next, on its legacy stream, wait."""
        code = cuda.driver().cuStreamWaitValue32_v2(
            None,
            ctypes.c_uint64(self._memory.ptr),
            ctypes.c_uint32(self._turn + 1 & 0xFFFFFFFF),
            AT_LEAST,
        )
        if code != NOT_SUPPORTED:
            cuda.check(code, "waiting for the other devices")

    def open(self) -> None:
        """Let all that waits begin."""
        self._turn = self._turn + 1 & 0xFFFFFFFF
        self._word[0] = self._turn
