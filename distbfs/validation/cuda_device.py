"""One CUDA device while it validates: what it knows, and its launches (cuda.cu)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.exchange.local_phase import brought_here
from distbfs.types import Array, DeviceArray, Ids
from distbfs.validation.faults import KINDS

if TYPE_CHECKING:
    from distbfs.generate.cuda import DeviceTuples

SOURCE = Path(__file__).with_name("cuda.cu")
BLOCK = 256
VERTEX_BLOCKS = 8  # on each multiprocessor
# Few blocks and little shared memory leave room for the kernel that writes the next
# chunk, and the first-level cache to the random reads that are under way.
TUPLE_BLOCKS = 2
SHARED_CARVE_OUT = 9  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
SHARED_PERCENT = 7
VERTICES_PER_WORD = 8
TUPLES_PER_THREAD = 4
SMALLER = 4  # chunks where there are several devices
BOX_CHUNKS = 8  # a box has room for all pairs of so many chunks
FIRST = len(KINDS)  # where positions begin in the report of the kernels
REACHED, NEDGE, DEPTH, REPORT_WORDS = range(2 * len(KINDS), 2 * len(KINDS) + 4)


class CheckParams(ctypes.Structure):
    """``Check`` in cuda.cu."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("level", "prints", "parent", "seat")),
        *((name, ctypes.c_void_p) for name in ("states", "report", "box", "filled")),
        *((name, ctypes.c_void_p) for name in ("u", "v", "pairs")),
        *((name, ctypes.c_uint64) for name in ("n", "root", "per", "room")),
        *((name, ctypes.c_uint64) for name in ("start", "count")),
        *((name, ctypes.c_uint32) for name in ("parts", "own", "part", "thorough")),
    )


@dataclass(frozen=True)
class Shard:
    """Results of the vertices index, index + parts, index + 2 parts, …, on a device.

    level: CuPy [local], int8, int16 or int32, -1 where unreached
    parent: CuPy [local], int32 or int64, ids, -1 where there is none; None on all
        shards where levels only were asked for
    """

    index: int
    level: DeviceArray
    parent: DeviceArray | None


@dataclass(frozen=True)
class Seat:
    """A device that validates: its tuples, what results it has, and how to be on it."""

    tuples: DeviceTuples
    shards: Sequence[Shard]
    on: Callable[[], AbstractContextManager[object]] = nullcontext


@cache
def kernels_for(
    device: int,  # noqa: ARG001 - one each
    level: str,
    parent: str,
    ids: str,
) -> programs.Module:
    """Return the kernels for three dtypes, loaded once on each device."""
    names = [name.replace("int", "i") for name in (level, parent)]
    return programs.Module(
        SOURCE, LEVEL=names[0], PARENT=names[1], ID=ids.replace("uint", "u")
    )


class CheckingDevice:
    """One device while it validates; its methods with it current.

    own: which of all devices this is; share: first tuple and the one after its last
    """

    def __init__(self, seat: Seat, own: int, share: tuple[int, int]) -> None:
        self.seat, self.own = seat, own
        self._next, self._end = share
        self._held: list[Any] = []

    def take(
        self,
        root: int,
        levels: Sequence[Any],
        prints: Sequence[Any] | None,
        seats: Array,
        per: int,
        chunk: int,
        *,
        parents: bool,
    ) -> None:
        """Make what kernels know of all parts.

        levels, prints: of each part, arrays of the host or of any device, or None
        seats: uint32 [parts], which device has a part
        """
        cp, tuples, parts = cuda.cupy(), self.seat.tuples, len(levels)
        count = int(seats.max()) + 1
        if count > 1:  # boxes together take as much for any number of devices
            chunk //= SMALLER * count
        self._chunk = max(min(chunk, self._end - self._next), 1)
        level = self._joined(levels, per)
        states = cp.empty(parts * -(-per // VERTICES_PER_WORD), dtype=np.uint32)
        empty = np.zeros(REPORT_WORDS, dtype=np.int64)
        empty[FIRST:REACHED] = -1
        self.report = cp.asarray(empty)
        by_part = np.zeros(parts, np.uint64)
        kind = np.dtype(np.int64 if np.dtype(tuples.dtype).itemsize == 8 else np.int32)
        for shard in self.seat.shards:
            if shard.parent is not None:
                by_part[shard.index] = address_of(shard.parent)
                kind = shard.parent.dtype
        table = cp.asarray(by_part)
        where = cp.asarray(seats)
        self._module = self._kernels(level.dtype, kind)
        self.check = CheckParams(
            level=address_of(level),
            parent=address_of(table) if parents else None,
            seat=address_of(where),
            states=address_of(states),
            report=address_of(self.report),
            n=tuples.n,
            root=root,
            per=per,
            parts=parts,
            own=self.own,
        )
        self._held += [level, states, table, where]
        self.box: Any = None
        if count == 1:
            return
        if prints is not None:
            some = self._joined(prints, per)
            self.check.prints = address_of(some)
            self._held.append(some)
        self.check.room = BOX_CHUNKS * 2 * self._chunk
        self.box = cp.empty((count, self.check.room, 2), dtype=np.uint64)
        self._filled = cp.asarray(np.zeros(count, np.uint64))
        self.check.box = address_of(self.box)
        self.check.filled = address_of(self._filled)

    def _kernels(self, level: np.dtype[Any], parent: np.dtype[Any]) -> programs.Module:
        ids = np.dtype(self.seat.tuples.dtype)
        device = cuda.cupy().cuda.Device().id
        return kernels_for(device, level.name, parent.name, ids.name)

    def _joined(self, arrays: Sequence[Any], per: int) -> Any:
        """Return the arrays of all parts, a row of ``per`` each."""
        if len(arrays) == 1 and len(arrays[0]) == per:
            return arrays[0]
        kind = max((x.dtype for x in arrays), key=lambda dtype: dtype.itemsize)
        rows = cuda.cupy().empty((len(arrays), per), dtype=kind)
        for row, array in zip(rows, arrays, strict=True):
            row[: len(array)] = near(array)
        return rows.reshape(-1)

    def launch(self, name: str, blocks: int = VERTEX_BLOCKS) -> None:
        """Launch a kernel with the arguments as they are now."""
        kernel = self._module.kernel(name)
        if name == "check_tuples":
            kernel.set_attribute(SHARED_CARVE_OUT, SHARED_PERCENT)
        stream = cuda.cupy().cuda.get_current_stream()
        kernel.prepare(self.check, cuda.multiprocessors() * blocks, BLOCK)(stream.ptr)

    def of_each_part(self, name: str) -> None:
        """Launch a kernel for each part that is here."""
        for shard in self.seat.shards:
            self.check.part = shard.index
            self.launch(name)

    def faults(self) -> Ids:
        """Return the report, int64 [REPORT_WORDS], when all is done."""
        return host_copy(self.report)

    def advance(self, *, thorough: bool) -> list[int]:
        """Look at tuples until they end or boxes are nearly full.

        Returns (tuples left, pairs in each box).
        """
        self.check.thorough, most = thorough, 0  # pairs of a box, at most
        for start, stop, u, v in self._chunks():
            self.check.start, self.check.count = start, stop - start
            self.check.u, self.check.v = address_of(u), address_of(v)
            self.launch("check_tuples", TUPLE_BLOCKS)
            self._next = stop
            most += 2 * self._chunk
            if self.box is not None and most + 2 * self._chunk > self.check.room:
                most = max(self._pairs())
                if most + 2 * self._chunk > self.check.room:
                    break
        return [self._end - self._next, *self._pairs()]

    def _pairs(self) -> list[int]:
        """Return how many pairs each box has; all launches are waited for."""
        if self.box is None:
            return [0]
        filled: list[int] = host_copy(self._filled).astype(np.int64).tolist()
        return filled

    def empty(self) -> None:
        """Begin with empty boxes."""
        if self.box is not None:
            self._filled.fill(0)

    def look(self, pairs: Any) -> None:
        """Look at pairs from another device, uint64 [count, 2], here or elsewhere."""
        pairs = near(pairs)
        self.check.pairs, self.check.count = address_of(pairs), len(pairs)
        self.launch("check_pairs")
        cuda.cupy().cuda.get_current_stream().synchronize()

    def _chunks(self) -> Iterator[tuple[int, int, DeviceArray, DeviceArray]]:
        """Yield (start, stop, u, v); the next chunk is written while one is used.

        What is launched on the current stream until the next chunk is asked for may
        read u and v.
        """
        cp, tuples = cuda.cupy(), self.seat.tuples
        width = -(-self._chunk // TUPLES_PER_THREAD) * TUPLES_PER_THREAD
        pairs = [[cp.empty(width, dtype=tuples.dtype) for _ in "uv"] for _ in range(2)]
        reader = cp.cuda.get_current_stream()
        writer = cp.cuda.Stream(non_blocking=True)
        unused = [reader.record() for _ in pairs]
        starts = range(self._next, self._end, self._chunk)
        try:
            for number, start in enumerate(starts):
                stop, turn = min(start + self._chunk, self._end), number % 2
                writer.wait_event(unused[turn])
                with writer:
                    tuples.fill(start, stop, *pairs[turn])
                    filled = writer.record()
                reader.wait_event(filled)
                yield start, stop, *pairs[turn]
                unused[turn] = reader.record()
        finally:
            writer.synchronize()

    def prints(self) -> list[Any]:
        """Return bytes for the parents of the shards here, uint8 [local] each."""
        cp, made = cuda.cupy(), []
        for shard in self.seat.shards:
            parent = shard.parent
            if parent is None:
                raise ValueError("a search without parents has no prints")
            out = cp.empty(len(parent), dtype=np.uint8)
            module = self._kernels(shard.level.dtype, parent.dtype)
            grid = cuda.multiprocessors() * VERTEX_BLOCKS
            arguments = (np.uint64(len(parent)), parent, out)
            module.kernel("make_prints")(grid, BLOCK, *arguments)
            made.append(out)
        cp.cuda.get_current_stream().synchronize()
        return made


def address_of(array: Any) -> int:
    """Return where an array begins."""
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    return int(array.data.ptr)


def near(array: Any) -> Any:
    """Return an array of the host or of any device on the current one."""
    if isinstance(array, np.ndarray):
        return cuda.cupy().asarray(array)
    return brought_here(array)


def host_copy(array: Any) -> Array:
    """Return a copy of an array in host memory."""
    values: Array = array.get() if hasattr(array, "get") else array.copy()
    return values
