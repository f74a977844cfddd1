"""Hides CUDA devices, so that ``auto`` is the same on every machine.

What commands do on a device is in ``tests/gpu``.
"""

from pathlib import Path

import pytest

from distbfs.device import cuda
from distbfs.errors import DeviceMissing


def missing():
    raise DeviceMissing("no CUDA device: hidden by a test; use another machine")


@pytest.fixture(scope="module", autouse=True)
def no_device():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "-1")
        patch.setattr(cuda, "cupy", missing)
        patch.setattr(cuda, "NVIDIA", Path("/nowhere/nvidia"))
        yield
