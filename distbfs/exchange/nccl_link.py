"""An NCCL communicator between devices, with its streams.

NCCL is asynchronous and has no time limit: a kernel that waits for a rank that has
ended spins for ever. So every wait here polls and checks from time to time whether NCCL
reports an error, which shows that a rank on another node has ended, and whether the
processes of this node still run; the error that is raised then ends all ranks (see
``guard``).
"""

from __future__ import annotations

import ctypes
import importlib
import os
import time
import warnings
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from distbfs.device import cuda
from distbfs.errors import DeviceMissing, DistbfsError, LaunchError
from distbfs.exchange.device_choice import shared_device
from distbfs.ranks.agreement import first_reason
from distbfs.ranks.processes import processes_beside

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from distbfs.types import Array, World

FIRST = -5  # priority of a stream, the highest
POLLS = 1000  # polls between two readings of the clock
LOOK_SECONDS = 0.2
LEAST_FREE = 1 << 30  # bytes of a device that leave room for a communicator
DTYPES = ("int32", "uint32", "int64", "uint64")
_links: WeakKeyDictionary[Any, dict[tuple[int, ...], Link]] = WeakKeyDictionary()


def load_nccl() -> Any:
    """Return CuPy's NCCL; DeviceMissing if it has none."""
    cuda.cupy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the message below says how to install it
        nccl = importlib.import_module("cupy.cuda.nccl")
    if not nccl.available:
        raise DeviceMissing(
            "CuPy finds no NCCL; pip install nvidia-nccl-cu13 or nvidia-nccl-cu12"
        )
    return nccl


def nccl_problem(world: World, devices: Sequence[int] = ()) -> str:
    """Return the reason why ranks cannot use NCCL, "" if they can (collective).

    devices: the devices of this rank; if empty, the current one
    """
    reason, uuids = "", list[str]()
    try:
        load_nccl()
        uuids = cuda.uuids(devices or None)
    except DeviceMissing as error:
        reason = str(error)
    return first_reason(world, reason) or shared_device(world, uuids)


def need_nccl(world: World, devices: Sequence[int] = (), *, name: str = "nccl") -> None:
    """Raise LaunchError if ranks cannot use NCCL; see ``nccl_problem``.

    name: the exchange that needs it
    """
    if problem := nccl_problem(world, devices):
        raise LaunchError(f"exchange '{name}': {problem}; use --exchange host")


def link_of(world: World, devices: Sequence[int] = ()) -> Link:
    """Return the communicator of devices of these ranks; collective.

    devices: the devices of this rank, each once; if empty, the current one

    The communicator is created once and kept, because creating one takes long, and
    freeing one would wait for the other ranks.
    """
    chosen = tuple(devices) or (int(cuda.cupy().cuda.Device()),)
    made = _links.setdefault(world, {})
    link = made.get(chosen)
    stale = np.array([int(link is None or link.broken)])
    if not world.allreduce(stale, "max")[0] and link is not None:
        return link
    need_nccl(world, chosen)
    made[chosen] = link = Link(world, chosen)
    return link


def link_between(world: World, devices: Sequence[int]) -> Link | None:
    """Return the communicator of the devices of all ranks; None if there is none.

    Collective. There is none on a single rank, if a rank has no devices, without NCCL,
    if ranks share devices, or if a device has too little memory left for it.

    devices: the devices of this rank, each once
    """
    if world.size == 1:
        return None
    lacks = not devices
    for device in devices:
        with cuda.cupy().cuda.Device(device):
            cuda.release()  # NCCL does not take memory from the pool
            lacks |= cuda.free_bytes() < LEAST_FREE
    if world.allreduce(np.array([int(lacks)]), "max")[0]:
        return None
    return None if nccl_problem(world, devices) else link_of(world, devices)


@dataclass(frozen=True)
class Copy:
    """One array that devices of other ranks receive.

    Devices are numbered over all ranks, those of rank 0 first. ``source`` and
    ``targets`` are the same on all ranks.

    values: contiguous device array, None except on the source's rank
    into: arrays of the same size and dtype to fill, one for each target on this rank,
    by its number
    """

    source: int
    targets: Sequence[int]
    values: Any = None
    into: Mapping[int, Any] = field(default_factory=dict)


class Link:
    """A communicator; use ``link_of``.

    ends: one for each device of this rank
    starts: [ranks + 1], the number of each rank's first device, then the number of all
    devices
    broken: whether it was aborted after an error
    """

    def __init__(self, world: World, devices: Sequence[int]) -> None:
        self._cp, self._nccl = cuda.cupy(), load_nccl()
        counts = [int(x[0]) for x in world.allgather(np.array([len(devices)]))]
        self.starts = [0, *accumulate(counts)]
        self.broken = False
        self._held: list[object] = []
        self._others = processes_beside(world)
        chosen = self._nccl.get_unique_id()  # bytes, or a tuple before CuPy 14
        uid = type(chosen)(world.broadcast(list(chosen)))
        first, count = self.starts[world.rank], self.starts[-1]
        numbers = range(first, first + len(devices))
        several = self._together if len(devices) > 1 else nullcontext
        try:
            with several():
                comms = [
                    self._communicator(device, count, uid, number)
                    for device, number in zip(devices, numbers, strict=True)
                ]
        except RuntimeError as error:
            raise LaunchError(
                f"NCCL does not connect {count} devices: {error}; use --exchange host"
            ) from error
        self.ends = [
            End(self._nccl, comm, device, number)
            for comm, device, number in zip(comms, devices, numbers, strict=True)
        ]

    def _communicator(self, device: int, count: int, uid: Any, number: int) -> Any:
        """Create the communicator of a device (collective)."""
        with self._cp.cuda.Device(device):
            comm = self._nccl.NcclCommunicator(count, uid, number)
        # never destroyed: that would wait for ranks that may have ended
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(comm))
        return comm

    def connect(self, partners: Sequence[Sequence[int]]) -> None:
        """Use each connection once, since NCCL connects at first use (collective).

        partners: for each device of this rank, the numbers of the devices to connect;
        the relation is symmetric
        """
        cp, count, buffers = self._cp, self.starts[-1], []
        self.follow()
        for end in self.ends:
            with end.here():
                buffers.append(cp.zeros(3 * count, np.uint64).reshape(3, count))
        with self.group():
            for end, words, others in zip(self.ends, buffers, partners, strict=True):
                for k in others:
                    end.send(words[0, k : k + 1], k)
                    end.receive(words[1, k : k + 1], k)
        with self.group():
            for end, words in zip(self.ends, buffers, strict=True):
                end.gather(words[0, :1], words[2])
        self.finish()

    def follow(self) -> None:
        """Make these streams wait for the callers'."""
        for end in self.ends:
            end.follow()

    def finish(self) -> None:
        """Wait for all calls so far; see ``wait``."""
        for end in self.ends:
            self.wait(end.mark())

    def wait(self, event: Any) -> None:
        """Wait for an event of a stream.

        Raises DistbfsError if another rank has ended.
        """
        polls, since = 0, time.monotonic()
        while not event.done:
            polls += 1
            os.sched_yield()  # NCCL's threads may share the only processor
            if polls % POLLS == 0 and time.monotonic() - since > LOOK_SECONDS:
                self._look()
                since = time.monotonic()

    @contextmanager
    def group(self) -> Iterator[None]:
        """Start the calls inside together; a group holds the calls of all ends."""
        with self._errors(), self._together():
            yield

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Start the NCCL calls of the block together."""
        self._nccl.groupStart()
        try:
            yield
        finally:
            self._nccl.groupEnd()

    def copy(self, copies: Sequence[Copy]) -> None:
        """Carry out copies, listed in the same order on all ranks (collective).

        The kernels that write ``values`` must have ended. When it returns, all targets
        of this rank have their arrays, and values of this rank may be changed.
        """
        ends = {end.number: end for end in self.ends}
        with self.group():
            for copy in copies:
                if copy.source in ends and copy.values.size:
                    for target in copy.targets:
                        ends[copy.source].send(copy.values, target)
                for target in ends.keys() & set(copy.targets):
                    if copy.into[target].size:
                        ends[target].receive(copy.into[target], copy.source)
        self.finish()

    def hold(self, *items: object) -> None:
        """Keep memory alive that NCCL may still read or write."""
        self._held.extend(items)

    def _look(self) -> None:
        """Raise DistbfsError if another rank has ended or NCCL has failed."""
        for process in self._others:
            if not process.runs():
                self._give_up()
                raise DistbfsError(f"rank {process.rank} ended in a level")
        with self._errors():
            for end in self.ends:
                end.comm.check_async_error()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Abort the communicator and raise DistbfsError if an NCCL call fails."""
        try:
            yield
        except Exception as error:
            self._give_up()
            raise DistbfsError(f"NCCL failed between the ranks: {error}") from error

    def _give_up(self) -> None:
        """Abort kernels that wait for other ranks."""
        if not self.broken:
            self.broken = True
            for end in self.ends:
                end.comm.abort()


class End:
    """One device of a communicator. Its calls belong in a ``group`` of the link.

    number: index among all devices; stream: runs all calls in order
    """

    def __init__(self, nccl: Any, comm: Any, device: int, number: int) -> None:
        cp = cuda.cupy()
        self._cp, self.comm, self.number = cp, comm, number
        self.device = cp.cuda.Device(device)
        self._types = {
            np.dtype(name): getattr(nccl, f"NCCL_{name.upper()}") for name in DTYPES
        }
        with self.device:
            self.stream = cp.cuda.Stream(non_blocking=True, priority=FIRST)
            self._caller = cp.cuda.Event(disable_timing=True)

    @contextmanager
    def here(self) -> Iterator[None]:
        """Make the device and the stream the current ones."""
        with self.device, self.stream:
            yield

    def follow(self) -> None:
        """Make this stream wait for the caller's."""
        with self.device:
            self._caller.record(self._cp.cuda.get_current_stream())
        self.stream.wait_event(self._caller)

    def mark(self) -> Any:
        """Record an event after all calls so far, and return it."""
        with self.device:
            event = self._cp.cuda.Event(disable_timing=True)
        event.record(self.stream)
        return event

    def send(self, array: Array, number: int) -> None:
        """Send a contiguous array to a device."""
        kind, stream = self._types[array.dtype], self.stream.ptr
        self.comm.send(self._at(array), array.size, kind, number, stream)

    def receive(self, array: Array, number: int) -> None:
        """Receive a contiguous array from a device."""
        kind, stream = self._types[array.dtype], self.stream.ptr
        self.comm.recv(self._at(array), array.size, kind, number, stream)

    def gather(self, mine: Array, whole: Array) -> None:
        """Gather the equally long arrays [k] of all devices in ``whole``, [count * k].

        ``mine`` may be this device's piece of ``whole``.
        """
        kind, stream = self._types[mine.dtype], self.stream.ptr
        self.comm.allGather(self._at(mine), self._at(whole), mine.size, kind, stream)

    @staticmethod
    def _at(array: Any) -> int:
        return int(array.data.ptr)
