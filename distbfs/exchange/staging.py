"""Buffers between the caller's arrays and MPI.

MPI knows no streams: the device must finish its work on an array before MPI reads or
writes it, and later kernels must see the data that MPI wrote. A slot ensures this for
the arrays of one transfer; there are three: for masks, for sent items and for received
items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.exchange.buffer import Buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.types import Array


class HostSlot:
    """Arrays in host memory, which MPI accesses directly."""

    def __init__(self) -> None:
        self._arrays: list[Array] = []

    def begin(self, arrays: Sequence[Array]) -> None:
        """Set contiguous arrays of one dtype that MPI will read and may overwrite."""
        self._arrays = list(arrays)

    def space(self, array: Array) -> None:
        """Set an array that MPI will overwrite; its contents do not matter."""
        self.begin([array])

    def ready(self) -> bool:
        """Return whether ``wires`` would not wait."""
        return True

    def wires(self) -> list[Array]:
        """Return the arrays for MPI, in the order of ``begin``."""
        return self._arrays

    def back(self) -> Array:
        """Return the single array with the data that MPI wrote."""
        (array,) = self._arrays
        return array

    def free(self) -> None:
        """Free the memory; no transfer may be in progress."""
        self._arrays = []


class DeviceSlot(HostSlot):
    """Arrays in device memory, for an MPI that is known to accept them."""

    def __init__(self) -> None:
        super().__init__()
        self._event = cuda.cupy().cuda.Event(disable_timing=True)

    def begin(self, arrays: Sequence[Array]) -> None:
        """Set arrays that the current stream is still writing."""
        super().begin(arrays)
        self._event.record(cuda.cupy().cuda.get_current_stream())

    def ready(self) -> bool:
        """Return whether the stream has finished writing them."""
        return bool(self._event.done)

    def wires(self) -> list[Array]:
        """Wait for the stream and return the arrays."""
        self._event.synchronize()
        return self._arrays


class PinnedSlot(HostSlot):
    """Arrays in device memory, copied through pinned memory that MPI accesses.

    Copies run on a separate stream, one copy for all arrays of a ``begin``.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__()
        events = cuda.cupy().cuda
        self._stream = stream
        self._caller = events.Event(disable_timing=True)  # reached by the caller
        self._copied = events.Event(disable_timing=True)
        self._pinned = Buffer(np.uint8, cuda.pinned_empty)
        self._whole: Any = None  # in device memory
        self._wire: Any = None  # its copy in pinned memory
        self._cuts: list[int] = []

    def begin(self, arrays: Sequence[Array]) -> None:
        """Start to copy arrays that the current stream is still writing."""
        if not arrays:
            self._whole, self._cuts = None, []
            return
        whole: Any = arrays[0]
        if len(arrays) > 1:
            with cuda.memory_of("numbers that leave"):
                whole = cuda.cupy().concatenate(list(arrays))
        self.space(whole)
        self._cuts = np.cumsum([array.size for array in arrays])[:-1].tolist()
        self._copy(self._wire.ctypes.data, whole.data.ptr)

    def space(self, array: Array) -> None:
        """Set a device array that ``back`` will fill."""
        self._copied.synchronize()  # pinned memory is no longer in use
        self._whole, self._cuts = array, []
        self._wire = self._pinned.take(array.nbytes).view(array.dtype)

    def ready(self) -> bool:
        """Return whether the copy is complete."""
        return bool(self._copied.done)

    def wires(self) -> list[Array]:
        """Wait for the copy and return its pieces."""
        if self._whole is None:
            return []
        self._copied.synchronize()
        return np.split(self._wire, self._cuts)

    def back(self) -> Array:
        """Start to copy pinned memory to the device; return the device array."""
        self._copy(self._whole.data.ptr, self._wire.ctypes.data)
        self._current().wait_event(self._copied)
        return self._whole

    def free(self) -> None:
        """Free the memory."""
        self._copied.synchronize()
        self._whole = self._wire = None
        self._pinned.free()

    def _copy(self, target: int, source: int) -> None:
        """Copy in the order of the caller's stream."""
        runtime = cuda.cupy().cuda.runtime
        self._caller.record(self._current())
        self._stream.wait_event(self._caller)
        if self._wire.nbytes:
            kind, stream = runtime.memcpyDefault, self._stream.ptr
            runtime.memcpyAsync(target, source, self._wire.nbytes, kind, stream)
        self._copied.record(self._stream)

    @staticmethod
    def _current() -> Any:
        return cuda.cupy().cuda.get_current_stream()
