"""Method ``fast`` of engine ``xbfs``: whole searches in one launch (kernels/fast.cu)."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.engines.base import LevelRecord
from distbfs.engines.cuda.cluster import ClusterSearch, suits
from distbfs.engines.cuda.results import BYTE_UNREACHED, DeviceResult
from distbfs.errors import UsageError
from distbfs.graph.device_graph import MAX_VERTICES, DeviceGraph

KERNELS = Path(__file__).with_name("kernels")
THREADS, WARPS = 1024, 32
SNAPSHOTS, COLUMNS, TILE_WORDS, TAIL_ROOM = 20, 7, 8, 64
WARP_WORDS = 160 + 40 + 2 * 64 + 2 * TILE_WORDS * 32 + TILE_WORDS * 16 + 16
MOST_BLOCK_IDS = 16384  # ids whose results are written together
RESULT_BYTES = 2 * MOST_BLOCK_IDS * 5
TABLE_BYTES = 4 * (1028 + 2 * 1024 + 1024 + 32) + 64
PIECE = 128
HUB_DEGREE, MOST_HUBS = 512, 1 << 17
HUB_WORDS = 16000
PAD = 1024
PULL_SHARE, MARK_SHARE = 20, 16  # of all edges; see ``Thresholds``
NO_LIMIT = 0xFFFFFFFF  # levels of a launch
ROWS = 1 << 16  # of counters, by level, and of traces
STEPS = (
    "start",
    "push-block",
    "push",
    "push-marking",
    "pull",
    "tail",
    "gather",
    "flush",
    "results",
    "widen",
)
DONE = 5
LATE, WIDE = 1, 2


class State(ctypes.Structure):
    """``State`` in fast.cuh."""

    _fields_ = (
        ("phase", ctypes.c_uint32),
        ("depth", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("hubs", ctypes.c_uint32),
        ("edges", ctypes.c_uint64),
        ("base", ctypes.c_uint32),
        ("k", ctypes.c_uint32),
        ("left", ctypes.c_uint32),
        ("late", ctypes.c_uint32),
        ("dirty", ctypes.c_uint32),
        ("step", ctypes.c_uint32),
    )


POINTERS = (
    ["row", "adj", "first"],
    [f"column{k}" for k in range(COLUMNS)],
    ["numbers", "vertices", "first_id", "place", "segment", "split", "range"],
    ["snapshot", "by_first", "parent", "direct", "queue0", "queue1"],
    ["hub_queue0", "hub_queue1", "tail", "tail_parent", "queue_parent"],
    ["tail_count", "tail_found", "late_bits", "level_out", "level_wide"],
    ["parent_out", "control", "other", "state", "trace", "counts"],
)
LONGS = ("m", "stride", "mark_edges", "pull_edges")
WORDS = (
    ["n", "active", "words", "several", "root", "hubs", "ranges", "pieces"],
    ["hub_words", "tile", "classes", "blocks", "block_ids"],
    [f"listed{k}" for k in range(COLUMNS + 1)],
    ["parents", "budget", "rows", "push_only", "pull_only"],
)


class Params(ctypes.Structure):
    """``Params`` in fast.cuh."""

    _fields_ = (
        *((name, ctypes.c_void_p) for group in POINTERS for name in group),
        *((name, ctypes.c_uint64) for name in LONGS),
        *((name, ctypes.c_uint32) for group in WORDS for name in group),
    )


CONTROL_BYTES = 8 * (4 * 16 + 3 * 3 * 16 + 16 + 16)


@dataclass(frozen=True)
class Thresholds:
    """When a frontier is pushed and when it is not; from the graph alone.

    mark_edges: a frontier of so many edges is expected to reach 1/16 of all edges in
    the next level (its edges times the mean degree of a neighbour, Σd²/Σd), so its
    push is followed by a pull; pull_edges: a frontier with 1/20 of all edges is pulled
    at once.
    """

    mark_edges: int
    pull_edges: int

    @classmethod
    def of(cls, m: int, mean_next: float) -> Thresholds:
        """Return the thresholds of a graph with m stored edges."""
        mark = max(1, int(m / (MARK_SHARE * max(mean_next, 1.0))))
        return cls(mark, max(1, m // PULL_SHARE))


def padded(count: int, unit: int = PAD) -> int:
    """Return a count rounded up, one unit more than it needs."""
    return (count // unit + 2) * unit


class FastSearch:
    """Searches a graph on one device.

    in_ids: results by id (else by number); stepwise: a launch a level
    """

    def __init__(
        self,
        graph: DeviceGraph,
        *,
        parents: bool = True,
        in_ids: bool = True,
        direction: str = "auto",
        stepwise: bool = False,
        overrides: dict[str, int] | None = None,
    ) -> None:
        if graph.n > MAX_VERTICES:
            raise UsageError(
                f"engine xbfs searches up to 2^31 vertices, not {graph.n}; "
                "use another engine or more parts"
            )
        if direction == "push" and graph.m >= 1 << 32:
            raise UsageError("direction 'push' alone serves graphs below 2^32 edges")
        self.graph = graph
        self.in_ids = in_ids
        self._stepwise = stepwise
        self._overrides = overrides or {}
        with cuda.memory_of("a search"):
            self._prepare(parents, direction)

    def _prepare(self, parents: bool, direction: str) -> None:
        cp, g = cuda.cupy(), self.graph
        self._grid = cuda.multiprocessors()
        offset = "u32" if g.offsets.dtype.itemsize == 4 else "u64"
        active = g.active
        self._held: dict[str, Any] = {}
        words = -(-active // 256) * 8
        stride = words + 64
        module = cuda.Module(KERNELS / "fast_prepare.cu", OFFSET=offset)
        block_ids = MOST_BLOCK_IDS
        while block_ids > 1024 and g.n // block_ids < 2 * self._grid:
            block_ids //= 2
        blocks = max(-(-g.n // block_ids), 1)
        shared = min(cuda.shared_limit() - 4096, 210 << 10)
        hub_room = (shared - WARPS * WARP_WORDS * 4) // 4
        hubs, mean_next, pieces = self._degrees(module)
        first, first_id = (self._full(f"first{k}", padded(active)) for k in range(2))
        p = Params(
            n=g.n,
            active=active,
            m=g.m,
            words=words,
            stride=stride,
            several=int(g.at_least[2]),
            hubs=hubs,
            pieces=pieces,
            hub_words=min(HUB_WORDS, hub_room, words) // 4 * 4,
            tile=TILE_WORDS if words // TILE_WORDS >= self._grid * WARPS else 4,
            blocks=blocks,
            block_ids=block_ids,
            parents=parents,
            rows=ROWS,
            push_only=direction == "push",
            pull_only=direction == "pull",
        )
        limits = Thresholds.of(g.m, mean_next)
        p.mark_edges, p.pull_edges = limits.mark_edges, limits.pull_edges
        self._kernel(
            module, "firsts", g.offsets, g.columns, g.vertices, active, first, first_id
        )
        p.first, p.first_id = first.data.ptr, first_id.data.ptr
        for k in range(COLUMNS):
            listed = int(g.at_least[k + 2])
            size = padded(listed, 128)
            column = self._full(f"column{k}", size)
            self._kernel(
                module, "columns", g.offsets, g.columns, active, k + 1, size, column
            )
            setattr(p, f"column{k}", column.data.ptr)
            setattr(p, f"listed{k}", listed)
        setattr(p, f"listed{COLUMNS}", int(g.at_least[COLUMNS + 2]))
        self._prepare_ids(module, p)
        self._prepare_ranges(module, p, shared - TABLE_BYTES)
        queue = [self._full(f"queue{k}", 4 * (active + 64)) for k in range(2)]
        hub_queue = [self._full(f"hub_queue{k}", hubs + 1) for k in range(2)]
        p.queue0, p.queue1 = (q.data.ptr for q in queue)
        p.hub_queue0, p.hub_queue1 = (q.data.ptr for q in hub_queue)
        sizes = {
            "snapshot": SNAPSHOTS * stride,
            "by_first": stride,
            "parent": words * 32 + PAD,
            "direct": words * 32 + PAD,
            "tail": self._grid * WARPS * TAIL_ROOM,
            "tail_parent": self._grid * WARPS * TAIL_ROOM,
            "queue_parent": self._grid * WARPS * TAIL_ROOM,
            "tail_count": self._grid * WARPS,
            "tail_found": self._grid * WARPS,
            "late_bits": stride,
        }
        for name, size in sizes.items():
            setattr(p, name, self._full(name, size).data.ptr)
        out = max(blocks * block_ids if self.in_ids else words * 32, 64)
        self._level = cp.empty(out, dtype=cp.uint8)
        self._wide = cp.empty(out, dtype=cp.int32)
        self._parent = (
            cp.empty(out, dtype=cp.uint32) if self.in_ids and parents else None
        )
        if not self.in_ids:
            self._parent = self._held["parent"]
        p.level_out, p.level_wide = self._level.data.ptr, self._wide.data.ptr
        p.parent_out = self._parent.data.ptr if self._parent is not None else 0
        self._controls = cp.zeros(2 * CONTROL_BYTES, dtype=cp.uint8)
        self._state = cp.zeros(ctypes.sizeof(State), dtype=cp.uint8)
        p.state = self._state.data.ptr
        for name, value in self._overrides.items():
            setattr(p, name, value)
        p.row, p.adj = g.offsets.data.ptr, g.columns.data.ptr
        p.numbers, p.vertices = g.numbers.data.ptr, g.vertices.data.ptr
        self.params = p
        self._turn = 0
        self._offset = offset
        self._room = max(
            WARPS * WARP_WORDS * 4 + p.hub_words * 4,
            RESULT_BYTES,
            4 * (self._longest_range + 4) + TABLE_BYTES,
        )
        self._launches: dict[int, cuda.Launch] = {}
        self._counts: Any = None
        self._trace: Any = None
        self._launch(0)
        self._reset()
        self._cluster: ClusterSearch | None = None
        if suits(mean_next) and direction == "auto" and g.active:
            self._cluster = ClusterSearch(
                g, self._wide, self._parent if parents else None, in_ids=self.in_ids
            )

    def _launch(self, count: int) -> cuda.Launch:
        """Return the search without (0) or with (1) counters."""
        if count not in self._launches:
            module = cuda.Module(KERNELS / "fast.cu", OFFSET=self._offset, COUNT=count, IN_IDS=int(self.in_ids))
            self._launches[count] = module.kernel("search").prepare(
                self.params, self._grid, THREADS, shared=self._room, cooperative=True
            )
        return self._launches[count]

    def _full(self, name: str, size: int) -> Any:
        cp = cuda.cupy()
        self._held[name] = cp.zeros(max(size, 1), dtype=cp.uint32)
        return self._held[name]

    def _kernel(self, module: cuda.Module, name: str, *arguments: Any) -> None:
        given = [np.uint32(a) if isinstance(a, int) else a for a in arguments]
        module.kernel(name)(self._grid * 8, 256, *given)

    def _degrees(self, module: cuda.Module) -> tuple[int, float, int]:
        """Return (hubs, mean degree of a neighbour, pieces of the longest other row)."""
        cp, g = cuda.cupy(), self.graph
        if not g.active:
            return 0, 1.0, 1
        total = cp.zeros(1, dtype=cp.float64)
        self._kernel(module, "squares", g.offsets, g.active, total)
        top = min(g.active, MOST_HUBS + 1)
        degrees = cp.diff(g.offsets[: top + 1].astype(cp.int64)).get()
        short = np.flatnonzero(degrees < HUB_DEGREE)
        hubs = int(short[0]) if len(short) else top
        hubs = min(hubs, MOST_HUBS)
        longest = 0
        step = 1 << 26
        for low in range(hubs, g.active, step):
            high = min(low + step, g.active)
            piece = cp.diff(g.offsets[low : high + 1])
            longest = max(longest, int(piece.max()))
        return hubs, float(total[0]) / max(g.m, 1), max(-(-longest // PIECE), 1)

    def _prepare_ids(self, module: cuda.Module, p: Params) -> None:
        cp, g = cuda.cupy(), self.graph
        ids = g.vertices[: g.active]
        falls = cp.flatnonzero(ids[1:] < ids[:-1]) + 1 if g.active else cp.zeros(0)
        runs = np.concatenate([[0], falls.get(), [g.active]]).astype(np.uint32)
        run = cp.asarray(runs)
        count = len(runs) - 1
        p.classes = count
        place = self._held["place"] = cp.zeros(padded(g.active), dtype=cp.uint16)
        segment = self._full("segment", (p.blocks + 1) * (count + 1))
        self._kernel(module, "places", ids, g.active, p.block_ids, place)
        self._kernel(
            module, "segments", ids, run, count, p.blocks, p.block_ids, segment
        )
        p.place, p.segment = place.data.ptr, segment.data.ptr

    def _prepare_ranges(self, module: cuda.Module, p: Params, room: int) -> None:
        """Cut the words in ranges of about as many edges from hubs."""
        cp, g = cuda.cupy(), self.graph
        words = p.words
        weight = self._full("weight", words)
        self._kernel(
            module, "weights", g.offsets, g.columns, g.active, p.hubs, words, weight
        )
        load = weight.astype(cp.float64)
        load += 0.3 * max(float(load.sum()), 1.0) / max(words, 1)
        upto = cp.cumsum(load)
        del self._held["weight"]
        most, rounds = room // 4 - 8, 1
        while True:
            ranges = self._grid * rounds
            marks = cp.arange(1, ranges) * (float(upto[-1]) / ranges) if words else None
            cuts = cp.searchsorted(upto, marks).get() if words else np.zeros(ranges - 1)
            bounds = np.concatenate([[0], cuts, [words]]).astype(np.uint32)
            self._longest_range = int(np.diff(bounds.astype(np.int64)).max())
            if self._longest_range <= most:
                break
            rounds *= 2
        p.ranges = ranges
        held = self._held["range"] = cp.asarray(bounds)
        split = self._full("split", p.hubs * (ranges + 1))
        if p.hubs:
            self._kernel(
                module, "splits", g.offsets, g.columns, p.hubs, ranges, held, split
            )
        p.range, p.split = held.data.ptr, split.data.ptr

    def _reset(self) -> None:
        """Make the next search begin with bitmaps that it clears itself."""
        state = State(phase=DONE, dirty=1)
        self._state.set(np.frombuffer(bytes(state), dtype=np.uint8))
        self._controls.fill(0)

    def search(self, root: int, *, records: bool = False) -> DeviceResult:
        """Search from an id; with records, a launch a level and with counters."""
        if self._cluster is not None and not (records or self._stepwise):
            found = self._by_cluster(root)
            if found is not None:
                return found
        self._begin(root, NO_LIMIT if not (records or self._stepwise) else 1)
        if records and self._counts is None:
            self._counts = cuda.cupy().zeros(ROWS, dtype=np.uint64)
        self.params.counts = self._counts.data.ptr if records else 0
        if records:
            self._counts.fill(0)
        launch = self._launch(int(records))
        seconds, launches, depth = 0.0, 0, 0
        steps: list[tuple[str, float]] = []
        while True:
            spent = self._run(launch)
            seconds += spent
            launches += 1
            state = State.from_buffer_copy(self._state.get().tobytes())
            if state.depth > depth:
                steps.append((STEPS[state.step], spent))
            elif steps:
                steps[-1] = (steps[-1][0], steps[-1][1] + spent)
            depth = state.depth
            if state.phase == DONE:
                break
        result = self._result(state, seconds, launches)
        if records:
            result.records = self._records(result, steps)
        return result

    def _by_cluster(self, root: int) -> DeviceResult | None:
        """Return a search by one cluster; None, now and later, where that is too small."""
        self._begin(root, NO_LIMIT)
        depth, seconds, complete = self._cluster.search(root)
        if not complete:
            self._cluster = None
            return None
        count = self.graph.n if self.in_ids else self.graph.active
        parent = self._parent[:count] if self.params.parents else None
        return DeviceResult(self._wide[:count], parent, depth + 1, seconds, 1)

    def _records(
        self, result: DeviceResult, steps: list[tuple[str, float]]
    ) -> list[LevelRecord]:
        """Return what each level did; how much it found is counted from the results."""
        cp = cuda.cupy()
        unreached = BYTE_UNREACHED if result.level.dtype == np.uint8 else -1
        reached = result.level[result.level != unreached].astype(np.int32)
        found = cp.bincount(reached, minlength=len(steps) + 1).get().tolist()
        checks = self._counts[: len(steps) + 1].get().tolist()
        checks += [0] * (len(steps) + 1 - len(checks))
        log, left = [], self.graph.active - found[0]
        for k, (step, seconds) in enumerate(steps, 1):
            pulls = step in ("pull", "tail")
            frontier = left if pulls else found[k - 1]
            log.append(LevelRecord(step, frontier, checks[k], found[k], seconds))
            left -= found[k]
        return log

    def trace(self, root: int) -> list[tuple[str, int, int, int, float]]:
        """Return the steps of one search in one launch, by the device's clock.

        Each is (name, depth, vertices, edges, seconds): vertices and edges of the queue
        that a push has made; found and unvisited vertices of a pull.
        """
        if self._trace is None:
            self._trace = cuda.cupy().zeros(ROWS * 4, dtype=np.uint64)
        self._trace.fill(0)
        self._begin(root, NO_LIMIT)
        self.params.trace, self.params.counts = self._trace.data.ptr, 0
        self._run(self._launch(0))
        self.params.trace = 0
        rows = self._trace.get().reshape(-1, 4)
        rows = rows[rows[:, 0] > 0]
        self._reset()
        found = []
        for before, row in zip(rows[:-1], rows[1:], strict=True):
            what, depth = int(row[1]) >> 32, int(row[1]) & 0xFFFFFFFF
            seconds = (int(row[0]) - int(before[0])) * 1e-9
            found.append((STEPS[what], depth, int(row[2]), int(row[3]), seconds))
        return found

    def _begin(self, root: int, budget: int) -> None:
        if not 0 <= root < self.graph.n:
            raise UsageError(f"root is {root}; allowed: 0 to {self.graph.n - 1}")
        self.params.root, self.params.budget = root, budget

    def _run(self, launch: cuda.Launch) -> float:
        """Launch once, with the counters that the launch before has cleared."""
        base = self._controls.data.ptr
        self._turn ^= 1
        self.params.control = base + self._turn * CONTROL_BYTES
        self.params.other = base + (self._turn ^ 1) * CONTROL_BYTES
        return launch.timed()

    def _result(self, state: State, seconds: float, launches: int) -> DeviceResult:
        count = self.graph.n if self.in_ids else self.graph.active
        level = self._wide if state.late & WIDE else self._level
        parent = self._parent[:count] if self.params.parents else None
        levels = int(state.depth) + 1
        return DeviceResult(level[:count], parent, levels, seconds, launches)
