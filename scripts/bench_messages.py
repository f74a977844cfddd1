"""Measure what messages to many partners cost a rank, on two ranks with a device each.

    mpirun -n 2 python scripts/bench_messages.py --out results

The other rank stands for k partners: k messages of --words words go each way at once.

nvshmem    puts with signals inside one kernel, which waits for those of the other
nccl       one group of sends and receives, until the device has finished
host       MPI_Isend and MPI_Irecv of host memory, until all are complete

Prints the median microseconds of a round for each k, and the fit a + b k to these
(least relative squares); b is the constant of ``partners`` in the model of ``plan``.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import figures
import numpy as np

from distbfs.device import cuda
from distbfs.errors import DistbfsError, UsageError
from distbfs.exchange.nccl_link import link_of
from distbfs.exchange.symmetric import NvshmemMemory
from distbfs.ranks.mpi import MpiWorld
from distbfs.ranks.world import run_guarded, start
from distbfs.report.tables import print_table

COUNTS = (1, 4, 16, 64, 256, 1024, 4096)
ROUNDS, WARM = 30, 5
IN_KERNEL = 20  # rounds of a launch
THREADS = 256

Round = Callable[[int], float]  # messages -> seconds


def main() -> None:
    """Measure on two ranks; the first prints and writes."""
    parser = figures.arguments(__doc__)
    parser.add_argument("--words", type=int, default=16, help="of a message")
    args = parser.parse_args()
    counts = COUNTS[:3] if args.small else COUNTS

    def work() -> int:
        world = start()
        if not isinstance(world, MpiWorld) or world.size != 2:
            raise UsageError("start this with mpirun -n 2")
        devices = cuda.cupy().cuda.runtime.getDeviceCount()
        cuda.cupy().cuda.Device(world.local_rank % devices).use()
        rows = {}
        for name, make in WAYS.items():
            one = make(world, args.words, max(counts))
            rows[name] = {k: measured(world, one, k) for k in counts}
        if world.rank == 0:
            report(args, rows)
        return 0

    sys.exit(run_guarded(None, work))


def measured(world: MpiWorld, one: Round, count: int) -> float:
    """Return the median seconds of a round, of the slower rank."""
    taken = []
    for _ in range(WARM + ROUNDS):
        world.barrier()
        taken.append(one(count))
    mine = np.array([statistics.median(taken[WARM:])])
    return float(world.allreduce(mine, "max")[0])


def by_nvshmem(world: MpiWorld, words: int, most: int) -> Round:
    """Return a function that runs rounds inside a kernel."""
    cp, memory = cuda.cupy(), NvshmemMemory(world)
    boxes = memory.allocate(8 * most * words, "boxes").view(np.uint64)
    signals = memory.allocate(8 * most, "signals").view(np.uint64)
    own, late = cp.ones(words, np.uint64), cp.zeros(1, np.uint64)
    source = Path(__file__).with_name("messages.cu")
    kernel = memory.module(source).kernel("rounds")
    grid, turn = cuda.multiprocessors(), [1]
    ends = [cp.cuda.Event() for _ in range(2)]

    def run(count: int) -> float:
        ends[0].record()
        numbers = (np.uint32(x) for x in (count, words, IN_KERNEL))
        form = *numbers, np.uint64(turn[0]), np.uint32(1 - world.rank), late
        kernel(min(grid, count), THREADS, boxes, signals, own, *form)
        ends[1].record()
        ends[1].synchronize()
        if int(late[0]):
            raise DistbfsError("the other rank's signals did not come")
        turn[0] += IN_KERNEL
        return float(cp.cuda.get_elapsed_time(*ends)) * 1e-3 / IN_KERNEL

    return run


def by_nccl(world: MpiWorld, words: int, most: int) -> Round:
    """Return a function that sends and receives in one group."""
    cp, link = cuda.cupy(), link_of(world)
    (end,), other = link.ends, 1 - world.rank
    out, back = (cp.zeros((most, words), np.uint64) for _ in range(2))

    def run(count: int) -> float:
        began = time.perf_counter()
        with link.group():
            for k in range(count):
                end.send(out[k], other)
                end.receive(back[k], other)
        link.wait(end.mark())
        return time.perf_counter() - began

    return run


def by_mpi(world: MpiWorld, words: int, most: int) -> Round:
    """Return a function that sends and receives from host memory."""
    from mpi4py import MPI  # noqa: PLC0415

    comm, other = world.comm.Dup(), 1 - world.rank
    out, back = (np.zeros((most, words), np.uint64) for _ in range(2))

    def run(count: int) -> float:
        began = time.perf_counter()
        requests = [comm.Irecv(back[k], other) for k in range(count)]
        requests += [comm.Isend(out[k], other) for k in range(count)]
        MPI.Request.Waitall(requests)
        return time.perf_counter() - began

    return run


WAYS = {"nvshmem": by_nvshmem, "nccl": by_nccl, "host": by_mpi}


def fit(times: dict[int, float]) -> tuple[float, float]:
    """Return a and b of seconds = a + b k, with the least relative squares."""
    counts, seconds = (
        np.array(x, dtype=float) for x in zip(*times.items(), strict=True)
    )
    table = np.stack([np.ones_like(counts), counts], axis=1) / seconds[:, None]
    (a, b), *_ = np.linalg.lstsq(table, np.ones_like(seconds), rcond=None)
    return float(a), float(b)


def report(args: Any, rows: dict[str, dict[int, float]]) -> None:
    """Print the table, and write the file."""
    fits = {name: fit(times) for name, times in rows.items()}
    heads = ("exchange", *map(str, next(iter(rows.values()))), "a µs", "b µs")

    def lines() -> Iterator[tuple[str, ...]]:
        for name, times in rows.items():
            numbers = [*times.values(), *fits[name]]
            yield name, *(f"{1e6 * x:.4g}" for x in numbers)

    values = {
        "words": args.words,
        "seconds": {
            name: {str(k): x for k, x in t.items()} for name, t in rows.items()
        },
        "fit": {name: {"a": a, "b": b} for name, (a, b) in fits.items()},
    }
    figures.save(args.out, "bench_messages", values)
    print_table(heads, list(lines()))


if __name__ == "__main__":
    figures.main(main)
