"""Validation of searches on CUDA devices, from the edge tuples.

The rules, the wording of the faults and the answer are those of ``validate``; the
kernels are in cuda.cu.  Each device looks at a share of the tuples, and at the vertices
whose results it has; the parents of others stay where they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from distbfs.device import cuda
from distbfs.errors import UsageError
from distbfs.exchange.world import SoloWorld
from distbfs.generate.cuda import MAX_VERTICES
from distbfs.partition.layout import local_count
from distbfs.types import UNREACHED, Array, DeviceArray, Ids, slice_bounds
from distbfs.validation.cuda_device import (
    DEPTH,
    FIRST,
    NEDGE,
    REACHED,
    REPORT_WORDS,
    VERTICES_PER_WORD,
    CheckingDevice,
    Seat,
    Shard,
    host_copy,
)
from distbfs.validation.faults import KINDS, Tally
from distbfs.validation.host import BOTH, LEVELS, Validation

if TYPE_CHECKING:
    from distbfs.generate.cuda import DeviceTuples
    from distbfs.types import World

CHUNK = 1 << 25
MAX_CHUNK = 1 << 30
LEVEL_TYPES = ("int8", "int16", "int32")
PARENT_TYPES = ("int32", "int64")
TUPLE_KINDS = ("outside", "span", "half")
NOWHERE = np.iinfo(np.int64).max  # the position of a kind that was not found
NOT_HERE = np.iinfo(np.int64).min

Value = TypeVar("Value")


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
        count = local_count(n, parts, shard.index)
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
            self._devices.append(CheckingDevice(seat, first + k, share))

    def run(self, chunk: int) -> Ids:
        """Return the report of all passes on all devices, int64 [REPORT_WORDS].

        See cuda.cu; NOWHERE is the position of a kind that was not found.
        """
        several = len(self._ranks) > 1
        seats = self._seats()
        per = local_count(self._n, self._parts, 0)
        if self._parts > 1:
            per = -(-per // VERTICES_PER_WORD) * VERTICES_PER_WORD
        here = [[shard.level for shard in d.seat.shards] for d in self._devices]
        levels = self._of_all(here, self._level_type(here))
        prints = None
        if several and self._with_parents:
            prints = self._of_all(self._each(CheckingDevice.prints), np.dtype(np.uint8))

        def begin(device: CheckingDevice) -> None:
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

    def _each(self, work: Callable[[CheckingDevice], Value]) -> list[Value]:
        """Return work(device) of each device of this rank, which is current then."""

        def run(device: CheckingDevice) -> Value:
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
            host = [host_copy(x).astype(kind, copy=False) for x in arrays]
            flat = np.concatenate([*host, np.zeros(0, kind)])
            indices = np.array([x.index for x in shards], dtype=np.int64)
            known = world.allgather(indices), world.allgather(flat)
            for rank, (on_rank, values) in enumerate(zip(*known, strict=True)):
                if rank == world.rank:
                    continue
                at = 0
                for index in on_rank.tolist():
                    count = local_count(self._n, self._parts, index)
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
                np.concatenate([none, *(host_copy(x).reshape(-1) for x in some)])
                for some in outgoing
            ]
            pairs = [
                *pairs,
                *(x.reshape(-1, 2) for x in world.alltoall(sent) if len(x)),
            ]

        def look(device: CheckingDevice) -> None:
            for some in pairs:
                device.look(some)

        self._each(look)
        self._each(CheckingDevice.empty)

    def _report(self) -> Ids:
        """Return the sum of the reports of all devices (collective)."""
        sums = np.zeros(REPORT_WORDS, dtype=np.int64)
        least = np.full(FIRST, NOWHERE, dtype=np.int64)
        deepest = 0
        for report in self._each(CheckingDevice.faults):
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
