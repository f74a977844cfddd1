"""The exchange of devices that write to each other's memory, without the host.

If each rank has one device, a whole search is one launch on each device
(``symmetric``). Other searches go level by level through NCCL. Ranks that share a
device are refused, as by NCCL: NVSHMEM serves them in part only, and their launches,
which wait for each other, could not run at the same time.
"""

from __future__ import annotations

from distbfs.exchange.nccl import NcclExchange
from distbfs.exchange.symmetric import NvshmemMemory


class NvshmemExchange(NcclExchange):
    """Serves any number of ranks; see ``base.Exchange``. Creating it is collective."""

    name = "nvshmem"
    symmetric = True

    def memory(self) -> NvshmemMemory:
        """Return the memory to which devices of all ranks write (collective)."""
        return NvshmemMemory(self._world)
