"""Values of a device array at some places, for the host."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda, programs

if TYPE_CHECKING:
    from distbfs.types import Array, Ids, Take

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

    def begin(self, values: Any, places: Ids, stream: int) -> None:
        """Take values[places] of a contiguous array behind what is on a stream."""
        count = len(places)
        self._places[:count] = places
        self._request.values = values.data.ptr
        self._request.count, self._request.size = count, values.dtype.itemsize
        self._launch(stream)

    def taken(self, count: int, dtype: Any) -> Array:
        """Return a copy of what has been taken; the stream was waited for."""
        copy: Array = self._values.view(dtype)[:count].copy()
        return copy

    def take(self, values: Any, places: Ids) -> Array:
        """Return values[places] of a contiguous array."""
        stream = cuda.cupy().cuda.get_current_stream()
        with self._lock:
            self.begin(values, places, stream.ptr)
            stream.synchronize()
            return self.taken(len(places), values.dtype)


class Ahead:
    """Takes a few results of a search behind the search, before it is waited for.

    Which array a search has written to shows when it is over.  Mostly it is that of the
    search before, so values are taken there: one wait serves both.  Where it is another
    one they are taken again.  Made, and used, with the device current.
    """

    def __init__(self) -> None:
        self._taker = Taker()
        self._array: Any = None  # of the last ``take``, kept alive for the next search
        self._taken_from: Any = None  # the same, where this search has taken from it
        self._places: Ids = np.zeros(0, dtype=np.int64)

    @contextmanager
    def of(self, places: Ids) -> Iterator[Take]:
        """Take values at places, int64 [1 to FEW], with the search of a block.

        Yields what returns them afterwards, see ``take``.  The search has to return
        what it found behind its last timed launch.
        """
        self._places, self._taken_from = places.copy(), None
        with programs.behind(self._begin):
            yield self.take

    def _begin(self) -> None:
        array, places = self._array, self._places
        if array is not None and places.min() >= 0 and places.max() < len(array):
            self._taker.begin(array, places, 0)
            self._taken_from = array

    def take(self, values: Any, places: Ids) -> Array:
        """Return values[places] of the contiguous array that the search wrote."""
        self._array, taken = values, self._taken_from
        if not (
            taken is not None
            and taken.data.ptr == values.data.ptr
            and taken.dtype == values.dtype
            and np.array_equal(places, self._places)
        ):
            return take(values, places)
        cuda.cupy().cuda.Stream.null.synchronize()
        return self._taker.taken(len(places), values.dtype)


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
