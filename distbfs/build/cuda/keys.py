"""Sorted keys of directed edges on one CUDA device, in passes of bounded memory.

A pass reads all tuples with an end in the device's parts, chunk by chunk, and appends
the keys of a range of rows to a buffer, which is then sorted. If the numbers of keys of
rows are not known, one pass is tried if all keys probably fit; else a pass counts them
first. For the format of keys, see parts.cu.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from distbfs.build.cuda.chunks import Chunks, Passes, longest
from distbfs.build.cuda.kernels import (
    BLOCK,
    FOLDER,
    KEYS_TILE,
    Kernels,
    check_keys,
)
from distbfs.build.cuda.ranges import KEY_BYTES, RESERVE, Ranges
from distbfs.build.cuda.shares import DealerSeat, Shares
from distbfs.device import cuda, programs
from distbfs.generate.cuda import device_tuples, id_word
from distbfs.progress import Sum
from distbfs.timing import Stopwatch
from distbfs.types import DeviceArray, KernelArgument, TupleSource

SLACK = 1 << 20  # keys of a part beyond its mean share plus a tenth
MOST_KEYS = 5 << 29  # sorted at once: Thrust cannot allocate for more than 2^32
HOLD_SHARE = 4  # tuples from the host are kept if they take at most 1 / HOLD_SHARE
LARGEST_KEY = (1 << 64) - 1
BOTH_ENDS, FIRST_ENDS = np.uint32(1), np.uint32(0)  # of a tuple that have rows


@dataclass
class Rule:
    """The keys that kernels ``append_NAME`` and ``count_NAME`` make from a tuple.

    rows: number of rows of all keys; arguments: those of the kernels between the tuples
    and the range
    first: function that is also called with the tuples of the first pass
    ranges: numbers of keys of rows, if known; most: number of keys to sort at once, at
    least those of the longest row, if they are; None: as many as fit
    bits: bits of a column in a key, at least 32; 32 for ids of 32 bits
    key_bytes: bytes that a key needs until it is written
    turned: reverse the tuples; last: no pass follows those of these keys
    """

    name: str
    rows: int
    arguments: tuple[KernelArgument, ...]
    first: Callable[[DeviceArray, DeviceArray], None] | None = None
    ranges: Ranges | None = None
    most: int | None = None
    bits: int = 32
    key_bytes: int = KEY_BYTES
    turned: bool = False
    last: bool = False

    @property
    def most_rows(self) -> int:
        """Number of rows that the row bits of a key can tell apart."""
        return 1 << (64 - self.bits)


class KeyPasses:
    """Passes over pairs of ids on the current device, for keys of rows.

    chunks: the pairs, of which one pass is announced
    likely: a number of keys that a rule rarely exceeds; buffer_bytes: memory for keys
    and their sort, None: what is free. Both are for rules without ranges.
    """

    passes = 0

    def __init__(
        self,
        kernels: Kernels,
        chunks: Passes,
        likely: int = 0,
        buffer_bytes: int | None = None,
    ) -> None:
        self._kernels, self._chunks, self._likely = kernels, chunks, likely
        self._wanted, self.expect = buffer_bytes, chunks.expect

    def _buffer(self, need: int = 0) -> int:
        """Return the bytes that keys may take beside ``need``."""
        spare = max(cuda.free_bytes() - need - RESERVE, 0)
        return spare if self._wanted is None else min(self._wanted, spare)

    def _each(
        self, rule: Rule, verb: str, per_block: int, *form: KernelArgument
    ) -> None:
        """Launch ``VERB_NAME`` in a pass; a rule's first also calls ``rule.first``."""
        first, rule.first = rule.first, None
        name = f"{verb}_{rule.name}"

        def work(u: DeviceArray, v: DeviceArray) -> None:
            if first is not None:
                first(u, v)
            # mutant: (v, u) if rule.turned else (u, v) -> (u, v)
            #   : test_directed_tuples_in_passes
            ends = (v, u) if rule.turned else (u, v)
            self._kernels.over(name, len(u), *ends, *form, per_block=per_block)

        self._kernels.each(self._chunks, "keys", work)
        self.passes += 1

    def _append(self, rule: Rule, low: int, high: int, keys: DeviceArray) -> int:
        """Write the keys of rows low … high-1, unsorted; return their number.

        If there is no memory for all of them, the rest are only counted.
        """
        size = cuda.cupy().zeros(1, np.uint64)
        rows = np.uint32(low), np.uint32(high - low - 1), np.uint32(rule.bits)
        form = *rule.arguments, *rows, np.uint64(len(keys)), keys, size
        self._each(rule, "append", KEYS_TILE, *form)
        return int(size.get()[0])

    def count(self, rule: Rule) -> DeviceArray:
        """Count the keys of each row, uint32 [rows]."""
        lengths = cuda.cupy().zeros(rule.rows, np.uint32)
        self._each(rule, "count", BLOCK, *rule.arguments, lengths)
        return lengths

    def _sort(self, keys: DeviceArray, *, growing: bool) -> DeviceArray:
        """Sort keys; growing: whether what is kept of them is allocated later."""
        with self._kernels.phase("sort"):
            keys.sort()
        with self._kernels.phase("memory"):
            if growing:
                cuda.release()  # what is kept must not lie where the sort allocates
        return keys

    def sorted_keys(
        self, rule: Rule, kept: Callable[[DeviceArray], int] | None = None
    ) -> Iterator[tuple[DeviceArray, int]]:
        """Yield (sorted keys, first row) of ranges of rows, repeats included.

        kept: function from the number of keys of each row (uint32) to the bytes that
        will be kept of these keys; without it, all memory for them exists already

        Raises InputError if there are other keys than ``rule.ranges`` has.
        """
        if not rule.rows:
            self.expect(-1)
            return
        cupy, growing = cuda.cupy(), kept is not None
        if growing:
            cuda.release()
        likely, ranges = self._likely, rule.ranges
        rule.ranges = None
        if ranges is None:
            fits = rule.key_bytes * likely <= self._buffer() and likely <= MOST_KEYS
            if fits and rule.rows <= rule.most_rows:
                keys = cupy.empty(likely, np.uint64)
                count = self._append(rule, 0, rule.rows, keys)
                if count <= likely:
                    yield self._sort(keys[:count], growing=growing), 0
                    return
                del keys
                cuda.release()
                self.expect(1)
            self.expect(1)
            ranges = Ranges(self._kernels, self.count(rule))
        bounds, capacity = self._bounds(rule, ranges, kept)
        del ranges
        self.expect(len(bounds) - 1)
        keys = cupy.empty(capacity, np.uint64)
        for low, high, expected in bounds:
            count = self._append(rule, low, min(high, rule.rows), keys)
            check_keys(count, expected)
            if rule.last and high >= rule.rows:
                self._chunks.drop()
            yield self._sort(keys[:count], growing=growing), low

    def _bounds(
        self, rule: Rule, ranges: Ranges, kept: Callable[[DeviceArray], int] | None
    ) -> tuple[list[tuple[int, int, int]], int]:
        """Return ranges (first row, last + 1, keys) and the most keys of a range."""
        with self._kernels.phase("ranges"):
            need, lengths, capacity = 0, ranges.lengths, rule.most
            if kept is not None:
                need = kept(lengths) - lengths.nbytes
            if capacity is None:
                capacity = min(self._buffer(need) // rule.key_bytes, MOST_KEYS)
            capacity = min(max(capacity, ranges.longest), ranges.total)
            cuda.require(
                need + rule.key_bytes * capacity + RESERVE // 4,
                f"a graph of {ranges.total} keys, {capacity} of them at a time,",
            )
            # mutant: , rule.most_rows -> : test_keys_that_tell_few_rows_apart
            return ranges.cut(capacity, rule.most_rows), capacity


class PartPasses(KeyPasses):
    """Passes over the tuples of a source for one device's parts.

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
        own = programs.Module(FOLDER / "parts.cu", ID=id_word(source.n))
        self.kernels = Kernels(self.clock, own)
        tuples, count = device_tuples(source), source.tuples
        pair = 2 * np.dtype(tuples.dtype).itemsize
        most, self._wanted = 2 * count, buffer_bytes
        likely = min(most // parts * 11 // 10 + SLACK, most)
        cuda.release()
        room = self._buffer() // HOLD_SHARE // pair
        chunks: Passes
        self.finish: Callable[[], None] = lambda: None
        if seat is None:
            cuda.require(
                pair * longest(count) + RESERVE // 4,
                "a chunk of edge tuples",
            )
            hold = not tuples.generated and count <= room
            self.held_bytes = pair * count * hold
            chunks = Chunks(tuples, count, hold=hold, done=done)
        else:
            keep = min(seat.parts * likely, count)
            keep = keep if keep <= room else 0
            self.held_bytes = pair * keep
            shares = Shares(tuples, seat, keep, self.clock, done)
            chunks, self.finish = shares, shares.finish
        super().__init__(self.kernels, chunks, likely, buffer_bytes)

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
