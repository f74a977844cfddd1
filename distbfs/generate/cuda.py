"""Edge tuples in the memory of a CUDA device.

A family with a kernel ``FAMILY_tuples(start, count, …, u, v)`` in ``FAMILY.cu`` is
written where it is wanted; the tuples of any other source are copied from the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.errors import InputError, UsageError
from distbfs.generate.hashing import Permutation
from distbfs.generate.kronecker import CUTOFF_BITS, LEVELS_PER_DRAW, SLOTS, Kronecker
from distbfs.generate.permuted import Permuted
from distbfs.generate.rmat import RmatB, RmatER, RmatG
from distbfs.generate.road import Road
from distbfs.generate.uniform import Uniform
from distbfs.types import Array, DeviceArray, Ids, TupleSource

MAX_VERTICES = 1 << 31
BLOCK = 256
BLOCKS_PER_MULTIPROCESSOR = 16


class DeviceTuples(ABC):
    """The tuples of a source, n ≤ 2^31 vertices, in device memory slice by slice.

    generated: a slice costs no work of the host
    """

    generated = False

    def __init__(self, source: TupleSource) -> None:
        if source.n > MAX_VERTICES:
            raise UsageError(
                f"{source.n} vertices do not fit one device; allowed: {MAX_VERTICES}"
            )
        self.source = source
        self.n = source.n
        self.tuples = source.tuples

    @abstractmethod
    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Write the tuples start … stop-1 to the front of CuPy uint32 arrays."""


class HostTuples(DeviceTuples):
    """Tuples that the host makes or holds; copied chunk by chunk."""

    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Copy the tuples start … stop-1."""
        at = 0
        for chunk in self.source.chunks(start, stop):
            for ids, out in zip(chunk, (u, v), strict=True):
                self._check(ids)
                out[at : at + len(ids)].set(ids.astype(np.uint32))
            at += len(chunk[0])
        if at != stop - start:
            raise InputError(f"a source gave {at} instead of {stop - start} tuples")

    def _check(self, ids: Ids) -> None:
        if len(ids) and (ids.min() < 0 or ids.max() >= self.n):
            raise InputError(f"an edge tuple has an end outside 0 … {self.n - 1}")


class LentTuples(DeviceTuples):
    """Tuples that lie in device memory: ``source.pieces``, checked."""

    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Copy the tuples start … stop-1 on the device."""
        lent: Any = self.source
        at = 0
        for some_u, some_v in lent.pieces(start, stop):
            end = at + len(some_u)
            u[at:end], v[at:end] = some_u, some_v
            at = end


class FamilyTuples(DeviceTuples):
    """Tuples that a kernel of their family writes.

    arguments: what the kernel takes between (start, count) and (u, v); arrays are
    copied to the device
    """

    generated = True

    def __init__(
        self, source: TupleSource, kernel: str, arguments: tuple[Any, ...]
    ) -> None:
        super().__init__(source)
        code = programs.Module(Path(__file__).with_name(f"{kernel}.cu"))
        self._kernel = code.kernel(f"{kernel}_tuples")
        self._arguments = [
            cuda.cupy().asarray(value) if isinstance(value, np.ndarray) else value
            for value in arguments
        ]
        self._blocks = cuda.multiprocessors() * BLOCKS_PER_MULTIPROCESSOR

    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Launch the kernel for the tuples start … stop-1; does not wait."""
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
        code = programs.Module(Path(__file__).with_name("permuted.cu"))
        self._kernel = code.kernel("permute_ids")
        self._words = cuda.cupy().asarray(permutation_words(source.permutation))
        self._blocks = cuda.multiprocessors() * BLOCKS_PER_MULTIPROCESSOR

    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Write the tuples start … stop-1; does not wait."""
        self._inner.fill(start, stop, u, v)
        count = stop - start
        if count > 0:
            grid = min(-(-count // BLOCK), self._blocks)
            for ids in (u, v):
                self._kernel(grid, BLOCK, np.uint64(count), self._words, ids)


def packed_table(cutoff: Array, alias: Array) -> Array:
    """Return an alias table as cutoff · 2^8 + alias, uint64 [256].

    A cutoff of 2^56, which is always kept, becomes an alias to the slot itself.
    """
    always = cutoff >= np.uint64(1 << CUTOFF_BITS)
    own = np.arange(SLOTS, dtype=np.uint64)
    other = np.where(always, own, alias.astype(np.uint64))
    return np.where(always, np.uint64(0), cutoff) << np.uint64(8) | other


def permutation_words(permutation: Permutation) -> Array:
    """Return PermutationStruct as words, uint64 [11]."""
    return np.frombuffer(bytes(permutation.struct()), dtype=np.uint64)


def kronecker_arguments(source: Kronecker) -> tuple[Any, ...]:
    """Return what ``kronecker_tuples`` takes between (start, count) and (u, v)."""
    tables = [
        packed_table(
            source._cutoff[d * SLOTS :][:SLOTS], source._alias[d * SLOTS :][:SLOTS]
        )
        for d in (0, len(source._bits) - 1)
    ]
    if any(bits != LEVELS_PER_DRAW for bits in source._bits[:-1]):
        raise UsageError("only the last draw of a Kronecker graph may be shorter")
    return (
        np.uint64(source._key),
        np.uint32(len(source._bits)),
        np.uint32(source._bits[-1]),
        np.stack([permutation_words(p) for p in (source._edges, source._vertices)]),
        np.stack(tables),
    )


# Families that have a kernel: its name, and what makes its arguments.
KERNELS: dict[type, tuple[str, Callable[[Any], tuple[Any, ...]]]] = {
    Kronecker: ("kronecker", kronecker_arguments),
    RmatB: ("kronecker", kronecker_arguments),
    RmatER: ("kronecker", kronecker_arguments),
    RmatG: ("kronecker", kronecker_arguments),
    Uniform: ("uniform", Uniform.device_arguments),
    Road: ("road", Road.device_arguments),
}


def device_tuples(source: TupleSource) -> DeviceTuples:
    """Return a source's tuples for the current device."""
    if isinstance(source, Permuted):
        return PermutedTuples(source)
    if type(source) in KERNELS and source.n <= MAX_VERTICES:
        kernel, arguments = KERNELS[type(source)]
        return FamilyTuples(source, kernel, arguments(source))
    if getattr(source, "lent", False):
        return LentTuples(source)
    return HostTuples(source)
