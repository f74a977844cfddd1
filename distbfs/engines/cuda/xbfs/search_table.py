"""The arrays of a search by method ``fast``: one table allocates and predicts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.engines.cuda.xbfs.ranges import (
    range_count,
    range_group,
    range_room,
    tree_ranges,
)
from distbfs.graph.device_graph import SEARCHED_UNIT
from distbfs.partition.share import GRANULE

SNAPSHOTS = 20
LISTS = 7  # second to eighth neighbours have arrays of their own
LEAST_BLOCK_IDS, MOST_BLOCK_IDS = 64, 12288  # ids whose results a block writes
RESULT_THREADS, RESULT_BLOCKS = 512, 3  # threads of such a block; on a multiprocessor
CLASSES = 128  # of vertices by degree, at most: runs of ids that a block writes
MOST_SHARED = 210 << 10  # the rest is L1
HUB_DEGREE, MOST_HUBS = 512, 1 << 17
MOST_BLOCKS, NEAR_ROOM = 256, 8192  # as in narrow.cuh
BLOCK_EDGES = 2048  # of a frontier that one block pushes alone, as in search.cuh
PUSHED = 1 << 24  # edges of a frontier that one device pushes though it could pull it
QUEUE_SHARE = 8  # of all vertices that a level after pulls has when it becomes a queue
PAD = 1024
RANGE_UNIT = GRANULE // 32  # words that ranges of a domain are cut at
RANGE_WORDS = (range_room(MOST_SHARED) // RANGE_UNIT - 1) * RANGE_UNIT  # at most


def words_of(active: int) -> int:
    """Return the words of a bitmap of ``active`` vertices, in whole units."""
    return -(-active // SEARCHED_UNIT) * SEARCHED_UNIT // 32


def padded(count: int, unit: int = PAD) -> int:
    """Return a count rounded up to units, plus one unit."""
    return (count // unit + 2) * unit


def most_cuts(
    words: int,
    least: int,
    grid: int,
    *,
    own: int | None = None,
    apart: int = 0,
    others: int | None = None,
) -> int:
    """Return the largest number of destination ranges of a bitmap.

    least: least number of ranges; grid: number of multiprocessors; own: words of this
    device; default: all
    apart: words that trees may have, which are cut separately, into ``others`` ranges
    at least; default: as in ``tree_ranges``
    """
    ranges = range_count(words, least, RANGE_WORDS)
    group = range_group(words if own is None else own, ranges, grid)
    if apart:
        few = tree_ranges(least, group) if others is None else others
        ranges += range_count(apart, few, RANGE_WORDS)
    return ranges * group


@dataclass(frozen=True)
class SearchShape:
    """Sizes that determine the arrays of a search.

    n, active: as in ``Share``
    grid: number of multiprocessors
    listed: numbers of vertices with a second, a third, … an eighth neighbour, [LISTS]
    in_ids: whether results are by id, else by number; parents, levels: which results
    there are
    wide: whether there is also room for levels beyond a byte, as results by number
    have; wide_ids: whether ids have 64 bits
    queue: most vertices of a queue
    hubs: number of rows that are cut at ``cuts`` destination ranges
    pieces: number of runs of ids whose results are written together
    code: number of words whose tree vertices look up results in a table of this search
    alone
    bare: whether some vertices lack neighbours for pulls to read, as in a directed
    graph
    """

    n: int
    active: int
    grid: int
    listed: Sequence[int]
    in_ids: bool = True
    parents: bool = True
    levels: bool = True
    wide: bool = False
    wide_ids: bool = False
    queue: int = 0
    hubs: int = 0
    cuts: int = 0
    pieces: int = 0
    code: int = 0
    bare: bool = False

    @property
    def words(self) -> int:
        """Words of a bitmap."""
        return words_of(self.active)

    @property
    def stride(self) -> int:
        """Words from one bitmap to the next."""
        return self.words + 64

    @property
    def room(self) -> int:
        """Number of vertices that arrays of found vertices have room for."""
        return self.words * 32 + PAD

    @property
    def block_ids(self) -> int:
        """Number of ids whose results a block writes; blocks fill whole rounds."""
        together = RESULT_BLOCKS * self.grid  # run at the same time
        rounds = max(-(-self.n // (together * MOST_BLOCK_IDS)), 1)
        units = -(-self.n // (together * rounds * LEAST_BLOCK_IDS))
        return max(units, 1) * LEAST_BLOCK_IDS

    @property
    def blocks(self) -> int:
        """Number of blocks that write results."""
        return max(-(-self.n // self.block_ids), 1)

    @property
    def results(self) -> int:
        """Number of elements of an array of results."""
        ids = self.blocks * self.block_ids
        return max(ids if self.in_ids else self.words * 32, 64)

    @cached_property
    def table(self) -> ArrayTable:
        """The arrays by the names of their arguments in search.cuh.

        Parents by number are ``parent`` itself; if ids have 64 bits, ``first`` has the
        names of columns.
        """
        u32, id_type = np.uint32, np.int64 if self.wide_ids else np.int32
        firsts = ArrayPlan(u32, padded(self.active))
        table: ArrayTable = {
            "first": firsts,
            "first_id": firsts,
            "column": [ArrayPlan(u32, padded(x, 128)) for x in self.listed],
            "place": ArrayPlan(np.uint16, padded(self.active)),
            "piece": ArrayPlan(u32, (self.pieces, 2)),
            "piece_at": ArrayPlan(u32, self.blocks + 1),
            "range": ArrayPlan(u32, self.cuts + 1),
            "split": ArrayPlan(u32, self.hubs * (self.cuts + 1)),
            "snapshot": ArrayPlan(u32, SNAPSHOTS * self.stride),
            "next_snapshot": ArrayPlan(u32, SNAPSHOTS * self.stride),
            "by_first": ArrayPlan(u32, self.stride),
            "next_by_first": ArrayPlan(u32, self.stride),
            "parent": ArrayPlan(u32, self.room),
            "direct": ArrayPlan(u32, self.room),
            "hub_queue": [ArrayPlan(u32, self.hubs + 1)] * 2,
            "said": ArrayPlan(np.uint64, 2 * self.grid),
            "queue": [ArrayPlan(u32, 4 * (self.queue + 64))] * 2,
            "code": ArrayPlan(u32, 2 * self.code),
            "more": ArrayPlan(u32, self.words),
            "bare": ArrayPlan(u32, self.words),
            "level_out": ArrayPlan(np.int8, self.results),
            "level_wide": ArrayPlan(np.int32, self.results),
            "parent_out": ArrayPlan(id_type, self.results),
        }
        without = {
            "first_id": self.wide_ids,
            "code": not self.code,
            "more": not self.bare,
            "bare": not self.bare,
            "level_out": not self.levels,
            "level_wide": not (self.levels and (self.wide or not self.in_ids)),
            "parent_out": not (self.parents and self.in_ids),
        }
        return {name: plan for name, plan in table.items() if not without.get(name)}


def expected_shape(
    n: int,
    active: int,
    m: int,
    grid: int,
    *,
    queue: int | None = None,
    listed: int | None = None,
    cuts: int | None = None,
    **form: Any,
) -> SearchShape:
    """Return the largest shape of a search for these numbers of vertices and edges.

    n, active, m: as in ``Share``; form: as in ``SearchShape``
    queue: by default as in ``Arrays.make_queues``; cuts: by default as for one device
    listed: sum of ``SearchShape.listed``, by default its upper bound
    """
    if queue is None:
        queue = min(active, max(active // QUEUE_SHARE, PUSHED))
    if listed is None:  # rows of trees are last, behind all shorter ones
        listed = LISTS * active
    words = words_of(active)
    shape = SearchShape(
        n,
        active,
        grid,
        [listed] + [0] * (LISTS - 1),
        queue=queue,
        hubs=min(MOST_HUBS, m // HUB_DEGREE, active),
        cuts=most_cuts(words, grid, grid, apart=words) if cuts is None else cuts,
        code=words if cuts is None else 0,
        **form,
    )
    pieces = min(words + shape.blocks * CLASSES, active)
    return replace(shape, pieces=pieces)
