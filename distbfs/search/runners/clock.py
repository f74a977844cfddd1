"""Device time of searches of this rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distbfs.device import cuda


class DeviceClock:
    """Events around the work of devices of this process."""

    def __init__(self, devices: Sequence[int]) -> None:
        self._events: list[tuple[Any, list[Any]]] = []
        for device in devices:
            with (here := cuda.cupy().cuda.Device(device)):
                pair = [cuda.cupy().cuda.Event() for _ in range(2)]
            self._events.append((here, pair))

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
