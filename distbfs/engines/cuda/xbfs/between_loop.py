"""Whole searches between domains of one device each, in one launch (between_loop.cu)."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.engines.cuda.xbfs.arrays import KERNELS, THREADS, mask
from distbfs.engines.cuda.xbfs.between_params import COUNTED, Between
from distbfs.errors import DistbfsError
from distbfs.exchange.traffic import KINDS

if TYPE_CHECKING:
    from distbfs.engines.cuda.xbfs.between_stream import BetweenSearch
    from distbfs.exchange.base import SymmetricMemory
    from distbfs.exchange.traffic import Traffic
    from distbfs.types import World

SIGNALS = 3  # kinds
LINE = 128  # bytes that pieces of memory are aligned to
LEVELS, FAULT, BYTES = 0, 1, 2  # ``Told`` in between_loop.cu
TOLD = BYTES + 2 * len(KINDS)


class LoopParams(ctypes.Structure):
    """``Loop`` in between_loop.cu."""

    _fields_ = (
        ("b", Between),
        *((x, ctypes.c_void_p) for x in ("came", "replied", "masks", "tallies")),
        *((x, ctypes.c_void_p) for x in ("signals", "turn", "told", "next")),
        ("slot", ctypes.c_uint64),
        *((x, ctypes.c_uint32) for x in ("hidden", "parents")),
    )


class BetweenLoop:
    """Searches of one share; see ``engines.streamed.Loop``. Creating it is collective.

    Raises OutOfMemory on all ranks where boxes of all others do not fit a device.
    """

    def __init__(
        self, search: BetweenSearch, memory: SymmetricMemory, world: World
    ) -> None:
        cp, params = cuda.cupy(), search.params
        self._search, self._memory = search, memory
        shares, others = params.shares, len(search.others)
        most = np.array([int(np.diff(search.box_at).max())])
        slot = int(world.allreduce(most, "max")[0])
        sizes = {
            "came": 8 * others * slot,
            "replied": 8 * others * slot,
            "masks": 4 * others * params.dwords,
            "tallies": 2 * 8 * shares * len(COUNTED),
            "signals": 8 * SIGNALS * shares,
        }
        starts = np.cumsum([0, *(-(-size // LINE) * LINE for size in sizes.values())])
        self._room = memory.allocate(int(starts[-1]), "boxes of other domains")
        self._own = cp.zeros(1 + TOLD + 2, np.uint64)  # turn, told, next
        base = self._own.data.ptr
        self._told = cuda.HostCopy(self._own[1 : 1 + TOLD])
        self.params = LoopParams(
            slot=slot,
            turn=base,
            told=base + 8,
            next=base + 8 * (1 + TOLD),
            **{
                name: self._room.data.ptr + int(start)
                for name, start in zip(sizes, starts[:-1], strict=True)
            },
        )
        self._launches: dict[bool, programs.Launch] = {}
        self._launch(masked=False)

    def _launch(self, *, masked: bool) -> programs.Launch:
        """Return the kernel, loaded at first use."""
        if masked not in self._launches:
            arrays = self._search.arrays
            module = self._memory.module(
                KERNELS / "between_loop.cu",
                OFFSET=arrays.offset,
                IN_IDS=1,
                SPLIT=int(self._search.part.graph.tails is not None),
                NAME=arrays.name_word,
                **mask(masked),
            )
            self._launches[masked] = module.kernel("loop").prepare(
                self.params,
                arrays.grid,
                THREADS,
                shared=arrays.shared_bytes,
                cooperative=True,
            )
        return self._launches[masked]

    def begin(self, hidden: int, *, parents: bool) -> None:
        """Begin all levels on the current stream; see ``engines.streamed.Loop``."""
        search, params = self._search, self.params
        with search.device:
            main = cuda.cupy().cuda.get_current_stream()
            launch = self._launch(masked=search.masked)
            search.take_counters(0)  # clean, as ``settle`` takes the others
            params.b = search.params
            params.hidden, params.parents = hidden, parents
            launch(main.ptr)
            self._told.begin(main)
            search.begin_results()

    def end(self, traffic: Traffic) -> int:
        """Wait for the levels; count what was sent, and return how many there were."""
        told = self._told.wait().tolist()
        self._search.depth = told[LEVELS]
        if told[FAULT]:
            raise DistbfsError(
                f"part {told[FAULT] - 1} was waited for in vain; searches of this "
                "session are over"
            )
        sent, messages = np.split(np.array(told[BYTES:]), 2)
        for kind, size, count in zip(KINDS, sent, messages, strict=True):
            traffic.count(int(size), kind, part=0, messages=int(count))
        return int(told[LEVELS])
