"""Figure 5 of the XBFS paper: queues by atomic additions against prefix sums.

Frontiers are gathered from random status arrays of 1 to 512 million (2^20) vertices,
by kernels/queues.cu; each way takes its best block size.  A time is that of a CUDA
graph, so that launches from Python do not count.
Source: Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019, Section 4.1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figures
import numpy as np

from distbfs.device import cuda, programs
from distbfs.errors import ValidationError

SOURCE = Path(__file__).parent / "kernels" / "queues.cu"
BLOCKS = (128, 256, 512, 1024)
THREADS = 2048  # on a multiprocessor
SHARES = (0.01, 0.1, 0.5)  # of vertices that are in the frontier
WAYS = ("atomic_warp", "atomic_block", "scan")
MILLION = 1 << 20
REPEATS = 5


class Ways:
    """The kernels of one block size on one array."""

    def __init__(self, block: int, status: Any, members: int) -> None:
        cp = cuda.cupy()
        module = programs.Module(SOURCE, BLOCK=block)
        self._block, self._grid = block, cuda.multiprocessors() * THREADS // block
        self._status, self._count = status, np.uint64(len(status))
        self.queue = cp.empty(members, np.uint32)
        self.tail = cp.zeros(1, np.uint32)
        tiles = -(-len(status) // (block * 16))
        self._tiles, self._last = cp.empty(tiles, np.uint32), np.uint64(tiles)
        names = ("atomic_warp", "atomic_block", "count_tiles", "scan_tiles", "place")
        self._kernels = {name: module.kernel(name) for name in names}

    def launch(self, way: str) -> None:
        """Make the queue on the current stream."""
        array = (self._status, self._count, np.int32(1))
        run, shape = self._kernels, (self._grid, self._block)
        if way != "scan":
            stream = cuda.cupy().cuda.get_current_stream().ptr
            cuda.cupy().cuda.runtime.memsetAsync(self.tail.data.ptr, 0, 4, stream)
            run[way](*shape, *array, self.queue, self.tail)
            return
        run["count_tiles"](*shape, *array, self._tiles)
        run["scan_tiles"](1, self._block, self._tiles, self._last, self.tail)
        run["place"](*shape, *array, self._tiles, self.queue)

    def seconds(self, way: str) -> float:
        """Return the shortest of some repeats."""
        cp = cuda.cupy()
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
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
        cp = cuda.cupy()
        queue = self.queue if way == "scan" else cp.sort(self.queue)
        if int(self.tail[0]) != len(expected) or not bool((queue == expected).all()):
            raise ValidationError(f"{way} with blocks of {self._block}: a wrong queue")


def measure(millions: int, share: float) -> dict[str, Any]:
    """Return the times of all ways for one array."""
    cp = cuda.cupy()
    draws = cp.random.random(millions * MILLION, dtype=np.float32)
    status = (draws < share).astype(np.int32)
    expected = cp.flatnonzero(status).astype(np.uint32)
    del draws
    row: dict[str, Any] = {"millions": millions, "share": share}
    by_block: dict[str, dict[int, float]] = {way: {} for way in WAYS}
    for block in BLOCKS:
        ways = Ways(block, status, len(expected))
        for way in WAYS:
            ways.queue.fill(0)
            by_block[way][block] = ways.seconds(way)
            ways.check(way, expected)
    best = {way: min(times.values()) for way, times in by_block.items()}
    return row | {
        "seconds": best,
        "by_block": by_block,
        "speedup": {way: best["scan"] / best[way] for way in WAYS[:2]},
    }


def main() -> None:
    args = figures.arguments(__doc__).parse_args()
    top = 2 if args.small else 9
    rows = []
    for share in SHARES:
        for k in range(top + 1):
            rows.append(measure(1 << k, share))
            cuda.release()
            speedup = rows[-1]["speedup"]
            words = ", ".join(f"{way} {value:.2f}" for way, value in speedup.items())
            print(f"{1 << k} M, share {share}: {words}", flush=True)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for share in SHARES:
            these = [row for row in rows if row["share"] == share]
            for way, line in zip(WAYS[:2], ("o-", "s--"), strict=True):
                ratios = figures.column(these, "speedup", way)
                label = f"{way}, {share:.0%} in the frontier"
                axes.plot(figures.column(these, "millions"), ratios, line, label=label)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xlabel("vertices, millions (2^20)")
        axes.set_ylabel("speed-up over two-pass scan")
        figures.legend_above(axes, 3)

    figures.save(args.out, "xbfs_fig05", {"rows": rows}, draw)


if __name__ == "__main__":
    figures.main(main)
