"""Hides CUDA devices, so that ``auto`` is the same on every machine.

What commands do on a device is in ``tests/gpu``.  Rates of the host are measured by
short runs: tests look at what follows from them, not at how exact they are.  Git is not
asked for the commit, which ``tests/report`` looks at.
"""

from pathlib import Path

import pytest

from distbfs.device import cuda, rates
from distbfs.errors import DeviceMissing


def missing():
    raise DeviceMissing("no CUDA device: hidden by a test; use another machine")


@pytest.fixture(scope="module", autouse=True)
def no_device():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "-1")
        patch.setenv("DISTBFS_COMMIT", "of a test")
        patch.setattr(cuda, "cupy", missing)
        patch.setattr(cuda, "NVIDIA", Path("/nowhere/nvidia"))
        patch.setattr(rates, "HOST_COPY_BYTES", 1 << 20)
        patch.setattr(rates, "HOST_TESTS", 1 << 16)
        yield
