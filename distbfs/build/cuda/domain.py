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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from distbfs.build.cuda.kernels import BLOCK, Kernels, check_keys
from distbfs.build.cuda.keys import BOTH_ENDS, FIRST_ENDS, Rule
from distbfs.build.cuda.making import Making
from distbfs.build.cuda.numbering import CLASSES, Numbering, lower_degrees
from distbfs.build.cuda.parts import Crew
from distbfs.build.cuda.ranges import KEY_BYTES, Ranges
from distbfs.build.cuda.room import (
    DEALT_BYTES,
    EVERY,
    SPARE_VERTEX,
    Fit,
    Room,
    Split,
    agreed_kept,
    check_hosts,
)
from distbfs.build.cuda.rows import RowsByRange
from distbfs.build.cuda.separate import (
    MAX_DEGREE,
    TOO_MANY_ENDS,
    Builder,
    CommonSizes,
    add_bases,
)
from distbfs.device import cuda
from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.errors import InputError, ResourceError, UsageError
from distbfs.exchange.router import gather_all
from distbfs.graph.device_graph import (
    ISOLATED,
    SET_BITS,
    WIDE,
    degree_class,
    graph_table,
)
from distbfs.partition.layout import Domains, Layout, Placement
from distbfs.partition.share import GRANULE, Domain, Share, ShareCounts, leaves_after
from distbfs.progress import Sum
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


@dataclass
class Known:
    """Facts about one part that all parts need, on the host.

    members: uint32 [4 * blocks], set of the part's vertices with edges (sets.cuh)
    classes: uint8 [members], degree class of each member
    """

    members: Array
    classes: Array


@dataclass
class Measured:
    """Results of a part's first pass, on the device, by rank of its members.

    members: uint32 [4 * blocks], as in ``Known``
    ids, degrees, ends: uint32 [members], for each member its local id, the degree by
    which it is numbered, and the number of ends of input tuples
    sides: of a directed graph the numbers of keys of the rows of outgoing and of
    incoming edges, with repeats; else empty, since these are ``degrees``
    alone, alone_ends: uint32, local ids of vertices that have only loops, and their
    ends of tuples
    """

    members: Any
    ids: Any
    degrees: Any
    ends: Any
    sides: Any
    alone: Any
    alone_ends: Any
    known: Known
    loops: int
    total: int


@dataclass
class Places:
    """The positions of the vertices of all parts, in one device's memory.

    members: uint32 [parts * 4 * blocks], sets of vertices with edges, with ranks over
    all parts; positions: uint32 [members], by rank; names: ``Share.ids``
    """

    members: Any
    positions: Any
    names: Any


@dataclass
class Planned:
    """The plan of a part's rows.

    kernels: kernels that the numbering used
    rows, ends: uint32, ``Share.ended``, and the number of tuple ends of each
    ranges: for outgoing, then for incoming edges of a directed graph, else once: ranges
    of rows, with the numbers of their keys, including repeats
    fit: how many columns fit the device, None if all must; kept: columns of a row there
    """

    part: int
    kernels: Kernels
    places: Places
    numbering: Numbering
    rows: Any
    ends: Any
    ranges: list[Any]
    fit: Fit | None
    kept: int = EVERY

    def __post_init__(self) -> None:
        """Create the list of writers of rows that ``allocate`` fills."""
        self.writers: list[RowsByRange] = []

    @property
    def directed(self) -> bool:
        """Whether there are rows of outgoing and of incoming edges."""
        return len(self.ranges) > 1

    def allocate(self) -> None:
        """Allocate the rows, and their tails in pinned host memory."""
        active = self.numbering.active
        for ranges in self.ranges:
            split = None
            if self.kept < EVERY:
                split = Split.at(self.kept, self.numbering.at_least_of, [ranges])
            with self.rows.device, cuda.memory_of(f"building part {self.part}"):
                writer = RowsByRange(
                    self.kernels,
                    active,
                    ranges.total,
                    wide=self.directed,
                    split=split,
                )
            self.writers.append(writer)


@dataclass
class DomainSummary:
    """Counts of a construction over all parts, and seconds of the slowest device.

    making: "all" or "share"; see ``construct_on_devices``
    """

    m: int
    loops: int
    passes: int
    making: Making
    generation_seconds: float
    construction_seconds: float


class MemberBuilder(Builder):
    """Builds the parts of one device of this rank.

    places: places of all vertices, once they are known
    """

    places: Places | None = None

    @cached_property
    def _numbering(self) -> Kernels:
        return Kernels(self.clock)

    def measure(self, part: int) -> Measured:
        """Count the keys of the rows of a part."""
        cupy, launch = cuda.cupy(), self.kernels.launch
        local, directed = self.layout.local_count(part), self.directed
        loop_ends, loops = cupy.zeros(local, np.uint32), cupy.zeros(1, np.uint64)
        own, out = self.shape.own(part), cupy.zeros(directed * local, np.uint32)
        self.keys.expect(int(directed))

        def count_first(u: Any, v: Any) -> None:
            launch(
                "count_loops",
                len(u),
                BLOCK,
                np.uint64(len(u)),
                u,
                v,
                *own,
                loop_ends,
                loops,
            )
            if directed:
                ends = np.uint64(len(u)), u, v
                launch("count_own", len(u), BLOCK, *ends, *own, FIRST_ENDS, out)

        lengths = self.keys.count(Rule("own", local, (*own, BOTH_ENDS), count_first))
        with self.kernels.phase("degrees"):
            (members, count), _ = self._sets(lengths, MAX_DEGREE)
            classed = lengths
            if directed:
                classed = lengths.copy()
                lower_degrees(self._numbering, out, classed)
            ids, degrees, ends = (cupy.empty(count, np.uint32) for _ in range(3))
            classes = cupy.empty(count, np.uint8)
            launch(
                "list_members",
                local,
                BLOCK,
                np.uint64(local),
                members,
                classed,
                loop_ends,
                ids,
                degrees,
                ends,
                classes,
            )
            alone = _places(local, lambda k: (loop_ends[k] > 0) & (lengths[k] == 0))
            sides = []
            if directed:  # a tuple counts at its source
                out = out[ids]
                sides = [out, lengths[ids] - out]
                ends = loop_ends[ids] + np.uint32(2) * out
            every = (ends, loop_ends[alone])
            return Measured(
                members,
                ids,
                degrees,
                ends,
                sides,
                alone,
                every[1],
                Known(members.get(), classes.get()),
                int(loops.get()[0]),
                sum(int(x.sum(dtype=np.uint64)) for x in every),
            )

    def place(self, known: Sequence[Known], granules: int) -> Places:
        """Compute the positions of all parts' vertices; known: facts by part."""
        cupy, launch, shape = cuda.cupy(), self.kernels.launch, self.shape
        sizes = np.array([len(one.classes) for one in known])
        room = granules * shape.parts * GRANULE
        with self.kernels.phase("numbering"):
            need = 16 * shape.parts * shape.blocks + 4 * (int(sizes.sum()) + room)
            need += 16 * int(sizes.max())
            cuda.require(need, "the positions of all vertices")
            every = np.concatenate([one.members for one in known])
            bases = np.cumsum(sizes) - sizes
            add_bases(every, bases)
            members = cupy.asarray(every)
            positions = cupy.empty(max(int(sizes.sum()), 1), np.uint32)
            names = cupy.full(room, ISOLATED, np.uint32)
            least = cupy.asarray(least_degrees())
            sets = members.reshape(shape.parts, -1)
            for part, (one, base) in enumerate(zip(known, bases.tolist(), strict=True)):
                numbers = self._numbered(least[cupy.asarray(one.classes)]).numbers
                local = self.layout.local_count(part)
                launch(
                    "place_numbers",
                    local,
                    BLOCK,
                    np.uint64(local),
                    *shape.own(part),
                    sets[part],
                    np.uint32(base),
                    numbers,
                    positions,
                    names,
                )
        return Places(members, positions, names)

    def _numbered(self, degrees: Any) -> Numbering:
        return Numbering(self._numbering, degrees)

    def plan(
        self,
        part: int,
        measured: Measured,
        places: Places,
        most_active: int,
        room: Room | None,
    ) -> Planned:
        """Plan the rows of a part; free the arrays by member of ``measured``.

        most_active: number of vertices with edges of the part with most; room: None if
        all columns must be on the device
        """
        cupy, m = cuda.cupy(), measured
        with self.kernels.phase("numbering"):
            numbering = self._numbered(m.degrees)
            ranks = numbering.vertices
            numbering.vertices = rows = cupy.concatenate([m.ids[ranks], m.alone])
            ends = cupy.concatenate([m.ends[ranks], m.alone_ends])
            lengths, fit = [x[ranks] for x in m.sides or [m.degrees]], None
            m.degrees = m.ids = m.ends = m.sides = None
            del ranks
            ranges = [Ranges(self._numbering, x) for x in lengths]
            cuda.release()
            if room is not None:
                local, active = self.layout.local_count(part), numbering.active
                held = (rows, ends, numbering.numbers, m.members, places.names)
                kept = sum(x.nbytes for x in held)
                for_build = (*lengths, places.members, places.positions)
                freed = sum(x.nbytes for x in for_build)
                fixed = kept + 8 * len(ranges) * (active + 1)
                counts = ShareCounts(
                    self.layout,
                    part,
                    Domains((self.layout.parts,)),
                    most_active,
                    sum(x.total for x in ranges) // len(ranges),
                    numbering.at_least,
                    directed=len(ranges) > 1,
                )
                fixed += room.state(counts)
                have, after = (
                    room.free(kept + freed + more, SPARE_VERTEX * local)
                    for more in (0, self.keys.held_bytes)
                )
                fit = Fit(fixed, have, after, numbering.at_least_of, tuple(ranges))
        return Planned(
            part, self._numbering, places, numbering, rows, ends, ranges, fit
        )

    def rows(self, planned: Planned, measured: Measured, domain: Domain) -> Share:
        """Build the rows of a part, range by range."""
        part, numbering = planned.part, planned.numbering
        made = self._rows_of(planned, 0)
        if planned.directed:
            into = self._rows_of(planned, 1)
            made |= {f"in_{name}": x for name, x in into.items() if name != "m"}
        names = planned.places.names
        return Share(
            n=self.layout.local_count(part),
            tuples=self.source.tuples,
            loops=measured.loops,
            tuple_degrees=planned.ends,
            source={},
            seconds=self.clock.seconds,
            members=measured.members,
            **{**numbering.arrays(), "vertices": planned.rows[: numbering.active]},
            ended=planned.rows,
            layout=self.layout,
            index=part,
            domain=domain,
            ids=names,
            slots=len(names),
            **made,
        )

    def _rows_of(self, planned: Planned, side: int) -> dict[str, Any]:
        """Return columns and offsets of one set of rows; side: 1 for incoming edges."""
        places, active, part = planned.places, planned.numbering.active, planned.part
        ranges, seen = planned.ranges[side], 0
        ends = FIRST_ENDS if planned.directed else BOTH_ENDS
        own = (*self.shape.own(part), np.uint32(self.shape.blocks), ends)
        rule = Rule(
            "positioned",
            active,
            (*own, places.members, places.positions),
            ranges=ranges,
            key_bytes=KEY_BYTES if planned.kept == EVERY else DEALT_BYTES,
            turned=side > 0,
        )
        total = ranges.total
        planned.ranges[side] = ranges = None
        for keys, low in self.keys.sorted_keys(rule, lambda _: 16 * active):
            seen += len(keys)
            with self.kernels.phase("rows"):
                planned.writers[side].write(keys, low)
            del keys
        check_keys(seen, total)
        with self.kernels.phase("rows"):
            cuda.release()
            return planned.writers[side].made()


def least_degrees() -> Array:
    """Return the least degree of each class, uint32 [CLASSES]."""
    many = np.array([4, 5, 6, 7]) << (np.arange(4, 32)[:, None] - 2)
    falling = np.concatenate([np.arange(17), many.ravel()])[::-1]
    out = np.zeros(CLASSES, dtype=np.uint32)
    out[degree_class(falling)] = falling  # the last of a class is the least
    return out


def searched_numbers(known: Sequence[Known]) -> int | None:
    """Return the number of searched vertices of each part; the rest are leaves.

    Searched vertices are whole granules, filled up with leaves. Returns None if all
    vertices are searched, because there are few leaves, or a part has too few.
    """
    counts = np.array([len(one.classes) for one in known])
    others = max(int(np.count_nonzero(one.classes > 1)) for one in known)
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
    buffer_bytes: int | None = None,
    devices: Sequence[int] | None = None,
    clock: Stopwatch | None = None,
    done: Sum | None = None,
    making: Making | None = None,
    room: Room | None = None,
) -> tuple[list[Share], DomainSummary]:
    """Build every part of this rank in device memory (collective).

    directed: edges lead from u to v alone
    buffer_bytes, devices, clock, done, making: as in ``construct_on_devices``
    room: memory limits of each device, if rows may have tails in the memory of their
    host, all after the same number of columns; all devices are of one host

    Raises UsageError if positions do not fit 32 bits; ResourceError on all ranks if
    memory of a device or of the host is short; InputError if tuples change during the
    build.
    """
    watch = Stopwatch()
    layout, placement = Layout(source.n, parts), Placement(parts, world.size)
    shape = CommonSizes(layout)
    with watch("total"):
        crew = Crew(
            MemberBuilder,
            source,
            shape,
            world,
            placement,
            devices=devices,
            buffer_bytes=buffer_bytes,
            done=done,
            making=making,
            directed=directed,
        )
        measured = crew.each(lambda builder, _, part: builder.measure(part))
        seats = [placement.parts_of(rank) for rank in range(world.size)]
        facts = [(x.known.members, x.known.classes) for x in measured]
        every = [gather_all(world, x, seats) for x in zip(*facts, strict=True)]
        known = [Known(*pair) for pair in zip(*every, strict=True)]
        sums = np.array([[x.loops, x.total] for x in measured], dtype=np.int64)
        loops, ends = world.allreduce(sums.sum(axis=0)).tolist()
        if ends != 2 * source.tuples:
            raise InputError(TOO_MANY_ENDS)
        actives = np.array([len(x.classes) for x in known], dtype=np.int64)
        granules = max(-(-int(actives.max()) // GRANULE), 1)
        if granules * parts * GRANULE >= WIDE:
            raise UsageError(
                f"{int(actives.sum())} vertices with edges on {parts} parts need "
                "positions of more than 32 bits"
            )
        domain = Domain(Domains((parts,)), 0, granules, int(actives.sum()), 0)
        made = _rows(crew, measured, known, domain, world, room)
        crew.close()
    counts = np.array([sum(part.m for part in made)], dtype=np.int64)
    m = int(world.allreduce(counts)[0])
    searched = None if directed else searched_numbers(known)
    for part in made:
        part.domain = replace(domain, edges=m)
        if searched is not None:
            part.trees = leaves_after(searched, part.active, part.at_least)
    generation, passes = crew.spent(world, clock)
    return made, DomainSummary(
        m=m,
        loops=loops,
        passes=passes,
        making=crew.making,
        generation_seconds=generation,
        construction_seconds=watch.get("total") - generation,
    )


def _rows(
    crew: Crew[MemberBuilder],
    measured: Sequence[Measured],
    known: Sequence[Known],
    domain: Domain,
    world: World,
    room: Room | None,
) -> list[Share]:
    """Build the parts of this rank; all parts of a device share its tables."""
    most_active = max(len(one.classes) for one in known)

    def plan(builder: MemberBuilder, k: int, part: int) -> Planned:
        if builder.places is None:
            builder.places = builder.place(known, domain.granules)
        return builder.plan(part, measured[k], builder.places, most_active, room)

    planned = crew.each(plan)
    _make_room(planned, world, room)

    def rows(builder: MemberBuilder, k: int, _: int) -> Share:
        return builder.rows(planned[k], measured[k], domain)

    return crew.each(rows)


def _make_room(planned: Sequence[Planned], world: World, room: Room | None) -> None:
    """Choose how rows are split, alike on all devices, and allocate them (collective).

    Raises OutOfMemory on all ranks if one of them lacks memory.
    """
    fits = [(one.part, one.fit) for one in planned if one.fit is not None]
    kept = agreed_kept(world, fits)
    if room is not None and kept < EVERY:
        tails = 0
        for one in planned:
            if one.fit is not None:
                one.kept = kept
                tails += one.fit.at(kept).tails
        check_hosts(world, room, tails)
    with errors_of_all(world, ResourceError):
        for one in planned:
            one.allocate()
