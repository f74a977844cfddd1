"""Hardware: compilers and kernels, memory, energy meters and measured rates."""

from typing import TYPE_CHECKING

from distbfs.device.cupy_library import NVIDIA, cupy
from distbfs.registry import LaterModule

if not TYPE_CHECKING:
    cuda = LaterModule(f"{__name__}.cuda", cupy=cupy, NVIDIA=NVIDIA)
    host_memory = LaterModule(f"{__name__}.host_memory")
    nvml = LaterModule(f"{__name__}.nvml")
    programs = LaterModule(f"{__name__}.programs")
    take = LaterModule(f"{__name__}.take")
