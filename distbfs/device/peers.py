"""Device memory that other devices access, through CUDA IPC in other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda
from distbfs.errors import ResourceError

if TYPE_CHECKING:
    import numpy.typing as npt

    from distbfs.types import DeviceArray

LAZY_PEER_ACCESS = 1  # cudaIpcMemLazyEnablePeerAccess


class PeerBlock:
    """Zeroed memory on the current device, in an allocation of its own.

    array: CuPy uint8 [size]
    """

    def __init__(self, size: int, what: str) -> None:
        cp = cuda.cupy()
        cuda.release()
        cuda.require(size, what)
        self._pointer = 0
        try:
            self._pointer = int(cp.cuda.runtime.malloc(max(size, 1)))
        except cp.cuda.runtime.CUDARuntimeError as error:
            raise ResourceError(f"{what}: {error}") from error
        self.array: DeviceArray = foreign_array(self._pointer, size, np.uint8)
        cuda.clear(self.array, cp.cuda.get_current_stream())

    def handle(self) -> bytes:
        """Return the handle that lets another process map this memory."""
        return bytes(cuda.cupy().cuda.runtime.ipcGetMemHandle(self._pointer))

    def free(self) -> None:
        """Free the memory; no process may still use it."""
        if self._pointer:
            cuda.cupy().cuda.runtime.free(self._pointer)
            self._pointer = 0


def foreign_array(address: int, count: int, dtype: npt.DTypeLike) -> DeviceArray:
    """Wrap an address that the current device can access as a CuPy array [count]."""
    cp = cuda.cupy()
    size = max(count, 1) * np.dtype(dtype).itemsize
    memory = cp.cuda.UnownedMemory(address, size, None)
    return cp.ndarray((count,), dtype, cp.cuda.MemoryPointer(memory, 0))


def open_handle(handle: bytes) -> int:
    """Map another process's memory on the current device; return its address.

    Raises ResourceError if it cannot be mapped.
    """
    runtime = cuda.cupy().cuda.runtime
    try:
        return int(runtime.ipcOpenMemHandle(handle, LAZY_PEER_ACCESS))
    except runtime.CUDARuntimeError as error:
        raise ResourceError(f"CUDA IPC: {error}") from error


def close_handle(address: int) -> None:
    """Unmap memory that ``open_handle`` mapped on the current device."""
    cuda.cupy().cuda.runtime.ipcCloseMemHandle(address)


def access_problem(devices: list[int]) -> str:
    """Enable peer access among devices of this process; return a failure, or ""."""
    cp = cuda.cupy()
    runtime = cp.cuda.runtime
    for device in devices:
        for peer in devices:
            if device == peer:
                continue
            if not runtime.deviceCanAccessPeer(device, peer):
                return f"device {device} has no peer access to device {peer}"
            with cp.cuda.Device(device):
                try:
                    runtime.deviceEnablePeerAccess(peer)
                except runtime.CUDARuntimeError as error:
                    if "PeerAccessAlreadyEnabled" not in str(error):
                        return f"device {device} to {peer}: {error}"
    return ""
