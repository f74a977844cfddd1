"""Device time of searches between domains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.search.runners.between import BetweenDomains

if TYPE_CHECKING:
    from distbfs.engines.base import Query
    from distbfs.search.runners.base import Found
    from distbfs.types import Root


class DeviceClock:
    """Events around the work of devices of this process."""

    def __init__(self, devices: Sequence[int]) -> None:
        cp = cuda.cupy()
        self._events = []
        for device in sorted(set(devices)):
            with cp.cuda.Device(device):
                pair = [cp.cuda.Event() for _ in range(2)]
            self._events.append((cp.cuda.Device(device), pair))

    def begin(self) -> None:
        """Wait for pending work, then record the start on each device."""
        for device, _ in self._events:
            with device:
                cuda.cupy().cuda.get_current_stream().synchronize()
        self._record(0)

    def end(self) -> float:
        """Record the end, wait for it, and return the seconds of the slowest device."""
        self._record(1)
        for _, pair in self._events:
            pair[1].synchronize()
        elapsed = cuda.cupy().cuda.get_elapsed_time
        return max((elapsed(*pair) for _, pair in self._events), default=0.0) * 1e-3

    def _record(self, which: int) -> None:
        """Record an event of each device's pair on its current stream."""
        for device, pair in self._events:
            with device:
                pair[which].record(cuda.cupy().cuda.get_current_stream())


class ClockedDomains(BetweenDomains):
    """Searches between domains, which the devices of all ranks time.

    devices: those of this rank; between: the arguments of ``BetweenDomains``
    """

    def __init__(self, devices: Sequence[int], *between: Any) -> None:
        super().__init__(*between)
        self._clock, self._devices = DeviceClock(devices), sorted(set(devices))

    def answer(self, root: Root, query: Query) -> Found:
        """Search from an internal id; see ``runners.base.Runner``."""
        self._clock.begin()
        with cuda.memory_of("a search"):
            result = super().answer(root, query)
        own = self._clock.end()
        taken = np.array([own if result.seconds is None else result.seconds])
        result.seconds = float(self._world.allreduce(taken, "max")[0])
        return result

    def describe(self) -> dict[str, Any]:
        """Return the runner's hardware and settings, for reports."""
        return {**super().describe(), "uuid": " ".join(cuda.uuids(self._devices))}

    def close(self) -> None:
        """Free the exchange's memory, and unused device memory."""
        super().close()
        cuda.release()
