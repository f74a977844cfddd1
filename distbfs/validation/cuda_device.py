"""One CUDA device during validation: its data and launches (cuda.cu)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayTable, allocate, total_bytes
from distbfs.device.arrays import brought_here, host_array
from distbfs.device.structures import address, structure
from distbfs.partition.layout import local_count
from distbfs.types import UNREACHED, Array, DeviceArray, Ids
from distbfs.validation.faults import Tally
from distbfs.validation.kept import KeptEnds
from distbfs.validation.states import (
    StateLayout,
    array_table,
    piece_of,
    row_length,
    whole_threads,
)

if TYPE_CHECKING:
    from distbfs.generate.cuda import DeviceTuples

EMPTY: Mapping[int, Any] = MappingProxyType({})
SOURCE = Path(__file__).with_name("cuda.cu")
BLOCK = 256
VERTEX_BLOCKS = 8  # on each multiprocessor
# Few blocks and little shared memory leave room for the kernel that writes the next
# chunk, and the L1 cache to random reads in flight; kept chunks are not written.
TUPLE_BLOCKS, KEPT_BLOCKS = 2, 4
SHARED_CARVE_OUT = 9  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
SHARED_PERCENT = 7


@dataclass(frozen=True)
class ResultShard:
    """Results of the vertices index, index + parts, index + 2 parts, …, on a device.

    level: CuPy [local], int8, int16 or int32, -1 where unreached; None on all shards if
    only parents were requested
    parent: CuPy [local], int32 or int64, ids, -1 where there is none; None on all
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

    kept: of this device and these tuples; None to keep none
    """

    tuples: DeviceTuples
    shards: Sequence[ResultShard]
    on: Callable[[], AbstractContextManager[object]] = nullcontext
    kept: KeptEnds | None = None


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
    """One device during validation; call its methods with it current.

    own: its index among all devices; share: first tuple and the one after its last
    """

    def __init__(self, seat: ValidationSeat, own: int, share: tuple[int, int]) -> None:
        self.seat, self.own = seat, own
        self._next, self._end = share
        self._unseen = sum([shard.count for shard in seat.shards])
        self._ids = np.dtype(seat.tuples.dtype)
        self._by_part: dict[str, Mapping[int, Any]] = {}
        self._pieces, self._shares = self._chunks(), self._vertex_pieces()

    def have(self, shards: Sequence[ResultShard]) -> None:
        """Replace the results by the same ones with levels."""
        self.seat = replace(self.seat, shards=shards)

    @property
    def grid(self) -> tuple[int, int]:
        """Blocks and threads of kernels over vertices."""
        return cuda.multiprocessors() * VERTEX_BLOCKS, BLOCK

    def deepest(self) -> int:
        """Return the deepest level on this device."""
        levels = [shard.level for shard in self.seat.shards if len(shard.level)]
        return max([int(level.max()) for level in levels], default=UNREACHED)

    def need(self, form: StateLayout, vertices: int, parts: int, chunk: int) -> int:
        """Return the bytes of a form on this device; vertices: most of a part."""
        return total_bytes(self._table(form, vertices, parts, chunk))

    def _table(
        self, form: StateLayout, vertices: int, parts: int, chunk: int
    ) -> ArrayTable:
        own = len(self.seat.shards)
        return array_table(
            form,
            self._tuples(form, chunk),
            self._ids,
            vertices=vertices,
            rows=own if form.asked else parts,
            others=parts - own,
        )

    def _tuples(self, form: StateLayout, chunk: int) -> int:
        most = max(self._end - self._next, self._unseen if form.asked else 0)
        return piece_of(chunk, most)

    def take(
        self,
        form: StateLayout,
        roots: Ids,
        seats: Array,
        vertices: int,
        chunk: int,
        *,
        parents: bool,
        directed: bool,
        others: Sequence[ResultShard] = (),
        absent: Sequence[int] = (),
    ) -> None:
        """Allocate the data of all parts for the kernels.

        roots: int64 [k], rising
        seats: uint32 [parts], device of each part; vertices: most of a part
        others: shards of other devices, whose parents are copied
        absent: parts of other ranks, whose parents come later
        """
        cp, shards, parts = cuda.cupy(), self.seat.shards, len(seats)
        self._form, ids = form, self._ids
        self._chunk = self._tuples(form, chunk)
        self.check = structure(SOURCE, "Check")(
            n=self.seat.tuples.n,
            root=int(roots[0]),
            per=row_length(vertices),
            gap=whole_threads(self._chunk),
            parts=parts,
            own=self.own,
            shift=(32 // form.bits).bit_length() - 1,
            far=form.far,
            code=form.code,
            shallow=form.alone,
            print=form.print,
            directed=directed,
            split=parts.bit_length() - 1 if parts & (parts - 1) == 0 else 0,
        )
        if len(roots) > 1:
            self.check.set(
                roots=cp.asarray(roots.astype(np.uint64)), root_count=len(roots)
            )
        level_type = self._hold_results("level", np.dtype(np.int8), parts)
        parent_type = np.dtype(f"i{max(ids.itemsize, form.copied)}")
        if parents:
            spaces = {
                part: cp.empty(
                    local_count(self.seat.tuples.n, parts, part), parent_type
                )
                for part in absent
            }
            parent_type = self._hold_results(
                "parent", parent_type, parts, others, spaces
            )
        device = cp.cuda.Device().id
        self._module = kernels_for(device, level_type.name, parent_type.name, ids.name)
        arrays = allocate(self._table(form, vertices, parts, chunk), cp.empty)
        self._turns, self.states = arrays.pop("turns"), arrays["states"]
        self.check.set(**arrays, report=cp.asarray(Tally().report))
        if not form.pairs:
            return
        self._room = len(arrays["pairs"])
        self.check.set(
            seat=cp.asarray(seats),
            filled=cp.zeros(1, np.uint64),
            cursor=cp.zeros(int(seats.max()) + 1, np.uint64),
        )
        if form.asked:
            row = np.zeros(parts, np.uint32)
            row[[shard.index for shard in shards]] = np.arange(len(shards))
            self.check.set(row=cp.asarray(row))
            self.states.fill(0)

    def _hold_results(
        self,
        name: str,
        kind: np.dtype[Any],
        parts: int,
        others: Sequence[ResultShard] = (),
        spaces: Mapping[int, Any] = EMPTY,
    ) -> np.dtype[Any]:
        """Set levels or parents for kernels; return their dtype, at least ``kind``.

        spaces: arrays of further parts, to be filled
        """
        some = {x.index: getattr(x, name) for x in self.seat.shards}
        some |= {x.index: brought_here(getattr(x, name)) for x in others}
        some |= spaces
        kinds = [kind, *(array.dtype for array in some.values())]
        kind = max(kinds, key=lambda dtype: dtype.itemsize)
        by_part = np.zeros(parts, np.uint64)
        for index, array in some.items():
            some[index] = array.astype(kind, copy=False)
            by_part[index] = address(some[index])
        self.check.set(**{name: cuda.cupy().asarray(by_part)})
        self._by_part[name] = some
        return kind

    @property
    def parents(self) -> Mapping[int, Any]:
        """The parents of each part that are on this device, of one dtype."""
        return self._by_part["parent"]

    def launch(self, name: str, blocks: int = VERTEX_BLOCKS) -> None:
        """Launch a kernel with the present arguments."""
        kernel = self._module.kernel(name)
        if name.startswith("check_tuples"):
            kernel.set_attribute(SHARED_CARVE_OUT, SHARED_PERCENT)
        stream = cuda.cupy().cuda.get_current_stream()
        kernel.prepare(self.check, cuda.multiprocessors() * blocks, BLOCK)(stream.ptr)

    def of_each_part(self, name: str) -> None:
        """Launch a kernel for all vertices of each part on this device."""
        for shard in self.seat.shards:
            self._of_part(name, shard.index, 0, len(shard.level))

    def _of_part(self, name: str, part: int, start: int, stop: int) -> None:
        self.check.part, self.check.start = part, start
        self.check.count = stop - start
        self.launch(name)

    def pack(self, prints: int) -> None:
        """Write the states of this device's parts, without marks.

        prints: bits of the hash of a parent
        """
        self.check.prints = prints
        self.of_each_part("pack_states")

    def close(self) -> None:
        """End the iteration over pieces, finished or not."""
        self._pieces.close()
        self._shares.close()
        del self._pieces, self._shares  # unstarted generators reference self

    def report(self) -> Ids:
        """Return what its checks found so far, as of ``Tally``."""
        return host_array(self.check.held["report"])

    def advance(self) -> int:
        """Check tuples by the table until they end or there are many pairs.

        Returns the number of tuples left.
        """
        most = 0  # most pairs
        for tuples in self._pieces:
            self._check_tuples(*tuples)
            most += 2 * self._chunk
            if self._form.pairs and most + 2 * self._chunk > self._room:
                most = int(self.check.held["filled"][0])
                if most + 2 * self._chunk > self._room:
                    break  # mutant: break -> most = 0 : test_many_pairs
        return self._end - self._next

    def _check_tuples(self, start: int, stop: int, ends: Any) -> None:
        self.check.start, self.check.count = start, stop - start
        self.check.u, self.check.v = (address(x) for x in ends)
        form = self._form
        here = "_alone" if form.alone else "_whole" if form.whole else ""
        kept = self.seat.kept is not None and self.seat.kept.complete
        self.launch(f"check_tuples{here}", KEPT_BLOCKS if kept else TUPLE_BLOCKS)
        self._next = stop

    def ask_of_tuples(self) -> list[Any]:
        """Return the ends of some more tuples by owning device, ID [k]."""
        self._now = next(self._pieces, None)
        if self._now is None:
            return self._deal(self._turns[0], 0)
        start, stop, ends = self._now
        self.check.count = stop - start
        return self._deal(ends, 2 * (stop - start))

    def check_asked_tuples(self, answers: Sequence[Any]) -> int:
        """Check the requested tuples; return the number left.

        answers: uint32 [k] from each device, the requested states
        """
        self._take_answers(answers)
        if self._now is not None:
            self._check_tuples(*self._now)
        return self._end - self._next

    def ask_of_vertices(self) -> list[Any]:
        """Return the parents of some more own vertices, as ``ask_of_tuples``."""
        self._some, ids = next(self._shares, None), self._turns[0]
        if self._some is None:
            return self._deal(ids, 0)
        self.check.ids = address(ids)
        part, start, stop = self._some
        self._of_part("list_parents", part, start, stop)
        return self._deal(ids, stop - start)

    def check_asked_vertices(self, answers: Sequence[Any]) -> int:
        """Check the requested vertices; return the number left."""
        self._take_answers(answers)
        if self._some is not None:
            part, start, stop = self._some
            self._of_part("check_vertices", part, start, stop)
            self._unseen -= stop - start
        return self._unseen

    def _vertex_pieces(self) -> Generator[tuple[int, int, int], None, None]:
        """Yield (part, start, stop) of own vertices, as many as there are slots."""
        size = self.check.held["slots"].size
        for shard in self.seat.shards:
            for start in range(0, len(shard.level), size):
                yield shard.index, start, min(start + size, len(shard.level))

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

    def _take_answers(self, answers: Sequence[Any]) -> None:
        space, at = self.check.held["answers"], 0
        for some in answers:
            space[at : at + len(some)] = brought_here(some)
            at += len(some)
        self.check.answers = address(space)

    def deal_pairs(self) -> list[Any]:
        """Return and clear the pairs by checking device, ID [2 k]."""
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

        Launches on the current stream before the next chunk may read the ends, ID [2,
        gap].
        """
        cp, tuples, kept = cuda.cupy(), self.seat.tuples, self.seat.kept or KeptEnds()
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
                if ends is not None:
                    yield *piece, ends
                    continue
                ends = fresh.get(piece)
                writer.wait_event(unused[turn] if ends is None else begun)
                with writer:
                    tuples.fill(*piece, *(self._turns[turn] if ends is None else ends))
                    filled = writer.record()
                reader.wait_event(filled)
                if ends is not None:
                    kept.keep(piece, ends)
                yield *piece, self._turns[turn] if ends is None else ends
                unused[turn] = reader.record()
        finally:
            writer.synchronize()
