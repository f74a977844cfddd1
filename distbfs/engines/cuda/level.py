"""A part whose levels run without the host: arrays and calls of level.cu.

Everything that a level may need is captured once as a CUDA graph; kernels that have no
work end at once.  The host launches levels ahead and reads how far the device is from
memory that the device writes.
Source: Pan, Pearce, Owens 2018, Sections IV and V (Fig. 3: the two streams).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.engines.base import Work
from distbfs.engines.cuda.part import (
    KERNELS,
    NONE,
    THREADS,
    CudaPart,
    Params,
    blocks_of,
)
from distbfs.errors import DistbfsError
from distbfs.options import SearchOptions
from distbfs.partition.device_part import DevicePart
from distbfs.partition.layout import Placement
from distbfs.types import Array, Ids

SOURCE = KERNELS / "level.cu"
MEETINGS = 3  # of a level, as in peers.cuh
PATIENCE = 8_000_000_000  # ns that a device waits for the others
QUEUES = "form_queues"  # of pushes of dd and dn
NORMAL = ("visit_nn", "visit_dn")
DELEGATE = ("visit_dd", "visit_nd")
EXCHANGE = ("tell_parts", "combine", "step_level", "decide")
KINDS = {  # as part.BLOCKS knows them
    "visit_nn": "push_nn",
    **dict.fromkeys(("visit_dn", "visit_dd", "visit_nd"), "pull"),
    **dict.fromkeys(("step_level", "combine"), "advance"),
}
LEVEL = (QUEUES, *NORMAL, *DELEGATE, *EXCHANGE)
KERNEL_NAMES = ("open_search", *LEVEL, "close_search")
ONE_BLOCK = {"tell_parts": THREADS, "decide": 32}
SHARED = ("flags", "arrived", "work", "mask", "dfresh", "dparent", "sent")
FORCED = {"auto": 0, "push": 1, "pull": 2}
STATE = np.dtype(
    [
        *((name, np.uint64) for name in ("turn", "depth", "done", "failed")),
        *((name, np.uint64) for name in ("pull_dd", "pull_dn", "pull_nd")),
        *((name, np.uint64) for name in ("masks", "normals", "dense")),
        ("tickets", np.uint64, 2),
        ("forward", np.uint64, 4),
        ("sum", np.uint64, Work.SIZE),
        ("checks", np.uint64, 4),
        *((name, np.uint64) for name in ("decided", "alone", "posted")),
        ("time", np.uint64, 6),
    ]
)
PHASES = ("visits", "waiting", "exchange", "end_level")


class LevelParams(ctypes.Structure):
    """``Level`` in peers.cuh."""

    _fields_ = (
        ("part", Params),
        ("base", ctypes.c_void_p),
        *((f"{name}_at", ctypes.c_uint64) for name in SHARED),
        *((x, ctypes.c_void_p) for x in ("inbox", "inbox_start", "state", "told")),
        ("factors", ctypes.c_double * 6),
        *((x, ctypes.c_uint64) for x in ("patience", "dense_edges")),
        ("numbers", ctypes.c_void_p),
        *((x, ctypes.c_uint32) for x in ("forced", "local")),
    )


class LevelPart:
    """The search of one part; methods run on its device and return at once.

    Made in two steps, as the memory of all parts is shared in between: the first says
    how many items come from each part (``outgoing``), ``connect`` takes the memory.
    """

    order = LEVEL  # of kernels

    def __init__(
        self, part: DevicePart, placement: Placement, options: SearchOptions
    ) -> None:
        self.device = int(cuda.cupy().cuda.Device())
        self.search = CudaPart(part, placement, parents=options.parents)
        self.part, self._options = part, options
        self.outgoing: Ids = self.search.box_sizes
        self._graphs: dict[bool, Any] = {}
        self._launches: dict[bool, dict[str, cuda.Launch]] = {}
        self._counting = False

    def places(self) -> dict[str, int]:
        """Return the bytes of each shared array, but for the inbox, the same on all."""
        part, p = self.part, self.search.params
        parts = part.layout.parts
        words = -(-p.dwords // 4) * 16
        return {
            "flags": 8 * MEETINGS * parts,
            "arrived": 8 * parts,
            "work": 8 * parts * Work.SIZE,
            "mask": words,
            "dfresh": words,
            "dparent": part.delegate_count * self.search.vertex.itemsize,
            "sent": 4 * p.sent_words * parts,
        }

    def shared_bytes(self, incoming: Ids) -> int:
        """Return the bytes of this part's shared memory; incoming: [parts] items."""
        return self._starts()["end"] + 8 * int(incoming.sum())

    def _starts(self) -> dict[str, int]:
        at, starts = 0, {}
        for name, size in self.places().items():
            starts[name] = at
            at += -(-size // 256) * 256
        return {**starts, "end": at}

    def connect(self, memory: Any, bases: Ids, boxes: Ids) -> None:
        """Use shared memory; nothing of it is used before all parts have called it.

        memory: uint8 [shared_bytes] of this part; bases: [parts] addresses of all
        parts'; boxes: [parts][parts] items that a part may get (row) from each (column)
        """
        cp, search, index = cuda.cupy(), self.search, self.part.index
        starts, sizes = self._starts(), self.places()
        kinds = {"dfresh": np.uint32, "sent": np.uint32, "dparent": search.vertex}
        for name, kind in kinds.items():
            view = memory[starts[name] : starts[name] + sizes[name]].view(kind)
            search.adopt(name, view)
        inbox = bases + starts["end"]
        first = np.cumsum(boxes, axis=1) - boxes
        search.adopt("box", cp.asarray((inbox + 8 * first[:, index]).astype(np.uint64)))
        search.adopt("outbox", cp.empty(0, np.uint64))
        state = np.zeros(1, STATE)
        state["turn"] = state["done"] = 1
        self._state = cp.asarray(state.view(np.uint64))
        self.told = cuda.pinned_empty(4, np.uint64)
        self._held = [
            memory,
            cp.asarray(bases.astype(np.uint64)),
            cp.asarray(first[index].astype(np.uint64)),
        ]
        options = self._options
        factors = [options.dd, options.dn, options.nd]
        bitmap = search.params.sent_words // 2  # items of the same size
        self.params = LevelParams(
            part=search.params,
            base=self._held[1].data.ptr,
            inbox=memory.data.ptr + starts["end"],
            inbox_start=self._held[2].data.ptr,
            state=self._state.data.ptr,
            told=self.told.ctypes.data,
            factors=tuple(x for f in factors for x in (f.to_pull, f.to_push)),
            patience=PATIENCE,
            dense_edges=(1 << 63) if options.parents else bitmap * boxes.shape[0],
            numbers=self.part.numbers.data.ptr,
            forced=FORCED[options.direction],
            **{f"{name}_at": starts[name] for name in SHARED},
        )

    def warm(self) -> None:
        """Record a level and run it once without a search."""
        self._counting = False
        self.launch()

    def _launch(self, name: str) -> cuda.Launch:
        """Return a kernel with the arguments as they are now."""
        made = self._launches.setdefault(self._counting, {})
        if not made:
            module = self.search.module(SOURCE, counting=self._counting)
            many = cuda.multiprocessors()
            for kernel in KERNEL_NAMES:
                threads = ONE_BLOCK.get(kernel, THREADS)
                grid = blocks_of(KINDS.get(kernel, "other")) * many
                if kernel in ONE_BLOCK:
                    grid = 1
                found = module.kernel(kernel)
                made[kernel] = found.prepare(self.params, grid, threads)
        return made[name]

    def run(self, name: str) -> None:
        """Launch one kernel on the current stream."""
        with cuda.cupy().cuda.Device(self.device):
            self._launch(name)(cuda.cupy().cuda.get_current_stream().ptr)

    def open(self, local: int | None, delegate: int | None, *, counting: bool) -> None:
        """Forget the last search and set the root where this part knows it.

        local: its local id if it is a normal vertex of this part
        """
        self._counting = counting
        self.told[...] = 0
        self.params.local = NONE if local is None else local
        self.params.part.delegate = NONE if delegate is None else delegate
        self.run("open_search")

    def launch(self) -> None:
        """Begin a level."""
        cp = cuda.cupy()
        with cp.cuda.Device(self.device):
            self._launch(QUEUES)  # loads the kernels
            if self._counting not in self._graphs:
                self._graphs[self._counting] = cuda.Captured(self._record)
            self._graphs[self._counting].launch(cp.cuda.get_current_stream())

    def _record(self, stream: Any) -> None:
        """Call all kernels of a level, dd and nd on a stream of their own."""
        cp = cuda.cupy()
        beside = cp.cuda.Stream(non_blocking=True)
        forked, queued, joined = (cp.cuda.Event(disable_timing=True) for _ in range(3))
        forked.record(stream)
        beside.wait_event(forked)
        self._launch(QUEUES)(beside.ptr)
        queued.record(beside)
        for name in DELEGATE:
            self._launch(name)(beside.ptr)
        for name in NORMAL[:-1]:
            self._launch(name)(stream.ptr)
        stream.wait_event(queued)
        self._launch(NORMAL[-1])(stream.ptr)
        joined.record(beside)
        stream.wait_event(joined)
        for name in EXCHANGE:
            self._launch(name)(stream.ptr)

    def check(self) -> None:
        """Raise DistbfsError where the device has failed."""
        cp = cuda.cupy()
        try:
            with cp.cuda.Device(self.device):
                cp.cuda.get_current_stream().done  # noqa: B018
        except cp.cuda.runtime.CUDARuntimeError as error:
            raise DistbfsError(f"device {self.device}: {error}") from error

    def state(self) -> Any:
        """Wait, and return what the device knows of the search, a STATE record."""
        with cuda.cupy().cuda.Device(self.device):
            found: Array = self._state.get()
        return found.view(STATE)[0]

    def result(self) -> tuple[Any, Any]:
        """Return levels and parents by local id, CuPy arrays."""
        self.run("close_search")
        return self.search.level, self.search.parent


def work_of(state: Any) -> Work:
    """Return the work of the next level, of all parts."""
    return Work.from_array(state["sum"])


def seconds_of(state: Any) -> dict[str, float]:
    """Return the seconds of the parts of a level on this device."""
    times = state["time"].astype(np.int64)
    begun = np.maximum.accumulate(times[:5])  # meetings without work have none
    spans: Sequence[float] = (np.diff(begun) * 1e-9).tolist()
    return dict(zip(PHASES, spans, strict=True))
