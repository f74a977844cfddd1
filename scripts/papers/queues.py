"""Figure 5 of the XBFS paper: frontier queues by atomic additions and by prefix sums.

Frontiers are gathered from random status arrays by queues.cu; each way takes its best
block size.  A time is that of a CUDA graph, so that launches from Python do not count.
Source: Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019, Section 4.1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.errors import ValidationError

SOURCE = Path(__file__).with_name("queues.cu")
BLOCKS = (128, 256, 512, 1024)
THREADS = 2048  # on a multiprocessor
SHARES = (0.01, 0.1, 0.5)  # of vertices that are in the frontier
WAYS = ("atomic_warp", "atomic_block", "scan")
MILLION = 1 << 20
REPEATS = 5
DRAWN = 1 << 24  # vertices that are drawn; longer arrays repeat them


class Ways:
    """The kernels of one block size on one array."""

    def __init__(self, block: int, status: Any, members: int) -> None:
        cp = cuda.cupy()
        module = programs.Module(SOURCE, BLOCK=block)
        self._block, self._grid = block, cuda.multiprocessors() * THREADS // block
        self._status, self._count = status, np.uint64(len(status))
        self.queue = cp.empty(max(members, 1), np.uint32)
        self.tail = cp.zeros(1, np.uint32)
        tiles = -(-len(status) // (block * 16))
        self._tiles, self._last = cp.empty(tiles, np.uint32), np.uint64(tiles)
        names = ("atomic_warp", "atomic_block", "count_tiles", "scan_tiles", "place")
        self._kernels = {name: module.kernel(name) for name in names}

    def launch(self, way: str) -> None:
        """Make the queue on the current stream; ``tail`` is 0 before."""
        array = (self._status, self._count, np.int32(1))
        run, shape = self._kernels, (self._grid, self._block)
        if way != "scan":
            run[way](*shape, *array, self.queue, self.tail)
            return
        run["count_tiles"](*shape, *array, self._tiles)
        run["scan_tiles"](1, self._block, self._tiles, self._last, self.tail)
        run["place"](*shape, *array, self._tiles, self.queue)

    def seconds(self, way: str) -> float:
        """Return the shortest of some repeats, as CUDA graphs."""
        cp = cuda.cupy()
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            clear = cp.cuda.runtime.memsetAsync
            clear(self.tail.data.ptr, 0, 4, cp.cuda.get_current_stream().ptr)
            self.launch(way)
            graph = stream.end_capture()
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            times = []
            for _ in range(REPEATS + 1):
                begin.record()
                graph.launch()
                end.record()
                end.synchronize()
                times.append(cp.cuda.get_elapsed_time(begin, end) * 1e-3)
        return float(min(times[1:]))

    def check(self, way: str, expected: Any) -> None:
        """Raise ValidationError unless the queue holds the members."""
        queue = self.queue[: len(expected)]
        queue = queue if way == "scan" else cuda.cupy().sort(queue)
        right = int(self.tail.get()[0]) == len(expected)
        if not right or not bool((queue == expected).all()):
            raise ValidationError(f"{way} with blocks of {self._block}: a wrong queue")


def measure(vertices: int, share: float, blocks: tuple[int, ...] = BLOCKS) -> Any:
    """Return the times of all ways for one array."""
    cp = cuda.cupy()
    draws = np.random.default_rng(1).random(min(vertices, DRAWN), np.float32)
    drawn = cp.asarray((draws < share).astype(np.int32))
    status = cp.tile(drawn, -(-vertices // len(draws)))[:vertices]
    expected = cp.flatnonzero(status).astype(np.uint32)
    by_block: dict[str, dict[int, float]] = {way: {} for way in WAYS}
    for block in blocks:
        ways = Ways(block, status, len(expected))
        for way in WAYS:
            by_block[way][block] = ways.seconds(way)
            ways.check(way, expected)
    best = {way: min(times.values()) for way, times in by_block.items()}
    speedup = {way: best["scan"] / best[way] for way in WAYS[:2]}
    about = {"vertices": vertices, "share": share, "repeats": REPEATS}
    return about | {"seconds": best, "by_block": by_block, "speedup": speedup}
