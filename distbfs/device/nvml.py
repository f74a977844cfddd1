"""Energy of NVIDIA GPUs by NVML: the energy counter, and sampled power.

The power is read every 10 ms and integrated by the trapezoidal rule, as in
McLaughlin, Riedy, Bader 2015, Section IV-A. Counter and power are those of the whole
GPU, including idle power, and of no other hardware.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from distbfs.errors import DeviceMissing

PERIOD = 0.010  # seconds between samples


def library() -> Any:
    """Initialise and return NVML; raise DeviceMissing if there is none."""
    try:
        import pynvml  # noqa: PLC0415
    except ImportError as error:
        raise DeviceMissing(
            "no NVML: nvidia-ml-py is not installed; pip install '.[energy]'"
        ) from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise DeviceMissing(f"no NVML: {error}") from error
    return pynvml


@dataclass
class GpuEnergy:
    """Energy of one GPU between two moments, in joules.

    counter_joules: energy by the counter; sampled_joules: energy by sampled power; None
    if the GPU does not support it
    """

    uuid: str
    name: str
    counter_joules: float | None
    sampled_joules: float | None
    samples: int

    @property
    def joules(self) -> float | None:
        """Energy by the counter if there is one, else by sampled power."""
        if self.counter_joules is not None:
            return self.counter_joules
        return self.sampled_joules


@dataclass
class Gpu:
    """A GPU that is measured; watts: (seconds, W) of each sample."""

    handle: Any
    uuid: str
    name: str
    began_millijoules: int | None = None
    watts: list[tuple[float, float]] = field(default_factory=list)


class NvmlMeter:
    """Measures GPUs between ``start`` and ``stop``.

    uuids: UUIDs of the GPUs, as nvidia-smi shows them

    Raises DeviceMissing if NVML or a GPU is missing.
    """

    def __init__(self, uuids: Sequence[str]) -> None:
        self._nvml = library()
        self._gpus: list[Gpu] = []
        self.period = PERIOD
        for uuid in uuids:
            try:
                handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
                name = self._nvml.nvmlDeviceGetName(handle)
            except self._nvml.NVMLError as error:
                raise DeviceMissing(f"no NVML for {uuid}: {error}") from error
            name = name.decode() if isinstance(name, bytes) else str(name)
            self._gpus.append(Gpu(handle, uuid, name))

    def _counter(self, gpu: Gpu) -> int | None:
        """Return the energy counter in mJ; None if the GPU has none."""
        try:
            return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(gpu.handle))
        except self._nvml.NVMLError:
            return None

    def sample(self) -> None:
        """Read the power of each GPU."""
        for gpu in self._gpus:
            try:
                power = self._nvml.nvmlDeviceGetPowerUsage(gpu.handle)
            except self._nvml.NVMLError:
                continue
            gpu.watts.append((time.perf_counter(), power * 1e-3))

    def start(self) -> None:
        """Start measuring."""
        for gpu in self._gpus:
            gpu.watts.clear()
            gpu.began_millijoules = self._counter(gpu)
        self.sample()

    def stop(self) -> list[GpuEnergy]:
        """Stop measuring; return the energy of each GPU."""
        self.sample()
        return [self._ended(gpu) for gpu in self._gpus]

    def _ended(self, gpu: Gpu) -> GpuEnergy:
        now, before = self._counter(gpu), gpu.began_millijoules
        counted = None if now is None or before is None else (now - before) * 1e-3
        return GpuEnergy(
            gpu.uuid, gpu.name, counted, integral(gpu.watts), len(gpu.watts)
        )


def integral(watts: Sequence[tuple[float, float]]) -> float | None:
    """Integrate (seconds, W) by the trapezoidal rule, in J; None below two samples."""
    if len(watts) < 2:
        return None
    steps = pairwise(watts)
    return sum((t1 - t0) * (p0 + p1) / 2 for (t0, p0), (t1, p1) in steps)
