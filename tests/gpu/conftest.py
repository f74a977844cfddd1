"""Every test of this folder needs a CUDA device and is skipped, with why, without.

Workers of pytest-xdist begin with another device each where there are several.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

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


def pytest_collection_modifyitems(items):
    why = reason()
    here = Path(__file__).parent
    for item in items:
        if here not in item.path.parents:
            continue
        item.add_marker(pytest.mark.gpu)
        if why is not None:
            item.add_marker(pytest.mark.skip(reason=why))
