"""One CUDA device: memory from CuPy's pool, and kernels launched with little overhead.

Kernels are launched through the driver with arguments that are laid out once, so that
a search costs three calls: event, launch, event.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from distbfs.device import nvrtc
from distbfs.errors import DeviceMissing, ResourceError

MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
REGISTERS, LOCAL_BYTES, STATIC_SHARED = 4, 3, 1
COOPERATIVE, CLUSTER = 2, 4  # CUlaunchAttributeID
DRIVER = "libcuda.so.1"


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an id and a value of 64 bytes."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("pad", ctypes.c_char * 4),
        ("value", ctypes.c_uint32 * 16),
    )


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


@cache
def cupy() -> Any:
    """Return CuPy; DeviceMissing where there is none or it sees no device."""
    try:
        import cupy as found  # noqa: PLC0415
    except ImportError as error:
        raise DeviceMissing(
            "no CUDA: cupy is not installed; pip install 'distbfs[cuda13]' or "
            "'distbfs[cuda12]'"
        ) from error
    try:
        count = found.cuda.runtime.getDeviceCount()
    except Exception as error:
        why = " ".join(str(error).split())
        raise DeviceMissing(f"no CUDA device: {why}") from error
    if not count:
        raise DeviceMissing("no CUDA device: the driver shows none")
    found.cuda.runtime.free(0)  # makes the context
    return found


@cache
def driver() -> ctypes.CDLL:
    """Return the CUDA driver's library."""
    cupy()
    try:
        return ctypes.CDLL(DRIVER)
    except OSError as error:
        raise DeviceMissing(f"no CUDA driver: {error}") from error


def check(code: int, what: str) -> None:
    """Raise ResourceError unless a call of the driver succeeded."""
    if not code:
        return
    text = ctypes.c_char_p()
    driver().cuGetErrorString(code, ctypes.byref(text))
    said = (text.value or b"unknown error").decode()
    raise ResourceError(f"CUDA: {what}: {said} ({code})")


def architecture() -> str:
    """Return the architecture of the current device, as "sm_90"."""
    return f"sm_{cupy().cuda.Device().compute_capability}"


def multiprocessors() -> int:
    """Return the number of multiprocessors of the current device."""
    return int(cupy().cuda.Device().attributes["MultiProcessorCount"])


def shared_limit() -> int:
    """Return the shared memory that one block may have, in bytes."""
    attributes = cupy().cuda.Device().attributes
    return int(attributes["MaxSharedMemoryPerBlockOptin"])


def describe() -> dict[str, Any]:
    """Return what reports say of the device (JSON values)."""
    runtime = cupy().cuda.runtime
    told = runtime.getDeviceProperties(cupy().cuda.Device().id)
    name = told["name"]
    return {
        "device": name.decode() if isinstance(name, bytes) else str(name),
        "memory_bytes": int(told["totalGlobalMem"]),
        "multiprocessors": multiprocessors(),
        "driver": runtime.driverGetVersion(),
        "runtime": runtime.runtimeGetVersion(),
        "cupy": str(cupy().__version__),
    }


def free_bytes() -> int:
    """Return the device memory that can still be had, the pool's spare included."""
    free, _ = cupy().cuda.runtime.memGetInfo()
    return int(free) + int(cupy().get_default_memory_pool().free_bytes())


def require(need: int, what: str) -> None:
    """Raise ResourceError unless ``need`` bytes of device memory can be had."""
    have = free_bytes()
    if need > have:
        raise ResourceError(
            f"{what} needs {need} bytes of device memory; {have} are free"
        )


@contextmanager
def memory_of(what: str) -> Iterator[None]:
    """Turn CuPy's out-of-memory error into a ResourceError, freeing the pool."""
    try:
        yield
    except cupy().cuda.memory.OutOfMemoryError as error:
        release()
        raise ResourceError(
            f"{what}: {error}; {free_bytes()} bytes are free"
        ) from error


def release() -> None:
    """Give the pool's spare memory back to the device."""
    cupy().get_default_memory_pool().free_all_blocks()
    cupy().get_default_pinned_memory_pool().free_all_blocks()


class Module:
    """The kernels of one ``.cu`` file on the current device."""

    def __init__(self, source: Path, **definitions: str | int) -> None:
        code = nvrtc.cubin(source, architecture(), definitions)
        self._module = cupy().cuda.function.Module()
        self._module.load(code)

    def kernel(self, name: str) -> Kernel:
        """Return a kernel by its ``extern "C"`` name."""
        return Kernel(self._module.get_function(name), name)


@dataclass
class Kernel:
    """A loaded kernel."""

    function: Any
    name: str

    def attribute(self, number: int) -> int:
        """Return a CU_FUNC_ATTRIBUTE."""
        value = ctypes.c_int()
        handle = ctypes.c_void_p(self.function.ptr)
        code = driver().cuFuncGetAttribute(ctypes.byref(value), number, handle)
        check(code, f"attributes of {self.name}")
        return value.value

    def set_attribute(self, number: int, value: int) -> None:
        """Set a CU_FUNC_ATTRIBUTE."""
        handle = ctypes.c_void_p(self.function.ptr)
        code = driver().cuFuncSetAttribute(handle, number, value)
        check(code, f"attributes of {self.name}")

    def __call__(self, grid: int, block: int, *arguments: Any, shared: int = 0) -> None:
        """Launch on the current stream; arguments are CuPy arrays or NumPy scalars."""
        if shared > 48 << 10:
            self.set_attribute(MAX_DYNAMIC_SHARED, shared)
        self.function((grid,), (block,), arguments, shared)

    def prepare(
        self,
        arguments: ctypes.Structure,
        grid: int,
        block: int,
        *,
        shared: int = 0,
        cooperative: bool = False,
        cluster: int = 0,
    ) -> Launch:
        """Return a launch whose one argument is a structure passed by value."""
        return Launch(self, arguments, grid, block, shared, cooperative, cluster)


class Launch:
    """A launch that is laid out once; the structure may change between calls."""

    def __init__(
        self,
        kernel: Kernel,
        arguments: ctypes.Structure,
        grid: int,
        block: int,
        shared: int,
        cooperative: bool,
        cluster: int,
    ) -> None:
        self.kernel, self.arguments = kernel, arguments
        if shared > 48 << 10:
            kernel.set_attribute(MAX_DYNAMIC_SHARED, shared)
        attributes = (LaunchAttribute * 2)()
        count = 0
        if cooperative:
            attributes[count].id, attributes[count].value[0] = COOPERATIVE, 1
            count += 1
        if cluster > 1:
            if cluster > 8:
                kernel.set_attribute(NON_PORTABLE_CLUSTER, 1)
            attributes[count].id = CLUSTER
            attributes[count].value[:3] = (cluster, 1, 1)
            count += 1
        self._attributes = attributes
        self._config = LaunchConfig(
            (ctypes.c_uint * 3)(grid, 1, 1),
            (ctypes.c_uint * 3)(block, 1, 1),
            shared,
            None,
            ctypes.cast(attributes, ctypes.c_void_p),
            count,
        )
        self._parameters = (ctypes.c_void_p * 1)(ctypes.addressof(arguments))
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self._events:
            check(driver().cuEventCreate(ctypes.byref(event), 0), "an event")
        self._launch = driver().cuLaunchKernelEx
        self._record = driver().cuEventRecord
        self._call = (
            ctypes.byref(self._config),
            ctypes.c_void_p(kernel.function.ptr),
            self._parameters,
            None,
        )
        self._begin = (self._events[0], None)
        self._end = (self._events[1], None)

    def __call__(self) -> None:
        """Launch on the legacy default stream."""
        check(self._launch(*self._call), f"launch of {self.kernel.name}")

    def timed(self, before: Sequence[tuple[Any, int]] = ()) -> float:
        """Launch, wait, and return the seconds between events around the kernel.

        before: arrays of 4-byte items that are first filled with a value, in that time
        """
        self._record(*self._begin)
        for array, value in before:
            code = driver().cuMemsetD32Async(
                ctypes.c_uint64(array.data.ptr),
                ctypes.c_uint32(value & 0xFFFFFFFF),
                ctypes.c_size_t(array.size),
                None,
            )
            check(code, "filling memory")
        code = self._launch(*self._call)
        self._record(*self._end)
        check(code, f"launch of {self.kernel.name}")
        check(driver().cuEventSynchronize(self._events[1]), self.kernel.name)
        milliseconds = ctypes.c_float()
        code = driver().cuEventElapsedTime(
            ctypes.byref(milliseconds), self._events[0], self._events[1]
        )
        check(code, f"time of {self.kernel.name}")
        return milliseconds.value * 1e-3
