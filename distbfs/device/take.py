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
    from distbfs.types import Array, DeviceArray, Ids, Take

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

    def launch(self, request: int = 0) -> programs.Launch:
        """Return a launch that copies the array; request: address of a request."""
        words = self.array.nbytes // 4
        return bring(array=self.array, back=self.pinned, request=request, words=words)


class PinnedRequest:
    """A request for the values at up to FEW places, in pinned memory."""

    def __init__(self) -> None:
        request = structure(SOURCE, "Request")
        memory = cuda.pinned_empty(ctypes.sizeof(request), np.uint8)
        memory[:] = 0  # an empty request
        self._request = request.from_buffer(memory.data)
        self.address = int(memory.ctypes.data)
        self._places = np.frombuffer(self._request.places, np.int64)
        self._taken = np.frombuffer(self._request.taken, np.uint64)
        self._by_type: dict[Any, Array] = {}

    def take_from(self, values: Any) -> None:
        """Set the contiguous array to read from."""
        self._request.values, self._request.length = values.data.ptr, len(values)
        self._request.size = values.dtype.itemsize

    def ask(self, places: Ids) -> None:
        """Request the values at places, int64 [up to FEW], for the next launch."""
        self._request.count = count = len(places)
        self._places[:count] = places

    def taken(self, count: int, dtype: Any) -> Array:
        """Return a copy of the values read by the completed launch."""
        values = self._by_type.get(dtype)
        if values is None:
            values = self._by_type[dtype] = self._taken.view(dtype)
        copy: Array = values[:count].copy()
        return copy


class Taker:
    """Reads values at up to FEW places on the current device, in one launch."""

    def __init__(self) -> None:
        self._asked, self._lock = PinnedRequest(), Lock()
        self._launch = bring(request=self._asked.address)

    def take(self, values: Any, places: Ids) -> Array:
        """Return values[places] of a contiguous array."""
        stream = cuda.cupy().cuda.get_current_stream()
        with self._lock:
            self._asked.take_from(values)
            self._asked.ask(places)
            self._launch(stream.ptr)
            stream.synchronize()
            return self._asked.taken(len(places), values.dtype)


class Ahead:
    """Reads a few results of a search within its launch, so that one wait serves both.

    The array with the results is known only after a search. It is usually that of the
    previous search, so values are read from that array, and read again if it was the
    wrong one. Create and use it with the device current.

    ``with ahead.of(places) as take`` reads values during the search in the block; they
    must be results of the search's last timed launch.
    """

    def __init__(self) -> None:
        self._asked = PinnedRequest()
        self._array: Any = None  # of the last ``take``, kept alive for the next search
        self._count, self._places = 0, b""
        self._launched = False  # since the request
        self._token: Any = None

    def of(self, places: Ids) -> Ahead:
        """Request the values at places, int64 [1 to FEW], from the enclosed search."""
        self._count, self._places = len(places), places.tobytes()
        self._launched = False
        self._asked.ask(places)
        return self

    def __enter__(self) -> Take:
        self._token = programs.ASKED.set(self)
        return self.take

    def __exit__(self, *_: object) -> None:
        programs.ASKED.reset(self._token)

    def launch(self, back: programs.CopyBack | None) -> programs.Launch:
        """Return the last kernel of timed launches; see ``programs.Asking``."""
        address = self._asked.address
        return bring(request=address) if back is None else back.launch(address)

    def begin(self) -> None:
        """Note the start of a timed launch, which reads the values."""
        self._launched = True

    def take(self, values: Any, places: Ids) -> Array:
        """Return values[places] of the contiguous array that the search wrote."""
        array = self._array
        if values is not array and (
            array is None
            or values.data.ptr != array.data.ptr
            or values.dtype != array.dtype
        ):
            self._array, self._launched = values, False
            self._asked.take_from(values)
        same = len(places) == self._count and places.tobytes() == self._places
        if self._launched and same:
            return self._asked.taken(len(places), values.dtype)
        return take(values, places)


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
