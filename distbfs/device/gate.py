"""A gate where several devices wait, so that all start a search together."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.errors import ResourceError

if TYPE_CHECKING:
    from distbfs.types import Numbers, World

AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ
NOT_SUPPORTED = 801
PAGE = mmap.PAGESIZE
SHARED = "/dev/shm"  # noqa: S108 - files of mkstemp
OF_ALL_DEVICES = 3  # CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP


class Page:
    """A page of host memory that processes share and devices read.

    path: an existing file, or "" to create one
    """

    def __init__(self, path: str) -> None:
        self.path = path
        if path:
            file = os.open(path, os.O_RDWR)
        else:
            file, self.path = tempfile.mkstemp(prefix="distbfs-", dir=SHARED)
            os.ftruncate(file, PAGE)
        self._memory = mmap.mmap(file, PAGE)
        os.close(file)
        self.words: Numbers = np.frombuffer(self._memory, np.uint32)
        self._at = ctypes.c_void_p(self.words.ctypes.data)
        self._called("cuMemHostRegister_v2", self._at, PAGE, OF_ALL_DEVICES)
        address = ctypes.c_uint64()
        self._called("cuMemHostGetDevicePointer_v2", ctypes.byref(address), self._at, 0)
        self.address = address.value

    def _called(self, name: str, *arguments: Any) -> None:
        code = getattr(cuda.driver(), name)(*arguments)
        cuda.check(code, "memory that ranks share")

    def close(self) -> None:
        """Unregister the page from the devices."""
        self._called("cuMemHostUnregister", self._at)


def page_at(path: str) -> Page | None:
    """Map a shared page; return None if the host or the device cannot map it."""
    try:
        return Page(path)
    except (OSError, ResourceError):
        return None


class Gate:
    """A word of host memory that streams of all devices of all ranks wait for.

    If ranks cannot share memory, each has its own word; if a device cannot wait for a
    word, its work starts at once. Creating and opening a gate are collective.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._turn = 1  # value that opens the gate next
        self._page = self._shared() if world.size > 1 else None
        if self._page is None:
            self._memory = cuda.cupy().cuda.alloc_pinned_memory(PAGE)
            self._word = np.frombuffer(self._memory, np.uint32, 1)
            self._address = int(self._memory.ptr)
        else:
            self._word, self._address = self._page.words[:1], self._page.address
        self._word[0] = 0
        world.barrier()

    def _shared(self) -> Page | None:
        """Return a page shared by all ranks; None on all ranks if any cannot map it."""
        world = self._world
        page = page_at("") if world.rank == 0 else None
        path = world.broadcast(page.path if page else "")
        if path and world.rank:
            page = page_at(path)
        everywhere = world.allreduce(np.array([page is None], np.int64), "max")[0] == 0
        if page is not None and world.rank == 0:
            os.unlink(page.path)
        if page is not None and not everywhere:
            page.close()
        return page if everywhere else None

    def hold(self) -> None:
        """Make the current device's legacy stream wait until the gate opens."""
        code = cuda.driver().cuStreamWaitValue32_v2(
            None,
            ctypes.c_uint64(self._address),
            ctypes.c_uint32(self._turn),
            AT_LEAST,
        )
        if code != NOT_SUPPORTED:
            cuda.check(code, "waiting for the other devices")

    def open(self) -> None:
        """Release all waiting devices, once all ranks have called this."""
        self._world.barrier()
        if self._page is None or self._world.rank == 0:
            self.release()
        self._turn = self._turn + 1 & 0xFFFFFFFF

    def release(self) -> None:
        """Release all waiting devices; a single rank may call it to abort a search."""
        self._word[0] = self._turn

    def close(self) -> None:
        """Free the memory."""
        if self._page is not None:
            self._page.close()
            self._page = None
