"""Kernels on a CUDA device, launched with little overhead.

Kernels are launched through the driver, with arguments that are laid out once; a search
is one CUDA graph (timed_graph.py) and one wait.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from distbfs.device import cuda, nvrtc
from distbfs.device.timed_graph import TimedGraph

if TYPE_CHECKING:
    from distbfs.device.nvshmem import Nvshmem
    from distbfs.device.stop_word import StopWord
    from distbfs.types import DeviceArray, KernelArgument

PREFERRED_CARVEOUT = 9  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
REGISTERS, STATIC_SHARED = 4, 1
COOPERATIVE, CLUSTER = 2, 4  # CUlaunchAttributeID
KEPT_SHARED = 1 << 10  # bytes of shared memory that CUDA reserves in each block


def word_of(array: Any) -> str:
    """Return the kernels' name for the dtype of an array of unsigned integers."""
    return f"u{8 * array.dtype.itemsize}"


class CopyBack(Protocol):
    """An array to be copied to the host after timed launches (a ``take.Back``)."""

    def launch(self) -> Launch:
        """Return a launch that copies the array."""


class LaunchAttribute(ctypes.Structure):
    """``CUlaunchAttribute`` in cuda.h: an id and a value of 64 bytes."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("pad", ctypes.c_char * 4),
        ("value", ctypes.c_uint32 * 16),
    )


class LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig`` in cuda.h."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


class Module:
    """The kernels of one ``.cu`` file on the current device.

    texts, library: see ``nvrtc.compile_source``
    loaded: CuPy's module
    """

    def __init__(
        self,
        source: Path,
        texts: Mapping[str, str] = nvrtc.NO_TEXTS,
        library: Nvshmem | None = None,
        /,
        **definitions: str | int,
    ) -> None:
        arch = cuda.architecture()
        code = nvrtc.cubin(source, arch, definitions, texts, library)
        self.loaded = cuda.cupy().cuda.function.Module()
        self.loaded.load(code)

    def kernel(self, name: str) -> Kernel:
        """Return a kernel by its ``extern "C"`` name."""
        return Kernel(self.loaded.get_function(name), name)


@cache
def _kernel_on(
    cupy: Any,  # noqa: ARG001 - one each
    device: int,  # noqa: ARG001 - one each
    source: Path,
    name: str,
    **definitions: str | int,
) -> Kernel:
    return Module(source, **definitions).kernel(name)


def kernel_here(source: Path, name: str, **definitions: str | int) -> Kernel:
    """Return a kernel, whose module each device loads once."""
    cupy = cuda.cupy()
    return _kernel_on(cupy, int(cupy.cuda.Device()), source, name, **definitions)


@dataclass
class Kernel:
    """A loaded kernel."""

    function: Any
    name: str

    def attribute(self, number: int) -> int:
        """Return a CU_FUNC_ATTRIBUTE."""
        value = ctypes.c_int()
        handle = ctypes.c_void_p(self.function.ptr)
        code = cuda.driver().cuFuncGetAttribute(ctypes.byref(value), number, handle)
        cuda.check(code, f"attributes of {self.name}")
        return value.value

    def set_attribute(self, number: int, value: int) -> None:
        """Set a CU_FUNC_ATTRIBUTE."""
        handle = ctypes.c_void_p(self.function.ptr)
        code = cuda.driver().cuFuncSetAttribute(handle, number, value)
        cuda.check(code, f"attributes of {self.name}")

    def share_memory(self, blocks: int, shared: int) -> None:
        """Reserve shared memory for ``blocks`` of ``shared`` bytes, the rest for L1."""
        whole = cuda.cupy().cuda.Device().attributes["MaxSharedMemoryPerMultiprocessor"]
        need = blocks * (shared + self.attribute(STATIC_SHARED) + KEPT_SHARED)
        percent = min(-(-100 * need // int(whole)), 100)
        self.set_attribute(PREFERRED_CARVEOUT, percent)

    def __call__(
        self, grid: int, block: int, *arguments: KernelArgument, shared: int = 0
    ) -> None:
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
        """Prepare a launch whose single argument is a structure passed by value."""
        return Launch(self, arguments, grid, block, shared, cooperative, cluster)


class Launch:
    """A prepared launch; the structure may change between calls."""

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
        # the address of the arguments, for the driver and for a node of a CUDA graph
        self.parameters = (ctypes.c_void_p * 1)(ctypes.addressof(arguments))
        self._graph: TimedGraph | None = None

    def __call__(self, stream: int = 0) -> None:
        """Launch on a stream, by default the legacy stream."""
        self._config.stream = stream or None
        code = cuda.driver().cuLaunchKernelEx(
            ctypes.byref(self._config),
            ctypes.c_void_p(self.kernel.function.ptr),
            self.parameters,
            None,
        )
        cuda.check(code, f"launch of {self.kernel.name}")

    def timed(
        self,
        before: Sequence[tuple[DeviceArray, int]] = (),
        then: Launch | None = None,
        back: CopyBack | None = None,
        word: StopWord | None = None,
    ) -> float:
        """Launch, wait, and return the seconds between events around the kernel.

        before: arrays of 32-bit items to fill with a value first; the time includes
        this
        then: a launch that follows; the time includes it
        back: an array to copy to the host at the end; the time does not include this
        word: a word that the kernel reads between levels; its ``stop`` ends the search

        ``before``, ``then`` and ``back`` must be the same in every call.

        Events and kernels form one CUDA graph, so that the host causes no gap between
        them.
        """
        graph = self.record(before, then, back)
        graph.set_arguments()
        graph.launch()
        return graph.wait(word)

    def record(
        self,
        before: Sequence[tuple[DeviceArray, int]] = (),
        then: Launch | None = None,
        back: CopyBack | None = None,
    ) -> TimedGraph:
        """Return the CUDA graph that ``timed`` launches, built at the first call.

        To launch as early as possible, set the arguments before, launch the graph, and
        call its ``wait``.
        """
        if self._graph is None:
            launches = [self] if then is None else [self, then]
            last = None if back is None else back.launch()
            self._graph = TimedGraph(launches, before, last)
        return self._graph
