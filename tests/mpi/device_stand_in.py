"""NumPy in the place of CuPy, and MPI in that of NCCL, for exchanges of device arrays.

Streams are late on purpose: what is given to one runs only when somebody waits for it,
so that a copy that nobody waits for is seen.  Device arrays are not NumPy arrays:
neither MPI nor NumPy can take one for a host array.
"""

from __future__ import annotations

import ctypes
import os
import random
import tempfile
from types import SimpleNamespace

import numpy as np

from distbfs.device import cuda, programs
from distbfs.exchange import cuda_aware
from distbfs.exchange import nccl_link as link
from distbfs.exchange import peer_memory as peers

STREAMS = {}
GARBAGE = 0xA5A5A5A5A5A5A5A5


class Stream:
    """A queue of calls that run when somebody waits; the first is the caller's."""

    def __init__(self, non_blocking=False, priority=None):
        self.waiting = []
        self.ptr = len(STREAMS)
        STREAMS[self.ptr] = self
        self.before = []

    def add(self, call):
        self.waiting.append(call)

    def run(self, count):
        for _ in range(count):
            if self.waiting:
                self.waiting.pop(0)()

    def wait_event(self, event):
        self.add(event.reach())

    def synchronize(self):
        self.run(len(self.waiting))

    def record(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self):
        self.before.append(CURRENT[0])
        CURRENT[0] = self

    def __exit__(self, *error):
        CURRENT[0] = self.before.pop()


CURRENT = [Stream()]


class Event:
    """A place in a stream."""

    def __init__(self, block=False, disable_timing=False):
        self.marks = {}

    def record(self, stream=None):
        stream = stream or CURRENT[0]
        mark = SimpleNamespace(there=False)
        self.marks = {id(mark): (stream, mark)}
        stream.add(lambda: setattr(mark, "there", True))

    def reach(self):
        """A call that runs the stream until it is where the event is now."""
        marks = list(self.marks.values())

        def call():
            for stream, mark in marks:
                while not mark.there:
                    stream.run(1)

        return call

    def synchronize(self):
        self.reach()()

    @property
    def done(self):
        if random.random() < 0.5:
            self.synchronize()
        return all(mark.there for _, mark in self.marks.values())


class Device:
    """The only one of a rank."""

    def __init__(self, number=0):
        self.id = number

    def __int__(self):
        return self.id

    def synchronize(self):
        CURRENT[0].synchronize()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class DeviceArray:
    """What exchanges use of ``cupy.ndarray``."""

    def __init__(self, values):
        self.values = values

    def __array__(self, *arguments, **options):
        raise TypeError("a device array was taken for a host array")

    size = property(lambda self: self.values.size)
    nbytes = property(lambda self: self.values.nbytes)
    dtype = property(lambda self: self.values.dtype)
    device = property(lambda self: Device())
    data = property(lambda self: SimpleNamespace(ptr=self.values.ctypes.data))

    def __getitem__(self, where):
        if isinstance(where, DeviceArray):
            return Cupy.later(
                where.size, self.dtype, np.take, self.values, where.values
            )
        return DeviceArray(self.values[where])

    def __rshift__(self, bits):
        shape, dtype = self.values.shape, self.dtype
        return Cupy.later(shape, dtype, np.right_shift, self.values, bits)

    def __setitem__(self, where, other):
        assert isinstance(other, DeviceArray)
        target = self.values[where]
        CURRENT[0].add(lambda: np.copyto(target, other.values))

    def view(self, dtype):
        return DeviceArray(self.values.view(dtype))

    def reshape(self, *shape):
        return DeviceArray(self.values.reshape(*shape))

    def copy(self):
        return Cupy.later(self.values.shape, self.dtype, np.copy, self.values)

    def get(self):
        CURRENT[0].synchronize()
        return self.values.copy()


class PeerBlock:
    """Memory that other ranks map: a file."""

    def __init__(self, size, what):
        handle, self.path = tempfile.mkstemp(prefix="peer", dir="/dev/shm")
        os.close(handle)
        values = np.memmap(self.path, np.uint8, "w+", shape=(max(size, 1),))[:size]
        self.array = DeviceArray(values)

    def handle(self):
        return self.path.encode().ljust(64)

    def free(self):
        os.unlink(self.path)


OPENED = {}


def open_handle(handle):
    values = np.memmap(handle.decode().strip(), np.uint8, "r+")
    OPENED[values.ctypes.data] = values
    return values.ctypes.data


def copy_now(target, source, size, kind):
    CURRENT[0].synchronize()
    ctypes.memmove(target, source, size)


def memory(pointer, size):
    return np.frombuffer((ctypes.c_char * size).from_address(pointer), np.uint8)


def copy_bytes(target, source, size, kind, stream):
    assert kind == 4
    STREAMS[stream].add(lambda: ctypes.memmove(target, source, size))


class Cupy:
    """The functions of CuPy that exchanges call."""

    def __init__(self):
        self.cuda = SimpleNamespace(
            Stream=Stream,
            Event=Event,
            Device=Device,
            get_current_stream=lambda: CURRENT[0],
            memory=SimpleNamespace(OutOfMemoryError=MemoryError),
            alloc_pinned_memory=bytearray,
            runtime=SimpleNamespace(
                memcpyAsync=copy_bytes,
                memcpy=copy_now,
                CUDARuntimeError=RuntimeError,
                memcpyDefault=4,
            ),
        )

    @staticmethod
    def later(shape, dtype, function, *arguments):
        """An array of garbage that gets its values in the order of the stream."""
        found = np.full(shape, GARBAGE, np.uint64).astype(dtype)
        CURRENT[0].add(lambda: np.copyto(found, function(*arguments)))
        return DeviceArray(found)

    def empty(self, count, dtype):
        return DeviceArray(np.full(count, GARBAGE, np.uint64).astype(dtype))

    def full(self, count, value, dtype):
        return self.later(count, dtype, np.full, count, value, dtype)

    def zeros(self, count, dtype):
        return self.later(count, dtype, np.zeros, count, dtype)

    def asarray(self, values):
        return self.later(values.shape, values.dtype, np.copy, values)

    def concatenate(self, arrays):
        found = [array.values for array in arrays]
        size = sum(array.size for array in arrays)
        return self.later(size, arrays[0].dtype, lambda: np.concatenate(found))

    def unique(self, array, return_index=False):
        CURRENT[0].synchronize()
        if not return_index:
            return DeviceArray(np.unique(array.values))
        return tuple(map(DeviceArray, np.unique(array.values, return_index=True)))

    def ascontiguousarray(self, array, dtype):
        assert array.dtype == dtype
        return array

    def bitwise_or(self, one, other, out):
        CURRENT[0].add(lambda: np.bitwise_or(one.values, other.values, out=out.values))


class Module:
    """The kernel of reduce.cu in NumPy."""

    def __init__(self, source):
        assert source.name == "reduce.cu"

    def kernel(self, name):
        assert name == "or_rows"
        return self.or_rows

    @staticmethod
    def or_rows(grid, block, rows, count, stride, words, out):
        assert grid * block > 0

        def call():
            whole = rows.values[: count * stride].reshape(count, stride)
            out.values[:words] = np.bitwise_or.reduce(whole[:, :words], axis=0)

        CURRENT[0].add(call)


class Communicator:
    """NCCL between devices of ranks, as many on each; None for one rank.

    Calls stand in a group.
    """

    comm = None  # of mpi4py; set by ``install``
    failing = None

    def __init__(self, size, uid, number):
        assert len(uid) == 128
        ranks = 1 if self.comm is None else self.comm.Get_size()
        self.size, self.number, self.each = size, number, size // ranks

    def abort(self):
        self.size = 0

    def check_async_error(self):
        if self.failing:
            raise RuntimeError(self.failing)

    def allGather(self, out, into, count, kind, stream):
        size = count * np.dtype(kind).itemsize
        places = memory(out, size), memory(into, size * self.size)
        GROUP.append((stream, self, "gather", places))

    def send(self, out, count, kind, peer, stream):
        assert count
        assert peer != self.number
        size = count * np.dtype(kind).itemsize
        GROUP.append((stream, self, "send", (memory(out, size), peer)))

    def recv(self, into, count, kind, peer, stream):
        assert count
        assert peer != self.number
        size = count * np.dtype(kind).itemsize
        GROUP.append((stream, self, "receive", (memory(into, size), peer)))

    def message(self, what, array, peer):
        """Begin to send or receive; messages of two devices come in their order."""
        ends = (self.number, peer) if what == "send" else (peer, self.number)
        tag, rank = ends[0] * self.size + ends[1], peer // self.each
        if self.comm is None:
            held = LOCAL.setdefault(tag, [])
            return held.append(array.copy()) if what == "send" else (held, array)
        start = self.comm.Isend if what == "send" else self.comm.Irecv
        return start(array, rank, tag)


GROUP, LOCAL = [], {}  # calls of a group; messages of a single rank, by tag


def together(calls):
    """Do the calls of a group, whose streams have come so far."""
    gathers = [
        (x.number, x, *places) for _, x, what, places in calls if what == "gather"
    ]
    if gathers:
        gathers.sort(key=lambda one: one[0])
        assert len(gathers) == gathers[0][1].each
        # NCCL may be given the same memory twice
        mine = np.concatenate([out.copy() for _, _, out, _ in gathers])
        whole = np.empty(mine.size * gathers[0][1].size // len(gathers), np.uint8)
        if Communicator.comm is None:
            whole[:] = mine
        else:
            Communicator.comm.Allgather(mine, whole)
        for _, _, _, into in gathers:
            into[:] = whole
    sends = [call for call in calls if call[2] == "send"]
    receives = [call for call in calls if call[2] == "receive"]
    for request in [x.message(what, *to) for _, x, what, to in (*sends, *receives)]:
        if isinstance(request, tuple):
            held, array = request
            array[:] = held.pop(0)
        elif request is not None:
            request.Wait()


def group_end():
    """Give the streams of a group one call, which runs when all have come to it."""
    calls, done = GROUP.copy(), []
    GROUP.clear()
    streams = {stream for stream, *_ in calls}

    def run():
        if done:
            return
        done.append(True)
        for stream in streams:
            waiting = STREAMS[stream].waiting
            while run in waiting:
                waiting.pop(0)()
        together(calls)

    for stream in streams:
        STREAMS[stream].add(run)


def install(monkeypatch, comm=None, uuid=0):
    """Put the stand-ins in place; comm: of mpi4py, for more than one rank."""
    found = Cupy()
    monkeypatch.setattr(
        cuda, "uuids", lambda devices=None: [f"GPU-{uuid}"] * len(devices or [0])
    )
    monkeypatch.setattr(Communicator, "comm", comm)
    monkeypatch.setattr(cuda, "cupy", lambda: found)
    monkeypatch.setattr(programs, "Module", Module)
    nccl = SimpleNamespace(
        NcclCommunicator=Communicator,
        get_unique_id=lambda: tuple(range(-64, 64)),
        groupStart=lambda: None,
        groupEnd=group_end,
        **{f"NCCL_{name.upper()}": np.dtype(name) for name in link.DTYPES},
    )
    monkeypatch.setattr(link, "load_nccl", lambda: nccl)
    for name in ("PeerBlock", "open_handle"):
        monkeypatch.setattr(peers, name, globals()[name])
    monkeypatch.setattr(peers, "close_handle", OPENED.pop)
    monkeypatch.setattr(peers, "access_problem", lambda devices: "")
    monkeypatch.setattr(link, "_links", link.WeakKeyDictionary())
    return found


def trust_mpi(monkeypatch):
    """Let an MPI that knows nothing of devices be given what is device memory here."""
    monkeypatch.setattr(cuda_aware, "missing_proof", lambda world: "")
    shown = property(lambda self: self.values.__array_interface__)
    name = "__cuda_array_interface__"
    monkeypatch.setattr(DeviceArray, name, shown, raising=False)
