"""Copies of arrays to a CUDA device, and of parts from devices to the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.arrays import host_array
from distbfs.device.pinned_ring import PinnedRing
from distbfs.graph.csr import CSR
from distbfs.partition.part import Part
from distbfs.types import Array, Ids, World

UPLOAD_BYTES = 64 << 20  # of a pinned buffer


def to_device(array: Array) -> Any:
    """Copy a host array to the current device."""
    cp, step = cuda.cupy(), max(UPLOAD_BYTES // array.itemsize, 1)
    out = cp.empty(len(array), array.dtype)
    ring = PinnedRing(min(step, len(array)) * array.itemsize, 2)
    for start in range(0, len(array), step):
        piece = array[start : start + step]
        pinned = ring.place(array.dtype)(0, len(piece))
        pinned[:] = piece
        ring.copy(pinned, out[start : start + len(piece)])
    cp.cuda.get_current_stream().synchronize()
    return out


def parts_to_host(world: World, parts: Sequence[Part]) -> Iterator[Part]:
    """Yield this rank's parts in host memory, one after the other.

    It first sums the degrees of delegates over all parts (collective).
    """
    summed = np.zeros(parts[0].delegate_count, dtype=np.int64)
    for part in parts:
        with part.vertices.device:
            for side in part.sides:
                lengths = side["dn"].degrees() + side["dd"].degrees()
                summed += host_array(lengths)
    summed = world.allreduce(summed)
    for part in parts:
        with part.vertices.device:
            yield _to_host(part, summed)


def _to_host(part: Part, delegate_degrees: Ids) -> Part:
    """Copy a part to host memory; see ``parts_to_host``."""
    out, *into = [
        {name: CSR(x.offsets.get(), x.columns.get()) for name, x in side.items()}
        for side in part.sides
    ]
    degrees = np.zeros(part.local_count, dtype=np.int64)
    for side in [out, *into]:
        degrees += side["nn"].degrees() + side["nd"].degrees()
    own, local = part.owned_delegates()
    degrees[part.numbers_of(local)] = delegate_degrees[own]
    changed: dict[str, Any] = {
        **out,
        "incoming": into[0] if into else {},
        "delegate_degrees": delegate_degrees,
        "host_bytes": 0,
        "vertices": part.vertices.get(),
        "degrees": degrees,
        "tuple_degrees": part.tuple_degrees.get().astype(np.int64),
    }
    return replace(part, **changed)
