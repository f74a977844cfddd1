"""One CUDA device: properties, memory from CuPy's pool, and driver calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from distbfs.device import cupy_library
from distbfs.errors import DistbfsError, OutOfMemory, ResourceError
from distbfs.types import Array, DeviceArray, Stream

DRIVER, NVIDIA = cupy_library.DRIVER, cupy_library.NVIDIA
cupy = cupy_library.cupy


@cache
def driver() -> ctypes.CDLL:
    """Return the CUDA driver's library."""
    cupy()
    return ctypes.CDLL(DRIVER)


def check(code: int, what: str) -> None:
    """Raise ResourceError if a driver call failed."""
    if not code:
        return
    text = ctypes.c_char_p()
    driver().cuGetErrorString(code, ctypes.byref(text))
    said = (text.value or b"unknown error").decode()
    raise ResourceError(f"CUDA: {what}: {said} ({code})")


def architecture() -> str:
    """Return the architecture of the current device, such as "sm_90"."""
    return f"sm_{cupy().cuda.Device().compute_capability}"


def multiprocessors() -> int:
    """Return the number of multiprocessors of the current device."""
    return _multiprocessors(cupy().cuda.Device().id)


@cache
def _multiprocessors(device: int) -> int:
    return int(cupy().cuda.Device(device).attributes["MultiProcessorCount"])


def blocks_for(items: int | None, each: int, *, most: int = 16) -> int:
    """Return the number of blocks to launch if a block takes ``each`` items at a time.

    most: largest number of blocks per multiprocessor, used if ``items`` is None
    """
    limit = most * multiprocessors()
    return limit if items is None else min(-(-items // each), limit)


def shared_limit() -> int:
    """Return the shared memory available to one block, in bytes."""
    attributes = cupy().cuda.Device().attributes
    return int(attributes["MaxSharedMemoryPerBlockOptin"])


def describe() -> dict[str, Any]:
    """Return the device's properties for reports (JSON values)."""
    runtime = cupy().cuda.runtime
    properties = runtime.getDeviceProperties(cupy().cuda.Device().id)
    name = properties["name"]
    return {
        "device": name.decode() if isinstance(name, bytes) else str(name),
        "memory_bytes": int(properties["totalGlobalMem"]),
        "multiprocessors": multiprocessors(),
        "driver": runtime.driverGetVersion(),
        "runtime": runtime.runtimeGetVersion(),
        "cupy": str(cupy().__version__),
    }


def uuids(devices: Sequence[int] | None = None) -> list[str]:
    """Return the UUIDs of devices, by default the current one, as nvidia-smi shows."""
    octets, device = (ctypes.c_ubyte * 16)(), ctypes.c_int()
    texts, current = [], [int(cupy().cuda.Device().id)]
    for index in current if devices is None else devices:
        check(driver().cuDeviceGet(ctypes.byref(device), index), "uuid")
        check(driver().cuDeviceGetUuid_v2(ctypes.byref(octets), device), "uuid")
        texts.append(f"GPU-{UUID(bytes=bytes(octets))}")
    return texts


def free_bytes() -> int:
    """Return the free device memory, including unused memory of the pool."""
    free, _ = cupy().cuda.runtime.memGetInfo()
    return int(free) + int(cupy().get_default_memory_pool().free_bytes())


def available(need: int) -> int:
    """Return the free device memory that an allocation can rely on.

    Unused memory of the pool may be fragmented: if fewer than ``need`` bytes are free
    without it, it is returned to the device first.
    """
    free, _ = cupy().cuda.runtime.memGetInfo()
    if free < need:
        release()
        free, _ = cupy().cuda.runtime.memGetInfo()
    return int(free)


def use_current() -> None:
    """Make the current device current for the driver, as a first launch needs."""
    cupy().cuda.Device().use()


def require(need: int, what: str) -> None:
    """Raise OutOfMemory unless ``need`` bytes of device memory are free."""
    have = free_bytes()
    if need > have:
        raise OutOfMemory(
            f"{what} needs {need} bytes of device memory; {have} are free"
        )


class memory_of:  # noqa: N801 - used as a function
    """Convert failed allocations, including Thrust's, to OutOfMemory; free the pool."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, MemoryError) and not isinstance(error, DistbfsError):
            release()
            raise OutOfMemory(
                f"{self._what}: {error}; {free_bytes()} bytes are free"
            ) from error


def pinned_empty(count: int, dtype: npt.DTypeLike) -> Array:
    """Return a NumPy array [count] in pinned host memory, contents undefined."""
    size = count * np.dtype(dtype).itemsize
    memory = cupy().cuda.alloc_pinned_memory(max(size, 1))
    return np.frombuffer(memory, dtype=dtype, count=count)


def copy_to_host(array: DeviceArray, pinned: Array, stream: Stream) -> None:
    """Start to copy a contiguous array; the stream may be in capture."""
    runtime, at = cupy().cuda.runtime, array.data.ptr
    kind = runtime.memcpyDeviceToHost
    runtime.memcpyAsync(pinned.ctypes.data, at, array.nbytes, kind, stream.ptr)


class HostCopy:
    """A small array in device memory and its copy in host memory.

    array: the device array, of any dtype
    pinned: the copy, a NumPy array of the same size and dtype, which the next copy
    overwrites
    """

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        self.pinned = pinned_empty(array.size, array.dtype)
        self._done = cupy().cuda.Event(disable_timing=True)

    def begin(self, stream: Stream | None = None) -> None:
        """Start a copy, in the order of a stream, by default the current one."""
        stream = stream or cupy().cuda.get_current_stream()
        copy_to_host(self.array, self.pinned, stream)
        self._done.record(stream)

    def wait(self) -> Array:
        """Wait for the copy; return ``pinned``."""
        self._done.synchronize()
        return self.pinned


class DeviceClock:
    """Events around the work of devices of this process."""

    def __init__(self, devices: Sequence[int]) -> None:
        self._devices = [cupy().cuda.Device(device) for device in devices]
        self._pairs: list[tuple[Any, Any]] = []
        for device in self._devices:
            with device:
                self._pairs.append((cupy().cuda.Event(), cupy().cuda.Event()))

    def begin(self) -> None:
        """Wait for pending work, then record the start on each device."""
        self._record(0)
        for first, _ in self._pairs:
            first.synchronize()
        self._record(0)

    def end(self) -> float:
        """Record the end, wait for it, and return the seconds of the slowest device."""
        self._record(1)
        for _, last in self._pairs:
            last.synchronize()
        elapsed = cupy().cuda.get_elapsed_time
        return float(max(elapsed(*pair) for pair in self._pairs)) * 1e-3

    def _record(self, which: int) -> None:
        """Record an event of each device's pair on its current stream."""
        for device, pair in zip(self._devices, self._pairs, strict=True):
            with device:
                pair[which].record(cupy().cuda.get_current_stream())


def ranges() -> tuple[Callable[[str], object], Callable[[], object]]:
    """Return the functions that begin and end an NVTX range of the calling thread."""
    cupy()
    from cupy.cuda import nvtx  # noqa: PLC0415

    return nvtx.RangePush, nvtx.RangePop


def clear(array: DeviceArray, stream: Stream | None = None) -> None:
    """Set all bytes of an array to zero, in stream order; default: the current one."""
    stream = stream or cupy().cuda.get_current_stream()
    array.data.memset_async(0, array.nbytes, stream)


def release() -> None:
    """Release the pool's unused memory to the device."""
    cupy().get_default_memory_pool().free_all_blocks()
    cupy().get_default_pinned_memory_pool().free_all_blocks()
