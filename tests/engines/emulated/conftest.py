"""Shares the graphs of tests/gpu, and lends a CPU as the device."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "gpu"))
sys.path.append(str(Path(__file__).parent))

from emulated_device import EmulatedDevice, Kernels, compiler

from distbfs.generate import cuda as device_tuples


@pytest.fixture(scope="session")
def kernels():
    """Compiled kernels, kept for the session."""
    if compiler() is None:
        pytest.skip("no C++ compiler")
    return Kernels()


@pytest.fixture(params=[32, 64], ids=["ids of 32 bits", "ids of 64 bits"])
def id_bits(request, monkeypatch):
    """Bits of ids on devices, also of graphs that are small."""
    if request.param == 64:
        monkeypatch.setattr(device_tuples, "NARROW", 1)
    return request.param


@pytest.fixture
def device(kernels, monkeypatch):
    """Put the emulator in the place of CUDA; its fields say what the device has."""
    found = EmulatedDevice(kernels)
    found.install(monkeypatch)
    yield found
    found.check("the end")
