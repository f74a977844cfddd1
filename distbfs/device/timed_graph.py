"""Kernels between two events, launched together as one CUDA graph."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from distbfs.device import cuda
from distbfs.errors import ResourceError

if TYPE_CHECKING:
    from distbfs.device.stop_word import StopWord
    from distbfs.types import DeviceArray

NOT_READY = 600  # CUDA_ERROR_NOT_READY
RELAXED = 2  # CUstreamCaptureMode: a module may be unloaded meanwhile
KERNEL_NODE = 0  # CUgraphNodeType


class NodeParameters(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS`` in cuda.h."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class KernelLaunch(Protocol):
    """A launch of a kernel that is laid out (a ``programs.Launch``)."""

    kernel: Any

    @property
    def parameters(self) -> ctypes.Array[ctypes.c_void_p]:
        """The addresses of the arguments."""

    def __call__(self, stream: int = 0) -> None:
        """Launch on a stream."""


class TimedGraph:
    """An event, fills, kernels one after the other and an event as one CUDA graph.

    back: what is copied to the host after them, if anything
    """

    def __init__(
        self,
        launches: Sequence[KernelLaunch],
        before: Sequence[tuple[DeviceArray, int]],
        back: cuda.HostCopy | None = None,
    ) -> None:
        self._held = ([array for array, _ in before], back)
        self._launches = list(launches)
        self._name = launches[0].kernel.name
        # around the kernels, and at the end
        self._events = [ctypes.c_void_p() for _ in range(2 if back is None else 3)]
        stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
        self._exec = ctypes.c_void_p()
        for event in self._events:
            self._call("cuEventCreate", ctypes.byref(event), 0)
        self._call("cuStreamCreate", ctypes.byref(stream), 1)
        self._call("cuStreamBeginCapture_v2", stream, RELAXED)
        self._call("cuEventRecordWithFlags", self._events[0], stream, 1)
        for array, value in before:
            self._call(
                "cuMemsetD32Async",
                ctypes.c_uint64(array.data.ptr),
                ctypes.c_uint32(value & 0xFFFFFFFF),
                ctypes.c_size_t(array.size),
                stream,
            )
        for launch in launches:
            launch(stream.value or 0)
        self._call("cuEventRecordWithFlags", self._events[1], stream, 1)
        if back is not None:
            self._call(
                "cuMemcpyDtoHAsync_v2",
                ctypes.c_void_p(back.pinned.ctypes.data),
                ctypes.c_uint64(back.array.data.ptr),
                ctypes.c_size_t(back.pinned.nbytes),
                stream,
            )
            self._call("cuEventRecordWithFlags", self._events[2], stream, 1)
        self._call("cuStreamEndCapture", stream, ctypes.byref(graph))
        self._call(
            "cuGraphInstantiateWithFlags",
            ctypes.byref(self._exec),
            graph,
            ctypes.c_uint64(0),
        )
        self._nodes = self._kernel_nodes(graph)
        self._call("cuStreamDestroy_v2", stream)
        self._graph = graph
        self._milliseconds = ctypes.c_float()

    def _call(self, name: str, *arguments: Any) -> None:
        cuda.check(getattr(cuda.driver(), name)(*arguments), f"{name} for {self._name}")

    def _kernel_nodes(
        self, graph: ctypes.c_void_p
    ) -> list[tuple[ctypes.c_void_p, NodeParameters]]:
        """Return the nodes of the launches, in their order."""
        count = ctypes.c_size_t()
        self._call("cuGraphGetNodes", graph, None, ctypes.byref(count))
        nodes = (ctypes.c_void_p * count.value)()
        self._call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
        nodes_of: dict[int, tuple[ctypes.c_void_p, NodeParameters]] = {}
        for node in nodes:
            kind, handle = ctypes.c_int(), ctypes.c_void_p(node)
            self._call("cuGraphNodeGetType", handle, ctypes.byref(kind))
            if kind.value == KERNEL_NODE:
                parameters = NodeParameters()
                read = "cuGraphKernelNodeGetParams_v2"
                self._call(read, handle, ctypes.byref(parameters))
                nodes_of[int(parameters.function or 0)] = handle, parameters
        functions = [int(launch.kernel.function.ptr) for launch in self._launches]
        if any(function not in nodes_of for function in functions):
            raise ResourceError(f"CUDA: the graph of {self._name} lacks a kernel")
        return [nodes_of[function] for function in functions]

    def set_arguments(self) -> None:
        """Take the arguments as they are now."""
        library = cuda.driver()
        for launch, (node, parameters) in zip(self._launches, self._nodes, strict=True):
            parameters.parameters = ctypes.addressof(launch.parameters)
            code = library.cuGraphExecKernelNodeSetParams_v2(
                self._exec, node, ctypes.byref(parameters)
            )
            cuda.check(code, f"arguments of {launch.kernel.name}")

    def launch(self) -> None:
        """Begin, on the legacy stream of the current device."""
        code = cuda.driver().cuGraphLaunch(self._exec, None)
        cuda.check(code, f"launch of {self._name}")

    def _ended(self) -> bool:
        code = cuda.driver().cuEventQuery(self._events[-1])
        if code != NOT_READY:
            cuda.check(code, f"cuEventQuery for {self._name}")
        return bool(code != NOT_READY)

    def wait(self, word: StopWord | None = None) -> float:
        """Wait for the end; return the seconds between the events.

        word: what the kernels look at; its ``stop`` is asked meanwhile
        """
        try:
            if word is not None:
                word.watch(self._ended)
        finally:
            self._call("cuEventSynchronize", self._events[-1])
            if word is not None:
                word.clear()
        self._call(
            "cuEventElapsedTime",
            ctypes.byref(self._milliseconds),
            self._events[0],
            self._events[1],
        )
        return float(self._milliseconds.value) * 1e-3
