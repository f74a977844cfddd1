"""A NCCL communicator between ranks, one device a rank, with the stream it works on.

NCCL works asynchronously and knows no time limit: a kernel that waits for a rank that
is gone spins for ever.  Whoever waits here therefore polls, and looks from time to time
whether NCCL reports an error (a rank of another node) and whether the processes of this
node still run; the error that is then raised ends all ranks (see ``guard``).
"""

from __future__ import annotations

import ctypes
import importlib
import os
import time
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from distbfs.device import cuda
from distbfs.errors import DeviceMissing, DistbfsError, LaunchError
from distbfs.exchange.agreement import first_reason, gather_texts
from distbfs.exchange.processes import processes_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Array, World

POLLS = 1000  # between two looks at the clock
LOOK_SECONDS = 0.2
DTYPES = ("int32", "uint32", "int64", "uint64")
_links: WeakKeyDictionary[Any, Link] = WeakKeyDictionary()


def load_nccl() -> Any:
    """Return CuPy's NCCL; DeviceMissing where it has none."""
    cuda.cupy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy tells how to install it
        nccl = importlib.import_module("cupy.cuda.nccl")
    if not nccl.available:
        raise DeviceMissing(
            "CuPy finds no NCCL; pip install nvidia-nccl-cu13 or nvidia-nccl-cu12"
        )
    return nccl


def shared_device(world: World, uuid: str) -> str:
    """Return which ranks use the same device, "" where none do; collective."""
    hosts = getattr(world, "hosts", [""] * world.size)
    first: dict[tuple[str, str], int] = {}
    for rank, device in enumerate(gather_texts(world, uuid)):
        other = first.setdefault((hosts[rank], device), rank)
        if other != rank:
            return f"ranks {other} and {rank} use the same device, {device}"
    return ""


def nccl_problem(world: World) -> str:
    """Return why ranks cannot use NCCL, "" where they can; collective."""
    reason, uuid = "", ""
    try:
        load_nccl()
        uuid = cuda.uuid()
    except DeviceMissing as error:
        reason = str(error)
    return first_reason(world, reason) or shared_device(world, uuid)


def link_of(world: World) -> Link:
    """Return the communicator of these ranks on their current devices; collective.

    It is made once and stays: making one takes long, and freeing one would wait for the
    other ranks.
    """
    device = int(cuda.cupy().cuda.Device())
    link = _links.get(world)
    stale = link is None or link.device != device or link.broken
    if link is not None and not world.allreduce(np.array([int(stale)]), "max")[0]:
        return link
    if problem := nccl_problem(world):
        raise LaunchError(f"exchange 'nccl': {problem}; use --exchange host")
    _links[world] = link = Link(world, device)
    return link


class Link:
    """A communicator; use ``link_of``.

    device: index of the device; stream: where everything runs, in the order of calls
    broken: it was given up after an error
    """

    def __init__(self, world: World, device: int) -> None:
        cp = cuda.cupy()
        self._cp, self._nccl = cp, load_nccl()
        self.device, self.rank, self.size = device, world.rank, world.size
        self.broken = False
        self.stream = cp.cuda.Stream(non_blocking=True)
        self._caller = cp.cuda.Event(disable_timing=True)
        self._types = {
            np.dtype(name): getattr(self._nccl, f"NCCL_{name.upper()}")
            for name in DTYPES
        }
        self._held: list[object] = []
        self._others = processes_beside(world)
        chosen = self._nccl.get_unique_id()  # bytes, or a tuple of CuPy before 14
        uid = type(chosen)(world.broadcast(list(chosen)))
        try:
            self._comm = self._nccl.NcclCommunicator(world.size, uid, world.rank)
        except RuntimeError as error:
            raise LaunchError(
                f"NCCL does not connect {world.size} ranks: {error}; use "
                "--exchange host"
            ) from error
        # never destroyed: that waits for other ranks, which may have ended already
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._comm))
        self._connect()

    def _connect(self) -> None:
        """Use all connections once: NCCL makes them at their first use."""
        cp, stream = self._cp, self.stream
        words = cp.zeros(3 * self.size, np.uint64)
        out, into, gathered = (words[k * self.size :][: self.size] for k in range(3))
        self.follow()
        with self.group():
            for rank in range(self.size):
                if rank != self.rank:
                    self.send(out[rank : rank + 1], rank)
                    self.receive(into[rank : rank + 1], rank)
        self.gather(out[:1], gathered)
        self.maximum(out)
        done = cp.cuda.Event(disable_timing=True)
        done.record(stream)
        self.wait(done)

    def follow(self) -> None:
        """Let what is called next run after what the caller's stream has to do."""
        self._caller.record(self._cp.cuda.get_current_stream())
        self.stream.wait_event(self._caller)

    def wait(self, event: Any) -> None:
        """Wait until an event of the stream is reached.

        DistbfsError where another rank is gone.
        """
        polls, since = 0, time.monotonic()
        while not event.done:
            polls += 1
            os.sched_yield()  # to NCCL's threads, which may share the only processor
            if polls % POLLS == 0 and time.monotonic() - since > LOOK_SECONDS:
                self._look()
                since = time.monotonic()

    @contextmanager
    def group(self) -> Iterator[None]:
        """Start the sends and receives inside together."""
        with self._errors():
            self._nccl.groupStart()
            try:
                yield
            finally:
                self._nccl.groupEnd()

    def send(self, array: Array, rank: int) -> None:
        """Send a contiguous array to a rank."""
        kind, stream = self._types[array.dtype], self.stream.ptr
        self._comm.send(self._at(array), array.size, kind, rank, stream)

    def receive(self, array: Array, rank: int) -> None:
        """Receive a contiguous array from a rank."""
        kind, stream = self._types[array.dtype], self.stream.ptr
        self._comm.recv(self._at(array), array.size, kind, rank, stream)

    def gather(self, mine: Array, whole: Array) -> None:
        """Put the equally long arrays [k] of all ranks into ``whole``, [size * k].

        ``mine`` may be this rank's piece of ``whole``.
        """
        kind, stream = self._types[mine.dtype], self.stream.ptr
        with self._errors():
            self._comm.allGather(
                self._at(mine), self._at(whole), mine.size, kind, stream
            )

    def maximum(self, array: Array) -> None:
        """Replace an array by its element-wise maximum over all ranks."""
        kind, at = self._types[array.dtype], self._at(array)
        with self._errors():
            self._comm.allReduce(
                at, at, array.size, kind, self._nccl.NCCL_MAX, self.stream.ptr
            )

    def hold(self, *items: object) -> None:
        """Keep memory alive that NCCL may still read or write."""
        self._held.extend(items)

    @staticmethod
    def _at(array: Any) -> int:
        return int(array.data.ptr)

    def _look(self) -> None:
        """Raise DistbfsError where another rank is gone or NCCL has failed."""
        for process in self._others:
            if not process.runs():
                self._give_up()
                raise DistbfsError(f"rank {process.rank} ended in a level")
        with self._errors():
            self._comm.check_async_error()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Give up and say so where a call of NCCL fails."""
        try:
            yield
        except Exception as error:
            self._give_up()
            raise DistbfsError(f"NCCL failed between the ranks: {error}") from error

    def _give_up(self) -> None:
        """Stop kernels that wait for other ranks."""
        if not self.broken:
            self.broken = True
            self._comm.abort()
