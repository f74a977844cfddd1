"""Every test of this folder needs a CUDA device and is skipped, with why, without."""

from pathlib import Path

import pytest

from distbfs.device import cuda
from distbfs.errors import DeviceMissing


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
