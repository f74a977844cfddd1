"""Edge tuples in the memory of a CUDA device.

A family whose class names a ``kernel``, ``FAMILY_tuples(start, count, …, u, v)`` in
``FAMILY.cu``, is written on the device; the tuples of any other source are copied from
the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from distbfs.device import cuda, programs
from distbfs.errors import InputError, UsageError
from distbfs.generate.permuted import Permuted
from distbfs.types import Array, DeviceArray, Ids, TupleSource

NARROW = 1 << 31  # vertices whose ids have 32 bits on devices
MAX_VERTICES = 1 << 42
BLOCK = 256
BLOCKS_PER_MULTIPROCESSOR = 16


def id_type(n: int) -> type[np.unsignedinteger]:
    """Return the dtype of the ids of n vertices on devices: uint32 or uint64."""
    return np.uint32 if n <= NARROW else np.uint64


def id_word(n: int) -> str:
    """Return what kernels call that dtype: u32 or u64."""
    return f"u{8 * np.dtype(id_type(n)).itemsize}"


class DeviceTuples(ABC):
    """The tuples of a source, n ≤ 2^42 vertices, in device memory slice by slice.

    generated: a slice costs no work of the host; dtype: of ids, see ``id_type``
    seconds: a tuple takes about, on one device
    """

    generated = False
    seconds: float

    def __init__(self, source: TupleSource) -> None:
        if source.n > MAX_VERTICES:
            raise UsageError(
                f"{source.n} vertices do not fit devices; allowed: {MAX_VERTICES}"
            )
        self.source = source
        self.n = source.n
        self.tuples = source.tuples
        self.dtype = id_type(source.n)

    @abstractmethod
    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Write the tuples start … stop-1 to the front of CuPy arrays of ``dtype``."""


class HostTuples(DeviceTuples):
    """Tuples that the host makes or holds; copied chunk by chunk."""

    seconds = 3e-8  # Kronecker by C, a thread

    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Copy the tuples start … stop-1 to the front of CuPy arrays of ``dtype``.

        Raises InputError for an end that is no vertex and for missing tuples.
        """
        at = 0
        for chunk in self.source.chunks(start, stop):
            for ids, out in zip(chunk, (u, v), strict=True):
                self._check(ids)
                out[at : at + len(ids)].set(ids.astype(self.dtype))
            at += len(chunk[0])
        if at != stop - start:
            raise InputError(f"a source gave {at} instead of {stop - start} tuples")

    def _check(self, ids: Ids) -> None:
        if len(ids) and (ids.min() < 0 or ids.max() >= self.n):
            raise InputError(f"an edge tuple has an end outside 0 … {self.n - 1}")


class LentSource(TupleSource, Protocol):
    """A source whose tuples lie in device memory, checked."""

    lent: bool

    def pieces(
        self, start: int, stop: int
    ) -> Iterator[tuple[DeviceArray, DeviceArray]]:
        """Yield (u, v), CuPy integers, of the tuples start … stop-1 in order."""


class LentTuples(DeviceTuples):
    """Tuples of a ``LentSource``."""

    seconds = 2e-11  # 8 bytes by NVLink

    def __init__(self, source: LentSource) -> None:
        super().__init__(source)
        self._lent = source

    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Copy the tuples start … stop-1 to CuPy arrays of ``dtype``, on the device."""
        at = 0
        for piece_u, piece_v in self._lent.pieces(start, stop):
            end = at + len(piece_u)
            u[at:end], v[at:end] = piece_u, piece_v
            at = end


class KernelSource(TupleSource, Protocol):
    """A source whose tuples a kernel writes: ``FAMILY_tuples`` of ``FAMILY.cu``."""

    kernel: Path

    def device_arguments(self) -> Sequence[np.generic | Array]:
        """Return what the kernel takes between (start, count) and (u, v).

        NumPy scalars of the kernel's types, and arrays, which are copied to the device.
        """


class FamilyTuples(DeviceTuples):
    """Tuples that a kernel of their family writes."""

    generated = True
    seconds = 2e-11  # Kronecker on one H200; 4.3 G tuples twice in 0.175 s

    def __init__(self, source: KernelSource) -> None:
        super().__init__(source)
        path = source.kernel
        module = programs.Module(path, ID=id_word(source.n))
        self._kernel = module.kernel(f"{path.stem}_tuples")
        self._arguments = [
            cuda.cupy().asarray(value) if isinstance(value, np.ndarray) else value
            for value in source.device_arguments()
        ]
        self._blocks = cuda.multiprocessors() * BLOCKS_PER_MULTIPROCESSOR

    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Write tuples start … stop-1 to CuPy arrays of ``dtype``; does not wait."""
        count = stop - start
        if count <= 0:
            return
        slice_of = (np.uint64(start), np.uint64(count))
        grid = min(-(-count // BLOCK), self._blocks)
        self._kernel(grid, BLOCK, *slice_of, *self._arguments, u, v)


class PermutedTuples(DeviceTuples):
    """Tuples of another source, permuted where they lie."""

    def __init__(self, source: Permuted) -> None:
        super().__init__(source)
        self._inner = device_tuples(source.source)
        self.generated = self._inner.generated
        file = Path(__file__).with_name("permuted.cu")
        code = programs.Module(file, ID=id_word(source.n))
        self._kernel = code.kernel("permute_ids")
        self._words = cuda.cupy().asarray(source.permutation.words())
        self._blocks = cuda.multiprocessors() * BLOCKS_PER_MULTIPROCESSOR

    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Write the tuples start … stop-1 to CuPy arrays of ``dtype``, permuted."""
        self._inner.fill(start, stop, u, v)
        count = stop - start
        if count > 0:
            grid = min(-(-count // BLOCK), self._blocks)
            for ids in (u, v):
                self._kernel(grid, BLOCK, np.uint64(count), self._words, ids)


def device_tuples(source: TupleSource) -> DeviceTuples:
    """Return a source's tuples for the current device.

    A source that has a kernel is a ``KernelSource``, one that says ``lent`` a
    ``LentSource``; the tuples of all others are copied from the host.
    """
    if isinstance(source, Permuted):
        return PermutedTuples(source)
    return kind_of(source)(source)


def kind_of(source: TupleSource) -> type[Any]:
    """Return what brings the tuples of a source that is not permuted to a device."""
    if getattr(source, "kernel", None):
        return FamilyTuples
    return LentTuples if getattr(source, "lent", False) else HostTuples


def seconds_a_tuple(source: TupleSource) -> float:
    """Return about how long a device takes to have a tuple of a source."""
    inner = source.source if isinstance(source, Permuted) else source
    seconds: float = kind_of(inner).seconds
    return seconds
