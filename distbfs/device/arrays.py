"""Arrays in host memory or on a device, and copies between the two."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda, take

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from distbfs.types import AnyArray, Array, DeviceArray, Ids


def array_module(array: AnyArray) -> Any:
    """Return the module of an array, NumPy or CuPy."""
    return cuda.cupy() if is_of_device(array) else np


def is_of_device(array: AnyArray) -> TypeIs[DeviceArray]:
    """Return whether an array of the package is in device memory, and therefore CuPy's.

    One attribute alone would not tell: pandas Series have a ``get`` as well, and arrays
    of NumPy 2 a ``device``.
    """
    return hasattr(array, "get") and hasattr(array, "device")


def device_of(array: AnyArray) -> AbstractContextManager[object]:
    """Return a context in which an array's device is current; host arrays need none."""
    return array.device if is_of_device(array) else nullcontext()


def host_array(array: AnyArray) -> Array:
    """Return an array in host memory; one that lies there already is not copied."""
    return array.get() if is_of_device(array) else array


def values_of(array: AnyArray, places: Ids) -> Array:
    """Return the values at places, int64 [k], on the host; places must be in range."""
    return take.take(array, places) if is_of_device(array) else array[places]


def brought_here(array: AnyArray) -> Any:
    """Return an array on the current device, copied from the host or another device.

    Waits for the other device; an array on the current device is returned unchanged.
    """
    if not is_of_device(array):
        return cuda.cupy().asarray(array)
    if int(array.device) == int(cuda.cupy().cuda.Device()):
        return array
    with array.device:
        cuda.cupy().cuda.get_current_stream().synchronize()
    return array.copy()


def near(array: AnyArray) -> Any:
    """Return an array in host memory, or one of any device on the current device."""
    return brought_here(array) if is_of_device(array) else array


def joined(arrays: Sequence[AnyArray | None]) -> Any:
    """Concatenate arrays from the host or any device on the current device.

    arrays: [k] each, of one dtype, at least one; entries that are None are skipped
    """
    some = [array for array in arrays if array is not None]
    if len(some) == 1:
        return brought_here(some[0])
    out = cuda.cupy().empty(sum(map(len, some)), some[0].dtype)
    at = 0
    for array in some:
        piece = out[at : at + len(array)]
        if is_of_device(array):
            piece[...] = brought_here(array)
        elif len(array):
            piece.set(array)
        at += len(array)
    return out
