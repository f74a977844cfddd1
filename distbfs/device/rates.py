"""Measured rates of memory: copies, random bit tests, the link to the host.

The least work of a search, divided by these rates, is a lower bound of its time
(``benchmark.limit``). The rates are measured in the same run as the search.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cc, cuda, host_memory, programs

COPY_BYTES = 1 << 30  # read, and as many written; less if memory is short
LINK_BYTES = 1 << 28  # more than caches hold
HOST_COPY_BYTES = 1 << 28
BLOCK, UNROLL = 1024, 8  # UNROLL as in rates.cu
ROUNDS = 160  # per thread
HOST_TESTS = 1 << 21  # per thread
REPEATS = 5
DEVICE_TO_DEVICE = 3  # cudaMemcpyKind
MOST_BITS = (1 << 32) - 1


@dataclass(frozen=True)
class Rates:
    """Measured rates of one device, each the best of some repeats.

    where: "cuda" or "cpu"; copy: bytes per second, reads plus writes
    tests: random bit tests per second in a bitmap of ``bits`` bits
    link: bytes per second that kernels read in place from pinned host memory, or None
    """

    where: str
    copy: float
    bits: int
    tests: float
    link: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the rates as JSON values."""
        return asdict(self)


def best(run: Callable[[], float]) -> float:
    """Return the shortest time of some repeats, after a warm-up."""
    run()
    return min(run() for _ in range(REPEATS))


def device_rates(bits: int, *, link: bool = False) -> Rates:
    """Measure the rates of the current CUDA device.

    bits: size of the bitmap; link: whether to measure reads of host memory
    """
    bits = min(max(bits, 32), MOST_BITS)
    over_link = link_rate() if link else None
    return Rates("cuda", copy_rate(), bits, test_rate(bits), over_link)


def copy_rate() -> float:
    """Measure a copy in device memory; return bytes per second, reads plus writes."""
    cp = cuda.cupy()
    size = COPY_BYTES
    while size > 1 << 20 and 4 * size > cuda.free_bytes():
        size //= 2
    with cuda.memory_of("measuring the copy rate"):
        source, target = (cp.zeros(size, np.uint8) for _ in range(2))

    def run() -> float:
        return timed(
            lambda: cp.cuda.runtime.memcpyAsync(
                target.data.ptr, source.data.ptr, size, DEVICE_TO_DEVICE, 0
            )
        )

    return 2 * size / best(run)


def link_rate() -> float:
    """Measure reads of pinned host memory by kernels; return bytes per second.

    Raises OutOfMemory if LINK_BYTES cannot be pinned.
    """
    cp = cuda.cupy()
    values = host_memory.pinned(LINK_BYTES // 4, np.uint32, "measuring the link")
    array = host_memory.seen_by_kernels(values)
    launch = _kernel("stream")
    grid, total = 2 * cuda.multiprocessors(), cp.zeros(1, np.uint64)
    count = np.uint64(len(values) // 4)
    return LINK_BYTES / best(
        lambda: timed(lambda: launch(grid, BLOCK, array, count, total))
    )


def test_rate(bits: int) -> float:
    """Measure tests in a bitmap; return random bit tests per second."""
    cp = cuda.cupy()
    launch = _kernel("bit_tests")
    grid = 2 * cuda.multiprocessors()
    words, total = cp.zeros((bits + 31) // 32, np.uint32), cp.zeros(1, np.uint64)
    seed = 0

    def run() -> float:
        nonlocal seed
        seed += 1
        n, rounds, drawn_by = np.uint32(bits), np.uint32(ROUNDS), np.uint32(seed)
        return timed(lambda: launch(grid, BLOCK, words, n, rounds, drawn_by, total))

    return grid * BLOCK * ROUNDS * UNROLL / best(run)


def _kernel(name: str) -> programs.Kernel:
    """Return a kernel of rates.cu."""
    return programs.Module(Path(__file__).with_suffix(".cu")).kernel(name)


def timed(launch: Callable[[], None]) -> float:
    """Run a launch; return the seconds between events around it."""
    cp = cuda.cupy()
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    begin.record()
    launch()
    end.record()
    end.synchronize()
    return float(cp.cuda.get_elapsed_time(begin, end)) * 1e-3


def host_rates(bits: int, threads: int = 0) -> Rates:
    """Measure the rates of the CPU in C or, without a compiler, in NumPy.

    NumPy uses one thread.
    """
    bits = min(max(bits, 32), MOST_BITS)
    threads = cc.thread_count(threads)
    source = np.ones(HOST_COPY_BYTES // 8, np.uint64)
    target = np.zeros_like(source)
    words = np.zeros((bits + 31) // 32, np.uint32)
    code = cc.load_or_none(Path(__file__).with_suffix(".c"))
    if code is None:
        copying = best(lambda: clock(lambda: np.copyto(target, source)))
        at = np.random.default_rng(1).integers(0, bits, 1 << 20, dtype=np.uint32)
        testing = best(lambda: clock(lambda: words[at >> 5] >> (at & 31) & 1))
        return Rates("cpu", 2 * source.nbytes / copying, bits, len(at) / testing)
    code.rates_bit_tests.restype = ctypes.c_int64
    copied = cc.arguments(target, source, source.nbytes)
    tested = cc.arguments(words, ctypes.c_uint32(bits), HOST_TESTS)

    def copy() -> None:
        code.rates_copy(*copied, threads)

    def test() -> None:
        code.rates_bit_tests(*tested, threads)

    copying, testing = best(lambda: clock(copy)), best(lambda: clock(test))
    tests = threads * HOST_TESTS / testing
    return Rates("cpu", 2 * source.nbytes / copying, bits, tests)


def clock(work: Callable[[], object]) -> float:
    """Call a function; return the seconds of wall time."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
