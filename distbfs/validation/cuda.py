"""Validation of searches on CUDA devices, from the edge tuples.

Rules, fault messages and outcome are those of ``validate``; the kernels are in cuda.cu.
Each device checks a share of the tuples, and the vertices whose results it has. Besides
these results, which stay in place, and some chunks of tuples, it stores (``states``):

- one device: 4 bits per vertex, a code of its level and a mark;
- several: a state of every vertex, a code of its level and a mark, 4 bits up to level
  6, 8 to level 126, 16 to level 32766, else 32, packed by the owners, and a copy of the
  other devices' parents;
- if that does not fit: a bit for each own vertex. Then the states of tuple ends are
  requested from their owners, chunk by chunk.

Tuples are generated again for each validation, or kept (``ValidationSeat``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda
from distbfs.device.array_table import total_bytes
from distbfs.errors import UsageError
from distbfs.generate.cuda import MAX_VERTICES, id_type
from distbfs.partition.layout import local_count
from distbfs.ranks.world import SoloWorld
from distbfs.types import DeviceArray, Root
from distbfs.validation.between import Devices
from distbfs.validation.cuda_device import (
    CheckingDevice,
    ResultShard,
    ValidationSeat,
)
from distbfs.validation.derived_cuda import levels_on_devices
from distbfs.validation.faults import (
    Asked,
    Example,
    Tally,
    Validation,
    checked_roots,
)
from distbfs.validation.states import (
    ALONE,
    CHUNK,
    DIVISORS,
    StateLayout,
    code_bits,
    form_of_all,
)

if TYPE_CHECKING:
    from distbfs.exchange.nccl_link import Link
    from distbfs.generate.cuda import DeviceTuples
    from distbfs.types import World

MAX_CHUNK = 1 << 30
LEVEL_TYPES: Sequence[str] = ("int8", "int32")
PARENT_TYPES: Sequence[str] = ("int32", "int64")


def validate_on_device(
    tuples: DeviceTuples,
    root: Root,
    level: DeviceArray | None,
    parent: DeviceArray | None,
    *,
    directed: bool = False,
    chunk: int = CHUNK,
) -> Validation:
    """Check the result of a search that is all on the current device.

    level, parent: arrays by input id; see ``ResultShard``
    directed: whether tuples lead from their first end to their second
    chunk: see ``validate_on_devices``

    Raises UsageError for an invalid root or invalid arrays, ResourceError if device
    memory is short.
    """
    seat = ValidationSeat(tuples, [ResultShard(0, level, parent)])
    asked = Asked(level is not None, parent is not None, directed)
    return validate_on_devices(
        SoloWorld(), [seat], tuples.n, 1, root, asked, chunk=chunk
    )


def validate_on_devices(
    world: World,
    seats: Sequence[ValidationSeat],
    n: int,
    parts: int,
    root: Root,
    asked: Asked,
    *,
    chunk: int = CHUNK,
    link: Link | None = None,
) -> Validation:
    """Check the result of a search by the tuples, on the devices that have the result.

    seats: the seats of this rank, none if it has no results; the seats of all ranks
    have all parts
    root: see ``host.validate``; asked: what the result has, the same on all ranks
    chunk: number of tuples in a piece; with several devices, memory may allow fewer
    link: the communicator of all devices, numbered in the order of ``seats``; None on
    all ranks if data of other ranks pass through host memory

    Collective. Raises UsageError for an invalid root or invalid arrays, ResourceError
    if device memory is short.
    """
    started = time.perf_counter()
    _check_arguments(n, parts, seats, chunk, asked)
    roots = checked_roots(root, n)
    check = _Check(world, seats, n, parts, roots, asked, link)
    with cuda.memory_of("validation"), closing(check):
        tally = check.run(min(chunk, MAX_CHUNK))
        example = partial(Example, check.value, check.ends_of)
        return tally.outcome(world, example, asked, roots, started)


def _check_arguments(
    n: int, parts: int, seats: Sequence[ValidationSeat], chunk: int, asked: Asked
) -> None:
    """Raise UsageError for arguments that the kernels do not support."""
    if n > MAX_VERTICES:
        raise UsageError(
            f"{n} vertices do not fit validation on devices; allowed: {MAX_VERTICES}"
        )
    if chunk < 1:
        raise UsageError(f"chunk is {chunk}; allowed: 1 or more")
    kinds = {"level": LEVEL_TYPES} if asked.levels else {}
    kinds |= {"parent": PARENT_TYPES} if asked.parents else {}
    shards = chain(*(x.shards for x in seats))
    for shard, (name, types) in product(shards, kinds.items()):
        array, count = getattr(shard, name), local_count(n, parts, shard.index)
        right = array.dtype.name in types and array.shape == (count,)
        if not (right and array.flags.c_contiguous):
            raise UsageError(
                f"{name}s are not one contiguous array of {count} elements of dtype "
                f"{', '.join(types)}"
            )


class _Check(Devices):
    """The passes of one validation; for arguments see ``validate_on_devices``."""

    def run(self, chunk: int) -> Tally:
        """Return the findings of all passes on this rank's devices (collective)."""
        known, parents = self.known, self.known.asked.parents
        if not known.asked.levels:
            levels_on_devices(self)
        form, chunk = self._form(chunk)
        self.each(lambda device: device.take(form, chunk))
        if form.asked:
            self._rounds("tuples")
        else:
            self.each(lambda device: device.of_each_part("pack_states"))
            if not form.alone:
                self.spread(form)
            if form.copied:
                self.spread_parents()
            self.each(CheckingDevice.check_all_tuples)
            if not form.alone:
                self.gather_marks(form)
        if form.asked and parents:
            self._rounds("vertices")
        else:
            self.each(lambda device: device.of_each_part("check_vertices"))
        tally = Tally()
        for report in self.each(CheckingDevice.report):
            tally.add_report(report)
        return tally

    def _form(self, chunk: int) -> tuple[StateLayout, int]:
        """Choose the form of states and the tuples in a piece (collective)."""
        deepest, widest = self.most_of(CheckingDevice.deepest, self._parent_bytes)
        widest *= self.known.asked.parents
        asked, sizes = StateLayout(1, code_bits(deepest), asked=True), [chunk]
        first = ALONE
        if self.total > 1:
            first = form_of_all(deepest, widest)
            sizes = [max(chunk // divisor, 1) for divisor in DIVISORS]
        for form, size in product([first, asked], sizes):
            if self.most_of(partial(self._missing, form, size))[0] <= 0:
                return form, size
        return asked, sizes[-1]

    def _parent_bytes(self, device: CheckingDevice) -> int:
        """Return the largest number of bytes that a parent has on a device."""
        kinds = [x.parent.dtype for x in device.seat.shards if x.parent is not None]
        kinds += [np.dtype(id_type(self.known.n)), np.dtype(device.seat.tuples.dtype)]
        return max([kind.itemsize for kind in kinds])

    @staticmethod
    def _missing(form: StateLayout, chunk: int, device: CheckingDevice) -> int:
        """Return the bytes that a device lacks for a form."""
        need = total_bytes(device.table(form, chunk))
        return need - cuda.available(need)

    def _rounds(self, what: str) -> None:
        """Check tuples or vertices by requested states, until all are (collective).

        The states come from the owners of the tuples' ends, or of the parents. Pairs
        are sent to the devices that check them.
        """
        ids, more = np.dtype(id_type(self.known.n)), True
        while more:
            asked = self.exchange(self.each(lambda device: device.ask(what)), ids)
            answered = self.each(CheckingDevice.answer, asked)
            answered = self.exchange(answered, np.dtype(np.uint32))
            left = sum(self.each(CheckingDevice.check_asked, answered))
            del asked, answered  # before the next ones are made
            more = bool(self.world.allreduce(np.array([left], dtype=np.int64))[0])
            pairs = self.each(CheckingDevice.deal_pairs)
            self.each(CheckingDevice.look, self.exchange(pairs, ids))

    def ends_of(self, position: int) -> tuple[int, int]:
        """Return the ends of a tuple (collective)."""
        a, b = self.most_of(
            lambda device: device.end(position, 0),
            lambda device: device.end(position, 1),
        )
        return a, b

    def value(self, name: str, vertex: int) -> int:
        """Return the "level" or "parent" of a vertex (collective)."""
        return self.most_of(lambda device: device.value(name, vertex))[0]
