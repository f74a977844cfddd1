"""Values of a device array at some places, for the host."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda, programs

if TYPE_CHECKING:
    from distbfs.types import Array, Ids

SOURCE = Path(__file__).with_name("take.cu")
FEW, BLOCK = 4096, 256  # places of a launch; threads of a block


class Request(ctypes.Structure):
    """``Take`` in take.cu."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("values", "places", "out")),
        *((name, ctypes.c_uint32) for name in ("count", "size")),
    )


class Taker:
    """Takes values at up to FEW places on the current device, in one launch."""

    def __init__(self) -> None:
        self._places = cuda.pinned_empty(FEW, np.uint64)
        self._values = cuda.pinned_empty(FEW, np.uint64)
        self._request = Request(
            places=self._places.ctypes.data, out=self._values.ctypes.data
        )
        kernel = programs.Module(SOURCE).kernel("take")
        self._launch = kernel.prepare(self._request, FEW // BLOCK, BLOCK)
        self._lock = Lock()

    def take(self, values: Any, places: Ids) -> Array:
        """Return values[places] of a contiguous array."""
        stream, count = cuda.cupy().cuda.get_current_stream(), len(places)
        with self._lock:
            self._places[:count] = places
            self._request.values = values.data.ptr
            self._request.count, self._request.size = count, values.dtype.itemsize
            self._launch(stream.ptr)
            stream.synchronize()
            taken: Array = self._values.view(values.dtype)[:count].copy()
        return taken


@cache
def taker(cupy: Any, device: int) -> Taker:  # noqa: ARG001 - one for each
    """Return what takes values on a device, which is the current one."""
    return Taker()


def take(values: Any, places: Ids) -> Array:
    """Return the values at places, int64 [k] inside, of a contiguous CuPy array."""
    with values.device:
        cupy = cuda.cupy()
        if len(places) <= FEW:
            return taker(cupy, int(values.device)).take(values, places)
        taken: Array = values[cupy.asarray(places)].get()
    return taken
