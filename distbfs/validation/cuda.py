"""Validation of searches on CUDA devices, from the edge tuples.

The rules, the wording of the faults and the answer are those of ``validate``; the
kernels are in cuda.cu.  Each device looks at a share of the tuples, and at the vertices
whose results it has; the parents of others stay where they are.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from distbfs.device import cuda, programs
from distbfs.errors import UsageError
from distbfs.exchange.local_phase import brought_here
from distbfs.exchange.world import SoloWorld
from distbfs.generate.cuda import MAX_VERTICES
from distbfs.types import UNREACHED, Array, DeviceArray, Ids, slice_bounds
from distbfs.validation.faults import KINDS, Tally
from distbfs.validation.host import BOTH, LEVELS, Validation

if TYPE_CHECKING:
    from distbfs.generate.cuda import DeviceTuples
    from distbfs.types import World

SOURCE = Path(__file__).with_name("cuda.cu")
CHUNK = 1 << 25
MAX_CHUNK = 1 << 30
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
SMALLER = 4  # chunks where there are several devices
BOX_CHUNKS = 8  # a box has room for all pairs of so many chunks
TUPLE_KINDS = ("outside", "span", "half")
FIRST = len(KINDS)  # where positions begin in the report of the kernels
REACHED, NEDGE, DEPTH, REPORT_WORDS = range(2 * len(KINDS), 2 * len(KINDS) + 4)
NOWHERE = np.iinfo(np.int64).max  # the position of a kind that was not found
NOT_HERE = np.iinfo(np.int64).min

Value = TypeVar("Value")


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


def validate_on_device(
    tuples: DeviceTuples,
    root: int,
    level: DeviceArray,
    parent: DeviceArray | None,
    *,
    chunk: int = CHUNK,
) -> Validation:
    """Check the result of a search, which the current device has whole.

    level, parent: as of a ``Shard``, by input ids; chunk: see ``validate_on_devices``

    Raises UsageError for a root or arrays that do not fit, ResourceError where device
    memory is short.
    """
    seat = Seat(tuples, [Shard(0, level, parent)])
    return validate_on_devices(SoloWorld(), [seat], tuples.n, 1, root, chunk=chunk)


def validate_on_devices(
    world: World,
    seats: Sequence[Seat],
    n: int,
    parts: int,
    root: int,
    *,
    parents: bool | None = None,
    chunk: int = CHUNK,
) -> Validation:
    """Check the result of a search by the tuples, on the devices that have it.

    seats: of this rank, none where it has no results; together they have all parts
    parents: whether there are some (default: what the first shard has)
    chunk: tuples looked at in one piece; takes 16 bytes each (32 of wide ids), beside
        n / 2 bytes; where there are several devices, less pieces, 2 n more and boxes
        of 64 bytes a tuple of ``chunk``

    Collective.  Raises UsageError for a root or arrays that do not fit, ResourceError
    where device memory is short.
    """
    started = time.perf_counter()
    if parents is None:
        parents = seats[0].shards[0].parent is not None
    _check_arguments(n, parts, root, seats, chunk, parents=parents)
    with cuda.memory_of("validation"):
        check = _Check(world, seats, n, parts, root, parents=parents)
        report = check.run(min(chunk, MAX_CHUNK))
        errors = check.tally(report).errors(root)
    return Validation(
        valid=not errors,
        errors=errors,
        nedge=int(report[NEDGE]),
        reached=int(report[REACHED]),
        depth=int(report[DEPTH]) - 1,
        seconds=time.perf_counter() - started,
        checked=BOTH if parents else LEVELS,
    )


def locals_of(n: int, parts: int, index: int) -> int:
    """Return how many vertices a part has."""
    return max(n - index + parts - 1, 0) // parts


def _check_arguments(
    n: int, parts: int, root: int, seats: Sequence[Seat], chunk: int, *, parents: bool
) -> None:
    """Raise UsageError for what the kernels cannot take."""
    if n > MAX_VERTICES:
        raise UsageError(
            f"{n} vertices do not fit validation on devices; allowed: {MAX_VERTICES}"
        )
    if not 0 <= root < n:
        raise UsageError(f"root is {root}; allowed: 0 to {n - 1}")
    if chunk < 1:
        raise UsageError(f"chunk is {chunk}; allowed: 1 and more")
    for shard in (shard for seat in seats for shard in seat.shards):
        count = locals_of(n, parts, shard.index)
        if not _fits(shard.level, count, LEVEL_TYPES):
            raise UsageError(
                f"levels are not one contiguous array of {count} elements of dtype "
                f"{', '.join(LEVEL_TYPES)}"
            )
        if parents and not _fits(shard.parent, count, PARENT_TYPES):
            raise UsageError(
                f"parents are not one contiguous array of {count} elements of dtype "
                f"{', '.join(PARENT_TYPES)}"
            )


def _fits(array: Any, count: int, types: tuple[str, ...]) -> bool:
    """Return whether an array has the shape and a dtype that kernels take."""
    right = array.dtype.name in types and array.shape == (count,)
    return bool(right and array.flags.c_contiguous)


@cache
def _module(
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


class _Device:
    """One device while it validates; its methods with it current.

    own: which of all devices this is; share: first tuple and the one after its last
    """

    def __init__(self, seat: Seat, own: int, share: tuple[int, int]) -> None:
        self.seat, self.own = seat, own
        self._next, self._end = share
        self.parents: dict[int, Any] = {x.index: x.parent for x in seat.shards}
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
        for index, parent in self.parents.items():
            if parent is not None:
                by_part[index], kind = _address(parent), parent.dtype
        self._table = table = cp.asarray(by_part)
        where = cp.asarray(seats)
        self._module = self._kernels(level.dtype, kind)
        self.check = CheckParams(
            level=_address(level),
            parent=_address(table) if parents else None,
            seat=_address(where),
            states=_address(states),
            report=_address(self.report),
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
            self.check.prints = _address(some)
            self._held.append(some)
        self.check.room = BOX_CHUNKS * 2 * self._chunk
        self.box = cp.empty((count, self.check.room, 2), dtype=np.uint64)
        self._filled = cp.asarray(np.zeros(count, np.uint64))
        self.check.box, self.check.filled = _address(self.box), _address(self._filled)

    def _kernels(self, level: np.dtype[Any], parent: np.dtype[Any]) -> programs.Module:
        ids = np.dtype(self.seat.tuples.dtype)
        device = cuda.cupy().cuda.Device().id
        return _module(device, level.name, parent.name, ids.name)

    def _joined(self, arrays: Sequence[Any], per: int) -> Any:
        """Return the arrays of all parts, a row of ``per`` each."""
        if len(arrays) == 1 and len(arrays[0]) == per:
            return arrays[0]
        kind = max((x.dtype for x in arrays), key=lambda dtype: dtype.itemsize)
        rows = cuda.cupy().empty((len(arrays), per), dtype=kind)
        for row, array in zip(rows, arrays, strict=True):
            row[: len(array)] = _here(array)
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
        return _host(self.report)

    def advance(self, *, thorough: bool) -> list[int]:
        """Look at tuples until they end or boxes are nearly full.

        Returns (tuples left, pairs in each box).
        """
        self.check.thorough, most = thorough, 0  # pairs of a box, at most
        for start, stop, u, v in self._chunks():
            self.check.start, self.check.count = start, stop - start
            self.check.u, self.check.v = _address(u), _address(v)
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
        filled: list[int] = _host(self._filled).astype(np.int64).tolist()
        return filled

    def empty(self) -> None:
        """Begin with empty boxes."""
        if self.box is not None:
            self._filled.fill(0)

    def look(self, pairs: Any) -> None:
        """Look at pairs from another device, uint64 [count, 2], here or elsewhere."""
        pairs = _here(pairs)
        self.check.pairs, self.check.count = _address(pairs), len(pairs)
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


def _address(array: Any) -> int:
    """Return where an array begins."""
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    return int(array.data.ptr)


def _here(array: Any) -> Any:
    """Return an array of the host or of any device on the current one."""
    if isinstance(array, np.ndarray):
        return cuda.cupy().asarray(array)
    return brought_here(array)


def _host(array: Any) -> Array:
    """Return a copy of an array in host memory."""
    values: Array = array.get() if hasattr(array, "get") else array.copy()
    return values


class _Check:
    """One validation; arguments as for ``validate_on_devices``."""

    def __init__(
        self,
        world: World,
        seats: Sequence[Seat],
        n: int,
        parts: int,
        root: int,
        *,
        parents: bool,
    ) -> None:
        self._world, self._n, self._parts, self._root = world, n, parts, root
        self._with_parents = parents
        counts = world.allgather(np.array([len(seats)], dtype=np.int64))
        of_rank = np.array([int(x[0]) for x in counts])
        self._ranks = np.repeat(np.arange(world.size), of_rank)  # of each device
        first, total = int(of_rank[: world.rank].sum()), int(of_rank.sum())
        self._devices = []
        tuples = seats[0].tuples.tuples if seats else 0
        for k, seat in enumerate(seats):
            share = slice_bounds(tuples, total, first + k)
            self._devices.append(_Device(seat, first + k, share))

    def run(self, chunk: int) -> Ids:
        """Return the report of all passes on all devices, int64 [REPORT_WORDS].

        See cuda.cu; NOWHERE is the position of a kind that was not found.
        """
        several = len(self._ranks) > 1
        seats = self._seats()
        per = locals_of(self._n, self._parts, 0)
        if self._parts > 1:
            per = -(-per // VERTICES_PER_WORD) * VERTICES_PER_WORD
        here = [[shard.level for shard in d.seat.shards] for d in self._devices]
        levels = self._of_all(here, self._level_type(here))
        prints = None
        if several and self._with_parents:
            prints = self._of_all(self._each(_Device.prints), np.dtype(np.uint8))

        def begin(device: _Device) -> None:
            known = (self._root, levels, prints, seats, per, chunk)
            device.take(*known, parents=self._with_parents)
            device.launch("pack_states")
            device.of_each_part("check_vertices")

        self._each(begin)
        levels, prints = [], None
        thorough = bool(self._report()[:FIRST].any())
        while True:
            left = self._each(lambda device: device.advance(thorough=thorough))
            if not several:
                break
            self._pass_on([line[1:] for line in left])
            sums = np.array([sum(line[0] for line in left)], dtype=np.int64)
            if not self._world.allreduce(sums)[0]:
                break
        self._each(lambda device: device.of_each_part("check_marks"))
        return self._report()

    def _each(self, work: Callable[[_Device], Value]) -> list[Value]:
        """Return work(device) of each device of this rank, which is current then."""

        def run(device: _Device) -> Value:
            with device.seat.on(), cuda.memory_of("validation"):
                return work(device)

        if len(self._devices) < 2:
            return [run(device) for device in self._devices]
        with ThreadPoolExecutor(len(self._devices)) as pool:
            return list(pool.map(run, self._devices))

    def _seats(self) -> Array:
        """Return which device has each part, uint32 [parts] (collective)."""
        mine = [(x.index, d.own) for d in self._devices for x in d.seat.shards]
        pairs = np.array(mine, dtype=np.int64).reshape(-1, 2)
        every = np.concatenate(self._world.allgather(pairs.reshape(-1))).reshape(-1, 2)
        seats = np.zeros(self._parts, dtype=np.uint32)
        seats[every[:, 0]] = every[:, 1]
        return seats

    def _level_type(self, here: Sequence[Sequence[Any]]) -> np.dtype[Any]:
        """Return the widest dtype of all levels (collective)."""
        sizes = [level.dtype.itemsize for levels in here for level in levels]
        width = self._world.allreduce(np.array([max(sizes, default=1)]), "max")
        return np.dtype(f"i{int(width[0])}")

    def _of_all(self, mine: Sequence[Sequence[Any]], kind: np.dtype[Any]) -> list[Any]:
        """Return an array of each part, where it lies or in host memory (collective).

        mine: of the shards of each device of this rank; kind: of those of other ranks
        """
        world = self._world
        shards = [x for device in self._devices for x in device.seat.shards]
        arrays = [array for of_device in mine for array in of_device]
        of_part = {x.index: array for x, array in zip(shards, arrays, strict=True)}
        if world.size > 1:
            host = [_host(x).astype(kind, copy=False) for x in arrays]
            flat = np.concatenate([*host, np.zeros(0, kind)])
            indices = np.array([x.index for x in shards], dtype=np.int64)
            known = world.allgather(indices), world.allgather(flat)
            for rank, (on_rank, values) in enumerate(zip(*known, strict=True)):
                if rank == world.rank:
                    continue
                at = 0
                for index in on_rank.tolist():
                    count = locals_of(self._n, self._parts, index)
                    of_part[index] = values[at : at + count]
                    at += count
        return [of_part[index] for index in sorted(of_part)]

    def _pass_on(self, filled: Sequence[Sequence[int]]) -> None:
        """Bring the pairs of all boxes to the devices that they are for (collective).

        filled: of each device of this rank, pairs in each of its boxes
        """
        world = self._world
        outgoing: list[list[Any]] = [[] for _ in range(world.size)]
        for device, counts in zip(self._devices, filled, strict=True):
            with device.seat.on():
                for to, count in enumerate(counts):
                    if count:
                        outgoing[self._ranks[to]].append(device.box[to, :count])
        pairs: list[Any] = outgoing[world.rank]
        if world.size > 1:
            outgoing[world.rank] = []
            none = np.zeros(0, np.uint64)
            sent = [
                np.concatenate([none, *(_host(x).reshape(-1) for x in some)])
                for some in outgoing
            ]
            pairs = [
                *pairs,
                *(x.reshape(-1, 2) for x in world.alltoall(sent) if len(x)),
            ]

        def look(device: _Device) -> None:
            for some in pairs:
                device.look(some)

        self._each(look)
        self._each(_Device.empty)

    def _report(self) -> Ids:
        """Return the sum of the reports of all devices (collective)."""
        sums = np.zeros(REPORT_WORDS, dtype=np.int64)
        least = np.full(FIRST, NOWHERE, dtype=np.int64)
        deepest = 0
        for report in self._each(_Device.faults):
            sums += report
            positions = report[FIRST:REACHED]
            least = np.minimum(least, np.where(positions == -1, NOWHERE, positions))
            deepest = max(deepest, int(report[DEPTH]))
        sums = self._world.allreduce(sums)
        sums[FIRST:REACHED] = self._world.allreduce(least, "min")
        sums[DEPTH] = self._world.allreduce(np.array([deepest]), "max")[0]
        return sums

    def tally(self, report: Ids) -> Tally:
        """Return the faults of a report with their examples (collective)."""
        tally = Tally()
        for kind, row in KINDS.items():
            count, position = int(report[row]), int(report[FIRST + row])
            if count:
                tally.add(kind, count, position, *self._example(kind, position))
        return tally

    def _example(self, kind: str, position: int) -> tuple[int, int, int, int]:
        """Return (a, b, x, y) of a fault, as faults.TEXTS tells them (collective)."""
        if kind in TUPLE_KINDS:
            a, b = self._tuple(position)
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

    def _tuple(self, position: int) -> tuple[int, int]:
        ends = np.full(2, NOT_HERE)
        if self._devices:
            seat = self._devices[0].seat
            with seat.on():
                u, v = (cuda.cupy().empty(1, dtype=seat.tuples.dtype) for _ in "uv")
                seat.tuples.fill(position, position + 1, u, v)
                ends[:] = int(u[0]), int(v[0])
        a, b = self._world.allreduce(ends, "max").tolist()
        return a, b

    def _value(self, vertex: int, which: Callable[[Shard], Any]) -> int:
        value = np.full(1, NOT_HERE)
        part, local = vertex % self._parts, vertex // self._parts
        for device in self._devices:
            for shard in device.seat.shards:
                if shard.index == part:
                    with device.seat.on():
                        value[0] = int(which(shard)[local])
        return int(self._world.allreduce(value, "max")[0])

    def _level(self, vertex: int) -> int:
        return self._value(vertex, lambda shard: shard.level)

    def _parent(self, vertex: int) -> int:
        if not self._with_parents:
            return UNREACHED
        return self._value(vertex, lambda shard: shard.parent)
