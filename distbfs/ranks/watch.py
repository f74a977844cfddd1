"""The watch over ranks: which ranks are stuck, and in which call this rank waits.

The ranks of a host share memory with a row for each rank. A thread of each rank
increments its pulse four times a second, and ``MpiWorld.waits`` counts its turns, which
are odd while the rank waits in MPI. A rank is silent if neither its pulse nor its
processor time advances: the rank or its host is stopped. A slow rank has a pulse. Ranks
of other hosts are judged by how long all ranks of this host have waited for them in one
collective.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import RanksStuck
from distbfs.ranks.mpi import MpiWorld
from distbfs.ranks.processes import processes_beside

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from distbfs.types import World

BEAT = 0.25  # seconds between pulses
SILENT = 3.0  # seconds without a sign of life before a rank counts as stuck
LONG = 60.0  # seconds that all ranks of this host wait in one collective
PULSE, TURN = 0, 1  # columns of the memory that ranks share
LEFT = -1  # the pulse of a rank that no longer watches


class Watch:
    """Detects stuck ranks; a context manager, created by all ranks (collective).

    patience: seconds without progress after which this rank ends all, None for never
    stop: function that returns whether the run was asked to end; from then on the run
    ends if a rank is silent for ``SILENT`` seconds

    It does nothing if there is one rank. Times are counted in beats of this rank, so
    that a job that was suspended as a whole continues.
    """

    def __init__(
        self, world: World, patience: float | None, stop: Callable[[], bool]
    ) -> None:
        self._patience, self._stop = patience, stop
        self._trouble = ""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        if isinstance(world, MpiWorld) and world.size > 1:
            self._begin(world)

    def _begin(self, world: MpiWorld) -> None:
        self._world = world
        self._board, self._ranks = world.share_turns()
        self._row = self._ranks.index(world.rank)
        self._beside = {one.rank: one for one in processes_beside(world)}
        self._seen = [(0, 0)] * len(self._ranks)
        self._silent = [0.0] * len(self._ranks)
        self._turns = self._board[:, TURN].copy()
        self._waited = 0.0
        self._board[self._row, PULSE] = 1
        world.barrier()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def trouble(self) -> str:
        """Return which rank is stuck and which call waits for it, "" if none is."""
        return self._trouble

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._board[self._row, PULSE] = LEFT

    def _run(self) -> None:
        # ranks above 0 let rank 0 speak for all
        later = 2 * BEAT if self._world.rank else 0.0
        while not self._over.wait(BEAT):
            self._board[self._row, PULSE] += 1
            self._look()
            silent, waited = max(self._silent) - later, self._waited - later
            self._trouble = self._describe(SILENT, self._patience or LONG)
            if self._patience and max(silent, waited) >= self._patience:
                raise RanksStuck(self._describe(self._patience, self._patience))
            if silent >= SILENT and self._stop():
                raise RanksStuck(f"asked to end, but {self._trouble}")

    def _look(self) -> None:
        """Count the beats since the last sign of life of each rank of this host."""
        for row, rank in enumerate(self._ranks):
            pulse = int(self._board[row, PULSE])
            process = self._beside.get(rank)
            signs = pulse, process.ticks() if process else 0
            quiet = signs == self._seen[row] and pulse != LEFT
            self._silent[row] = self._silent[row] + BEAT if quiet else 0.0
            self._seen[row] = signs
        turns = self._board[:, TURN].copy()
        wait = bool(np.all(turns & 1) and np.array_equal(turns, self._turns))
        if not wait:
            self._waited = 0.0
        # mutant: <= 2 * BEAT -> >= 0 : test_who_stands_still_is_not_waiting
        elif max(self._silent) <= 2 * BEAT:  # who stands still does not wait
            self._waited += BEAT
        self._turns = turns

    def _describe(self, silent: float, waited: float) -> str:
        world = self._world
        place = world.waits.what + (f" of {world.doing}" if world.doing else "")
        long = max(self._silent)
        if long >= silent:
            names = [
                str(rank)
                for rank, quiet in zip(self._ranks, self._silent, strict=True)
                if quiet >= silent
            ]
            one = len(names) == 1
            text = f"rank{'' if one else 's'} {', '.join(names)} "
            text += f"{'has' if one else 'have'} given no sign of life for {long:.0f} s"
            if self._board[self._row, TURN] & 1:
                text += f"; rank {world.rank} waits in {place}"
            return text
        if self._waited >= waited:
            others = len(self._ranks) < world.size
            whom = "ranks of other hosts" if others else "one another"
            all_ranks = ", ".join(map(str, self._ranks))
            seconds = f"{self._waited:.0f} s"
            return f"ranks {all_ranks} wait for {whom} for {seconds} in {place}"
        return ""
