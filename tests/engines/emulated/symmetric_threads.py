"""Memory that kernels of ranks put into which are threads, as NVSHMEM's."""

import mmap
from ctypes import CDLL, c_int, c_long, c_size_t, c_void_p

import numpy as np
from emulated_device import DeviceArray, at_address
from test_between_kernels import StreamedThreads

from distbfs.device import programs

ORIGIN, STRIDE = 0x610000000000, 1 << 28  # as in nvshmem_on_cpu.hpp
FIXED, NORESERVE = 0x10, 0x4000  # of mmap
LINE = 1 << 12


def mapped(rank):
    """Map the memory of a rank at its place, zeros."""
    libc = CDLL(None)
    libc.mmap.restype = c_void_p
    libc.mmap.argtypes = [c_void_p, c_size_t, c_int, c_int, c_int, c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE | FIXED
    access = mmap.PROT_READ | mmap.PROT_WRITE
    place = ORIGIN + rank * STRIDE
    assert libc.mmap(place, STRIDE, access, flags, -1, 0) == place


class ThreadMemory:
    """As ``exchange.symmetric.NvshmemMemory``."""

    near = False

    def __init__(self, world):
        self._world, self._end = world, ORIGIN + world.rank * STRIDE
        mapped(world.rank)

    def allocate(self, size, what):
        assert len({int(x[0]) for x in self._world.allgather(np.array([size]))}) == 1
        place = self._end
        self._end += -(-size // LINE) * LINE
        return at_address(place, size, np.uint8).view(DeviceArray)

    def module(self, source, **definitions):
        return programs.Module(source, **definitions)


class SymmetricThreads(StreamedThreads):
    """A symmetric exchange between ranks that are threads."""

    symmetric = True

    def memory(self):
        return ThreadMemory(self.world)
