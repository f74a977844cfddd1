"""Sorted keys of directed edges on one CUDA device, in passes of bounded memory.

A pass reads all tuples with an end in the device's parts, chunk by chunk, and appends
the keys of a range of rows to a buffer, which is then sorted. If all keys of a part
probably fit, one pass is tried; else a pass counts the keys of each row first. For the
format of keys, see parts.cu.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from distbfs.build.cuda.chunks import Chunks, Passes, longest
from distbfs.build.cuda.kernels import (
    BLOCK,
    FOLDER,
    Kernels,
    check_keys,
)
from distbfs.build.cuda.ranges import KEY_BYTES, RESERVE, Ranges
from distbfs.build.cuda.shares import DealerSeat, Shares
from distbfs.device import cuda, programs
from distbfs.generate.cuda import device_tuples, id_word
from distbfs.progress import Sum
from distbfs.timing import Stopwatch
from distbfs.types import DeviceArray, Ids, KernelArgument, TupleSource

SLACK = 1 << 20  # keys of a part beyond its mean share plus a tenth
MOST_KEYS = 5 << 29  # sorted at once: Thrust cannot allocate for more than 2^32
HOLD_SHARE = 4  # tuples from the host are kept if they take at most 1 / HOLD_SHARE
LARGEST_KEY = (1 << 64) - 1
BOTH_ENDS, FIRST_ENDS = np.uint32(1), np.uint32(0)  # of a tuple that have rows


class PartKernels(Kernels):
    """Kernels that build parts and are launched by number of items, and the clock.

    n: number of vertices of all parts
    """

    def __init__(self, clock: Stopwatch, n: int) -> None:
        super().__init__(clock, programs.Module(FOLDER / "parts.cu", ID=id_word(n)))

    def histogram(self, values: DeviceArray) -> tuple[Ids, Ids]:
        """Return the distinct values, ascending, and how often each occurs, int64."""
        most = max(Ranges(self, values).longest, 1023)
        counts = cuda.cupy().zeros(most + 1, np.uint32)
        self.launch(
            "histogram", len(values), BLOCK, np.uint64(len(values)), values, counts
        )
        host = counts.get()
        occur = np.flatnonzero(host)
        return occur, host[occur].astype(np.int64)


@dataclass
class Rule:
    """The keys that kernels ``append_NAME`` and ``count_NAME`` make from a tuple.

    rows: number of rows of all keys; arguments: those of the kernels between the tuples
    and the range
    first: function that is also called with the tuples of the first pass
    lengths: number of keys of each row, uint32 [rows], if known
    bits: bits of a column in a key, at least 32; 32 for ids of 32 bits
    key_bytes: bytes that a key needs until it is written
    turned: reverse the tuples
    """

    name: str
    rows: int
    arguments: tuple[KernelArgument, ...]
    first: Callable[[DeviceArray, DeviceArray], None] | None = None
    lengths: DeviceArray | None = None
    bits: int = 32
    key_bytes: int = KEY_BYTES
    turned: bool = False

    @property
    def most_rows(self) -> int:
        """Number of rows that the row bits of a key can tell apart."""
        return 1 << (64 - self.bits)


class KeyPasses:
    """Passes over the tuples of a source on the current device.

    buffer_bytes: memory for keys and their sort, None: what is free
    done: called with the number of tuples made; see ``Chunks``. One pass is announced
    from the start.
    seat: seat of this device if devices exchange tuples (``shares.py``); None: it makes
    all tuples
    held_bytes: bytes of the tuples that are kept between passes
    """

    def __init__(
        self,
        source: TupleSource,
        parts: int,
        buffer_bytes: int | None,
        done: Sum,
        seat: DealerSeat | None = None,
    ) -> None:
        self.clock = Stopwatch()
        self.kernels = PartKernels(self.clock, source.n)
        tuples, count = device_tuples(source), source.tuples
        pair = 2 * np.dtype(tuples.dtype).itemsize
        self._most, self._parts, self._wanted = 2 * count, parts, buffer_bytes
        cuda.release()
        room = self._buffer() // HOLD_SHARE // pair
        self._chunks: Passes
        self.finish: Callable[[], None] = lambda: None
        if seat is None:
            cuda.require(
                pair * longest(count) + RESERVE // 4,
                "a chunk of edge tuples",
            )
            hold = not tuples.generated and count <= room
            self.held_bytes = pair * count * hold
            self._chunks = Chunks(tuples, count, hold=hold, done=done)
        else:
            keep = min(seat.parts * self._likely(), count)
            keep = keep if keep <= room else 0
            self.held_bytes = pair * keep
            shares = Shares(tuples, seat, keep, self.clock, done)
            self._chunks, self.finish = shares, shares.finish
        self.expect = self._chunks.expect
        self.passes = 0

    def _likely(self) -> int:
        """Return a number of keys that a part rarely exceeds."""
        return min(self._most // self._parts * 11 // 10 + SLACK, self._most)

    def _buffer(self, need: int = 0) -> int:
        """Return the bytes that keys may take beside ``need``."""
        spare = max(cuda.free_bytes() - need - RESERVE, 0)
        return spare if self._wanted is None else min(self._wanted, spare)

    def _each(
        self, rule: Rule, work: Callable[[DeviceArray, DeviceArray], None]
    ) -> None:
        """Make a pass; the first pass of a rule also calls ``rule.first``."""
        first, rule.first = rule.first, None

        def both(u: DeviceArray, v: DeviceArray) -> None:
            if first is not None:
                first(u, v)
            work(*((v, u) if rule.turned else (u, v)))

        self.kernels.each(self._chunks, "keys", both)
        self.passes += 1

    def _append(self, rule: Rule, low: int, high: int, keys: DeviceArray) -> int:
        """Collect the keys of the rows low … high-1; return their number."""
        rows = np.uint32(low), np.uint32(high - low - 1), np.uint32(rule.bits)
        arguments = (*rule.arguments, *rows)
        each = partial(self._each, rule)
        return self.kernels.append(each, f"append_{rule.name}", arguments, keys)

    def count(self, rule: Rule) -> DeviceArray:
        """Count the keys of each row, uint32 [rows]."""
        lengths = cuda.cupy().zeros(rule.rows, np.uint32)

        def work(u: DeviceArray, v: DeviceArray) -> None:
            self.kernels.launch(
                f"count_{rule.name}",
                len(u),
                BLOCK,
                np.uint64(len(u)),
                u,
                v,
                *rule.arguments,
                lengths,
            )

        self._each(rule, work)
        return lengths

    def _sort(self, keys: DeviceArray) -> DeviceArray:
        with self.kernels.phase("sort"):
            keys.sort()
        with self.kernels.phase("memory"):
            cuda.release()  # what is kept must not lie where the sort allocates
        return keys

    def sorted_keys(
        self, rule: Rule, kept: Callable[[DeviceArray], int]
    ) -> Iterator[tuple[DeviceArray, int]]:
        """Yield (sorted keys, first row) of ranges of rows, repeats included.

        kept: function from the number of keys of each row (uint32) to the bytes that
        will be kept of these keys
        """
        if not rule.rows:
            self.expect(-1)
            return
        cupy = cuda.cupy()
        cuda.release()
        likely = self._likely()
        fits = rule.key_bytes * likely <= self._buffer() and likely <= MOST_KEYS
        if fits and rule.rows <= rule.most_rows:
            keys = cupy.empty(likely, np.uint64)
            count = self._append(rule, 0, rule.rows, keys)
            if count <= likely:
                yield self._sort(keys[:count]), 0
                return
            del keys
            cuda.release()
            self.expect(1)
        self.expect(rule.lengths is None)
        bounds, capacity = self._ranges(rule, kept)
        self.expect(len(bounds) - 1)
        keys = cupy.empty(capacity, np.uint64)
        for low, high, expected in bounds:
            count = self._append(rule, low, min(high, rule.rows), keys)
            check_keys(count, expected)
            yield self._sort(keys[:count]), low

    def _ranges(
        self, rule: Rule, kept: Callable[[DeviceArray], int]
    ) -> tuple[list[tuple[int, int, int]], int]:
        """Return ranges (first row, last + 1, keys) and the most keys of a range."""
        lengths = self.count(rule) if rule.lengths is None else rule.lengths
        with self.kernels.phase("ranges"):
            ranges = Ranges(self.kernels, lengths)
            need = kept(lengths) - lengths.nbytes
            capacity = min(self._buffer(need) // rule.key_bytes, MOST_KEYS)
            capacity = min(max(capacity, ranges.longest), ranges.total)
            cuda.require(
                need + rule.key_bytes * capacity + RESERVE // 4,
                f"a part of {ranges.total} keys, {capacity} of them at a time,",
            )
            # mutant: , rule.most_rows -> : test_keys_that_tell_few_rows_apart
            return ranges.cut(capacity, rule.most_rows), capacity

    def close(self) -> None:
        """Free the tuples; no pass may follow."""
        self._chunks.drop()
        cuda.release()


def segments(
    keys: DeviceArray, low: int, bases: list[int], bits: int
) -> list[DeviceArray]:
    """Cut sorted keys at the rows ``bases``; return one piece more than ``bases`` has.

    keys: uint64; low: the row that keys have whose bits above ``bits`` are 0
    """
    cp, values = cuda.cupy(), [min(max(x - low, 0) << bits, LARGEST_KEY) for x in bases]
    firsts = cp.asarray(np.array(values, dtype=np.uint64))
    cuts = [*cp.searchsorted(keys, firsts).get().tolist(), len(keys)]
    return [keys[a:b] for a, b in zip([0, *cuts], cuts, strict=False)]
