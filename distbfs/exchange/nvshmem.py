"""The exchange of devices that write into each other's memory, without the host.

Whole searches run in one launch on each device, where each rank has one, which is a
domain (``base.SymmetricExchange``). Others go level by level through NCCL.
"""

from __future__ import annotations

from distbfs.exchange.nccl import NcclExchange
from distbfs.exchange.symmetric import NvshmemMemory


class NvshmemExchange(NcclExchange):
    """Serves any number of ranks; see ``base.Exchange``. Creating it is collective."""

    name = "nvshmem"
    symmetric = True

    def memory(self) -> NvshmemMemory:
        """Return the memory that devices of all ranks put into (collective)."""
        return NvshmemMemory(self._world)
