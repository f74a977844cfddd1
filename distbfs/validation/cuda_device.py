"""One CUDA device during validation: its data and launches (cuda.cu)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayTable, allocate
from distbfs.device.arrays import brought_here, host_array
from distbfs.device.structures import address, structure
from distbfs.partition.layout import local_count
from distbfs.types import UNREACHED, Array, DeviceArray, Ids
from distbfs.validation.faults import Asked, Tally
from distbfs.validation.kept import KeptEnds
from distbfs.validation.states import (
    TUPLES_PER_THREAD,
    StateLayout,
    array_table,
    row_length,
    whole_threads,
)

if TYPE_CHECKING:
    from distbfs.generate.cuda import DeviceTuples

EMPTY: Mapping[int, Any] = MappingProxyType({})
# vertices to ask for, how many, and the check that needs their states
Work: TypeAlias = Generator[tuple[Any, int, Callable[[], object]], None, None]
SOURCE = Path(__file__).with_name("cuda.cu")
BLOCK = 256
VERTEX_BLOCKS = 8  # on each multiprocessor
# Few blocks and little shared memory leave room for the kernel that writes the next
# chunk, and the L1 cache to random reads in flight; kept chunks are not written.
TUPLE_BLOCKS, KEPT_BLOCKS = 2, 4
SHARED_PERCENT = 7
NOT_HERE = np.iinfo(np.int64).min  # less than any value


@dataclass(frozen=True)
class ResultShard:
    """Results of the vertices index, index + parts, index + 2 parts, …, on a device.

    level: CuPy array [local] of int8 or int32, -1 = unreached; None on all shards
    if only parents were requested
    parent: CuPy array [local] of ids, int32 or int64, -1 = no parent; None on all
    shards if only levels were requested
    """

    index: int
    level: Any
    parent: Any

    @property
    def count(self) -> int:
        """Number of vertices."""
        return len(self.parent if self.level is None else self.level)


@dataclass(frozen=True)
class ValidationSeat:
    """A device that validates: its tuples, its results, and a context to use it.

    kept: the ends of these tuples that stay on this device; None to keep none
    """

    tuples: DeviceTuples
    shards: Sequence[ResultShard]
    on: Callable[[], AbstractContextManager[object]] = nullcontext
    kept: KeptEnds | None = None


@dataclass(frozen=True)
class Inputs:
    """The facts that all devices of a validation share.

    roots: the roots of the search, int64 [k], ascending
    seats: the device of each part, uint32 [parts]
    """

    n: int
    parts: int
    roots: Ids
    asked: Asked
    seats: Array

    def local_count(self, part: int) -> int:
        """Return the number of vertices of a part; part 0 has the most."""
        return local_count(self.n, self.parts, part)


@cache
def kernels_for(
    device: int,  # noqa: ARG001 - one each
    level: str,
    parent: str,
    ids: str,
) -> programs.Module:
    """Return the kernels for three dtypes; they are loaded once on each device."""
    names = [name.replace("int", "i") for name in (level, parent)]
    return programs.Module(
        SOURCE, LEVEL=names[0], PARENT=names[1], ID=ids.replace("uint", "u")
    )


class CheckingDevice:
    """One device during validation; call its methods with it current.

    own: index of the device among all devices
    share: first tuple that the device checks, and the one after its last
    """

    def __init__(
        self, seat: ValidationSeat, own: int, share: tuple[int, int], known: Inputs
    ) -> None:
        self.seat, self.own, self.known = seat, own, known
        self._next, self._end = share
        self._ids = np.dtype(seat.tuples.dtype)
        self.by_part: dict[str, Mapping[int, Any]] = {}
        self._pieces = self._chunks()
        self._work = {"tuples": self._tuple_work(), "vertices": self._vertex_work()}
        self._check: Callable[[], object] | None = None

    def have(self, shards: Sequence[ResultShard]) -> None:
        """Replace the results by shards that have levels, too."""
        self.seat = replace(self.seat, shards=shards)

    def deepest(self) -> int:
        """Return the deepest level on this device."""
        levels = [shard.level for shard in self.seat.shards if len(shard.level)]
        return max([int(level.max()) for level in levels], default=UNREACHED)

    def value(self, name: str, vertex: int) -> int:
        """Return the "level" or "parent" of a vertex, NOT_HERE if it is elsewhere."""
        local, part = divmod(vertex, self.known.parts)
        some = [getattr(x, name)[local] for x in self.seat.shards if x.index == part]
        return int(some[0]) if some else NOT_HERE

    def end(self, position: int, which: int) -> int:
        """Return the first or the second end of a tuple."""
        ends = cuda.cupy().empty((2, TUPLES_PER_THREAD), self._ids)
        self.seat.tuples.fill(position, position + 1, *ends)
        return int(ends[which, 0])

    def table(self, form: StateLayout, chunk: int) -> ArrayTable:
        """Return the arrays of a form on this device."""
        own, known = len(self.seat.shards), self.known
        return array_table(
            form,
            self._tuples(form, chunk),
            self._ids,
            vertices=known.local_count(0),
            rows=own if form.asked else known.parts,
            others=known.parts - own,
        )

    def _tuples(self, form: StateLayout, chunk: int) -> int:
        """Return the number of tuples in a piece, or of vertices that ask."""
        most = self._end - self._next
        if form.asked:
            most = max(most, sum(shard.count for shard in self.seat.shards))
        return max(min(chunk, most), 1)

    def take(self, form: StateLayout, chunk: int) -> None:
        """Allocate the data of all parts for the kernels.

        Parents of other devices' parts come later (``Devices.spread_parents``).
        """
        cp, known = cuda.cupy(), self.known
        parts, roots, shards = known.parts, known.roots, self.seat.shards
        self._form, self._chunk = form, self._tuples(form, chunk)
        self.check = structure(SOURCE, "Check")(
            n=known.n,
            roots=cp.asarray(roots.astype(np.uint64)),
            root_count=len(roots),
            per=row_length(known.local_count(0)),
            gap=whole_threads(self._chunk),
            parts=parts,
            shift=(32 // form.bits).bit_length() - 1,
            code=form.code,
            shallow=form.alone,
            directed=known.asked.directed,
            split=parts.bit_length() - 1 if parts & (parts - 1) == 0 else 0,
        )
        self._hold()
        arrays = allocate(self.table(form, chunk), cp.empty)
        self._turns, self.states = arrays.pop("turns"), arrays["states"]
        self.check.set(**arrays, report=cp.asarray(Tally().report))
        self.check.set(filled=cp.zeros(1, np.uint64))
        if form.asked:
            row = np.zeros(parts, np.uint32)
            row[[shard.index for shard in shards]] = np.arange(len(shards))
            self.check.set(
                seat=cp.asarray(known.seats),
                cursor=cp.zeros(int(known.seats.max()) + 1, np.uint64),
                row=cp.asarray(row),
            )
            self.states.fill(0)

    def _hold(self) -> None:
        """Give the results to kernels; load kernels for their types."""
        cp, known = cuda.cupy(), self.known
        level = self._hold_results("level", np.dtype(np.int8))
        parent = np.dtype(f"i{max(self._ids.itemsize, self._form.copied)}")
        if known.asked.parents:
            others = np.flatnonzero(known.seats != self.own).tolist()
            others = others if self._form.copied else []
            more = {x: cp.empty(known.local_count(x), parent) for x in others}
            parent = self._hold_results("parent", parent, more)
        self._module = kernels_for(
            cp.cuda.Device().id, level.name, parent.name, self._ids.name
        )

    def _hold_results(
        self, name: str, kind: np.dtype[Any], more: Mapping[int, Any] = EMPTY
    ) -> np.dtype[Any]:
        """Pass levels or parents to the kernels; return their dtype, at least ``kind``.

        more: room for the parts of other devices
        """
        some = {**more} | {x.index: getattr(x, name) for x in self.seat.shards}
        kinds = [kind, *(array.dtype for array in some.values())]
        kind = max(kinds, key=lambda dtype: dtype.itemsize)
        by_part = np.zeros(self.known.parts, np.uint64)
        for index, array in some.items():
            some[index] = array.astype(kind, copy=False)
            by_part[index] = address(some[index])
        self.check.set(**{name: cuda.cupy().asarray(by_part)})
        self.by_part[name] = some
        return kind

    def launch(self, name: str, blocks: int = VERTEX_BLOCKS) -> None:
        """Launch a kernel with the present arguments."""
        kernel = self._module.kernel(name)
        if name.startswith("check_tuples"):
            kernel.set_attribute(programs.PREFERRED_CARVEOUT, SHARED_PERCENT)
        stream = cuda.cupy().cuda.get_current_stream()
        kernel.prepare(self.check, cuda.multiprocessors() * blocks, BLOCK)(stream.ptr)

    def of_each_part(self, name: str) -> None:
        """Launch a kernel for all vertices of each part on this device."""
        for shard in self.seat.shards:
            self.of_part(name, shard.index, 0, len(shard.level))

    def of_part(self, name: str, part: int, start: int, stop: int) -> None:
        """Launch a kernel for some vertices of a part on this device."""
        self.check.part, self.check.start = part, start
        self.check.count = stop - start
        self.launch(name)

    def close(self) -> None:
        """End the iteration over pieces, finished or not."""
        for pieces in (*self._work.values(), self._pieces):
            pieces.close()
        del self._work, self._pieces, self._check  # unstarted generators reference self

    def report(self) -> Ids:
        """Return the findings of this device's checks so far; see ``Tally``."""
        return host_array(self.check.held["report"])

    def check_all_tuples(self) -> None:
        """Check tuples by the table."""
        for tuples in self._pieces:
            self._check_tuples(*tuples)

    def _check_tuples(self, start: int, stop: int, ends: Any) -> None:
        self.check.start, self.check.count = start, stop - start
        self.check.u, self.check.v = (address(x) for x in ends)
        form = self._form
        kind = "alone" if form.alone else "asked" if form.asked else "whole"
        kept = self.seat.kept is not None and self.seat.kept.complete
        self.launch(f"check_tuples_{kind}", KEPT_BLOCKS if kept else TUPLE_BLOCKS)

    def _tuple_work(self) -> Work:
        """Yield tuples for ``ask``."""
        for start, stop, ends in self._pieces:
            self.check.count = stop - start
            check = partial(self._check_tuples, start, stop, ends)
            yield ends, 2 * (stop - start), check

    def _vertex_work(self) -> Work:
        """Yield own vertices for ``ask``, as many as there are slots."""
        ids, size = self._turns[0], self.check.held["slots"].size
        for shard in self.seat.shards:
            for start in range(0, shard.count, size):
                stop = min(start + size, shard.count)
                self.check.ids = address(ids)
                self.of_part("list_parents", shard.index, start, stop)
                yield (
                    ids,
                    stop - start,
                    partial(self.of_part, "check_vertices", shard.index, start, stop),
                )

    def ask(self, what: str) -> list[Any]:
        """Return the vertices whose states the next checks need, by owner, ID [k].

        what: kind of the checks, "tuples" or "vertices"
        """
        ids, count, self._check = next(self._work[what], (self._turns[0], 0, None))
        return self._deal(ids, count)

    def check_asked(self, answers: Sequence[Any]) -> bool:
        """Make the checks that ``ask`` began; return whether there were any.

        answers: the requested states from each device, uint32 [k]
        """
        space, at = self.check.held["answers"], 0
        for some in answers:
            space[at : at + len(some)] = brought_here(some)
            at += len(some)
        self.check.answers = address(space)
        if self._check is not None:
            self._check()
        return self._check is not None

    def answer(self, asked: Sequence[Any]) -> list[Any]:
        """Return states of own vertices, uint32 [k], for each requesting device."""
        states = []
        for came in asked:
            ids = brought_here(came)
            states.append(cuda.cupy().empty(len(ids), np.uint32))
            self.check.came, self.check.count = address(ids), len(ids)
            self.check.answers = address(states[-1])
            self.launch("answer")
        return states

    def deal_pairs(self) -> list[Any]:
        """Return the pairs, ID [2 k], by the device that checks them; clear them."""
        filled = int(self.check.held["filled"][0])
        self.check.held["filled"].fill(0)
        self.check.count = filled
        return self._deal(self.check.held["pairs"], filled, each=2)

    def _deal(self, ids: Any, items: int, *, each: int = 1) -> list[Any]:
        """Group items by the device of each one's first vertex, ID [each k].

        The result is valid until the next call.
        """
        check = self.check
        cursor, dealt = check.held["cursor"], check.held["dealt"]
        check.ids, check.items, check.each = address(ids), items, each
        check.dealt = None
        cursor.fill(0)
        self.launch("deal")
        ends = np.cumsum(host_array(cursor).astype(np.int64))
        starts = np.concatenate([[0], ends[:-1]])
        cursor[...] = cuda.cupy().asarray(starts.astype(np.uint64))
        check.dealt = address(dealt)
        self.launch("deal")
        cuts = zip((each * starts).tolist(), (each * ends).tolist(), strict=True)
        return [dealt[a:b] for a, b in cuts]

    def look(self, pairs: Sequence[Any]) -> None:
        """Check pairs from other devices, ID [2 k] each, in any device's memory."""
        for some in pairs:
            ids = brought_here(some)
            self.check.came, self.check.count = address(ids), len(ids) // 2
            self.launch("check_pairs")
        cuda.cupy().cuda.get_current_stream().synchronize()

    def _chunks(self) -> Generator[tuple[int, int, DeviceArray], None, None]:
        """Yield (start, stop, ends); the next chunk is written while one is used.

        The ends, ID [2, gap], may be read by launches on the current stream that come
        before the next chunk is requested.
        """
        cp, tuples, kept = cuda.cupy(), self.seat.tuples, self.seat.kept
        kept = KeptEnds() if kept is None else kept
        starts = range(self._next, self._end, self._chunk)
        pieces = [(x, min(x + self._chunk, self._end)) for x in starts]
        shape = self._turns[0].shape
        if self.seat.kept is not None:
            kept.plan(pieces, shape, self._ids)
        fresh = {piece: cp.empty(shape, dtype=self._ids) for piece in kept.missing()}
        reader = cp.cuda.get_current_stream()
        writer = cp.cuda.Stream(non_blocking=True)
        begun = reader.record()
        unused = [begun for _ in self._turns]
        try:
            for number, piece in enumerate(pieces):
                ends, turn = kept.get(piece), number % 2
                if ends is None:
                    ends = fresh.get(piece, self._turns[turn])
                    writer.wait_event(begun if piece in fresh else unused[turn])
                    with writer:
                        tuples.fill(*piece, *ends)
                        filled = writer.record()
                    reader.wait_event(filled)
                if piece in fresh:
                    kept[piece] = ends
                yield *piece, ends
                unused[turn] = reader.record()
        finally:
            writer.synchronize()
