"""The build of degree-separated parts on one CUDA device; see parts.py.

Source: Pan, Pearce, Owens 2018, Section III-B.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from distbfs.build.cuda.kernels import BLOCK, KEYS_TILE, Kernels
from distbfs.build.cuda.keys import (
    BOTH_ENDS,
    FIRST_ENDS,
    PartPasses,
    Rule,
    segments,
)
from distbfs.build.cuda.ranges import RESERVE, Ranges, histogram
from distbfs.build.cuda.room import Room
from distbfs.build.cuda.rows import RowWriter
from distbfs.build.cuda.shares import DealerSeat
from distbfs.device import cuda
from distbfs.errors import InputError, UsageError
from distbfs.exchange.router import gather_all
from distbfs.generate.cuda import id_type
from distbfs.graph.csr import CSR
from distbfs.graph.device_graph import SET_BITS
from distbfs.partition.layout import Layout, Placement
from distbfs.partition.part import Part
from distbfs.progress import Sum
from distbfs.types import SUBGRAPHS, Array, Ids, TupleSource, World

MAX_DEGREE = MAX_ROWS = (1 << 32) - 1
NO_ID = (1 << 64) - 1
VERTEX_BYTES = 24  # most for all arrays by vertex of a part at once
DELEGATE_BYTES = 64  # for a delegate in the table under construction
Common = TypeVar("Common")


class CommonSizes:
    """Sizes that are the same for all parts.

    per: most vertices of a part; blocks: number of blocks of a part in each set
    wide: whether ids have 64 bits; bits: bits of a place, part * per + local id, at
    least 32
    """

    def __init__(self, layout: Layout) -> None:
        self.layout, self.parts = layout, layout.parts
        self.per = max(layout.local_count(0), 1)
        self.blocks = -(-self.per // SET_BITS)
        self.wide = id_type(layout.n) is np.uint64
        places = self.per * self.parts
        self.bits = max((places - 1).bit_length(), 32) if self.wide else 32

    def own(self, part: int) -> tuple[np.uint32, np.uint32]:
        """Return the number of parts and the part's index as kernel arguments."""
        return np.uint32(self.parts), np.uint32(part)


@dataclass
class Tables:
    """One device's tables of all vertices; see parts.cu.

    normals: sets of normal vertices, uint32 [parts * 4 * blocks], None if ids are wide
    members: sets of delegates, uint32 [parts * 4 * blocks], with ranks over all parts;
    or, if ids are wide, uint64 [slots]
    table: uint64 [d] or [slots]; delegates: their ids, NumPy int64 [d]
    """

    normals: Any
    members: Any
    table: Any
    delegates: Ids


class Shared:
    """Facts about all parts that every rank has on the host; creation is collective.

    ids, degrees: those of the delegates, by part, uint64 and uint32 [d]
    normals, members: only if ids are not wide: sets as in ``Tables``, uint32 [parts * 4
    * blocks]
    nbytes: bytes of all these arrays
    """

    def __init__(
        self,
        world: World,
        placement: Placement,
        parts: Sequence[SeparatedPart],
        delegates: int,
        *,
        wide: bool,
    ) -> None:
        seats = [placement.parts_of(rank) for rank in range(world.size)]

        def gathered(name: str) -> list[Array]:
            return gather_all(world, [getattr(x, name) for x in parts], seats)

        self.ids, self.degrees = np.zeros(0, np.uint64), np.zeros(0, np.uint32)
        if not wide:
            self.normals = np.concatenate(gathered("normals"))
        if delegates:
            ids = gathered("ids")
            self.ids = np.concatenate(ids)
            self.degrees = np.concatenate(gathered("degrees"))
        if delegates and not wide:
            self.members = np.concatenate(gathered("members"))
            sizes = np.array([len(x) for x in ids])
            add_bases(self.members, np.cumsum(sizes) - sizes)
        if len(self.ids) != delegates:
            raise InputError("the degrees of the parts changed while they were shared")
        sets = 0 if wide else 2 * self.normals.nbytes
        self.nbytes = sets + DELEGATE_BYTES * delegates


def add_bases(sets: Array, bases: Ids) -> None:
    """Make the ranks of each part's set count over all parts.

    sets: uint32 [parts * 4 * blocks], changed in place; bases: int64 [parts], number of
    members of the parts before
    """
    ranks = sets.reshape(len(bases), -1, 4)[:, :, 0]
    ranks += bases.astype(np.uint32)[:, None]


class Builder:
    """Builds the parts of one device of this rank; see ``PartPasses``.

    directed: build subgraphs of edges out and of edges in; sharing: number of parts of
    the device
    """

    directed, sharing = False, 1
    _common: Any = None

    def __init__(
        self,
        source: TupleSource,
        shape: CommonSizes,
        buffer_bytes: int | None,
        done: Sum,
        seat: DealerSeat | None = None,
    ) -> None:
        self.source, self.shape, self.layout = source, shape, shape.layout
        self.keys = PartPasses(source, shape.parts, buffer_bytes, done, seat)
        self.kernels = self.keys.kernels
        self.clock = self.keys.clock

    def _rank(self, counts: Any, members: Any) -> int:
        """Fill in the ranks of a set from the members per block; count the members."""
        starts = self.kernels.scan(counts)
        blocks = len(counts)
        self.kernels.over(
            "rank_set",
            blocks,
            np.uint32(0),
            starts,
            members,
        )
        return int(starts[-1:].get()[0])

    def sets(self, degrees: Any, threshold: int) -> list[tuple[Any, int]]:
        """Return (set, members) of the normal vertices and delegates of a part.

        degrees: uint32 [local]; a set is uint32 [4 * blocks]
        """
        cupy, blocks = cuda.cupy(), self.shape.blocks
        sets = [cupy.empty(4 * blocks, np.uint32) for _ in range(2)]
        counts = [cupy.empty(blocks, np.uint32) for _ in range(2)]
        self.kernels.launch(
            "mark_sets",
            blocks,
            BLOCK // 32,
            np.uint64(len(degrees)),
            np.uint64(blocks),
            degrees,
            np.uint32(min(threshold, MAX_DEGREE)),
            *sets,
            *counts,
        )
        sizes = [self._rank(*pair) for pair in zip(counts, sets, strict=True)]
        return list(zip(sets, sizes, strict=True))

    def close(self) -> None:
        """Free everything but the parts."""
        self._common = None
        self.keys.close()

    @cached_property
    def numbering(self) -> Kernels:
        """The kernels that number vertices of whole graphs and of domains."""
        return Kernels(self.clock)

    def once(self, make: Callable[[], Common]) -> Common:
        """Return what the parts of the device have in common; the first makes it."""
        self._common = self._common or make()
        made: Common = self._common
        return made

    def tables(self, shared: Shared) -> Tables:
        """Return the shared facts on the device, with the delegates' numbers."""
        cupy, over = cuda.cupy(), self.kernels.over
        shape, d = self.shape, len(shared.ids)
        what = "the delegates and normal vertices of all parts"
        with self.kernels.phase("delegates"), cuda.memory_of(what):
            cuda.require(shared.nbytes + RESERVE // 4, what)
            normals = None if shape.wide else cupy.asarray(shared.normals)
            if not d:
                none = cupy.empty(0, np.uint64)
                return Tables(normals, none, none, np.zeros(0, dtype=np.int64))
            if shape.wide:  # a hash table filled to two thirds at most
                members = cupy.full(d + d // 2 + 1, NO_ID, np.uint64)
                table = cupy.zeros(len(members), np.uint64)
            else:
                members, table = cupy.asarray(shared.members), cupy.empty(d, np.uint64)
            ids, degrees = cupy.asarray(shared.ids), cupy.asarray(shared.degrees)
            order = cupy.argsort(ids, kind="stable")
            order = order[cupy.argsort(~degrees[order], kind="stable")]
            ids, degrees = ids[order], degrees[order]
            over(
                "number_delegates",
                d,
                ids,
                degrees,
                np.uint32(shape.parts),
                np.uint32(shape.blocks),
                np.uint64(len(table)),
                members,
                table,
            )
            return Tables(normals, members, table, ids.get().astype(np.int64))


class SeparatedPart:
    """A part under construction; its first round computes degrees.

    Call ``number``, then ``separate``.

    histogram: (distinct degrees, count of each), int64; loops, total: numbers of loops,
    and of ends of tuples, of its vertices
    active: number of normal vertices with edges; normals, members: sets of normal
    vertices and of delegates, uint32 [4 * blocks]; ids, degrees: those of its delegates
    by ascending id, uint64 and uint32. They are on the host, and for other parts.
    """

    def __init__(self, builder: Builder, part: int) -> None:
        self.builder, self.part = builder, part
        self._directed, self._local = builder.directed, builder.layout.local_count(part)
        self._own, local = builder.shape.own(part), self._local
        # which ends of a tuple have rows; whether tuples are reversed, by set of rows
        self._ends = FIRST_ENDS if self._directed else BOTH_ENDS
        self._turns = (False, True) if self._directed else (False,)
        cupy, kernels = cuda.cupy(), builder.kernels
        cuda.require(VERTEX_BYTES * local, f"part {part} of {local} vertices")
        degrees, ends = (cupy.zeros(local, np.uint32) for _ in range(2))
        loops = cupy.zeros(1, np.uint64)

        def count_loops(u: Any, v: Any) -> None:
            kernels.over("count_loops", len(u), u, v, *self._own, ends, loops)

        builder.keys.expect(2 * self._directed)
        tuples = cupy.zeros(local, np.uint32) if self._directed else ends
        for turned in self._turns:
            first: Any = None if turned else count_loops
            every = np.uint64(0) if turned else tuples
            rows, bits = (*self._own, self._ends), builder.shape.bits
            rule = Rule("own", local, rows, first, bits=bits, turned=turned)
            for keys, low in builder.keys.sorted_keys(rule, lambda _: 0):
                with kernels.phase("degrees"):
                    self._measure(keys, low, degrees, every)
                del keys
        with kernels.phase("degrees"):
            if self._directed:  # a tuple counts at its source
                ends += np.uint32(2) * tuples
            cuda.release()
            self.histogram = histogram(kernels, degrees)
            self.loops = int(loops.get()[0])
            self.total = Ranges(kernels, ends).total
        self._counted: Any = degrees, ends

    def _measure(self, keys: Any, low: int, degrees: Any, ends: Any) -> None:
        if len(keys):
            kernels, bits = self.builder.kernels, self.builder.shape.bits
            starts, _ = kernels.fresh_before(keys)
            kernels.over(
                "measure_rows",
                len(keys),
                keys,
                starts,
                np.uint32(bits),
                np.uint32(low),
                degrees,
                ends,
                per_block=KEYS_TILE,
            )

    def number(self, threshold: int) -> None:
        """Assign numbers to the vertices."""
        cupy, kernels, local = cuda.cupy(), self.builder.kernels, self._local
        degrees, ends = self._counted
        del self._counted
        self._threshold = threshold
        with kernels.phase("numbering"):
            sets = self.builder.sets(degrees, threshold)
            (normals, self.active), (members, delegates) = sets
            ids = cupy.empty(delegates, np.uint64)
            high = cupy.empty(delegates, np.uint32)
            self._arrays = [cupy.empty(local, np.uint32) for _ in range(3)]
            kernels.over(
                "number_vertices",
                local,
                *self._own,
                np.uint32(self.active),
                normals,
                members,
                degrees,
                ends,
                *self._arrays,
                ids,
                high,
            )
            host = (x.get() for x in (normals, members, ids, high))
            self.normals, self.members, self.ids, self.degrees = host

    def separate(
        self, shared: Shared, room: Room | None = None, of_host: int = 1
    ) -> Part:
        """Build the subgraphs: four, or four of each direction.

        room: memory limits, if their columns may lie in host memory; of_host: number of
        parts of the host

        If ids are wide, the columns of nn are local ids of other parts; see
        ``places.number_columns``.
        """
        builder, local, part = self.builder, self._local, self.part
        tables = builder.once(lambda: builder.tables(shared))
        shape, active, d = builder.shape, self.active, len(tables.delegates)
        bases = [0, active, 2 * active, 2 * active + d, 2 * (active + d)]
        if bases[-1] > MAX_ROWS:
            raise UsageError(
                f"part {part} has {active} normal vertices and {d} delegates; allowed: "
                f"{MAX_ROWS // 2} together; use more parts or another threshold"
            )
        normals = tables.normals
        if normals is None:
            normals = cuda.cupy().asarray(self.normals)
        sizes = np.uint32(shape.blocks), np.uint32(active), np.uint32(d)
        rooms = np.uint64(shape.per), np.uint64(len(tables.table))
        sets = (normals, tables.members, tables.table)
        arguments = (*self._own, self._ends, *sizes, *rooms, *sets)
        column = 4 if shape.parts == 1 else 8

        on_host: list[CSR] = []  # whose columns are

        def made(*, turned: bool) -> dict[str, Any]:
            """Build four subgraphs; turned: of the reversed edges."""
            rule = Rule(
                "separated", bases[-1], arguments, bits=shape.bits, turned=turned
            )
            lengths = cuda.cupy().zeros(bases[-1], np.uint32)
            writers = self._writers(lengths, bases, normals)
            left = len(self._turns) - turned  # sets of rows to be made

            def kept(counts: Any) -> int:
                spans = [counts[a:b] for a, b in pairwise(bases)]
                totals = [Ranges(builder.kernels, x).total for x in spans]
                size = column * totals[0] + 4 * sum(totals[1:])
                more, others = 4 * len(self._turns) * sum(totals), 16 * (local + d)
                need = left * size, more + others
                if room is None or not room.spills(*need, builder.sharing, of_host):
                    return size + others
                for writer, total in zip(writers, totals, strict=True):
                    writer.to_host(total)
                return others

            for keys, low in builder.keys.sorted_keys(rule, kept):
                with builder.kernels.phase("rows"):
                    pieces = segments(keys, low, bases[1:4], shape.bits)
                    each = zip(writers, pieces, bases[:4], strict=True)
                    for writer, piece, base in each:
                        writer.add(piece, low - base)
                    del pieces, piece, each
                del keys
            with builder.kernels.phase("rows"):
                cuda.release()
                sizes_of = zip(writers, (local, local, d, d), strict=True)
                graphs = [writer.finish(rows) for writer, rows in sizes_of]
            on_host.extend(x for x in graphs if writers[0].on_host)
            return dict(zip(SUBGRAPHS, graphs, strict=True))

        vertices, numbers, tuple_degrees = self._arrays
        out, *into = [made(turned=turned) for turned in self._turns]
        made_part = Part(
            layout=builder.layout,
            index=part,
            threshold=self._threshold,
            delegates=tables.delegates,
            delegate_degrees=None,
            vertices=vertices,
            degrees=None,
            tuple_degrees=tuple_degrees,
            active=active,
            incoming=into[0] if into else {},
            host_bytes=sum(int(x.columns.nbytes) for x in on_host),
            **out,
        )
        made_part.numbers = numbers
        return made_part

    def _writers(self, lengths: Any, bases: list[int], normals: Any) -> list[RowWriter]:
        """Return the writers of nn, nd, dn, dd; normals: sets on the device."""
        spans = [lengths[a:b] for a, b in pairwise(bases)]
        shape = self.builder.shape
        arguments: tuple[Any, ...] = (np.uint32(min(shape.per, MAX_ROWS)),)
        arguments = (*arguments, np.uint32(shape.blocks), normals)
        name = "write_numbers_64"
        dtype: type[np.unsignedinteger[Any]] = np.uint64
        if shape.parts == 1:
            name, dtype = "write_numbers_32", np.uint32
        elif shape.wide:
            name, arguments = "write_places", (np.uint64(shape.per),)
        kernels, bits = self.builder.kernels, shape.bits
        writers = [RowWriter(kernels, x, bits=bits) for x in spans[1:]]
        nn = RowWriter(kernels, spans[0], name, arguments, dtype, bits=bits)
        return [nn, *writers]
