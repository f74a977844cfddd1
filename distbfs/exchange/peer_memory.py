"""Device memory that the devices of all parts on one host can read and write.

Parts of this process are accessed by address, those of other processes by CUDA IPC. A
test write verifies the access before use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.peers import (
    PeerBlock,
    access_problem,
    close_handle,
    open_handle,
)
from distbfs.errors import DeviceMissing, LaunchError, ResourceError
from distbfs.partition.layout import in_turn
from distbfs.ranks.agreement import errors_of_all, first_reason, gather_texts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from distbfs.types import Ids, World

HANDLE = 64  # bytes
DEFAULT_KIND = 4  # cudaMemcpyDefault


def on_device(device: int) -> AbstractContextManager[Any]:
    """Make a device of this process current inside the ``with`` block."""
    context: AbstractContextManager[Any] = cuda.cupy().cuda.Device(device)
    return context


class PeerGroup:
    """Parts whose memory is shared; methods and creation are collective.

    devices: CUDA device of each part of this rank; on a single rank, parts may share
    one. Parts are dealt out to ranks in turn, see ``partition.layout.in_turn``.

    Raises LaunchError on all ranks if the devices of any rank have no peer access.
    """

    def __init__(self, world: World, devices: Sequence[int]) -> None:
        self._world = world
        self.devices = list(devices)
        self._blocks: list[PeerBlock] = []
        self._opened: list[tuple[int, int]] = []
        counts = world.allgather(np.array([len(self.devices)]))
        self._turns = in_turn([int(count[0]) for count in counts])
        problem = access_problem(sorted(set(self.devices)))
        if problem := first_reason(world, problem):
            raise LaunchError(problem)

    def share(self, sizes: Sequence[int], what: str) -> tuple[list[Any], list[Ids]]:
        """Allocate memory for each part of this rank and map that of all parts.

        Returns two lists with an entry for each part i of this rank: its memory, uint8
        [sizes[i]], and the addresses of all parts' memory on its device, int64 [parts].
        On all ranks, raises ResourceError if memory runs out or cannot be mapped.
        """
        world = self._world
        if world.size == 1:
            arrays = []
            for device, size in zip(self.devices, sizes, strict=True):
                with on_device(device), cuda.memory_of(what):
                    arrays.append(cuda.cupy().zeros(size, np.uint8))
            table = np.array([array.data.ptr for array in arrays], dtype=np.int64)
            return arrays, [table] * len(arrays)

        first = len(self._blocks)
        with errors_of_all(world):
            for device, size in zip(self.devices, sizes, strict=True):
                with on_device(device):
                    self._blocks.append(PeerBlock(size, what))
                    cuda.cupy().cuda.Device().synchronize()
        blocks = self._blocks[first:]
        handles = np.frombuffer(b"".join(b.handle() for b in blocks), np.uint8)
        every = [x.tobytes() for x in world.allgather(handles)]
        with errors_of_all(world):
            tables = [self._mapped(every, blocks, x) for x in self.devices]
        return [block.array for block in blocks], tables

    def _mapped(
        self, every: Sequence[bytes], blocks: Sequence[PeerBlock], device: int
    ) -> Ids:
        """Return the addresses of all parts' memory on a device."""
        table = np.zeros(self.parts, dtype=np.int64)
        for part, (rank, k) in enumerate(self._turns):
            if rank == self._world.rank:
                table[part] = blocks[k].array.data.ptr
                continue
            with on_device(device):
                handle = every[rank][k * HANDLE : (k + 1) * HANDLE]
                address = open_handle(handle)
            self._opened.append((device, address))
            table[part] = address
        return table

    def prove(self) -> str:
        """Test writes between peers; return the failure, "" if there is none."""
        try:
            arrays, tables = self.share([8 * self.parts] * len(self.devices), "peers")
        except ResourceError as error:
            return str(error)
        world, runtime = self._world, cuda.cupy().cuda.runtime
        reason = ""
        try:
            for k, device in enumerate(self.devices):
                index = self._turns.index((world.rank, k))
                with on_device(device):
                    word = cuda.cupy().full(1, index + 1, np.uint64)
                    for address in tables[k].tolist():
                        to = address + 8 * index
                        runtime.memcpy(to, word.data.ptr, 8, DEFAULT_KIND)
                    cuda.cupy().cuda.Device().synchronize()
        except runtime.CUDARuntimeError as error:
            reason = f"writing to another device failed: {error}"
        if problem := first_reason(world, reason):
            return problem
        wanted = np.arange(1, self.parts + 1, dtype=np.uint64)
        for device, array in zip(self.devices, arrays, strict=True):
            with on_device(device):
                if not np.array_equal(array.view(np.uint64).get(), wanted):
                    reason = "what other devices wrote did not arrive"
        return first_reason(world, reason)

    @property
    def parts(self) -> int:
        """Number of parts of all ranks."""
        return len(self._turns)

    def close(self) -> None:
        """Free the memory after all ranks have finished with it."""
        world = self._world
        if world.size == 1:
            return
        world.barrier()
        for device, address in self._opened:
            with on_device(device):
                close_handle(address)
        world.barrier()
        for block in self._blocks:
            block.free()
        self._opened, self._blocks = [], []


def peer_problem(world: World, devices: Sequence[int]) -> str:
    """Return the reason why devices of all ranks cannot share memory, "" if they can.

    devices: the device of each part of this rank. Collective; all ranks return the same
    text.
    """
    if (hosts := len(set(world.hosts))) > 1:
        return f"the ranks are on {hosts} hosts"
    reason, names = "", ""
    try:
        names = " ".join(cuda.uuids(devices))
        reason = access_problem(sorted(set(devices)))
    except DeviceMissing as error:
        reason = str(error)
    texts = gather_texts(world, names)
    if problem := first_reason(world, reason):
        return problem
    every = " ".join(texts).split()
    if len(set(every)) < len(every):
        return "several parts are on one device"
    if world.size == 1:
        return ""
    group = PeerGroup(world, devices)
    problem = group.prove()
    group.close()
    return problem
