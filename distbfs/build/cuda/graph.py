"""Build a whole graph on one CUDA device, in passes of bounded memory.

One pass over the tuples counts the ends at each vertex and fixes the numbers.  Then the
rows are made range by range: a pass collects the keys (row, column) of a range, which
are sorted and written as columns.  Where all keys fit, one range is enough and the
tuples of the first pass are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.build.cuda.chunks import Chunks, Passes, Side, longest
from distbfs.device import cuda, programs
from distbfs.errors import InputError, UsageError
from distbfs.generate.cuda import device_tuples
from distbfs.graph.device_graph import (
    AT_LEAST,
    COLUMN_PAD,
    MAX_VERTICES,
    DeviceGraph,
    degree_class,
)
from distbfs.progress import Sum
from distbfs.timing import Stopwatch
from distbfs.types import Array, DeviceArray, Ids, KernelArgument, Marks, TupleSource

FOLDER = Path(__file__).parent
KEY_KERNELS = {
    *("scan_32", "scan_64", "sum_rows", "offsets_32", "offsets_64", "histogram"),
    *("keys_below", "count_fresh", "measure_rows", "write_columns"),
    *("write_numbers_32", "write_numbers_64"),
}
BLOCK = 256
BLOCKS_PER_MULTIPROCESSOR = 16
SCAN_BLOCK = 1024
CLASSES = 128
CLASS_TILES = 1 << 14  # tiles of ids in the counting sort, at most
ROWS_TILE = 1024  # numbers whose degrees are summed together
KEYS_TILE = 2048  # keys or tuples of a block at a time
KEY_BYTES = 16  # a key and its place in the sort
PAIR_BYTES = 8
BUFFER_BYTES = 96 << 30  # for keys, at most, where nothing else is said
RESERVE = 1 << 30
VERTEX_BYTES = 28  # of all arrays by vertex at once, at most
MOST_RANGES = 64  # of rows, and so passes over the tuples, unless told otherwise
WASTE = 10  # columns may take 1 / WASTE more than they need
WIDE = 1 << 32


class Kernels:
    """Kernels, launched by number of items, and the clock.

    file: whose kernels there are, beside those of keys.cu
    """

    def __init__(self, clock: Stopwatch, file: str = "graph.cu") -> None:
        self.clock = clock
        self._own, self._keys = (programs.Module(FOLDER / x) for x in (file, "keys.cu"))
        self._blocks = cuda.multiprocessors() * BLOCKS_PER_MULTIPROCESSOR

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of a ``with`` block, and of what it launched, for a phase."""
        with self.clock(name):
            yield
            cuda.cupy().cuda.Device().synchronize()

    def launch(
        self, name: str, items: int, per_block: int, *arguments: KernelArgument
    ) -> None:
        """Launch a kernel; a block takes ``per_block`` of the ``items`` at a time."""
        if items:
            grid = min(-(-items // per_block), self._blocks)
            self.kernel(name)(grid, BLOCK, *arguments)

    def kernel(self, name: str) -> programs.Kernel:
        """Return a kernel of either file by its name."""
        return (self._keys if name in KEY_KERNELS else self._own).kernel(name)

    def scan(self, values: Any) -> Any:
        """Return the sums before each value and of all, uint64 [values + 1].

        values: uint32 or uint64
        """
        starts = cuda.cupy().empty(len(values) + 1, np.uint64)
        name = f"scan_{8 * values.dtype.itemsize}"
        self.kernel(name)(1, SCAN_BLOCK, np.uint64(len(values)), values, starts)
        return starts

    def fresh_before(self, keys: Any) -> tuple[Any, int]:
        """Return keys that are no repeats before each tile, and how many in all.

        keys: uint64, sorted.  The first is uint64 [tiles + 1].
        """
        tiles = cuda.cupy().empty(-(-len(keys) // KEYS_TILE), np.uint32)
        count = np.uint64(len(keys))
        self.launch("count_fresh", len(keys), KEYS_TILE, count, keys, tiles)
        starts = self.scan(tiles)
        return starts, int(starts[-1:].get()[0])

    def each(
        self,
        chunks: Passes,
        phase: str,
        work: Callable[[DeviceArray, DeviceArray], None],
    ) -> None:
        """Do ``work(u, v)``, CuPy uint32, for all chunks, timed apart from them."""
        waiting = iter(chunks)
        while True:
            with self.phase("generation"):
                pair = next(waiting, None)
            if pair is None:
                return
            with self.phase(phase):
                work(*pair)


class Numbering:
    """Numbers by falling degree class, then rising id; see device_graph.py.

    degrees: uint32 [n], edges at each vertex, repeats counted, loops not
    active, vertices, numbers, at_least: as in DeviceGraph
    sorted: uint32 [active], degrees by number
    """

    def __init__(self, kernels: Kernels, degrees: DeviceArray) -> None:
        cupy = cuda.cupy()
        n = len(degrees)
        tile = max(-(-n // CLASS_TILES) + 31 & ~31, BLOCK)
        tiles = -(-n // tile)
        form = [np.uint64(n), np.uint64(tile), np.uint64(tiles), degrees]
        warps = BLOCK // 32
        counts = cupy.empty(CLASSES * tiles, np.uint32)
        kernels.launch("count_classes", tiles, warps, *form, counts)
        starts = kernels.scan(counts)
        isolated = (CLASSES - 1) * tiles  # class 0, the last
        self.active = int(starts[isolated : isolated + 1].get()[0])
        self.vertices = cupy.empty(self.active, np.uint32)
        self.sorted = cupy.empty(self.active, np.uint32)
        self.numbers = cupy.empty(n, np.uint32)
        class_starts = cupy.zeros(CLASSES + 1, np.uint64)
        out = (class_starts, self.vertices, self.numbers, self.sorted)
        kernels.launch("assign_numbers", tiles, warps, *form, starts, *out)
        classes = degree_class(np.arange(AT_LEAST))
        self.at_least = class_starts.get().astype(np.int64)[CLASSES - classes]
        self.at_least[0] = self.active

    def arrays(self) -> dict[str, Any]:
        """Return what a DeviceGraph has of it."""
        names = ("active", "at_least", "vertices", "numbers")
        return {name: getattr(self, name) for name in names}


class Ranges:
    """Ranges of numbers whose keys fit a buffer.

    total: keys of all rows; longest: keys of the longest row
    """

    def __init__(self, kernels: Kernels, degrees: DeviceArray) -> None:
        cupy = cuda.cupy()
        self._degrees = degrees
        tiles = -(-len(degrees) // ROWS_TILE)
        sums, longest = cupy.empty(tiles, np.uint64), cupy.zeros(1, np.uint32)
        rows = np.uint64(len(degrees))
        kernels.launch("sum_rows", tiles, 1, rows, degrees, sums, longest)
        self._before = np.zeros(tiles + 1, dtype=np.int64)
        np.cumsum(sums.get().astype(np.int64), out=self._before[1:])
        self.longest = int(longest.get()[0])
        self.total = int(self._before[-1])

    def cut(self, capacity: int) -> list[tuple[int, int, int]]:
        """Return (first row, last + 1, keys) of ranges of ``capacity`` keys or less.

        capacity: the longest row fits it
        """
        out: list[tuple[int, int, int]] = []
        row = done = 0
        while row < len(self._degrees):
            last = self._row_after(done + capacity)
            upto = self._keys_before(last)
            out.append((row, last, upto - done))
            row, done = last, upto
        return out

    def _row_after(self, keys: int) -> int:
        """Return how many rows together have at most so many keys."""
        tile = int(np.searchsorted(self._before, keys, side="right")) - 1
        first = tile * ROWS_TILE
        ends = self._before[tile] + np.cumsum(self._tile(tile))
        return first + int(np.searchsorted(ends, keys, side="right"))

    def _keys_before(self, row: int) -> int:
        tile, inside = divmod(row, ROWS_TILE)
        return int(self._before[tile] + self._tile(tile)[:inside].sum())

    def _tile(self, tile: int) -> Ids:
        first = tile * ROWS_TILE
        return self._degrees[first : first + ROWS_TILE].get().astype(np.int64)


class Rows:
    """Columns and offsets, written range by range.

    active: rows; total: keys, repeats counted; wide: offsets of 64 bits
    """

    def __init__(
        self,
        kernels: Kernels,
        numbers: DeviceArray,
        active: int,
        total: int,
        *,
        wide: bool,
    ) -> None:
        cupy = cuda.cupy()
        self._kernels, self._numbers = kernels, numbers
        self._active, self._total, self._wide = active, total, wide
        self._large = wide or total >= WIDE
        self._offsets = cupy.empty(active + 1, np.uint64 if self._large else np.uint32)
        self._columns = cupy.empty(total + COLUMN_PAD, np.uint32)
        self.m = 0

    def add(
        self,
        chunks: Passes,
        keys: DeviceArray,
        rows: tuple[int, int, int],
        *,
        both: bool,
    ) -> DeviceArray:
        """Collect the keys of a range of rows; return them, unsorted.

        keys: uint64, room for those of any range; rows: (first, last + 1, keys)
        Raises InputError where there are not as many keys.
        """
        low, high, expected = rows
        size = cuda.cupy().zeros(1, np.uint64)
        form = (np.uint32(low), np.uint32(high), np.uint32(both))

        def append(u: DeviceArray, v: DeviceArray) -> None:
            count = np.uint64(len(u))
            room = np.uint64(len(keys))
            arguments = (count, u, v, self._numbers, *form, room, keys, size)
            self._kernels.launch("append_keys", len(u), KEYS_TILE, *arguments)

        self._kernels.each(chunks, "keys", append)
        total = int(size.get()[0])
        if total != expected:
            raise InputError(
                "the edge tuples changed while the graph was built: "
                f"{total} instead of {expected} keys"
            )
        return keys[:total]

    def write(self, keys: Any, low: int) -> None:
        """Append sorted keys of the rows from ``low`` on."""
        starts, fresh = self._kernels.fresh_before(keys)
        name = "write_rows_64" if self._large else "write_rows_32"
        sizes = np.uint64(len(keys)), np.uint64(self.m)
        out = (self._columns[self.m :], self._offsets[low:])
        arguments = (sizes[0], keys, starts, sizes[1], *out)
        self._kernels.launch(name, len(keys), KEYS_TILE, *arguments)
        self.m += fresh

    def finish(self) -> tuple[DeviceArray, DeviceArray]:
        """Return (offsets, columns) of the rows, as in DeviceGraph."""
        last = self._offsets.dtype.type(self.m)
        self._offsets[self._active :].set(np.array([last]))
        if self._large and not self._wide and self.m < WIDE:
            self._offsets = self._offsets.astype(np.uint32)
        columns = self._columns[: self.m + COLUMN_PAD]
        columns[self.m :].set(np.zeros(COLUMN_PAD, dtype=np.uint32))
        wasteful = (self._total - self.m) * WASTE > self._total
        if wasteful and columns.nbytes + RESERVE < cuda.free_bytes():
            columns = columns.copy()
        return self._offsets, columns


class Budget:
    """Bytes for keys, and whether the pairs can be kept.

    n: vertices; count: pairs; keys: at most; buffer_bytes: what keys may take
    Raises ResourceError where the graph would leave less than MOST_RANGES ranges of
    keys need, or than buffer_bytes if that is less.
    """

    def __init__(
        self, n: int, keys: int, count: int, buffer_bytes: int | None, *, cheap: bool
    ) -> None:
        final = VERTEX_BYTES * n + 4 * keys
        most = BUFFER_BYTES if buffer_bytes is None else buffer_bytes
        least = min(most, KEY_BYTES * keys // MOST_RANGES)
        need = final + PAIR_BYTES * longest(count)
        what = f"building a graph of {n} vertices and {keys} directed edges"
        cuda.require(need + least + RESERVE // 4, what)
        spare = max(cuda.free_bytes() - need - RESERVE, least)
        self.buffer = min(most, spare)
        single = KEY_BYTES * keys <= self.buffer
        self.hold = single or (not cheap and PAIR_BYTES * count <= spare - self.buffer)


def make_rows(
    kernels: Kernels,
    chunks: Passes,
    numbering: Numbering,
    lengths: list[DeviceArray],
    budget: Budget,
    *,
    both: bool,
    wide: bool,
) -> tuple[DeviceArray, DeviceArray, int]:
    """Return (offsets, columns, edges) of rows from pairs of ids.

    chunks: one pass over them is planned
    lengths: uint32 [active], keys of each row, one array in a list, which is emptied
    both: a pair is two directed edges.  Offsets of empty rows are not set.
    """
    with kernels.phase("numbering"):
        ranges = Ranges(kernels, lengths.pop())
        capacity = min(max(budget.buffer // KEY_BYTES, ranges.longest), ranges.total)
        bounds = ranges.cut(capacity)
        active = numbering.active
        del ranges._degrees
    with kernels.phase("memory"):
        cuda.release()
        need = 4 * ranges.total + 8 * active + KEY_BYTES * capacity + RESERVE // 4
        cuda.require(need, f"building a graph of {ranges.total} directed edges")
        rows = Rows(kernels, numbering.numbers, active, ranges.total, wide=wide)
        buffer = cuda.cupy().empty(capacity, np.uint64)
    chunks.expect(len(bounds) - 1)
    for index, bound in enumerate(bounds):
        keys = rows.add(chunks, buffer, bound, both=both)
        if index == len(bounds) - 1:
            chunks.drop()
        with kernels.phase("sort"):
            keys.sort()
        with kernels.phase("rows"):
            rows.write(keys, bound[0])
        del keys
    chunks.drop()
    del buffer
    with kernels.phase("memory"):
        cuda.release()
        offsets, columns = rows.finish()
    return offsets, columns, rows.m


def assemble(
    kernels: Kernels,
    chunks: Passes,
    degrees: list[DeviceArray],
    budget: Budget,
    *,
    both: bool,
    wide: bool,
) -> dict[str, Any]:
    """Return the arrays of a graph from degrees, uint32 [n], and pairs of ids.

    degrees: one array in a list, which is emptied; both: a pair is two directed edges
    """
    with kernels.phase("numbering"):
        numbering = Numbering(kernels, degrees.pop())
        lengths = [numbering.sorted]
        del numbering.sorted
    offsets, columns, m = make_rows(
        kernels, chunks, numbering, lengths, budget, both=both, wide=wide
    )
    return {**numbering.arrays(), "m": m, "offsets": offsets, "columns": columns}


def assemble_directed(
    kernels: Kernels,
    sides: Sequence[Callable[[], tuple[Passes, Budget]]],
    degrees: list[DeviceArray],
    *,
    wide: bool,
) -> dict[str, Any]:
    """Return the arrays of a directed graph from degrees and pairs of ids.

    sides: make the pairs of edges out, then, when these rows are there, those of edges
        in, whose first id is the target
    degrees: uint32 [n] of each side, by id, in a list that is emptied
    """
    with kernels.phase("numbering"):
        numbering = Numbering(kernels, degrees[0] + degrees[1])
        del numbering.sorted
    made = numbering.arrays()
    edges = []
    for side, name in zip(sides, ("", "in_"), strict=True):
        with kernels.phase("numbering"):
            lengths = [degrees.pop(0)[numbering.vertices]]
            empty = (lengths[0] == 0).get()
        chunks, budget = side()
        offsets, columns, m = make_rows(
            kernels, chunks, numbering, lengths, budget, both=False, wide=wide
        )
        with kernels.phase("rows"):
            offsets.set(_filled(offsets.get(), empty, m))
        made |= {f"{name}offsets": offsets, f"{name}columns": columns, "m": m}
        edges.append(m)
    if edges[0] != edges[1]:
        raise InputError("edges in and edges out are not as many")
    return made


def _filled(offsets: Array, empty: Marks, m: int) -> Array:
    """Return offsets, [rows + 1]; empty rows begin where the next one does.

    empty: bool [rows]
    """
    offsets[:-1][empty] = m
    return np.ascontiguousarray(np.minimum.accumulate(offsets[::-1])[::-1])


def check_size(n: int) -> None:
    """Raise UsageError for more vertices than have numbers."""
    if n > MAX_VERTICES:
        raise UsageError(
            f"{n} vertices do not fit one device's graph; allowed: {MAX_VERTICES}"
        )


def build(
    source: TupleSource,
    *,
    directed: bool = False,
    distinct: bool = False,
    buffer_bytes: int | None = None,
    wide: bool = False,
    done: Sum | None = None,
) -> DeviceGraph:
    """Return the graph of a source's tuples.

    directed: edges lead from u to v alone
    distinct: as tuples count the edges of the graph, each once, and no loops
    buffer_bytes: device memory for keys and their sort (default: what is free, up to
    BUFFER_BYTES; the keys of the longest row fit in any case)
    wide: offsets of 64 bits for any number of edges
    done: told of tuples in all passes that make them; see ``Chunks``
    """
    check_size(source.n)
    cupy = cuda.cupy()
    clock = Stopwatch()
    n, count = source.n, source.tuples
    with cuda.memory_of(f"building a graph of {n} vertices and {count} tuples"):
        with clock("compile"):
            kernels = Kernels(clock)
            tuples = device_tuples(source)
        with kernels.phase("memory"):
            cuda.release()
            cheap = tuples.generated
            budget = Budget(n, 2 * count, count, buffer_bytes, cheap=cheap)
            chunks = Chunks(tuples, count, hold=budget.hold, done=done)
            chunks.expect(1 + directed)
            degrees = [cupy.zeros(n, np.uint32) for _ in range(1 + directed)]
            ends = cupy.zeros(n, np.uint32)
            sums = cupy.zeros(2, np.uint64)  # loops, ends

        def add(u: DeviceArray, v: DeviceArray) -> None:
            arguments = (np.uint64(len(u)), u, v, degrees[0], degrees[-1], ends, sums)
            kernels.launch("count_ends", len(u), BLOCK, *arguments)

        def side(*, turned: bool) -> tuple[Side, Budget]:
            return Side(chunks, turned=turned), budget

        kernels.each(chunks, "degrees", add)
        with kernels.phase("degrees"):
            counted = (
                np.uint64(n),
                np.uint32(len(degrees)),
                degrees[0],
                ends,
                sums[1:],
            )
            kernels.launch("add_degrees", n, BLOCK, *counted)
            loops, total = (int(x) for x in sums.get())
        if total != 2 * count:
            raise InputError("a vertex has 2^32 ends of edge tuples or more")
        if directed:
            sides = [partial(side, turned=turned) for turned in (False, True)]
            made = assemble_directed(kernels, sides, degrees, wide=wide)
        else:
            made = assemble(kernels, chunks, degrees, budget, both=True, wide=wide)
        if distinct:
            ends_of_one = 1 + directed  # at the vertex that an edge leaves
            count, loops = ends_of_one * made["m"] // 2, 0
            with kernels.phase("degrees"):
                ends[...] = 0
                lengths = ends_of_one * cupy.diff(made["offsets"]).astype(np.uint32)
                form = np.uint64(made["active"]), lengths, made["vertices"]
                kernels.launch("scatter", made["active"], BLOCK, *form, ends)
    return DeviceGraph(
        n=n,
        tuples=count,
        loops=loops,
        tuple_degrees=ends,
        source=source.describe(),
        seconds=clock.seconds,
        **made,
    )
