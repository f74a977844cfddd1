"""A gate that work of several devices waits at, so that all begin together."""

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
    """A page of memory that the processes of a host share and devices read.

    path: a file that is there already, "" to make one
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
        """Let devices go of it."""
        self._called("cuMemHostUnregister", self._at)


def page_at(path: str) -> Page | None:
    """Return a page, see there, None where the host or the device has none."""
    try:
        return Page(path)
    except (OSError, ResourceError):
        return None


class Gate:
    """A word of the host's memory that streams of all devices of all ranks wait for.

    Where ranks cannot share memory, each has a word of its own; where a device cannot
    wait so, its work begins when it is given.  Making it, and opening, are collective.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._turn = 1  # what the word is when the gate is opened next
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
        """Return a page of all ranks, None on all where one has none."""
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
        """Let what the current device is given next, on its legacy stream, wait."""
        code = cuda.driver().cuStreamWaitValue32_v2(
            None,
            ctypes.c_uint64(self._address),
            ctypes.c_uint32(self._turn),
            AT_LEAST,
        )
        if code != NOT_SUPPORTED:
            cuda.check(code, "waiting for the other devices")

    def open(self) -> None:
        """Let all that waits begin, when all ranks have come here."""
        self._world.barrier()
        if self._page is None or self._world.rank == 0:
            self.release()
        self._turn = self._turn + 1 & 0xFFFFFFFF

    def release(self) -> None:
        """Let all that waits begin; alone, where the search is given up."""
        self._word[0] = self._turn

    def close(self) -> None:
        """Give the memory back."""
        if self._page is not None:
            self._page.close()
            self._page = None
