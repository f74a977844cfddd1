"""CuPy, which is imported only if there is a driver."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from distbfs.errors import DeviceMissing

DRIVER = "libcuda.so.1"
NVIDIA = Path("/proc/driver/nvidia/version")  # there where the driver is


@cache
def cupy() -> Any:
    """Return CuPy; raise DeviceMissing if it is not installed or sees no device.

    The driver is looked for first, because importing CuPy takes long.
    """
    try:
        ctypes.CDLL(DRIVER)
    except OSError as error:
        raise DeviceMissing(f"no CUDA device: no driver ({error})") from error
    try:
        import cupy as library  # noqa: PLC0415
    except ImportError as error:
        raise DeviceMissing(
            "no CUDA: cupy is not installed; pip install '.[cuda13]' or '.[cuda12]'"
        ) from error
    try:
        count = library.cuda.runtime.getDeviceCount()
    except Exception as error:
        why = " ".join(str(error).split())
        raise DeviceMissing(f"no CUDA device: {why}") from error
    if not count:
        raise DeviceMissing("no CUDA device: the driver shows none")
    library.cuda.runtime.free(0)  # creates the context
    return library
