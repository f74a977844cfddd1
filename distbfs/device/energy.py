"""The energy that GPUs and CPUs use during a computation, if it can be measured."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distbfs.device import nvml
from distbfs.device.rapl import CpuEnergy, RaplMeter
from distbfs.errors import DeviceMissing

GPU_ONLY = "of GPUs alone (NVML), not a Green Graph500 figure"
CPU_ONLY = "of CPU packages alone (RAPL), not a Green Graph500 figure"


@dataclass
class Energy:
    """Measured energy, and the reasons why some is missing.

    seconds: measured time; missing: reasons, one line each
    """

    seconds: float = 0.0
    gpus: list[nvml.GpuEnergy] = field(default_factory=list)
    cpus: list[CpuEnergy] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@contextmanager
def measured(
    uuids: Sequence[str], *, cpus: bool = False, powercap: Path | None = None
) -> Iterator[Energy]:
    """Measure the energy of a ``with`` block; the yielded object is filled at its end.

    uuids: UUIDs of the GPUs, as nvidia-smi shows them; cpus: whether to measure the
    CPUs of this host as well

    Without NVML or RAPL, the figure is absent and ``missing`` has the reason.
    """
    energy = Energy()
    meters: list[tuple[Any, list[Any]]] = []
    if uuids:
        try:
            meters.append((nvml.NvmlMeter(uuids), energy.gpus))
        except DeviceMissing as error:
            energy.missing.append(str(error))
    if cpus:
        try:
            meters.append((RaplMeter(powercap), energy.cpus))
        except DeviceMissing as error:
            energy.missing.append(str(error))
    with ExitStack() as samplers:
        for meter, _ in meters:
            meter.start()
            samplers.enter_context(sampled(meter))
        began = time.perf_counter()
        try:
            yield energy
        finally:
            energy.seconds = time.perf_counter() - began
            samplers.close()
            for meter, into in meters:
                into.extend(meter.stop())


@contextmanager
def sampled(meter: Any) -> Iterator[None]:
    """Let a thread call ``sample`` of a meter once in each of its periods."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(meter.period):
            meter.sample()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
