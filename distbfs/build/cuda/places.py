"""The exchange of local ids and numbers of vertices between parts.

If ids have 64 bits, no device stores the numbers of all normal vertices. A part sends
the local ids of its columns of nn to their parts, some columns at a time, and receives
the numbers. For searches between domains, the targets of outer edges are converted from
numbers to local ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.arrays import joined
from distbfs.errors import InputError
from distbfs.exchange.router import swap
from distbfs.partition.device_part import DevicePart, DeviceSubgraph
from distbfs.partition.layout import Placement
from distbfs.partition.part import PART_SHIFT
from distbfs.types import Ids, World

COLUMNS = 1 << 26  # of a part at a time


class RequestedColumns:
    """Columns of a part whose numbers are requested, sorted by part.

    columns: CuPy uint64, part << 32 | local id; boxes: the local ids for each part,
    uint32
    """

    def __init__(self, columns: Any, parts: int) -> None:
        cp = cuda.cupy()
        self._columns = columns
        part_of = (columns >> np.uint64(PART_SHIFT)).astype(np.int32)
        self._order = cp.argsort(part_of, kind="stable")
        counts = cp.bincount(part_of, minlength=parts).get()
        bounds = np.concatenate([[0], np.cumsum(counts)]).tolist()
        places = columns[self._order].astype(np.uint32)
        self.boxes = [places[low:high] for low, high in pairwise(bounds)]

    def take(self, numbers: Any) -> None:
        """Write numbers, which come in the order of the boxes, into the columns."""
        columns, order = self._columns, self._order
        there = columns[order] >> np.uint64(PART_SHIFT) << np.uint64(PART_SHIFT)
        # mutant: columns[order] = there | numbers.astype(np.uint64) -> pass
        #   : test_keys_that_tell_few_rows_apart
        columns[order] = there | numbers.astype(np.uint64)


def number_columns(
    parts: Sequence[DevicePart], placement: Placement, world: World
) -> None:
    """Replace the local ids in the columns of nn by numbers (collective).

    parts: this rank's parts, whose columns of nn, part << 32 | local id, are changed in
    place, for edges out and in

    Raises InputError if a column is not a normal vertex.
    """
    for side in zip(*(part.sides for part in parts), strict=True):
        _number_side(parts, [rows["nn"] for rows in side], placement, world)


def _number_side(
    parts: Sequence[DevicePart],
    subgraphs: Sequence[DeviceSubgraph],
    placement: Placement,
    world: World,
) -> None:
    """Replace the columns of one subgraph of each part; see ``number_columns``."""
    ranks = [placement.parts_of(rank) for rank in range(world.size)]
    most = np.array([max(nn.edges for nn in subgraphs)])
    for low in range(0, int(world.allreduce(most, "max")[0]), COLUMNS):
        asked = []
        for part, nn in zip(parts, subgraphs, strict=True):
            with part.vertices.device:
                high = max(min(low + COLUMNS, nn.edges), low)
                columns = nn.columns[low:high]
                asked.append(RequestedColumns(columns, placement.parts))
        boxes = [some.boxes for some in asked]
        for place, numbers in answers(parts, boxes, ranks, world, _numbers):
            asked[place].take(numbers)
        del asked, boxes


def answers(
    parts: Sequence[DevicePart],
    boxes: Sequence[Sequence[Any]],
    ranks: Sequence[Sequence[int]],
    world: World,
    look_up: Callable[[DevicePart, Any], Any],
) -> Iterator[tuple[int, Any]]:
    """Ask all parts; yield (place of a part of this rank, answers to it) (collective).

    boxes: for each part of this rank, the questions to each part, CuPy uint32; the
    answers come in their order, while the part's device is current
    ranks: the parts of each rank; look_up: returns a part's answers to questions
    """
    replies, kind = [], np.dtype(np.uint32)
    for part, came in zip(parts, swap(world, boxes, ranks, kind), strict=True):
        with part.vertices.device:
            values = look_up(part, joined(came))
            sizes = [0 if box is None else len(box) for box in came]
            ends = np.cumsum([0, *sizes]).tolist()
            replies.append([values[low:high] for low, high in pairwise(ends)])
    arrived = swap(world, replies, ranks, kind)
    for place, (part, some) in enumerate(zip(parts, arrived, strict=True)):
        with part.vertices.device:
            yield place, joined(some)


def name_targets(
    parts: Sequence[DevicePart],
    targets: Sequence[tuple[Any, Ids]],
    ranks: Sequence[Sequence[int]],
    world: World,
) -> None:
    """Replace numbers by local ids in the targets of outer edges (collective).

    parts: this rank's parts; targets: for each of them, CuPy uint32 [targets], changed
    in place, and where the targets on each part begin and all end; ranks: the parts of
    each rank
    """
    most = np.array([max(len(values) for values, _ in targets)])
    for low in range(0, int(world.allreduce(most, "max")[0]), COLUMNS):
        boxes = []
        for values, starts in targets:
            bounds = np.clip(starts, low, low + COLUMNS).tolist()
            boxes.append([values[begin:end] for begin, end in pairwise(bounds)])
        for place, ids in answers(parts, boxes, ranks, world, _local_ids):
            targets[place][0][low : low + COLUMNS] = ids


def _local_ids(part: DevicePart, numbers: Any) -> Any:
    """Return the local ids of normal vertices."""
    return part.vertices[numbers]


def _numbers(part: DevicePart, places: Any) -> Any:
    """Return the numbers of local ids, CuPy uint32."""
    numbers = part.numbers[places]
    if len(numbers) and int(numbers.max()) >= part.active:
        raise InputError("the edge tuples changed while the graph was built")
    return numbers
