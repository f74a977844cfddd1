"""The ranks of an MPI program; only creating a world imports mpi4py."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import LaunchError
from distbfs.ranks.abort import abort_ranks
from distbfs.ranks.launcher import RankLaunch, foreign
from distbfs.ranks.reduction import check_reduction, json_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType
    from typing import NoReturn

    from typing_extensions import Self

    from distbfs.types import Array, Reduction

MAX_ELEMENTS = (1 << 31) - 1
LONGEST_PAUSE = 0.01
ALLTOALL_TAG = 1
CALL_TAG = 2
AWAKE = 2e-4  # seconds that a waiting rank polls before it sleeps
SHORTEST_SLEEP, LONGEST_SLEEP = 2e-5, 3e-3


def load_mpi(launch: RankLaunch) -> ModuleType:
    """Import mpi4py, and initialise MPI if needed; the first call is collective.

    Raises LaunchError if mpi4py is missing or uses another MPI than the launcher.
    The thread level is "serialized", so that any thread may end the ranks.
    """
    started = f"{launch.name} started {launch.count}"
    try:
        import mpi4py  # noqa: PLC0415

        if "mpi4py.MPI" not in sys.modules:
            mpi4py.rc.initialize = False
            mpi4py.rc.finalize = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            from mpi4py import MPI  # noqa: PLC0415
    except (ImportError, RuntimeError, OSError) as error:
        why = " ".join(str(error).split())
        raise LaunchError(
            f"{started}, but mpi4py cannot be used ({why}); install distbfs[mpi], or "
            "start without a launcher"
        ) from error
    advice = "use the mpiexec of the MPI library that mpi4py uses"
    vendor = MPI.get_vendor()[0]
    if not MPI.Is_initialized():
        if foreign(os.environ, vendor, MPI.Get_library_version()):
            raise LaunchError(
                f"{started}, but mpi4py uses {library_name(MPI)}, another MPI; {advice}"
            )
        initialise(MPI)
    size = MPI.COMM_WORLD.Get_size()
    if not launch.agrees(size):
        raise LaunchError(
            f"{started}, but {library_name(MPI)}, which mpi4py uses, sees {size}; "
            f"{advice}, and with srun a --mpi that it supports"
        )
    return MPI


def initialise(mpi: ModuleType) -> None:
    """Initialise MPI, which waits for all ranks, and let Python's other threads run.

    ``mpi.Init_thread`` by itself would block these threads, so that none could end a
    rank that waits for others in vain.  Raises LaunchError if MPI reports an error.
    """
    reached = ctypes.c_int()
    begin = ctypes.CDLL(mpi.__file__).MPI_Init_thread  # finds that of its library
    if begin(None, None, mpi.THREAD_SERIALIZED, ctypes.byref(reached)):
        raise LaunchError(f"{library_name(mpi)} cannot be initialised")
    for comm in (mpi.COMM_WORLD, mpi.COMM_SELF):  # as mpi4py does: errors are raised
        comm.Set_errhandler(mpi.ERRORS_RETURN)


def library_name(mpi: ModuleType) -> str:
    """Return the MPI library with its version, such as "MPICH 5.0.2"."""
    vendor, numbers = mpi.get_vendor()
    return f"{vendor} {'.'.join(str(number) for number in numbers)}"


def pieces(total: int, limit: int) -> Iterator[slice]:
    """Cut ``total`` elements into slices of at most ``limit``."""
    for start in range(0, total, limit):
        yield slice(start, min(start + limit, total))


class Waits:
    """The MPI call in which this rank waits; ``turn``, int64 [1], is odd meanwhile.

    Each call that waits stands in ``with waits("allreduce"):``; these do not nest.
    """

    def __init__(self) -> None:
        self.what = ""
        self.turn = np.zeros(1, dtype=np.int64)

    def __call__(self, what: str) -> Self:
        """Set the name of the next wait."""
        self.what = what
        return self

    def __enter__(self) -> None:
        self.turn += 1

    def __exit__(self, *error: object) -> None:
        self.turn += 1


class MpiWorld:
    """The ranks of COMM_WORLD, with communicators of their own; see ``types.World``.

    rank, size: number of this rank, and number of ranks
    local_rank, local_size: the same among the ranks of this node
    hosts: host name of each rank
    comm: communicator that exchanges use; library: name and version of MPI
    waits: context manager for each call in which this rank waits for others
    doing: the ranks' present activity, such as "level 3", for messages

    Creating it is collective. Messages hold at most ``chunk_elements`` elements.
    """

    def __init__(self, comm: Any = None, chunk_elements: int = MAX_ELEMENTS) -> None:
        from mpi4py import MPI  # noqa: PLC0415

        self._mpi: Any = MPI
        self._limit = chunk_elements
        self.comm: Any = (MPI.COMM_WORLD if comm is None else comm).Dup()
        self._end: Any = self.comm.Dup()
        self._end_request: Any = None
        self._held: list[object] = []
        self._turns: tuple[Array, list[int]] | None = None
        self.waits = Waits()
        self.doing = ""
        self.rank: int = self.comm.Get_rank()
        self.size: int = self.comm.Get_size()
        self.library = library_name(MPI)
        node = self.comm.Split_type(MPI.COMM_TYPE_SHARED, key=self.rank)
        self.local_rank: int = node.Get_rank()
        self.local_size: int = node.Get_size()
        node.Free()
        self.hosts: list[str] = self.comm.allgather(MPI.Get_processor_name())

    def describe(self) -> dict[str, Any]:
        """Return library, number of ranks, and ranks per host (JSON values)."""
        return {
            "library": self.library,
            "ranks": self.size,
            "hosts": dict(Counter(self.hosts)),
        }

    def barrier(self) -> None:
        """Wait until every rank is here; collective."""
        with self.waits("barrier"):
            self.comm.Barrier()

    def allreduce(self, values: Array, op: Reduction = "sum") -> Array:
        """Reduce an array element by element; collective."""
        result = check_reduction(values, op)
        mpi = self._mpi
        operation = {"sum": mpi.SUM, "max": mpi.MAX, "min": mpi.MIN, "or": mpi.BOR}[op]
        flat = result.reshape(-1)
        if flat.dtype == np.bool_:
            flat = flat.view(np.uint8)
        for part in pieces(flat.size, self._limit):
            with self.waits("allreduce"):
                self.comm.Allreduce(mpi.IN_PLACE, flat[part], operation)
        return result

    def allgather(self, values: Array) -> list[Array]:
        """Gather the one-dimensional array of each rank on all ranks; collective."""
        own = np.ascontiguousarray(values)
        counts = np.empty(self.size, dtype=np.int64)
        with self.waits("allgather"):
            self.comm.Allgather(np.array([own.size], dtype=np.int64), counts)
        total = int(counts.sum())
        everything = np.empty(total, own.dtype)
        bounds = np.concatenate(([0], np.cumsum(counts)))
        arrays = [everything[bounds[r] : bounds[r + 1]] for r in range(self.size)]
        if total <= self._limit:
            with self.waits("allgather"):
                self.comm.Allgatherv(own, [everything, counts])
            return arrays
        arrays[self.rank][:] = own
        for root, array in enumerate(arrays):
            for part in pieces(array.size, self._limit):
                with self.waits("allgather"):
                    self.comm.Bcast(array[part], root)
        return arrays

    def alltoall(self, outgoing: Sequence[Array]) -> list[Array]:
        """Send ``outgoing[r]`` to rank r; collective."""
        out = [np.ascontiguousarray(array) for array in outgoing]
        sent = np.array([array.size for array in out], dtype=np.int64)
        counts = np.empty(self.size, dtype=np.int64)
        with self.waits("alltoall"):
            self.comm.Alltoall(sent, counts)
        arrays = [np.empty(int(count), out[0].dtype) for count in counts]
        arrays[self.rank][:] = out[self.rank]
        others = [(self.rank + step) % self.size for step in range(1, self.size)]
        requests = [
            self.comm.Irecv(arrays[r][part], r, ALLTOALL_TAG)
            for r in reversed(others)
            for part in pieces(arrays[r].size, self._limit)
        ]
        requests += [
            self.comm.Isend(out[r][part], r, ALLTOALL_TAG)
            for r in others
            for part in pieces(out[r].size, self._limit)
        ]
        with self.waits("alltoall"):
            self._mpi.Request.Waitall(requests)
        return arrays

    def broadcast(self, value: Any, root: int = 0, *, patient: bool = False) -> Any:
        """Send the JSON-like object of ``root`` to every rank; collective.

        patient: between polls a waiting rank sleeps for an eighth of the time waited so
        far, at most 3 ms: short waits end at once, and long ones use less than 1 % of a
        core.
        """
        text = json_text(value) if self.rank == root else ""
        if not patient:
            with self.waits("broadcast"):
                text = self.comm.bcast(text, root)
        elif self.rank == root:
            others = [rank for rank in range(self.size) if rank != root]
            sent = [self.comm.isend(text, rank, CALL_TAG) for rank in others]
            with self.waits("call"):
                self._mpi.Request.waitall(sent)
        else:
            began = time.monotonic()
            while (message := self.comm.improbe(root, CALL_TAG)) is None:
                waited = time.monotonic() - began
                if waited < AWAKE:
                    os.sched_yield()
                else:
                    time.sleep(min(max(waited / 8, SHORTEST_SLEEP), LONGEST_SLEEP))
            text = message.recv()
        return json.loads(text)

    def share_turns(self) -> tuple[Array, list[int]]:
        """Return memory shared by the ranks of this host, and those ranks; collective.

        The memory is int64 [ranks of this host, 2]: a pulse, for ``Watch``, and the
        turn of ``waits``. It lasts as long as the program; later calls return the same
        memory.
        """
        if self._turns is None:
            node = self.comm.Split_type(self._mpi.COMM_TYPE_SHARED, key=self.rank)
            ranks: list[int] = node.allgather(self.rank)
            size = 16 * len(ranks) if node.Get_rank() == 0 else 0
            window = self._mpi.Win.Allocate_shared(size, 8, comm=node)
            memory, _ = window.Shared_query(0)
            board = np.frombuffer(memory, np.int64).reshape(-1, 2)
            row = ranks.index(self.rank)
            board[row] = 0
            self.waits.turn = board[row, 1:]
            self.hold(window, node)
            self._turns = board, ranks
        return self._turns

    def abort(self, code: int) -> NoReturn:
        """End all ranks with an exit code; 0 counts as 1."""
        abort_ranks(self.comm, code)

    def split(self, group: int) -> MpiWorld:
        """Return a world of the ranks with the same ``group``, in order; collective."""
        comm = self.comm.Split(group, self.rank)
        world = MpiWorld(comm, self._limit)
        comm.Free()
        world.waits = self.waits  # the other ranks read these
        return world

    def free(self) -> None:
        """Free the communicators; collective, and the last call of this world."""
        self._end.Free()
        self.comm.Free()

    def finish(self) -> None:
        """Agree that the common work is done; collective, waits without limit.

        Afterwards the ranks may end at different times, but none may wait for another.
        """
        self.wait_end(None)

    def wait_end(self, patience: float | None) -> bool:
        """Wait until all ranks reach their end; False after ``patience`` seconds.

        The rank sleeps while it waits, and leaves the core free.
        """
        if self._mpi.Is_finalized():
            return True
        if self._end_request is None:
            self._end_request = self._end.Ibarrier()
        start = time.monotonic()
        pause = 1e-5
        while not self._end_request.Test():
            if patience is not None and time.monotonic() - start > patience:
                return False
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return True

    def hold(self, *items: object) -> None:
        """Keep memory alive that MPI may still read or write."""
        self._held.extend(items)
