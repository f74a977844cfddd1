"""Memory to which devices of all ranks write without their hosts, by NVSHMEM.

NVSHMEM is started once in a process, for its current device, and runs until the process
ends; see ``device.nvshmem`` for kernels.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda, nvrtc, programs
from distbfs.device.nvshmem import nvshmem
from distbfs.errors import DeviceMissing, LaunchError, OutOfMemory
from distbfs.ranks.agreement import first_reason

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from distbfs.types import DeviceArray, World

WITH_UNIQUE_ID = 1 << 3  # NVSHMEMX_INIT_WITH_UNIQUEID
SPARE = 1 << 30  # bytes of a device that are left to others


class UniqueId(ctypes.Structure):
    """``nvshmemx_uniqueid_v1`` in nvshmem_types.h."""

    _fields_ = (("version", ctypes.c_int), ("internal", ctypes.c_char * 124))


class UniqueIdArguments(ctypes.Structure):
    """``nvshmemx_uniqueid_args_v1`` in nvshmem_types.h."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("id", ctypes.POINTER(UniqueId)),
        ("rank", ctypes.c_int),
        ("ranks", ctypes.c_int),
    )


class InitArguments(ctypes.Structure):
    """``nvshmemx_init_args_v1`` in nvshmem_types.h."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("unique_id", UniqueIdArguments),
        ("content", ctypes.c_char * 96),
    )


class InitAttributes(ctypes.Structure):
    """``nvshmemx_init_attr_v1`` in nvshmem_types.h."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("communicator", ctypes.c_void_p),
        ("arguments", InitArguments),
    )


def version_of(kind: type[ctypes.Structure]) -> int:
    """Return the value of field ``version`` of a structure of version 1."""
    return (1 << 16) + ctypes.sizeof(kind)


def on_one_host(world: World) -> bool:
    """Return whether all ranks are on one host."""
    return len(set(world.hosts)) == 1


def nvshmem_problem(world: World) -> str:
    """Return the reason why ranks cannot use NVSHMEM, "" if they can (collective)."""
    reason = ""
    try:
        nvshmem()
    except DeviceMissing as error:
        reason = str(error)
    return first_reason(world, reason)


class Heap:
    """The NVSHMEM memory of this process; creating it is collective.

    blocks: the allocated memory, in the same order on all ranks, each with its size in
    bytes and a function that returns its array while the array exists
    modules: all loaded modules, to which NVSHMEM writes when memory is added

    Raises LaunchError on all ranks if NVSHMEM does not start.
    """

    def __init__(self, world: World) -> None:
        self.blocks: list[tuple[Any, int, Callable[[], object]]] = []
        self.modules: dict[tuple[Any, ...], programs.Module] = {}
        os.environ.setdefault("NVSHMEM_DISABLE_NVLS", "1")
        if on_one_host(world):
            os.environ.setdefault("NVSHMEM_REMOTE_TRANSPORT", "none")
            os.environ.setdefault("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo")
        reason = ""
        try:
            self.files = nvshmem()
            self.library = ctypes.CDLL(str(self.files.host))
            self.library.nvshmem_malloc.restype = ctypes.c_void_p
            self.library.nvshmem_malloc.argtypes = [ctypes.c_size_t]
        except (DeviceMissing, OSError) as error:
            reason = str(error)
        if problem := first_reason(world, reason):
            raise LaunchError(problem)
        if problem := first_reason(world, self._begin(world)):
            raise LaunchError(f"NVSHMEM does not start: {problem}")

    def _begin(self, world: World) -> str:
        """Initialise NVSHMEM; return the failure, or ""."""
        unique = UniqueId(version=version_of(UniqueId))
        failed = 0
        if world.rank == 0:
            failed = self.library.nvshmemx_get_uniqueid(ctypes.byref(unique))
        failed, *octets = world.broadcast([failed, *bytes(unique)])
        if failed:
            return f"nvshmemx_get_uniqueid: error {failed}"
        unique = UniqueId.from_buffer_copy(bytes(octets))
        attributes = InitAttributes(version=version_of(InitAttributes))
        attributes.arguments.version = version_of(InitArguments)
        attributes.arguments.unique_id = UniqueIdArguments(
            version=version_of(UniqueIdArguments),
            id=ctypes.pointer(unique),
            rank=world.rank,
            ranks=world.size,
        )
        failed = self.library.nvshmemx_hostlib_init_attr(
            ctypes.c_uint(WITH_UNIQUE_ID), ctypes.byref(attributes)
        )
        return f"nvshmemx_hostlib_init_attr: error {failed}" if failed else ""


_heaps: dict[tuple[int, int, int], Heap] = {}


class NvshmemMemory:
    """Memory on one device of each rank, to which kernels of all ranks write.

    near: whether all devices are on one host

    Creating it is collective. Raises LaunchError on all ranks if NVSHMEM does not
    start, or already serves other ranks or devices of this process.
    """

    def __init__(self, world: World) -> None:
        self._world, self.near = world, on_one_host(world)
        key = (world.rank, world.size, int(cuda.cupy().cuda.Device()))
        other = bool(_heaps) and key not in _heaps
        problem = "NVSHMEM serves other ranks or devices of a process" if other else ""
        if problem := first_reason(world, problem):
            raise LaunchError(problem)
        if key not in _heaps:
            _heaps[key] = Heap(world)
        self._heap = _heaps[key]

    def allocate(self, size: int, what: str) -> DeviceArray:
        """Return zeros, uint8 [size], at the same offset on all devices (collective).

        size: equal on all ranks. If memory runs out, all ranks raise OutOfMemory. When
        the array is deleted, its memory is kept for later calls, because freeing it
        would wait for the other ranks.
        """
        at, cp, blocks = self._unused(size), cuda.cupy(), self._heap.blocks
        if at < 0:
            memory, length = self._new(size, what), size
        else:
            memory, length, _ = blocks.pop(at)
        place = cp.cuda.MemoryPointer(memory, 0)
        array: DeviceArray = cp.ndarray((size,), np.uint8, place)
        blocks.append((memory, length, weakref.ref(array)))
        array.fill(0)
        cp.cuda.get_current_stream().synchronize()
        self._world.barrier()  # nobody puts before the zeros are there
        return array

    def _unused(self, size: int) -> int:
        """Return the block that all ranks can reuse, -1 if there is none."""
        blocks = self._heap.blocks
        fits = [length >= size and used() is None for _, length, used in blocks]
        every = self._world.allreduce(np.array([*fits, False]), "min")
        return int(every.argmax()) if every.any() else -1

    def _new(self, size: int, what: str) -> Any:
        """Return new memory on all devices."""
        runtime = cuda.cupy().cuda.runtime
        free, _ = runtime.memGetInfo()
        if size + SPARE > free:
            cuda.release()
            free, _ = runtime.memGetInfo()
        least = self._world.allreduce(np.array([int(free)]), "min")[0]
        if size + SPARE > least:
            raise OutOfMemory(
                f"{what}: {size} bytes on each device; {least} are free on one"
            )
        address = self._heap.library.nvshmem_malloc(size)
        reason = "" if address else f"{what}: NVSHMEM does not allocate {size} bytes"
        if problem := first_reason(self._world, reason):
            raise OutOfMemory(problem)
        return cuda.cupy().cuda.UnownedMemory(address, size, self._heap)

    def module(self, source: Path, **definitions: str | int) -> programs.Module:
        """Return the kernels of a file that uses NVSHMEM; they stay loaded."""
        heap, key = self._heap, (source, *sorted(definitions.items()))
        if key not in heap.modules:
            texts = nvrtc.NO_TEXTS
            module = programs.Module(source, texts, heap.files, **definitions)
            handle = ctypes.c_void_p(module.loaded.ptr)
            failed = heap.library.nvshmemx_cumodule_init(handle)
            if failed:
                raise DeviceMissing(f"nvshmemx_cumodule_init: error {failed}")
            heap.modules[key] = module
        return heap.modules[key]
