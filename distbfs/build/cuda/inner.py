"""The build of a device's share of a domain: inner graph and outer edges.

While the rows of a part are made, range by range, its subgraphs lie on its device or in
pinned host memory. If a device has no room for all columns, rows have tails: the
columns after the first ones go to pinned host memory as they are made. If even the
first columns do not fit beside the outer edges, the columns of the outer edges go to
pinned host memory, too. In a directed graph, all this is done for edges out and for
edges in. See inner_part.py for the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.build.cuda.inner_part import (
    Delegates,
    slots_after,
)
from distbfs.build.cuda.kernels import BLOCK, Kernels
from distbfs.build.cuda.numbering import Numbering
from distbfs.build.cuda.ranges import RESERVE, Ranges
from distbfs.build.cuda.room import SPARE_VERTEX, Fit, Room, Split
from distbfs.build.cuda.rows import deal_rows, split_offsets
from distbfs.device import cuda, programs
from distbfs.device.array_table import total_bytes
from distbfs.device.host_memory import pinned, seen_by_kernels
from distbfs.device.structures import uints
from distbfs.errors import UsageError
from distbfs.generate.cuda import id_type
from distbfs.graph.csr import CSR, row_blocks, row_offsets
from distbfs.graph.device_graph import (
    AT_LEAST,
    COLUMN_PAD,
    ISOLATED,
    WIDE,
    Tails,
    Trees,
    vertices_table,
)
from distbfs.partition.layout import Domains
from distbfs.partition.part import PART_SHIFT, Part
from distbfs.partition.share import (
    GRANULE,
    Domain,
    Outer,
    Rows,
    Share,
    ShareCounts,
    leaves_after,
    numbers_of,
    positions_of,
)
from distbfs.timing import Stopwatch
from distbfs.types import Ids

KEYS = 1 << 28  # sorted at a time; the longest row always fits
KEY_BYTES = 16  # a key and its place in the sort
SWAP_BYTES = 64  # a key to be sent to another device, with its selection
SLICE = 1 << 26  # outer edges of one pass
MOST_TARGETS = WIDE - 1  # of outer edges, whose columns are their indices
LEAF = 1  # class of leaves on delegates; others have one more than their inner degree


def inner_at_least(numbering: Numbering, degree: int) -> int:
    """Return a number above those of normal vertices of at least this inner degree."""
    return numbering.at_least_of(degree + LEAF + 1 if degree > 1 else LEAF)


class InnerSide:
    """One set of rows of a share: those of edges out, or of edges in.

    A symmetric graph has one. Call methods in this order: ``measure``; ``allocate``;
    those that write rows; ``finish``.

    split: how rows are split, None if all columns are on the device
    inside, outside: number of edges of each normal vertex in the domain, and to others
    edges: number of inner edges; ranges: those of the keys of rows; lengths: lengths of
    the rows of this device's delegates, uint32 [normals] on the host
    """

    edges = 0
    split: Split | None = None

    def __init__(self, share: InnerBuilder, *, incoming: bool) -> None:
        cp, self._share, self._incoming = cuda.cupy(), share, incoming
        self._kernels, self._launch, self.part = share.kernels, share.launch, share.part
        active, rows = self.part.active, self.rows
        inside, outside = (cp.empty(max(active, 1), np.uint32) for _ in range(2))
        if active:
            self._launch(
                "count_normals",
                np.uint32(active),
                share.inside,
                uints(rows["nn"].offsets),
                uints(rows["nn"].columns),
                uints(rows["nd"].offsets),
                inside,
                outside,
            )
        self.inside, self._outside = inside[:active], outside[:active]

    @property
    def rows(self) -> Mapping[str, CSR]:
        """The subgraphs of the part by name, until they are freed."""
        return self.part.sides[self._incoming]

    def delegate_lengths(self) -> Ids:
        """Return each delegate row's length on this device, int64 [d] on the host."""
        d, rows = self.part.delegate_count, self.rows
        lengths = np.zeros(d, np.int64)
        for name in ("dd", "dn"):
            lengths += np.diff(rows[name].offsets[: d + 1].get().astype(np.int64))
        self._before = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
        return lengths

    def measure(self, delegate_lengths: Ids) -> None:
        """Count the columns of rows, and make the outer edges.

        delegate_lengths: lengths of whole rows of delegates, int64 [d]
        """
        cp, share = cuda.cupy(), self._share
        lengths = cp.zeros(share.count, np.uint32)
        self.lengths = np.zeros(share.normals, np.uint32)
        self.lengths[share.delegates.number[share.mine]] = delegate_lengths[share.mine]
        lengths[: share.normals] = cp.asarray(self.lengths)
        lengths[share.normals :] = self.inside[share.order]
        del self.inside
        self._upto, self._counted = row_offsets(lengths, np.uint64), lengths
        self.ranges = Ranges(self._kernels, lengths)
        self.edges = self.ranges.total
        self.longest = max(int(delegate_lengths.max(initial=0)), self.ranges.longest)
        self.outer = self._outer_edges()

    def outer_to_host(self) -> None:
        """Move the columns of outer edges to pinned host memory."""
        columns = self.outer.columns
        on_host = pinned(len(columns), np.uint32, "outer edges")
        columns.get(out=on_host)
        columns = seen_by_kernels(on_host)
        self.outer = replace(self.outer, columns=columns, on_host=True)
        cuda.release()

    def allocate(self) -> None:
        """Allocate the columns."""
        self._offsets, columns, split = self._upto, self.edges, self.split
        if split is not None:
            self._offsets, self._tail_at = split_offsets(self._counted, split)
            self._tails = pinned(split.tails, np.uint32, "tails of rows")
            columns = split.heads
        del self._counted, self.ranges
        self._columns = cuda.cupy().zeros(columns + COLUMN_PAD, np.uint32)

    def delegate_keys(self, low: int, high: int) -> list[Any]:
        """Return this device's keys of delegate rows, sorted by receiving device.

        low, high: range of delegates. Keys are uint64: number there << 32 | position.
        """
        cp, share = cuda.cupy(), self._share
        dd, dn = self.rows["dd"], self.rows["dn"]
        before = self._before
        keys = cp.empty(int(before[high] - before[low]), np.uint64)
        self._launch(
            "delegate_keys",
            np.uint32(low),
            np.uint32(high),
            uints(dd.offsets),
            dd.columns,
            uints(dn.offsets),
            dn.columns,
            share.spot,
            share.positions,
            before[low],
            cp.asarray(before),
            keys,
        )
        if share.devices == 1:
            return [keys]
        device, numbers = numbers_of(keys >> np.uint64(32), share.devices)
        keys = numbers << np.uint64(32) | keys & np.uint64(WIDE - 1)
        return [keys[device == np.uint64(k)] for k in range(share.devices)]

    def take_delegates(self, keys: Any, low: int, high: int) -> None:
        """Write the rows of this device's delegates from ``low`` up to ``high``.

        keys: all keys of these rows. If there are several lanes, rows are not
        contiguous.
        """
        keys.sort()
        first, last = np.searchsorted(self._share.mine, [low, high])
        share = self._share
        rows = np.sort(share.delegates.number[share.mine[first:last]])
        done = 0
        # mutant: np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) -> [rows]
        #   : test_rows_of_delegates_come_in_pieces
        for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
            if len(run):
                done += self._write(keys[done:], int(run[0]), int(run[-1]) + 1)

    def _write(self, keys: Any, low: int, high: int) -> int:
        """Write columns of rows from the first of sorted keys; return their number."""
        first, last = (int(x) for x in self._upto[[low, high]].get())
        count, split = last - first, self.split
        if split is None or low >= split.tailed:
            start = int(self._offsets[low])
            self._columns[start : start + count] = keys[:count]  # their low halves
            return count
        columns = keys[:count].astype(np.uint32)
        upto = self._upto[low : high + 1] - np.uint64(first)
        deal_rows(
            self._kernels,
            split.kept,
            upto,
            columns,
            self._offsets[low:],
            # mutant: _tail_at[low:] -> _tail_at
            #   : test_split_between::test_from_the_least_to_all_on_the_devices
            self._tail_at[low:],
            self._columns,
            self._tails,
        )
        return count

    def write_normals(self) -> None:
        """Write the rows of normal vertices, as many keys at a time as fit."""
        cp, share = cuda.cupy(), self._share
        nn, nd = self.rows["nn"], self.rows["nd"]
        room, offsets = share.keys_room(), self._upto
        for low, high in row_blocks(offsets, room, share.normals):
            first = int(offsets[low])
            keys = cp.empty(int(offsets[high]) - first, np.uint64)
            positions, starts = share.places
            self._launch(
                "normal_keys",
                np.uint32(low),
                np.uint32(high),
                np.uint32(share.normals),
                share.inside,
                share.order,
                uints(nn.offsets),
                uints(nn.columns),
                uints(nd.offsets),
                nd.columns,
                share.spot,
                starts,
                positions,
                np.uint64(first),
                offsets,
                keys,
            )
            keys.sort()
            self._write(keys, low, high)
            del keys
            cuda.release()

    def _outer_edges(self) -> Outer:
        """Return the outer edges.

        Their targets are found in passes over the edges, each for some shares; if there
        are several passes, the targets wait on the host.
        """
        cp, shares = cuda.cupy(), self.part.layout.parts
        offsets = row_offsets(self._outside[self._share.order], np.uint64)
        edges, starts = np.zeros(shares, np.int64), np.zeros(shares + 1, np.int64)
        for _, columns in self._outer_columns(offsets):
            share = (columns >> np.uint64(PART_SHIFT)).astype(np.int32)
            edges += cp.bincount(share, minlength=shares).get().astype(np.int64)
        indices = cp.empty(int(offsets[-1]), np.uint32)
        pieces: list[Any] = []
        count = 0
        for low, high in row_blocks(row_offsets(edges), SLICE):
            if not edges[low:high].any():
                continue
            targets = self._targets(offsets, low, high)
            # mutant: low + 1, high + 1 -> low, high
            #   : test_outer_edges_are_made_in_passes
            ends = np.arange(low + 1, high + 1, dtype=np.uint64) << PART_SHIFT
            starts[low + 1 : high + 1] = (
                count + cp.searchsorted(targets, cp.asarray(ends)).get()
            )
            if count + len(targets) > MOST_TARGETS:
                raise UsageError(
                    f"part {self.part.index} has edges to more than {MOST_TARGETS} "
                    "vertices of other domains; use more parts or another threshold"
                )
            for span, columns in self._outer_columns(offsets):
                some = self._of_shares(columns, low, high)
                index = cp.searchsorted(targets, columns[some]) + count
                indices[span][some] = index.astype(np.uint32)
            places = targets.astype(np.uint32)
            pieces.append(places if high - low == shares else places.get())
            count += len(targets)
            starts[high + 1 :] = count
            del targets, places
        if not pieces:
            pieces.append(cp.zeros(0, np.uint32))
        whole = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return Outer(offsets, indices, cp.asarray(whole), starts, edges)

    def _outer_columns(self, offsets: Any) -> Iterator[tuple[slice, Any]]:
        """Yield (span, columns as in nn) of the outer edges, some at a time."""
        cp, nn = cuda.cupy(), self.rows["nn"]
        for low, high in row_blocks(offsets, SLICE):
            first = int(offsets[low])
            span = slice(first, int(offsets[high]))
            columns = cp.empty(span.stop - first, np.uint64)
            if len(columns):
                self._launch(
                    "outer_rows",
                    np.uint32(low),
                    np.uint32(high),
                    self._share.inside,
                    self._share.order,
                    uints(nn.offsets),
                    nn.columns,
                    offsets,
                    np.uint64(first),
                    columns,
                )
                yield span, columns

    def _of_shares(self, columns: Any, low: int, high: int) -> Any:
        """Return the index of the columns of nn that lead to shares low … high-1."""
        if high - low == self.part.layout.parts:
            return slice(None)
        share = columns >> np.uint64(PART_SHIFT)
        return (share >= np.uint64(low)) & (share < np.uint64(high))

    def _targets(self, offsets: Any, low: int, high: int) -> Any:
        """Return the targets on shares low … high-1, ascending, as columns in nn."""
        cp, pieces = cuda.cupy(), []
        for _, columns in self._outer_columns(offsets):
            pieces.append(cp.unique(columns[self._of_shares(columns, low, high)]))
        return pieces[0] if len(pieces) == 1 else cp.unique(cp.concatenate(pieces))

    def finish(self, *, wide: bool) -> Rows:
        """Return the rows; wide: offsets have 64 bits without tails, too."""
        del self._upto
        split, tails, offsets = self.split, None, self._offsets
        if split is not None:
            tails = Tails(split.kept, split.tailed, self._tail_at, self._tails)
        elif not wide:
            offsets = offsets.astype(np.uint32)
        return Rows(offsets, self._columns, tails, self.outer)


class InnerBuilder:
    """Builds the inner graph and the outer edges of one device's share.

    Call methods in this order: ``measure``; ``fit`` if rows may have tails, which
    settles the ``split`` of ``sides``; their ``allocate``, and those that write rows;
    ``finish``.

    sides: rows of edges out and, in a directed graph, of edges in
    count: how many numbers there are; leaves: normal vertices whose only edge leads to
    a delegate, none in a directed graph
    directed: whether there are rows of edges out and of edges in
    mine: delegate numbers of this device's delegates; spot: position of each delegate;
    inside: device in this domain that has a share, ISOLATED for shares of others
    """

    _trees: Trees | None = None

    def __init__(self, part: Part, domains: Domains, delegates: Delegates) -> None:
        cp = cuda.cupy()
        self.part, self.delegates = part, delegates
        self.kernels, self._domains = Kernels(Stopwatch()), domains
        self._id = id_type(part.layout.n)
        index = domains.domain_of(part.index)
        self.devices = domains.sizes[index]
        self.device = domains.device_of(part.index)
        self.mine = delegates.of(self.device)
        self._module = programs.Module(Path(__file__).with_suffix(".cu"))
        self._grid = cuda.blocks_for(None, BLOCK)
        inside = np.full(domains.shares, ISOLATED, np.uint32)
        inside[domains.shares_of(index)] = np.arange(self.devices)
        self.inside = cp.asarray(inside)
        self.normals = delegates.normals
        self.count = self.normals + part.active
        self.spot = cp.asarray(delegates.position.astype(np.uint32))
        self.directed = part.directed
        ways = (False, True) if self.directed else (False,)
        self.sides = [InnerSide(self, incoming=way) for way in ways]
        # bytes that a key of a row takes until the key's column is written
        self._key_bytes = KEY_BYTES if self.devices == 1 else SWAP_BYTES
        self._number()

    def launch(self, name: str, *arguments: Any) -> None:
        """Launch a kernel of inner.cu."""
        self._module.kernel(name)(self._grid, BLOCK, *arguments)

    def _number(self) -> None:
        """Assign numbers to normal vertices by degree inside the domain."""
        cp, part = cuda.cupy(), self.part
        inside, nn = self.sides[0].inside, self.sides[0].rows["nn"]
        if self.directed:
            inside = inside + self.sides[1].inside
            leaf = cp.zeros(part.active, bool)
        else:
            # mutant: (inside == 1) & (cp.diff(nn.offsets[: part.active + 1]) == 0) ->
            #   inside == 1 : test_between_leaves::test_every_way
            leaf = (inside == 1) & (cp.diff(nn.offsets[: part.active + 1]) == 0)
        # the last classes: vertices without inner edges, then leaves on delegates
        classes = cp.where(leaf, np.uint32(LEAF), inside + np.uint32(LEAF + 1))
        numbering = Numbering(self.kernels, classes)
        self._numbering, self.order = numbering, numbering.vertices
        self._at_least = self.normals + np.array(
            [inner_at_least(numbering, k) for k in range(AT_LEAST)]
        )
        self.leaves = int(cp.count_nonzero(leaf))
        numbers = numbering.numbers + np.uint32(self.normals)
        del numbering.numbers
        self.positions = positions_of(numbers, np.uint32(self.device), self.devices)
        local = part.vertices[: part.active].astype(self._id)
        self.names = local * self._id(part.layout.parts) + self._id(part.index)

    def leave_out(self, searched: int) -> None:
        """Make searches leave out leaves, whose numbers begin at ``searched``."""
        self._trees = leaves_after(searched, self.count, self._at_least)

    def keys_room(self) -> int:
        """Return the number of keys of rows that fit in free device memory."""
        return min(max(cuda.free_bytes() // (2 * self._key_bytes), 1), KEYS)

    def take_names(
        self, positions: Any, names: Any, starts: Ids, granules: int
    ) -> None:
        """Store the positions and names of the domain's normal vertices, by device.

        positions, names: [normal vertices of the domain]; starts: where each device's
        begin
        """
        cp, part = cuda.cupy(), self.part
        self.places = positions, cp.asarray(starts.astype(np.uint64))
        several = self.devices > 1
        all_positions = granules * GRANULE * self.devices if several else self.count
        self.slots = slots_after(all_positions)
        owned = part.layout.part_of(self.delegates.ids) == part.index
        owned = np.flatnonzero(owned)
        self._owned = owned[np.argsort(self.delegates.ids[owned])]
        room = part.active + len(owned) + 1
        self._ids = cp.zeros(self.slots + room, self._id)
        cp.invert(self._ids, out=self._ids)
        self._ids[self.spot] = cp.asarray(self.delegates.ids.astype(self._id))
        self._ids[positions] = names

    def measure(self, delegate_lengths: Sequence[Ids]) -> None:
        """Count the columns of rows, and make the outer edges; see ``InnerSide``."""
        for side, lengths in zip(self.sides, delegate_lengths, strict=True):
            side.measure(lengths)

    def _at_least_of(self, degree: int) -> int:
        """Return a number above those of all rows of at least this length.

        Rows of delegates come first, in any order.
        """
        if some := inner_at_least(self._numbering, degree):
            return self.normals + some
        lengths = np.max([side.lengths for side in self.sides], axis=0)
        long = np.flatnonzero(lengths >= degree)
        return int(long[-1]) + 1 if len(long) else 0

    @property
    def _counts(self) -> ShareCounts:
        outer = [side.outer for side in self.sides]
        part, layout = self.part, self.part.layout
        return ShareCounts(
            layout,
            part.index,
            self._domains,
            self.count,
            self.sides[0].edges,
            self._at_least,
            self.directed,
            delegates=self.delegates.count,
            targets=len(outer[0].targets),
            outer_edges=np.max([x.edges for x in outer], axis=0),
            owned=np.bincount(
                layout.part_of(self.delegates.ids), minlength=layout.parts
            ),
        )

    def fit(self, room: Room, sharing: int) -> Fit:
        """Compute how much of the part fits the device's memory.

        sharing: number of shares that the device builds and searches
        """
        part, local, sides = self.part, self.part.local_count, self.sides
        subgraphs = part.graph_bytes - part.host_bytes
        held = total_bytes(vertices_table(local, local)) + part.kept * subgraphs
        held += self._ids.nbytes + sum(side.outer.device_bytes for side in sides)
        made = 8 * len(sides) * (self.count + 1) + 4 * (self.count + local)
        fixed = held + made + room.state(self._counts)
        freed = 0 if part.kept else subgraphs
        have = room.free(held + freed, SPARE_VERTEX * local, sharing)
        longest = max(side.longest for side in sides)
        keys = (self._key_bytes + 4) * longest  # and their columns
        building = cuda.free_bytes() // sharing - made - keys - RESERVE // 4
        have = min(have, fixed + building)
        ranges = [side.ranges for side in sides]
        what = f"part {part.index} of"
        return Fit(what, fixed, have, have, self._at_least_of, ranges)

    @property
    def outer_bytes(self) -> int:
        """Bytes of the columns of outer edges."""
        return sum(int(side.outer.columns.nbytes) for side in self.sides)

    def finish(self, domain: Domain) -> Share:
        """Return the finished share."""
        cp, part = cuda.cupy(), self.part
        owned = self.delegates.number[self._owned]
        vertices = cp.full(self.count, ISOLATED, np.uint32)
        vertices[self.normals :] = part.vertices[self.order]
        local = part.layout.local_of(self.delegates.ids[self._owned])
        vertices[cp.asarray(owned)] = cp.asarray(local.astype(np.uint32))
        # one extra element takes the writes of vertices of other parts
        numbers = cp.full(part.local_count + 1, ISOLATED, np.uint32)
        at = cp.minimum(vertices, np.uint32(part.local_count))
        numbers[at] = cp.arange(self.count, dtype=np.uint32)
        numbers = numbers[: max(part.local_count, 1)]
        wide = self.directed or self.sides[0].edges >= WIDE
        rows = [side.finish(wide=wide) for side in self.sides]
        made = Share(
            n=part.local_count,
            active=self.count,
            out=rows[0],
            into=rows[-1],
            tuples=0,
            loops=0,
            at_least=self._at_least,
            vertices=vertices,
            numbers=numbers,
            tuple_degrees=part.tuple_degrees,
            source={},
            seconds=self.kernels.clock.seconds,
            trees=self._trees,
            layout=part.layout,
            index=part.index,
            domain=domain,
            ids=self._ids,
            slots=self.slots,
            delegates=self.delegates.by_position(),
            normals=self.normals,
            owned=owned,
        )
        most = 1 << (64 - made.id_bits)  # its index and an id share a 64-bit word
        if len(owned) > most:
            raise UsageError(
                f"part {part.index} owns {len(owned)} delegates; allowed: {most}; use "
                "more parts or another threshold"
            )
        return made
