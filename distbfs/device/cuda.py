"""One CUDA device: memory from CuPy's pool, and kernels launched with little overhead.

Kernels are launched through the driver with arguments that are laid out once, so that
a search costs three calls: event, launch, event.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import nvrtc
from distbfs.errors import DeviceMissing, ResourceError
from distbfs.types import Array

if TYPE_CHECKING:
    from distbfs.device.stop_word import StopWord
    from distbfs.device.timed_graph import TimedGraph

PREFERRED_CARVEOUT = 9  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
REGISTERS, LOCAL_BYTES, STATIC_SHARED = 4, 3, 1
COOPERATIVE, CLUSTER = 2, 4  # CUlaunchAttributeID
RELAXED = 2  # CUstreamCaptureMode: a module may be unloaded meanwhile
KEPT_SHARED = 1 << 10  # bytes of shared memory that a block has besides its own
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


def uuid() -> str:
    """Return what tells the current device from all others, as nvidia-smi shows it."""
    found = (ctypes.c_ubyte * 16)()
    device = ctypes.c_int()
    index = int(cupy().cuda.Device().id)
    check(driver().cuDeviceGet(ctypes.byref(device), index), "uuid")
    check(driver().cuDeviceGetUuid_v2(ctypes.byref(found), device), "uuid")
    digits = bytes(found).hex()
    cuts = (0, 8, 12, 16, 20, 32)
    return "GPU-" + "-".join(digits[a:b] for a, b in pairwise(cuts))


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


def pinned_empty(count: int, dtype: Any) -> Any:
    """Return a NumPy array [count] in pinned host memory, contents undefined."""
    size = count * np.dtype(dtype).itemsize
    memory = cupy().cuda.alloc_pinned_memory(max(size, 1))
    return np.frombuffer(memory, dtype=dtype, count=count)


class HostCopy:
    """A small array in device memory and what of it has come to the host.

    pinned: the copy, a NumPy array that the next one overwrites; see ``begin`` and
        ``Launch.timed``
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self.pinned = pinned_empty(array.size, array.dtype)
        self._done = cupy().cuda.Event(disable_timing=True)

    def begin(self, stream: Any) -> None:
        """Begin to copy, after what is on the stream."""
        self.array.get(stream=stream, out=self.pinned, blocking=False)
        self._done.record(stream)

    def wait(self) -> Any:
        """Wait for the copy that has begun, and return it."""
        self._done.synchronize()
        return self.pinned


def counts(values: Any, kinds: int) -> Array:
    """Return how often 0 … kinds-1 are in a CuPy array, int64 [kinds] on the host."""
    if not values.size:
        return np.zeros(kinds, dtype=np.int64)
    with values.device:
        found: Array = cupy().bincount(values, minlength=kinds).get()
    return found.astype(np.int64)


def ranges() -> tuple[Callable[[str], object], Callable[[], object]]:
    """Return what begins and ends an NVTX range of the calling thread."""
    cupy()
    from cupy.cuda import nvtx  # noqa: PLC0415

    return nvtx.RangePush, nvtx.RangePop


def clear(array: Any, stream: Any) -> None:
    """Set all bytes of an array to zero, after what is on the stream."""
    array.data.memset_async(0, array.nbytes, stream)


def release() -> None:
    """Give the pool's spare memory back to the device."""
    cupy().get_default_memory_pool().free_all_blocks()
    cupy().get_default_pinned_memory_pool().free_all_blocks()


class Module:
    """The kernels of one ``.cu`` file on the current device.

    texts: headers that are no files, by name (see ``nvrtc.compile_source``)
    """

    def __init__(
        self,
        source: Path,
        texts: Mapping[str, str] = nvrtc.NO_TEXTS,
        /,
        **definitions: str | int,
    ) -> None:
        code = nvrtc.cubin(source, architecture(), definitions, texts)
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

    def share_memory(self, blocks: int, shared: int) -> None:
        """Let so many blocks have ``shared`` bytes each; leave the rest to L1."""
        whole = cupy().cuda.Device().attributes["MaxSharedMemoryPerMultiprocessor"]
        need = blocks * (shared + self.attribute(STATIC_SHARED) + KEPT_SHARED)
        percent = min(-(-100 * need // int(whole)), 100)
        self.set_attribute(PREFERRED_CARVEOUT, percent)

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
        self._graph: TimedGraph | None = None

    def __call__(self, stream: int = 0) -> None:
        """Launch on a stream, by default the legacy one."""
        self._config.stream = stream or None
        code = driver().cuLaunchKernelEx(
            ctypes.byref(self._config),
            ctypes.c_void_p(self.kernel.function.ptr),
            self._parameters,
            None,
        )
        check(code, f"launch of {self.kernel.name}")

    def timed(
        self,
        before: Sequence[tuple[Any, int]] = (),
        then: Launch | None = None,
        back: HostCopy | None = None,
        word: StopWord | None = None,
    ) -> float:
        """Launch, wait, and return the seconds between events around the kernel.

        before: arrays of 4-byte items that are first filled with a value, in that time
        then: a launch that follows, in that time
        back: what has come to the host at the end, after that time; all three the same
            at every call
        word: what the kernel looks at between levels, to end where its ``stop`` says so

        Events and kernels are one graph, so that no gap of the host lies between them.
        """
        graph = self.record(before, then, back)
        graph.set_arguments()
        graph.launch()
        return graph.wait(word)

    def record(
        self,
        before: Sequence[tuple[Any, int]] = (),
        then: Launch | None = None,
        back: HostCopy | None = None,
    ) -> TimedGraph:
        """Return what ``timed`` launches, made when it is first asked for.

        To launch as soon as one can, set its arguments before; then ``wait``.
        """
        from distbfs.device.timed_graph import TimedGraph  # noqa: PLC0415 - it needs us

        if self._graph is None:
            launches = [self] if then is None else [self, then]
            self._graph = TimedGraph(launches, before, back)
        return self._graph

    @property
    def parameters(self) -> ctypes.Array[ctypes.c_void_p]:
        """The addresses of the arguments."""
        return self._parameters
