"""The positions of vertices in the result arrays of all ranks, and their ids.

*Inside*, vertices have the ids of the layout, to which a hash (``permutation``) may map
the ids of the input. Row k of a shard is local id k of its part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import reached
from distbfs.device.arrays import device_of, host_array, is_of_device, values_of
from distbfs.errors import UsageError
from distbfs.exchange.router import Delivery, gather
from distbfs.formats.ids import no_vertex
from distbfs.graph.device_graph import ISOLATED
from distbfs.partition.delegates import DelegateNumbers
from distbfs.types import (
    UNREACHED,
    AnyArray,
    Array,
    Ids,
    World,
    slice_bounds,
)

if TYPE_CHECKING:
    from distbfs.generate.hashing import Permutation
    from distbfs.partition.layout import Layout
    from distbfs.partition.part import Part
    from distbfs.partition.share import Share

ROWS_AT_ONCE = 1 << 24  # rows summed at once, to bound temporary memory


def count_reached(values: AnyArray) -> int:
    """Count the reached vertices; values: as in ``Shard.ends_reached``."""
    if is_of_device(values):
        return reached.sum_reached(values)[0]
    return int((values >= 0).sum())


def row_slices(count: int) -> Iterator[slice]:
    """Cut rows into slices of ROWS_AT_ONCE."""
    for start in range(0, count, ROWS_AT_ONCE):
        yield slice(start, min(start + ROWS_AT_ONCE, count))


@dataclass(frozen=True)
class Shard:
    """The vertices of one part or device, whose results are stored together.

    index: the part of the layout
    ends: NumPy or CuPy integers, the number of ends of input tuples at each vertex; a
    loop has two
    rows: uint32, the row of each entry of ``ends``; None if ``ends`` is by row
    connected: a function from rows, int64 [k], to bool [k]: whether the vertex has a
    neighbour other than itself
    device: CUDA device, None for the host
    """

    index: int
    ends: Any
    rows: Any
    connected: Callable[[Ids], Array]
    device: int | None = None

    def ends_reached(self, values: AnyArray) -> int:
        """Return the number of ends of input tuples at reached vertices.

        values: levels or parents; exactly the unreached vertices have -1
        """
        if is_of_device(values):
            with device_of(values):
                return reached.sum_reached(values, self.ends, self.rows)[1]
        total = 0
        for some in row_slices(len(self.ends)):
            at = some if self.rows is None else self.rows[some]
            # mutant: >= 0 -> >= -1 : test_what_was_reached
            total += int((self.ends[some] * (values[at] >= 0)).sum(dtype=np.int64))
        return total


def shard_of_part(part: Part) -> Shard:
    """Return the shard of a degree-separated part."""
    on_device = is_of_device(part.vertices)
    delegates = DelegateNumbers(part.delegates) if on_device else None

    def connected(rows: Ids) -> Array:
        numbers = part.numbers_of(rows)
        if delegates is None:
            return part.degrees[numbers] > 0
        ids = part.layout.global_of(part.index, rows)
        return (numbers < part.active) | (delegates.of(ids) >= 0)

    device = int(part.vertices.device) if on_device else None
    return Shard(part.index, part.tuple_degrees, part.vertices, connected, device)


def shard_of_share(share: Share) -> Shard:
    """Return the shard of what a device holds."""

    def connected(rows: Ids) -> Array:
        return share.local_numbers(rows) != ISOLATED

    ends, device = share.tuple_degrees, share.cuda_device
    return Shard(share.index, ends, share.ended, connected, device)


class VertexMap:
    """The vertices of all ranks; methods are collective where they say so.

    shards: the shards of this rank, possibly none
    """

    def __init__(
        self,
        world: World,
        layout: Layout,
        shards: Sequence[Shard],
        permutation: Permutation | None = None,
    ) -> None:
        self.world, self.layout = world, layout
        self.shards, self.permutation = list(shards), permutation
        self._blocks: BlockMap | None = None

    @cached_property
    def on_devices(self) -> bool:
        """Whether results of this rank are in device memory."""
        return any(shard.device is not None for shard in self.shards)

    def check(self, ids: Ids, what: str = "") -> None:
        """Raise UsageError unless all ids, int64 [k], are vertices."""
        n = self.layout.n
        outside = ids[(ids < 0) | (ids >= n)]
        if len(outside):
            raise UsageError(f"{what}{outside[0]} {no_vertex(n)}")

    @property
    def own_block(self) -> tuple[int, int]:
        """The ids start … stop-1 of this rank's block; see ``block``."""
        return slice_bounds(self.layout.n, self.world.size, self.world.rank)

    @cached_property
    def whole_here(self) -> bool:
        """Whether this rank's single shard has all vertices in input order."""
        straight = self.permutation is None and self.layout.parts == 1
        return straight and self.world.size == len(self.shards) == 1

    def inside(self, ids: Ids) -> Ids:
        """Return the internal ids of input ids, int64."""
        return ids if self.permutation is None else self.permutation.forward(ids)

    def one_inside(self, vertex: int) -> int:
        """Return the internal id of one input id."""
        if self.permutation is None:
            return vertex
        return int(self.permutation.forward(np.array([vertex]))[0])

    def outside(self, ids: Ids) -> Ids:
        """Return the input ids of internal ids, int64; -1 stays -1."""
        if self.permutation is None:
            return ids
        out = np.full(len(ids), UNREACHED, dtype=np.int64)
        out[ids >= 0] = self.permutation.inverse(ids[ids >= 0])
        return out

    def _here(self, inside: Ids) -> Iterator[tuple[int, Array, Ids]]:
        """Yield (shard, places in ``inside``, rows) of the shards of this rank."""
        part, rows = self.layout.part_of(inside), self.layout.local_of(inside)
        for k, shard in enumerate(self.shards):
            places = np.flatnonzero(part == shard.index)
            yield k, places, rows[places]

    def connected(self, ids: Ids) -> Array:
        """Return which input ids have a neighbour other than themselves (collective).

        ids: int64 [k], equal on all ranks; result: bool [k], equal on all ranks
        """
        seen = np.zeros(len(ids), dtype=np.uint8)
        for k, places, rows in self._here(self.inside(ids)):
            seen[places] = self.shards[k].connected(rows)
        on_all: Array = self.world.allreduce(seen, "max").astype(np.bool_)
        return on_all

    def values_at(
        self,
        level: Sequence[AnyArray] | None,
        parent: Sequence[AnyArray] | None,
        ids: Ids,
    ) -> tuple[Array | None, Array | None]:
        """Return (level int32 [k], parent int64 [k]) of input ids (collective).

        The result is equal on all ranks.

        level, parent: arrays of the shards of this rank; None, also in the result, if
        they are not wanted
        """
        if self.whole_here:
            return (
                None if level is None else values_of(level[0], ids).astype(np.int32),
                None if parent is None else values_of(parent[0], ids).astype(np.int64),
            )
        wanted = [arrays for arrays in (level, parent) if arrays is not None]
        values = np.full((len(wanted), len(ids)), UNREACHED, dtype=np.int64)
        # mutant: self.inside(ids) -> ids : test_a_few_values
        for k, places, rows in self._here(self.inside(ids)):
            for row, arrays in enumerate(wanted):
                values[row, places] = values_of(arrays[k], rows)
        values = self.world.allreduce(values, "max")
        return (
            None if level is None else values[0].astype(np.int32),
            None if parent is None else self.outside(values[-1]),
        )

    def block(self, arrays: Sequence[AnyArray], dtype: type[np.number[Any]]) -> Array:
        """Return this rank's block of values by input id, on the host (collective).

        arrays: one for each shard of this rank

        Rank r gets the ids ``slice_bounds(n, size, r)``. On one rank, the result may be
        the array of the shard itself.
        """
        blocks = [host_array(x).astype(dtype, copy=False) for x in arrays]
        if self.whole_here:
            return blocks[0]
        if self._blocks is None:
            self._blocks = BlockMap(self)
        return self._blocks.gather(blocks, dtype)


class BlockMap:
    """Moves values from shards to blocks of consecutive input ids.

    The mapping is computed once; after a search, only values are sent.
    """

    def __init__(self, vertices: VertexMap) -> None:
        world, layout = vertices.world, vertices.layout
        ids = np.concatenate(
            [
                np.zeros(0, dtype=np.int64),
                *(
                    layout.global_of(x.index, np.arange(layout.local_count(x.index)))
                    for x in vertices.shards
                ),
            ]
        )
        # mutant: vertices.outside -> np.array : test_results_in_input_ids
        ids = vertices.outside(ids)
        starts = [slice_bounds(layout.n, world.size, r)[0] for r in range(world.size)]
        owner = np.searchsorted(np.array(starts), ids, side="right") - 1
        self._delivery = Delivery(world, owner)
        first, stop = vertices.own_block
        self._size = stop - first
        self._place = np.concatenate(self._delivery.send(ids)) - first

    def gather(self, values: Sequence[Array], dtype: type[np.number[Any]]) -> Array:
        """Return this rank's block from the arrays of its shards (collective)."""
        joined = np.concatenate([np.zeros(0, dtype), *values])
        out = np.empty(self._size, dtype=dtype)
        out[self._place] = np.concatenate(self._delivery.send(joined))
        return out


def gather_on_first(world: World, block: Array | None) -> Array | None:
    """Gather the blocks of an array on rank 0 (collective).

    Other ranks get an array of length 0; all ranks get None if ``block`` is None.
    """
    if block is None:
        return None
    return np.concatenate(gather(world, block))
