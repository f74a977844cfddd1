"""Validation of a search on one CUDA device, from the edge tuples.

The rules, the wording of the faults and the answer are those of ``validate``; the
kernels are in cuda.cu.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda, programs
from distbfs.errors import UsageError
from distbfs.types import UNREACHED, DeviceArray, Ids
from distbfs.validation.faults import KINDS, Tally
from distbfs.validation.host import BOTH, LEVELS, Validation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.generate.cuda import DeviceTuples

SOURCE = Path(__file__).with_name("cuda.cu")
CHUNK = 1 << 25
MAX_CHUNK = 1 << 30
MAX_VERTICES = 1 << 31
LEVEL_TYPES = ("int8", "int16", "int32")
PARENT_TYPES = ("int32", "int64")
BLOCK = 256
VERTEX_BLOCKS = 8  # on each multiprocessor
# Few blocks and little shared memory leave room for the kernel that writes the next
# chunk, and the first-level cache to the random reads that are under way.
TUPLE_BLOCKS = 2
SHARED_CARVE_OUT = 9  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
SHARED_PERCENT = 7
VERTICES_PER_WORD = 8
TUPLES_PER_THREAD = 4
TUPLE_KINDS = ("outside", "span", "half")
FIRST = len(KINDS)  # where positions begin in the report of the kernels
REACHED, NEDGE, DEPTH, REPORT_WORDS = range(2 * len(KINDS), 2 * len(KINDS) + 4)


def validate_on_device(
    tuples: DeviceTuples,
    root: int,
    level: DeviceArray,
    parent: DeviceArray | None,
    *,
    chunk: int = CHUNK,
) -> Validation:
    """Check the result of a search by its tuples.

    level: CuPy array [n] by input ids; int8, int16 or int32, -1 where unreached
    parent: CuPy array [n], int32 or int64, -1 where there is none; None where levels
        only were asked for
    chunk: tuples looked at in one piece; takes 16 bytes each, beside n / 2 bytes

    Raises UsageError for a root or arrays that do not fit, ResourceError where device
    memory is short.
    """
    started = time.perf_counter()
    _check_arguments(tuples.n, root, level, parent, chunk)
    with cuda.memory_of("validation"):
        check = _Check(tuples, root, level, parent)
        report = check.run(min(chunk, MAX_CHUNK))
        tally = check.tally(report)
    errors = tally.errors(root)
    return Validation(
        valid=not errors,
        errors=errors,
        nedge=int(report[NEDGE]),
        reached=int(report[REACHED]),
        depth=int(report[DEPTH]) - 1,
        seconds=time.perf_counter() - started,
        checked=LEVELS if parent is None else BOTH,
    )


def _check_arguments(
    n: int, root: int, level: DeviceArray, parent: DeviceArray | None, chunk: int
) -> None:
    """Raise UsageError for what the kernels cannot take."""
    if n > MAX_VERTICES:
        raise UsageError(
            f"{n} vertices do not fit validation on a device; allowed: {MAX_VERTICES}"
        )
    if not 0 <= root < n:
        raise UsageError(f"root is {root}; allowed: 0 to {n - 1}")
    if chunk < 1:
        raise UsageError(f"chunk is {chunk}; allowed: 1 and more")
    if not _fits(level, n, LEVEL_TYPES):
        raise UsageError(
            f"levels are not one contiguous array of {n} elements of dtype "
            f"{', '.join(LEVEL_TYPES)}"
        )
    if parent is not None and not _fits(parent, n, PARENT_TYPES):
        raise UsageError(
            f"parents are not one contiguous array of {n} elements of dtype "
            f"{', '.join(PARENT_TYPES)}"
        )


def _fits(array: DeviceArray, n: int, types: tuple[str, ...]) -> bool:
    """Return whether an array has the shape and a dtype that kernels take."""
    right = array.dtype.name in types and array.shape == (n,)
    return bool(right and array.flags.c_contiguous)


@cache
def _module(device: int, level: str, parent: str) -> programs.Module:  # noqa: ARG001
    """Return the kernels for two dtypes, loaded once on each device."""
    return programs.Module(
        SOURCE, LEVEL=level.replace("int", "i"), PARENT=parent.replace("int", "i")
    )


@dataclass(frozen=True)
class _Check:
    """One validation; arguments as for ``validate_on_device``."""

    tuples: DeviceTuples
    root: int
    level: DeviceArray
    parent: DeviceArray | None

    def run(self, chunk: int) -> Ids:
        """Return the report of all passes, int64 [REPORT_WORDS].

        See cuda.cu; -1 is the position of a kind that was not found.
        """
        cp = cuda.cupy()
        n = self.tuples.n
        kind = "int32" if self.parent is None else self.parent.dtype.name
        module = _module(cp.cuda.Device().id, self.level.dtype.name, kind)
        grid, reading = (
            cuda.multiprocessors() * blocks for blocks in (VERTEX_BLOCKS, TUPLE_BLOCKS)
        )
        empty = np.zeros(REPORT_WORDS, dtype=np.int64)
        empty[FIRST:REACHED] = -1
        report = cp.asarray(empty)
        states = cp.empty(-(-n // VERTICES_PER_WORD), dtype=np.uint32)
        # Levels only: a null pointer.
        parent = np.uint64(0) if self.parent is None else self.parent
        result = (np.uint32(n), self.level, parent, states, report)
        module.kernel("check_vertices")(grid, BLOCK, *result, np.uint32(self.root))
        thorough = np.uint32(cp.asnumpy(report)[:FIRST].any())
        check = module.kernel("check_tuples")
        check.set_attribute(SHARED_CARVE_OUT, SHARED_PERCENT)
        for start, stop, u, v in self._chunks(chunk):
            place = (np.uint64(start), np.uint64(stop - start))
            check(reading, BLOCK, *result, *place, u, v, thorough)
        module.kernel("check_marks")(grid, BLOCK, *result, np.uint32(self.root))
        totals: Ids = cp.asnumpy(report)
        return totals

    def _chunks(
        self, chunk: int
    ) -> Iterator[tuple[int, int, DeviceArray, DeviceArray]]:
        """Yield (start, stop, u, v); the next chunk is written while one is used.

        What is launched on the current stream until the next chunk is asked for may
        read u and v.
        """
        cp = cuda.cupy()
        total = self.tuples.tuples
        width = -(-min(chunk, total) // TUPLES_PER_THREAD) * TUPLES_PER_THREAD
        pairs = [[cp.empty(width, dtype=np.uint32) for _ in "uv"] for _ in range(2)]
        reader = cp.cuda.get_current_stream()
        writer = cp.cuda.Stream(non_blocking=True)
        unused = [reader.record() for _ in pairs]
        try:
            for number, start in enumerate(range(0, total, chunk)):
                stop, turn = min(start + chunk, total), number % 2
                writer.wait_event(unused[turn])
                with writer:
                    self.tuples.fill(start, stop, *pairs[turn])
                    filled = writer.record()
                reader.wait_event(filled)
                yield start, stop, *pairs[turn]
                unused[turn] = reader.record()
        finally:
            writer.synchronize()

    def tally(self, report: Ids) -> Tally:
        """Return the faults of a report, int64 [REPORT_WORDS], with their examples."""
        tally = Tally()
        for kind, row in KINDS.items():
            count, position = int(report[row]), int(report[FIRST + row])
            if count:
                tally.add(kind, count, position, *self._example(kind, position))
        return tally

    def _example(self, kind: str, position: int) -> tuple[int, int, int, int]:
        """Return (a, b, x, y) of a fault, as faults.TEXTS tells them."""
        if kind in TUPLE_KINDS:
            u, v = (cuda.cupy().empty(1, dtype=np.uint32) for _ in range(2))
            self.tuples.fill(position, position + 1, u, v)
            a, b = int(u[0]), int(v[0])
            if kind == "outside":
                return a, b, 0, 0
            return a, b, self._level(a), self._level(b)
        if kind in ("level_range", "root_level", "nearer"):
            return position, 0, self._level(position), 0
        of = self._parent(position)
        if kind == "set":
            return position, 0, self._level(position), of
        if kind == "step":
            return position, of, self._level(position), self._level(of)
        return position, 0, of, 0

    def _level(self, vertex: int) -> int:
        return int(self.level[vertex])

    def _parent(self, vertex: int) -> int:
        return UNREACHED if self.parent is None else int(self.parent[vertex])
