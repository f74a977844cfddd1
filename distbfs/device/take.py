"""A small kernel that reads a few elements of device arrays (take.cu)."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.structures import structure

if TYPE_CHECKING:
    from distbfs.types import Array, DeviceArray, Ids

SOURCE = Path(__file__).with_name("take.cu")
FEW, THREADS = 4096, 1024  # most places of a request; threads of the one block


def bring(**arguments: Any) -> programs.Launch:
    """Prepare a launch on the current device; its arguments are a ``Bring``."""
    kernel = programs.kernel_here(SOURCE, "bring")
    return kernel.prepare(structure(SOURCE, "Bring")(**arguments), 1, THREADS)


class Back:
    """A small array in device memory, copied to the host after timed launches.

    array: the device array, of a multiple of four bytes
    pinned: the copy, a NumPy array of the same size and dtype, which the next launch
    overwrites; see ``Launch.timed``
    """

    def __init__(self, array: DeviceArray) -> None:
        if array.nbytes % 4:
            raise ValueError(f"not a multiple of 4 bytes: {array.nbytes}")
        self.array = array
        self.pinned = cuda.pinned_empty(array.size, array.dtype)

    def launch(self) -> programs.Launch:
        """Return a launch that copies the array."""
        words = self.array.nbytes // 4
        return bring(array=self.array, back=self.pinned, words=words)


class Taker:
    """Reads values at up to FEW places on the current device, in one launch.

    The request for them and the values lie in pinned memory.
    """

    def __init__(self) -> None:
        request = structure(SOURCE, "Request")
        memory = cuda.pinned_empty(ctypes.sizeof(request), np.uint8)
        self._request = request.from_buffer(memory.data)
        self._places = np.frombuffer(self._request.places, np.int64)
        self._taken = np.frombuffer(self._request.taken, np.uint64)
        self._lock, self._launch = Lock(), bring(request=int(memory.ctypes.data))

    def take(self, values: Any, places: Ids) -> Array:
        """Return values[places] of a contiguous array."""
        stream, request = cuda.cupy().cuda.get_current_stream(), self._request
        count = len(places)
        with self._lock:
            request.values, request.length = values.data.ptr, len(values)
            request.size, request.count = values.dtype.itemsize, count
            self._places[:count] = places
            self._launch(stream.ptr)
            stream.synchronize()
            taken: Array = self._taken.view(values.dtype)[:count].copy()
            return taken


@cache
def taker(cupy: Any, device: int) -> Taker:  # noqa: ARG001 - one for each
    """Return the reader of the current device."""
    return Taker()


def take(values: Any, places: Ids) -> Array:
    """Return the values of a contiguous CuPy array at places, int64 [k], in range."""
    with values.device:
        cupy = cuda.cupy()
        if len(places) <= FEW:
            return taker(cupy, int(values.device)).take(values, places)
        taken: Array = values[cupy.asarray(places)].get()
    return taken
