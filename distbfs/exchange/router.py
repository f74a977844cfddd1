"""Delivery of items to the ranks that own them, and of answers back (collective).

All questions and results about vertices of other ranks go through here: parents, counts
of paths, results by input id, lookups of validation, edges to their owners, boxes
between devices. Data between ranks passes through host memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device.arrays import host_array

if TYPE_CHECKING:
    from distbfs.types import Array, Ids, World


class Delivery:
    """The routing of items to their owners, reused for items and answers.

    owners: rank of each item, int [k]
    """

    def __init__(self, world: World, owners: Array) -> None:
        self._world = world
        self._order: Ids | slice = slice(None)
        if (owners[1:] < owners[:-1]).any():
            self._order = np.argsort(owners, kind="stable")
        self._cuts = np.searchsorted(owners[self._order], np.arange(1, world.size))

    def split(self, items: Array) -> list[Array]:
        """Return the items of each rank; those of a rank, [k, …], keep their order."""
        return np.split(items[self._order], self._cuts)

    def send(self, items: Array) -> list[Array]:
        """Send items, [k, …], to their owners; return those received, by rank."""
        return self.pass_on(self.split(items))

    def pass_on(self, outgoing: Sequence[Array]) -> list[Array]:
        """Send the items that ``split`` returned; return those received, by rank."""
        flat = [np.ascontiguousarray(some).ravel() for some in outgoing]
        rows = outgoing[0].shape[1:]
        return [some.reshape(-1, *rows) for some in self._world.alltoall(flat)]

    def back(self, answers: Sequence[Array]) -> Array:
        """Send answers to the items of each rank; return those to own items, [k]."""
        arrived = np.concatenate(self._world.alltoall(answers))
        replies = np.empty_like(arrived)
        # mutant: replies[self._order] -> replies[:] : test_router::test_answers
        replies[self._order] = arrived
        return replies

    def ask(self, questions: Array, answer: Callable[[Array], Array]) -> Array:
        """Ask the owners; return their answers, [k].

        answer: maps the questions of a rank, [j, …], to answers, [j]
        """
        return self.back([answer(some) for some in self.send(questions)])


def send(world: World, items: Array, owners: Array) -> Array:
    """Send items, [k, …], to their owners; return those received, in rank order."""
    return np.concatenate(Delivery(world, owners).send(items))


def gather(world: World, items: Array) -> list[Array]:
    """Send all items, [k], to rank 0, which gets an array from each rank.

    Other ranks get arrays of length 0.
    """
    return world.alltoall([items] + [items[:0]] * (world.size - 1))


def gather_all(
    world: World, arrays: Sequence[Array], seats: Sequence[Sequence[int]]
) -> list[Array]:
    """Return an array of each device, or part, of all ranks, in order of numbers.

    arrays: [k] for each of this rank, of one dtype, in host memory; seats: for each
    rank, their numbers
    """
    sizes = world.allgather(np.array([len(array) for array in arrays]))
    joint = world.allgather(np.concatenate(arrays))
    every: dict[int, Array] = {}
    for numbers, counts, values in zip(seats, sizes, joint, strict=True):
        pieces = np.split(values, np.cumsum(counts)[:-1])
        every |= zip(numbers, pieces, strict=True)
    return [every[number] for number in sorted(every)]


def swap(
    world: World,
    boxes: Sequence[Sequence[Any]],
    seats: Sequence[Sequence[int]],
    kind: np.dtype[Any],
) -> list[list[Any]]:
    """Exchange arrays between the devices of all ranks; return those received.

    boxes: for each device of this rank, an array to each device by its number; [k] of
    dtype ``kind``, NumPy or CuPy; seats: for each rank, the numbers of its devices

    Returns, for each device of this rank, the array from each device by its number: on
    the device if the sender is on this rank, else in host memory; None for numbers
    without a device.
    """
    mine, every = seats[world.rank], 1 + max(number for x in seats for number in x)
    arrived: list[list[Any]] = [[None] * every for _ in mine]
    for sender, sent in zip(mine, boxes, strict=True):
        for target, number in zip(arrived, mine, strict=True):
            target[sender] = sent[number]
    if world.size == 1:
        return arrived
    others = [() if there is mine else there for there in seats]
    leaving = [[sent[number] for sent in boxes for number in there] for there in others]
    sizes = [np.array([len(x) for x in some], dtype=np.int64) for some in leaving]
    joint = world.alltoall(
        [np.concatenate([np.zeros(0, kind), *map(host_array, x)]) for x in leaving]
    )
    for senders, came, ends in zip(others, joint, world.alltoall(sizes), strict=True):
        pieces = iter(np.split(came, np.cumsum(ends)))
        for sender in senders:
            for target in arrived:
                target[sender] = next(pieces)
    return arrived
