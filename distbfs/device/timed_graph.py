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
    """A prepared kernel launch (a ``programs.Launch``).

    parameters: the addresses of its arguments
    """

    kernel: Any
    parameters: ctypes.Array[ctypes.c_void_p]

    def __call__(self, stream: int = 0) -> None:
        """Launch on a stream."""


class TimedGraph:
    """An event, fills, kernels in sequence and another event, as one CUDA graph.

    last: a kernel with fixed arguments that runs after the second event and copies
    results to the host
    """

    def __init__(
        self,
        launches: Sequence[KernelLaunch],
        before: Sequence[tuple[DeviceArray, int]],
        last: KernelLaunch | None = None,
    ) -> None:
        self._held = ([array for array, _ in before], last)
        self._launches = list(launches)
        self._name = launches[0].kernel.name
        # around the kernels, and at the end
        self._events = [ctypes.c_void_p() for _ in range(2 if last is None else 3)]
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
        if last is not None:
            last(stream.value or 0)
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
        # arguments of each search's driver calls, prepared once
        library = cuda.driver()
        self._set_node = library.cuGraphExecKernelNodeSetParams_v2
        self._launch, self._query = library.cuGraphLaunch, library.cuEventQuery
        self._elapsed, self._end = library.cuEventElapsedTime, self._events[-1]
        self._milliseconds = ctypes.c_float()
        self._span = (ctypes.byref(self._milliseconds), *self._events[:2])

    def _call(self, name: str, *arguments: Any) -> None:
        cuda.check(getattr(cuda.driver(), name)(*arguments), f"{name} for {self._name}")

    def _kernel_nodes(
        self, graph: ctypes.c_void_p
    ) -> list[tuple[ctypes.c_void_p, Any]]:
        """Return the nodes of the launches with their parameters, by reference.

        The parameters point to the arguments, so that the arguments may change.
        """
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
        nodes_of_launches = []
        for launch in self._launches:
            function = int(launch.kernel.function.ptr)
            if function not in nodes_of:
                raise ResourceError(f"CUDA: the graph of {self._name} lacks a kernel")
            handle, parameters = nodes_of[function]
            parameters.parameters = ctypes.addressof(launch.parameters)
            nodes_of_launches.append((handle, ctypes.byref(parameters)))
        return nodes_of_launches

    def set_arguments(self) -> None:
        """Update the kernels' arguments to their present values."""
        for node, parameters in self._nodes:
            code = self._set_node(self._exec, node, parameters)
            cuda.check(code, f"arguments of {self._name}")

    def launch(self) -> None:
        """Launch on the legacy stream of the current device."""
        code = self._launch(self._exec, None)
        cuda.check(code, f"launch of {self._name}")

    def ended(self) -> bool:
        """Return whether the last launch has ended."""
        code = self._query(self._end)
        if code == NOT_READY:
            return False
        cuda.check(code, f"cuEventQuery for {self._name}")
        return True

    def wait(self, word: StopWord | None = None) -> float:
        """Wait for the end; return the seconds between the events.

        word: the stop word that kernels read; its ``stop`` is called while this waits
        """
        ended = False
        try:
            ended = word is not None and word.watch(self.ended)
        finally:
            if not ended:
                self._call("cuEventSynchronize", self._end)
            if word is not None:
                word.clear()
        code = self._elapsed(*self._span)
        cuda.check(code, f"cuEventElapsedTime for {self._name}")
        return float(self._milliseconds.value) * 1e-3
