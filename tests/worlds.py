"""Ranks that are threads of one process, for tests of collective code."""

import threading

import numpy as np

from distbfs.device import cuda
from distbfs.exchange.traffic import Traffic

REDUCE = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "or": np.bitwise_or.reduce,
}
PATIENCE = 30


class Meeting:
    """What the ranks share: a barrier, and a slot for each in calls that take turns.

    Who writes to the slots of a call has met all others in the one between, so they
    have read those of the call before it.
    """

    def __init__(self, size):
        self.size = size
        self.barrier = threading.Barrier(size, timeout=PATIENCE)
        self.turns = [None] * size, [None] * size


class ThreadWorld:
    """One rank of a meeting."""

    def __init__(self, meeting, rank):
        self.meeting = meeting
        self.rank = rank
        self.size = meeting.size
        self.hosts = ["here"] * self.size
        self.calls = self.turn = 0

    def _share(self, name, value):
        """Give every rank the value of each; what a rank may change is a copy."""
        self.calls += 1
        self.turn = 1 - self.turn
        shared = self.meeting.turns[self.turn]
        shared[self.rank] = (name, self.calls, value)
        self.meeting.barrier.wait()
        slots = list(shared)
        assert len({slot[:2] for slot in slots}) == 1, "ranks call different methods"
        return [slot[2] for slot in slots]

    def barrier(self):
        self._share("barrier", None)

    def allreduce(self, values, op="sum"):
        every = self._share(
            f"allreduce {op} {values.dtype} {values.shape}", values.copy()
        )
        return REDUCE[op](np.stack(every), axis=0).astype(values.dtype)

    def allgather(self, values):
        assert values.ndim == 1
        return [
            x.copy() for x in self._share(f"allgather {values.dtype}", values.copy())
        ]

    def alltoall(self, outgoing):
        assert len(outgoing) == self.size
        kinds = {str(x.dtype) for x in outgoing}
        assert len(kinds) == 1
        every = self._share(f"alltoall {kinds}", [x.copy() for x in outgoing])
        return [sent[self.rank].copy() for sent in every]

    def split(self, group):
        """The ranks of the same number, as a world of their own."""
        groups = self._share("split", group)
        mine = [rank for rank, x in enumerate(groups) if x == group]
        made = Meeting(len(mine)) if self.rank == mine[0] else None
        meeting = self._share("split meeting", made)[mine[0]]
        world = ThreadWorld(meeting, mine.index(self.rank))
        world.hosts = [self.hosts[rank] for rank in mine]
        return world

    def free(self):
        self._share("free", None)

    def broadcast(self, value, root=0, *, patient=False):
        return self._share("broadcast", value)[root]

    def abort(self, code):
        self.meeting.barrier.abort()


def on_ranks(size, work):
    """Run work(world) on each rank; return the results, or raise the first error."""
    meeting = Meeting(size)
    results, errors = [None] * size, [None] * size

    def run(rank):
        try:
            results[rank] = work(ThreadWorld(meeting, rank))
        except BaseException as error:  # noqa: BLE001
            errors[rank] = error
            if not hasattr(error, "exit_code"):
                meeting.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wrong = [x for x in errors if x is not None]
    broken = threading.BrokenBarrierError
    for error in [x for x in wrong if not isinstance(x, broken)] + wrong:
        raise error
    return results


class ThreadExchange:
    """An exchange between the ranks of a meeting; see ``exchange.base.Exchange``."""

    name = "threads"
    streamed = symmetric = needs_devices = False

    def __init__(self, world, placement, delegates, options, *, on_device):
        self.on_device, self.xp = on_device, cuda.cupy() if on_device else np
        self._here = self.xp.asarray
        self.traffic = Traffic(len(placement.parts_of(world.rank)))
        self._world = world
        self._mine = placement.parts_of(world.rank)
        self._ranks = [placement.parts_of(rank) for rank in range(world.size)]
        self._words = (delegates + 63) // 64
        self._nothing = np.zeros(0, np.uint64)
        self._mask = self._here(np.zeros(self._words, dtype=np.uint64))
        self._arrived = []

    def start_masks(self, masks):
        assert all(len(mask) == self._words for mask in masks)
        mine = np.bitwise_or.reduce([np.asarray(mask) for mask in masks])
        self._mask = self._here(self._world.allreduce(mine, "or"))

    def finish_masks(self):
        return self._mask

    def start_normals(self, bins):
        """Bins travel one destination device after another."""
        self._arrived = [[] for _ in self._mine]
        pieces = [{k: np.asarray(x) for k, x in own.pieces()} for own in bins]
        for device in range(max(map(len, self._ranks))):
            sent = [
                np.concatenate([own.get(part, self._nothing) for own in pieces])
                for part in (dict(enumerate(x)).get(device) for x in self._ranks)
            ]
            for rank, items in enumerate(self._world.alltoall(sent)):
                if len(items):
                    self._arrived[device].append((rank, self._here(items)))

    def finish_normals(self):
        return self._arrived

    def close(self):
        pass
