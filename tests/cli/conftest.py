"""Puts the helpers of ``tests/faults`` on the import path: they start real ranks.

Commands see no CUDA device here, so that ``auto`` is the same on every machine; what
they do on one is in ``tests/gpu``.
"""

import sys
from pathlib import Path

import pytest

from distbfs.device import cuda
from distbfs.errors import DeviceMissing

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))


def missing():
    raise DeviceMissing("no CUDA device: hidden by a test; use another machine")


@pytest.fixture(scope="module", autouse=True)
def no_device():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "-1")
        patch.setattr(cuda, "cupy", missing)
        patch.setattr(cuda, "NVIDIA", Path("/nowhere/nvidia"))
        yield
