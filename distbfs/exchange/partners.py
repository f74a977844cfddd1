"""Sizes of the messages that a rank receives in a level, if few of many ranks send.

Each rank knows how many messages it has for each receiver. The sums of these numbers
(MPI_Reduce_scatter_block) tell every rank how many messages it receives; it then
accepts that many from any source. The host's work grows with the number of messages,
not of ranks. The call is a blocking one because Open MPI's nonblocking call sends the
sums from rank 0, with a message for each rank.

Levels alternate between two communicators, so that a message from a rank that is ahead
is not mistaken for one of the present level. A rank cannot be two levels ahead: the
sums of the level in between need all ranks, and each takes part only after it has
received all messages of the previous level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.ranks.mpi import MpiWorld
    from distbfs.types import Array, Ids


class Pair(NamedTuple):
    """A part of this rank, by its place on it, and a part of another rank."""

    rank: int
    here: int
    there: int


class Partners:
    """The numbers of messages between ranks; creating it is collective.

    comm: communicator of the messages of this level
    """

    def __init__(self, world: MpiWorld) -> None:
        from mpi4py import MPI  # noqa: PLC0415

        self._mpi: Any = MPI
        self._world = world
        self.comm: Any = world.comm.Dup()
        self._other: Any = world.comm.Dup()
        self._sent = np.zeros(world.size, np.int32)
        self._ranks: list[int] = []
        self._coming = np.zeros(1, np.int32)

    def next_level(self) -> None:
        """Switch to the other communicator."""
        # mutant: _other, self.comm -> comm, self._other
        #   : test_a_rank_that_is_ahead_mixes_nothing_up
        self.comm, self._other = self._other, self.comm

    def announce(self, rank: int) -> None:
        """Count a message that this rank sends to another in this level."""
        self._sent[rank] += 1
        self._ranks.append(rank)

    def coming(self) -> int:
        """Return the number of this level's messages to this rank; collective."""
        with self._world.waits("exchange of counts"):
            self.comm.Reduce_scatter_block(self._sent, self._coming)
        for rank in self._ranks:
            self._sent[rank] = 0
        self._ranks.clear()
        return int(self._coming[0])

    def sizes(
        self, leaving: Sequence[tuple[Pair, Array]], parts: int
    ) -> dict[int, Ids]:
        """Return the sizes of the items to receive (collective).

        leaving: (pair, items) for each message to other ranks
        parts: the most parts of a rank

        Returns int64 [parts, parts] by ascending rank: sizes by place of the receiving
        part here, and place of the sending part there.
        """
        rows: dict[int, Ids] = {}
        for pair, array in leaving:
            if pair.rank not in rows:
                rows[pair.rank] = np.zeros((parts, parts), np.int64)
            rows[pair.rank][pair.there, pair.here] = array.size
        self.next_level()
        requests = [self.comm.Isend(row, rank) for rank, row in rows.items()]
        for rank in rows:
            self.announce(rank)
        status = self._mpi.Status()
        arrived: dict[int, Ids] = {}
        coming = self.coming()
        with self._world.waits("exchange of counts"):
            for _ in range(coming):
                row = np.empty((parts, parts), np.int64)
                self.comm.Recv(row, status=status)
                arrived[status.Get_source()] = row
            self._mpi.Request.Waitall(requests)
        return dict(sorted(arrived.items()))

    def free(self) -> None:
        """Free the communicators; no message may be in transit."""
        self.comm.Free()
        self._other.Free()
