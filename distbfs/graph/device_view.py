"""What searches of a graph on one device see of it."""

from __future__ import annotations

from dataclasses import dataclass

from distbfs.types import DeviceArray


@dataclass(frozen=True)
class DeviceView:
    """A bit for each stored edge of a ``DeviceGraph``, in the order of its columns.

    seen: uint32 [ceil(m / 32) and some], CuPy: bit k % 32 of word k / 32 tells whether
        edge k is seen; both directions of an edge are alike
    ends: uint32 [n] by id, CuPy: seen edges at each vertex, as ``tuple_degrees``
    """

    seen: DeviceArray
    ends: DeviceArray
