"""Kernel 1 for a domain of several devices: one part per device, rows by number.

Every device keeps the rows of its part's vertices (v belongs to part v mod p), which it
builds from tuples as in parts.py. There are no delegates; instead, every device has the
bitmap of all visited vertices. Ids may have 64 bits; local ids and positions have 32.
Every device stores which of all vertices have edges, as sets with ranks (sets.cuh), and
the positions of these vertices by rank.

Inside an owner, vertices with edges are numbered by descending degree class and, inside
a class, by ascending local id, as in graph/device_graph.py. The numbers of all owners
are interleaved in granules of 1,024: position = (number div 1,024 * p + owner) * 1,024
+ number mod 1,024. So hubs of all owners have the lowest positions, a row in ascending
order lists its neighbours of high degree first, and an owner's words of a bitmap by
position are lines of 128 bytes. Columns are positions.

Leaves, which have one edge, form one class, with the last numbers of each owner.
Searches may leave all of them out; then leaves begin at the same number, a multiple of
the granule, in every part.

If edges are directed, each device keeps two sets of rows: outgoing and incoming edges
of its vertices. Numbers follow the sum of both degrees, and offsets have 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from distbfs.build.cuda.kernels import check_ends, check_keys
from distbfs.build.cuda.keys import BOTH_ENDS, FIRST_ENDS, Rule
from distbfs.build.cuda.numbering import CLASSES, Numbering, lower_degrees
from distbfs.build.cuda.parts import Crew
from distbfs.build.cuda.ranges import KEY_BYTES, Ranges
from distbfs.build.cuda.room import (
    DEALT_BYTES,
    SPARE_VERTEX,
    Fit,
    Room,
    Split,
    agreed_splits,
)
from distbfs.build.cuda.rows import RowsByRange
from distbfs.build.cuda.separate import (
    MAX_DEGREE,
    Builder,
    add_bases,
)
from distbfs.build.host.parts import BuildCounts
from distbfs.device import cuda
from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.errors import ResourceError, UsageError
from distbfs.exchange.router import gather_all
from distbfs.graph.device_graph import (
    ISOLATED,
    SET_BITS,
    WIDE,
    degree_class,
    graph_table,
)
from distbfs.partition.layout import Domains, Placement
from distbfs.partition.share import (
    GRANULE,
    Domain,
    Rows,
    Share,
    ShareCounts,
    leaves_after,
)
from distbfs.ranks.agreement import errors_of_all
from distbfs.timing import Stopwatch
from distbfs.types import Array, TupleSource, World

PLACES_AT_ONCE = 1 << 26
LEAST_LEAVES = 32  # one vertex in so many must be a leaf that is not searched


def _places(count: int, wanted: Callable[[slice], Any]) -> Any:
    """Return the places in 0 … count-1 that ``wanted`` selects, CuPy uint32, ascending.

    wanted: function from a slice to CuPy bool; it is called block by block, to save
    memory
    """
    cp = cuda.cupy()
    pieces = [cp.zeros(0, np.uint32)]
    for low in range(0, count, PLACES_AT_ONCE):
        at = cp.flatnonzero(wanted(slice(low, min(low + PLACES_AT_ONCE, count))))
        pieces.append((at + low).astype(np.uint32))
    return cp.concatenate(pieces)


def take_ends(share: Share, ends: Any, tuples: int) -> None:
    """Set other counts of tuple ends, CuPy uint32 [local], and of tuples."""
    others = ends > 0
    others[share.vertices] = False
    alone = _places(len(ends), lambda k: others[k])
    rows = cuda.cupy().concatenate([share.vertices, alone])
    share.loops, share.tuples = 0, tuples
    share.vertices = rows[: share.active]
    share.tuple_degrees, share.ended = ends[rows], rows


def member_table(
    local: int, active: int, m: int, positions: int, *, directed: bool = False
) -> ArrayTable:
    """Return the arrays of a domain's share, but for vertices that have only loops.

    local, active, m: those of the part; positions: number of positions of all parts
    """
    return {
        **graph_table(active, active, m, directed=directed, wide=directed),
        "members": ArrayPlan(np.uint32, 4 * -(-local // SET_BITS)),
        "names": ArrayPlan(np.uint32, positions),
    }


class Places(NamedTuple):
    """The positions of the vertices of all parts, in one device's memory.

    members: uint32 [parts * 4 * blocks], sets of vertices with edges, with ranks over
    all parts; positions: uint32 [members], by rank; names: ``Share.ids``
    """

    members: Any
    positions: Any
    names: Any


def placed(
    builder: Builder, every: Sequence[Array], classes: Sequence[Array], granules: int
) -> Places:
    """Compute the positions of all parts' vertices.

    every, classes: by part, as in ``MemberPart``
    """
    cupy, over, shape = cuda.cupy(), builder.kernels.over, builder.shape
    sizes = np.array([len(one) for one in classes])
    room = granules * shape.parts * GRANULE
    with builder.kernels.phase("numbering"):
        need = 16 * shape.parts * shape.blocks + 4 * (int(sizes.sum()) + room)
        need += 16 * int(sizes.max())
        cuda.require(need, "the positions of all vertices")
        joint = np.concatenate(every)
        bases = np.cumsum(sizes) - sizes
        add_bases(joint, bases)
        members = cupy.asarray(joint)
        positions = cupy.empty(max(int(sizes.sum()), 1), np.uint32)
        names = cupy.full(room, ISOLATED, np.uint32)
        least = cupy.asarray(least_degrees())
        sets = members.reshape(shape.parts, -1)
        for part, (one, base) in enumerate(zip(classes, bases, strict=True)):
            degrees = least[cupy.asarray(one)]
            numbers = Numbering(builder.numbering, degrees).numbers
            over(
                "place_numbers",
                builder.layout.local_count(part),
                *shape.own(part),
                sets[part],
                np.uint32(base),
                numbers,
                positions,
                names,
            )
    return Places(members, positions, names)


class MemberPart:
    """A part under construction; its first pass counts the keys of its rows.

    Call methods in this order: ``plan``, ``allocate``, ``rows``.

    members: uint32 [4 * blocks], set of the part's vertices with edges (sets.cuh)
    facts: members, and uint8 [members], degree class of each; both on the host
    loops, total: numbers of loops, and of ends of tuples, of its vertices
    fit: how many columns fit the device, None if all must
    splits: how rows are split, those of edges out and, in a directed graph, of edges in
    """

    fit: Fit | None = None
    splits: Sequence[Split | None] = (None, None)

    def __init__(self, builder: Builder, part: int) -> None:
        self.builder, self.part, self.directed = builder, part, builder.directed
        cupy, over = cuda.cupy(), builder.kernels.over
        local, directed = builder.layout.local_count(part), self.directed
        loop_ends, loops = cupy.zeros(local, np.uint32), cupy.zeros(1, np.uint64)
        own, out = builder.shape.own(part), cupy.zeros(directed * local, np.uint32)
        builder.keys.expect(int(directed))

        def count_first(u: Any, v: Any) -> None:
            ends = len(u), u, v
            over("count_loops", *ends, *own, loop_ends, loops)
            if directed:
                over("count_own", *ends, *own, FIRST_ENDS, out)

        rule = Rule("own", local, (*own, BOTH_ENDS), count_first)
        lengths = builder.keys.count(rule)
        with builder.kernels.phase("degrees"):
            (members, count), _ = builder.sets(lengths, MAX_DEGREE)
            classed = lengths
            if directed:
                classed = lengths.copy()
                lower_degrees(builder.numbering, out, classed)
            ids, degrees, ends = (cupy.empty(count, np.uint32) for _ in range(3))
            classes = cupy.empty(count, np.uint8)
            over(
                "list_members",
                local,
                members,
                classed,
                loop_ends,
                ids,
                degrees,
                ends,
                classes,
            )
            alone = _places(local, lambda k: (loop_ends[k] > 0) & (lengths[k] == 0))
            sides = [degrees]
            if directed:  # a tuple counts at its source
                out = out[ids]
                sides = [out, lengths[ids] - out]
                ends = loop_ends[ids] + np.uint32(2) * out
            # by rank of members, but for vertices that have only loops
            self._counted: Any = ids, degrees, ends, sides, alone, loop_ends[alone]
            self.members, self.facts = members, (members.get(), classes.get())
            self.loops = int(loops.get()[0])
            every = ends, loop_ends[alone]
            self.total = sum(int(x.sum(dtype=np.uint64)) for x in every)

    def plan(self, places: Places, most_active: int, room: Room | None) -> None:
        """Plan the rows; free the arrays by member.

        most_active: number of vertices with edges of the part with most; room: None if
        all columns must be on the device
        """
        cupy, builder = cuda.cupy(), self.builder
        with builder.kernels.phase("numbering"):
            ids, degrees, ends, sides, alone, alone_ends = self._counted
            del self._counted
            self._places = places
            self._numbering = numbering = Numbering(builder.numbering, degrees)
            ranks = numbering.vertices
            numbering.vertices = self._rows = cupy.concatenate([ids[ranks], alone])
            self._ends = cupy.concatenate([ends[ranks], alone_ends])
            lengths = [x[ranks] for x in sides]
            del ids, degrees, ends, sides, ranks
            self._ranges: list[Any] = [Ranges(builder.numbering, x) for x in lengths]
            cuda.release()
            if room is not None:
                self.fit = self._fit(room, most_active, lengths)

    def _fit(self, room: Room, most_active: int, lengths: Sequence[Any]) -> Fit:
        """Return how many columns fit; lengths: of the rows, uint32 [active] each."""
        builder, numbering, places = self.builder, self._numbering, self._places
        layout, ranges = builder.layout, tuple(self._ranges)
        held = (self._rows, self._ends, numbering.numbers, self.members, places.names)
        kept = sum(x.nbytes for x in held)
        for_build = (*lengths, places.members, places.positions)
        freed = sum(x.nbytes for x in for_build)
        fixed = kept + 8 * len(ranges) * (numbering.active + 1)
        counts = ShareCounts(
            layout,
            self.part,
            Domains((layout.parts,)),
            most_active,
            sum(x.total for x in ranges) // len(ranges),
            numbering.at_least,
            directed=self.directed,
        )
        fixed += room.state(counts)
        have, after = (
            room.free(kept + freed + more, SPARE_VERTEX * layout.local_count(self.part))
            for more in (0, builder.keys.held_bytes)
        )
        what = f"part {self.part} of"
        return Fit(what, fixed, have, after, numbering.at_least_of, ranges)

    def allocate(self) -> None:
        """Allocate the rows, and their tails in pinned host memory."""
        numbering, self._writers = self._numbering, list[RowsByRange]()
        for ranges, split in zip(self._ranges, self.splits, strict=False):
            with self._rows.device, cuda.memory_of(f"building part {self.part}"):
                writer = RowsByRange(
                    self.builder.numbering,
                    numbering.active,
                    ranges.total,
                    wide=self.directed,
                    split=split,
                )
            self._writers.append(writer)

    def rows(self, domain: Domain) -> Share:
        """Build the rows, range by range."""
        builder, numbering, names = self.builder, self._numbering, self._places.names
        out = self._side(turned=False)
        into = self._side(turned=True) if self.directed else out
        return Share(
            n=builder.layout.local_count(self.part),
            tuples=builder.source.tuples,
            loops=self.loops,
            tuple_degrees=self._ends,
            source={},
            seconds=builder.clock.seconds,
            members=self.members,
            **{**numbering.arrays(), "vertices": self._rows[: numbering.active]},
            ended=self._rows,
            layout=builder.layout,
            index=self.part,
            domain=domain,
            ids=names,
            slots=len(names),
            out=out,
            into=into,
        )

    def _side(self, *, turned: bool) -> Rows:
        """Build the next set of rows; turned: those of incoming edges."""
        keys_of, kernels = self.builder.keys, self.builder.kernels
        places, active, shape = self._places, self._numbering.active, self.builder.shape
        ranges, writer, seen = self._ranges.pop(0), self._writers.pop(0), 0
        ends = FIRST_ENDS if self.directed else BOTH_ENDS
        own = (*shape.own(self.part), np.uint32(shape.blocks), ends)
        rule = Rule(
            "positioned",
            active,
            (*own, places.members, places.positions),
            ranges=ranges,
            key_bytes=KEY_BYTES if self.splits[0] is None else DEALT_BYTES,
            turned=turned,
        )
        total = ranges.total
        del ranges
        for keys, low in keys_of.sorted_keys(rule, lambda _: 16 * active):
            seen += len(keys)
            with kernels.phase("rows"):
                writer.write(keys, low)
            del keys
        check_keys(seen, total)
        with kernels.phase("rows"):
            cuda.release()
            return writer.made()


def least_degrees() -> Array:
    """Return the least degree of each class, uint32 [CLASSES]."""
    many = np.array([4, 5, 6, 7]) << (np.arange(4, 32)[:, None] - 2)
    falling = np.concatenate([np.arange(17), many.ravel()])[::-1]
    out = np.zeros(CLASSES, dtype=np.uint32)
    out[degree_class(falling)] = falling  # the last of a class is the least
    return out


def searched_numbers(classes: Sequence[Array]) -> int | None:
    """Return the number of searched vertices of each part; the rest are leaves.

    classes: by part, see ``MemberPart``

    Searched vertices are whole granules, filled up with leaves. Returns None if all
    vertices are searched, because there are few leaves, or a part has too few.
    """
    counts = np.array([len(one) for one in classes])
    others = max(int(np.count_nonzero(one > 1)) for one in classes)
    searched = max(-(-others // GRANULE), 1) * GRANULE
    left = counts - searched
    enough = int(left.sum()) * LEAST_LEAVES >= int(counts.sum())
    return searched if left.min() > 0 and enough else None


def construct_domain(
    source: TupleSource,
    world: World,
    parts: int,
    *,
    directed: bool = False,
    room: Room | None = None,
    **crew_options: Any,
) -> tuple[list[Share], BuildCounts]:
    """Build every part of this rank in device memory (collective).

    directed: edges lead from u to v alone
    room: memory limits of each device, if rows may have tails in the memory of their
    host, all after the same number of columns; all devices are of one host
    crew_options: see ``Crew``

    Raises UsageError if positions do not fit 32 bits; ResourceError on all ranks if
    memory of a device or of the host is short; InputError if tuples change during the
    build.
    """
    watch = Stopwatch()
    placement = Placement(parts, world.size)
    with watch("total"):
        crew = Crew(source, world, placement, directed=directed, **crew_options)
        made = crew.each(lambda builder, _, part: MemberPart(builder, part))
        seats = [placement.parts_of(rank) for rank in range(world.size)]
        facts = zip(*(part.facts for part in made), strict=True)
        every, classes = (gather_all(world, x, seats) for x in facts)
        sums = np.array([[x.loops, x.total] for x in made], dtype=np.int64)
        loops, ends = world.allreduce(sums.sum(axis=0)).tolist()
        check_ends(ends, source.tuples)
        actives = np.array([len(x) for x in classes], dtype=np.int64)
        most = int(actives.max())
        granules = max(-(-most // GRANULE), 1)
        if granules * parts * GRANULE >= WIDE:
            raise UsageError(
                f"{int(actives.sum())} vertices with edges on {parts} parts need "
                "positions of more than 32 bits"
            )
        domain = Domain(Domains((parts,)), 0, granules, int(actives.sum()), 0)

        def plan(builder: Builder, k: int, _: int) -> None:
            places = builder.once(lambda: placed(builder, every, classes, granules))
            made[k].plan(places, most, room)

        crew.each(plan)
        _make_room(made, world, room)
        shares = crew.each(lambda _, k, __: made[k].rows(domain))
        crew.close()
    counts = np.array([sum(part.m for part in shares)], dtype=np.int64)
    m = int(world.allreduce(counts)[0])
    searched = None if directed else searched_numbers(classes)
    for part in shares:
        part.domain = replace(domain, edges=m)
        if searched is not None:
            part.trees = leaves_after(searched, part.active, part.at_least)
    spent = crew.facts(world, watch.get("total"))
    return shares, BuildCounts(m=m, loops=loops, **spent)


def _make_room(planned: Sequence[MemberPart], world: World, room: Room | None) -> None:
    """Choose how rows are split, alike on all devices, and allocate them (collective).

    Raises OutOfMemory on all ranks if one of them lacks memory.
    """
    if room is not None:
        fits = [one.fit for one in planned if one.fit is not None]
        for one, splits in zip(planned, agreed_splits(world, room, fits), strict=True):
            one.splits = splits
    with errors_of_all(world, ResourceError):
        for one in planned:
            one.allocate()
