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
from distbfs.partition.layout import Placement
from distbfs.partition.part import PART_SHIFT, Part
from distbfs.types import Ids, World

COLUMNS = 1 << 26  # of a part at a time


def number_columns(parts: Sequence[Part], placement: Placement, world: World) -> None:
    """Replace the local ids in the columns of nn by numbers (collective).

    parts: this rank's parts, whose columns of nn, part << 32 | local id, are changed in
    place, for edges out and in

    Raises InputError if a column is not a normal vertex.
    """
    ranks = [placement.parts_of(rank) for rank in range(world.size)]
    for side in zip(*(part.sides for part in parts), strict=True):
        every = [rows["nn"].columns[: rows["nn"].edges] for rows in side]
        most = np.array([max(map(len, every))])
        for low in range(0, int(world.allreduce(most, "max")[0]), COLUMNS):
            some = [columns[low : low + COLUMNS] for columns in every]
            asked = [_by_part(columns, placement.parts) for columns in some]
            boxes = [boxes for _, boxes in asked]
            for place, numbers in answers(parts, boxes, ranks, world, _numbers):
                columns, (order, _) = some[place], asked[place]
                there = columns[order] >> np.uint64(PART_SHIFT) << np.uint64(PART_SHIFT)
                # mutant: columns[order] = there | numbers.astype(np.uint64) -> pass
                #   : test_keys_that_tell_few_rows_apart
                columns[order] = there | numbers.astype(np.uint64)
            del asked, boxes


def _by_part(columns: Any, parts: int) -> tuple[Any, list[Any]]:
    """Return the order of columns by part, and their local ids for each part.

    columns: CuPy uint64, part << 32 | local id; local ids: uint32
    """
    cp = cuda.cupy()
    with columns.device:
        part_of = (columns >> np.uint64(PART_SHIFT)).astype(np.int32)
        order = cp.argsort(part_of, kind="stable")
        counts = cp.bincount(part_of, minlength=parts).get()
        places = columns[order].astype(np.uint32)
    bounds = np.concatenate([[0], np.cumsum(counts)]).tolist()
    return order, [places[low:high] for low, high in pairwise(bounds)]


def answers(
    parts: Sequence[Part],
    boxes: Sequence[Sequence[Any]],
    ranks: Sequence[Sequence[int]],
    world: World,
    look_up: Callable[[Part, Any], Any],
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
    parts: Sequence[Part],
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


def _local_ids(part: Part, numbers: Any) -> Any:
    """Return the local ids of normal vertices."""
    return part.vertices[numbers]


def _numbers(part: Part, places: Any) -> Any:
    """Return the numbers of local ids, CuPy uint32."""
    numbers = part.numbers[places]
    if len(numbers) and int(numbers.max()) >= part.active:
        raise InputError("the edge tuples changed while the graph was built")
    return numbers
