"""Tests of this folder run on a CUDA device.

Where there is none, those that are marked ``emulated`` and not ``gpu`` run on the
emulated device, and all others are skipped, with why.  Workers of pytest-xdist begin
with another device each where there are several.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "engines" / "emulated"))

from emulated_device import EmulatedDevice, Kernels, compiler

from distbfs.device import cuda
from distbfs.errors import DeviceMissing

VISIBLE = "CUDA_VISIBLE_DEVICES"


def turn_devices():
    """Make another device the first one of this worker, before CUDA is loaded."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    listing = shutil.which("nvidia-smi")
    if VISIBLE in os.environ or not worker or listing is None:
        return
    shown = subprocess.run([listing, "-L"], capture_output=True, text=True, check=False)
    devices = list(range(len(shown.stdout.splitlines())))
    if devices:
        first = int(worker) % len(devices)
        turned = devices[first:] + devices[:first]
        os.environ[VISIBLE] = ",".join(map(str, turned))


turn_devices()


def reason():
    """Why no test can run here, or None."""
    try:
        cuda.cupy()
    except DeviceMissing as error:
        return str(error)
    return None


NO_DEVICE = reason()


def runs_emulated(definition):
    """Whether a test runs where there is no device."""
    marks = {name: definition.get_closest_marker(name) for name in ("emulated", "gpu")}
    return marks["emulated"] is not None and marks["gpu"] is None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc):
    """Of tests that are skipped, collect one case."""
    yield
    if NO_DEVICE is not None and not runs_emulated(metafunc.definition):
        del metafunc._calls[1:]


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here not in item.path.parents:
            continue
        if NO_DEVICE is not None and runs_emulated(item):
            continue
        item.add_marker(pytest.mark.gpu)
        if NO_DEVICE is not None:
            item.add_marker(pytest.mark.skip(reason=NO_DEVICE))


@pytest.fixture(scope="session")
def emulated_kernels():
    """Kernels for the CPU, of small blocks."""
    if compiler() is None:
        pytest.skip("no C++ compiler")
    return Kernels(small=True)


@pytest.fixture(autouse=NO_DEVICE is not None)
def emulated_device(emulated_kernels, monkeypatch):
    """Put the emulator in the place of the device that is missing."""
    device = EmulatedDevice(emulated_kernels)
    device.install(monkeypatch)
    yield device
    device.check("the end")
