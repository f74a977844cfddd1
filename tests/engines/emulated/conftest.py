"""Shares the graphs of tests/gpu, and lends a CPU as the device."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "gpu"))
sys.path.append(str(Path(__file__).parent))

from emulated_device import EmulatedDevice, Kernels, compiler


@pytest.fixture(scope="session")
def kernels():
    """Compiled kernels, kept for the session."""
    if compiler() is None:
        pytest.skip("no C++ compiler")
    return Kernels()


@pytest.fixture
def device(kernels, monkeypatch):
    """Put the emulator in the place of CUDA; its fields say what the device has."""
    found = EmulatedDevice(kernels)
    found.install(monkeypatch)
    yield found
    found.check("the end")
