"""A gate where several devices wait, so that all start a search together."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda

if TYPE_CHECKING:
    from distbfs.types import World

AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ
NOT_SUPPORTED = 801


class Gate:
    """A word of host memory that the streams of this rank's devices wait for.

    All ranks open theirs when they leave a common barrier. If a device cannot wait for
    a word, its work starts at once. Creating and opening a gate are collective.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._turn = 1  # value that opens the gate next
        self._word = cuda.pinned_empty(1, np.uint32)
        self._word[0] = 0
        world.barrier()

    def hold(self) -> None:
        """Make the current device's legacy stream wait until the gate opens."""
        code = cuda.driver().cuStreamWaitValue32_v2(
            None,
            ctypes.c_uint64(self._word.ctypes.data),
            ctypes.c_uint32(self._turn),
            AT_LEAST,
        )
        if code != NOT_SUPPORTED:
            cuda.check(code, "waiting for the other devices")

    def open(self) -> None:
        """Release all waiting devices, once all ranks have called this."""
        self._world.barrier()
        self.release()
        self._turn = self._turn + 1 & 0xFFFFFFFF

    def release(self) -> None:
        """Release this rank's waiting devices, also to abort a search."""
        self._word[0] = self._turn
