"""The arrays and arguments of method ``fast`` (search.cuh, prepare.cu)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from distbfs.build.cuda.seen import SeenEdges
from distbfs.device import cuda, programs
from distbfs.device.array_table import allocate
from distbfs.device.structures import Record, uints
from distbfs.engines.cuda.common.arguments import arguments
from distbfs.engines.cuda.xbfs.block_memory import (
    CODE_BYTES,
    LATER_BYTES,
    THREADS,
    TILE_WORDS,
    WARPS,
    hub_words_of,
    tile_bytes,
    window_bytes,
)
from distbfs.engines.cuda.xbfs.limits import NO_LIMIT, pull_tails, push_limits
from distbfs.engines.cuda.xbfs.ranges import (
    parted_bounds,
    range_count,
    range_group,
    range_room,
    tree_ranges,
)
from distbfs.engines.cuda.xbfs.search_table import (
    HUB_DEGREE,
    LISTS,
    MOST_BLOCKS,
    MOST_HUBS,
    MOST_SHARED,
    NEAR_ROOM,
    PUSHED,
    QUEUE_SHARE,
    RESULT_BLOCKS,
    RESULT_THREADS,
    SearchShape,
    words_of,
)
from distbfs.engines.cuda.xbfs.windows import place_windows
from distbfs.partition.share import GRANULE, Share
from distbfs.plan import pull_shares
from distbfs.types import Array, Ids

KERNELS = Path(__file__).parent
HEADER = KERNELS / "search.cuh"
ROW_EDGES = 64  # of a warp, at most, where rows of hubs are not cut by range
FETCH_SHARE = 16  # of all vertices: edges of a frontier that is worth it
PIECE = 128
CODES_A_VERTEX = 2  # words that a block copies for a vertex of a tree, at most
UNCODED = 2  # vertices of trees a thread, at most, where no codes are made
LONGEST_NEAR, MEAN_NEAR = 255, 16  # degrees of graphs that narrow.cuh pushes, at most
GROWTH = 2  # see ``push_limits``
ROWS = 1 << 16  # of counters, by level, and of traces
ELSEWHERE = (1 << 64) - 1  # root of a search that another device has
NO_TAILS = 1 << 62  # as many columns of a frontier are in no tails


def ways(graph: Share) -> dict[str, int]:
    """Return the definitions for kernels that search directed edges."""
    return {"DIRECTED": 1} if graph.directed else {}


def zeros(shape: Any, dtype: Any = np.uint32) -> Any:
    """Return zeros on the current device, at least one element."""
    return cuda.cupy().zeros(shape or 1, dtype=dtype)


class Arrays:
    """The arguments of a search and the arrays that they point to.

    share: what the device holds. If ids have 64 bits, parents are int64, made of
        ``ids`` that may be local ids. Between domains levels beyond a byte have room
        from the start, and all vertices in queues; edges from elsewhere may enter
        vertices that none here enters
    overrides: arguments that replace the defaults, such as limits of pushes
    pruned: whether tree vertices are not searched but get results at the end; see
        ``search_trees``
    mean_next: mean degree of a neighbour, Σd²/Σd; squares: Σd²; longest: degree
    longest_range: words of the longest destination range
    shape: sizes of the arrays
    levels: if false, only parents are wanted; see ``want_levels``
    level: CuPy int8 (or None), wide (None until ``widen``), parent (or None): int32 or
        int64, -1 = unreached, as the search writes them
    """

    def __init__(
        self,
        share: Share,
        *,
        in_ids: bool,
        parents: bool,
        levels: bool = True,
        overrides: Mapping[str, int] = MappingProxyType({}),
        pruned: bool = False,
    ) -> None:
        self.graph = g = share
        self.grid, self._between = cuda.multiprocessors(), g.out.outer is not None
        self.names, shares = g.ids, g.layout.parts if g.wide else 0
        # of devices that have positions among the columns; which this is
        # mutant: g.device -> 0 : test_masked_domains::test_one_domain
        self._devices = g.domain.devices, g.device
        self.level: Any = None
        self.wide: Any = None
        self.parent: Any = None
        self.offset = programs.word_of(g.out.offsets)
        self._module = programs.Module(KERNELS / "prepare.cu")
        hubs, self.mean_next, pieces = self._degrees(g.domain.lanes)
        self._trees = g.trees if pruned else None
        self.shape = SearchShape(
            g.n,
            g.active,
            self.grid,
            g.at_least[2 : LISTS + 2].tolist(),
            in_ids=in_ids,
            parents=parents,
            levels=levels,
            wide=self._between,
            wide_ids=shares > 0,
            hubs=hubs,
        )
        self._words = words = self.shape.words
        shared = min(cuda.shared_limit() - 4096, MOST_SHARED)
        self._most_shared, self.range_room = shared, range_room(shared)
        hub_words = hub_words_of(shared, words if g.whole else g.slots // 32)
        self.params = arguments(
            HEADER,
            "Params",
            g,
            ways(g),
            vertices=self.names,
            stride=self.shape.stride,
            every=g.active,
            hubs=hubs,
            pieces=pieces,
            hub_words=hub_words,
            blocks=self.shape.blocks,
            block_ids=self.shape.block_ids,
            shares=shares,
            parents=parents,
            rows=ROWS,
            # a form for tails may search without them
            kept=NO_LIMIT if g.out.tails is None else g.out.tails.kept,
            last=NO_LIMIT,
        )
        self.held = self.params.held
        self._overrides = overrides
        made = self._make("first", "first_id", "column")  # which ``see`` fills
        if shares:
            self.params.set(first_id=made["first"])
        self._cuts: tuple[int, int] = (0, 0)
        self.search_trees(together=False)
        self.set_limits(g.m, self.mean_next)
        self.see(None)
        self._places()
        self.longest_range = 0
        if g.whole:
            self._place_windows()
            self.cut_ranges()
        self._state()
        if g.whole or self._between:
            self.make_queues(g.active, PUSHED)
        if g.whole and self._trees is not None:
            codes = self._make("code", code=words)["code"].data.ptr
            few = in_ids and bool(self.forms_of_few())
            self.take_codes(codes, words, at_once=few)

    @property
    def searched(self) -> int | None:
        """How many numbers are searched without trees; None if all always are."""
        trees = self._trees
        return None if trees is None else self.graph.active - trees.count

    def move(self, params: Record) -> None:
        """Change the arguments in a copy of them from now on."""
        params.held.update(self.held)
        self.params, self.held = params, params.held

    def search_trees(self, *, together: bool) -> bool:
        """Include vertices of trees if ``together``; return whether that has changed.

        If so, bitmaps must be cleared.
        """
        g, p, trees = self.graph, self.params, None if together else self._trees
        active, at_least, p.chain, p.bound = g.active, g.at_least, 0, NO_LIMIT
        if trees is not None:
            active, at_least = active - trees.count, trees.at_least
            p.chain, p.bound = trees.chain, active * self._devices[0]
        new = active != p.active
        p.active, p.words = active, words_of(active)
        p.listed[:] = at_least[2 : LISTS + 3].tolist()
        p.several = p.listed[0]
        many = p.words // TILE_WORDS >= self.grid * WARPS
        p.tile = self._overrides.get("tile", TILE_WORDS if many else 4)
        p.ranges = self._cuts[trees is None]
        return new

    def take_codes(self, address: int, words: int, *, at_once: bool = False) -> None:
        """Take the table that vertices of trees look up, and room in shared memory.

        at_once: whether results by id are also in shared memory
        """
        p, trees = self.params, self._trees
        own = CODES_A_VERTEX * (trees.count if trees else 0) // self.grid
        before = RESULT_BLOCKS * self._block_bytes if at_once else LATER_BYTES
        room = max(self.shared_bytes, before) - before
        p.coded = min(room // CODE_BYTES, words, own) // 2 * 2
        p.code = address

    def take_codes_of(self, words: int, held: int) -> None:
        """Allocate the table of first words; each block caches the first ``held``.

        If devices share the table, it already has memory.
        """
        if not self.params.code:
            self._make("code", code=words)
        self.params.coded = min(words, held)

    def clear(self) -> None:
        """Clear the bitmaps of searches."""
        for name in ("snapshot", "next_snapshot", "by_first", "next_by_first"):
            self.held[name].fill(0)

    def widen(self) -> None:
        """Make room for levels beyond a byte."""
        self._make_results("level_wide", levels=True, wide=True)

    def make_queues(self, active: int, alone: int) -> None:
        """Make the queues; active: vertices of all devices that search together.

        A push that makes a queue has fewer edges than ``mark_edges`` and
        ``pull_edges``, or at most ``alone``; a level found by pulls becomes a queue if
        it has less than 1/8 of the vertices left.

        alone: edges that single blocks of all devices push, or that one device pushes
        when the frontier hardly grows
        """
        p, room = self.params, self.graph.active
        if not (self._between or p.push_only):
            pushed = max(min(p.mark_edges, p.pull_edges), alone)
            # mutant: QUEUE_SHARE -> 99999 : test_a_queue_holds_what_pulls_leave_for_it
            room = min(room, max(pushed, active // QUEUE_SHARE))
        self._make("queue", queue=room)
        p.queue_room = room

    def set_limits(
        self,
        m: int,
        mean_next: float,
        pull_share: int = pull_shares.DEVICE,
        active: int | None = None,
    ) -> None:
        """Set the limits of pushes for a graph of m stored edges.

        active: vertices of all devices that search together
        """
        limits = push_limits(m, mean_next, pull_share)
        self.params.mark_edges, self.params.pull_edges = limits
        # limits that are given decide alone; with tails, reading them counts more
        forced = {"mark_edges", "pull_edges"} & set(self._overrides)
        self.params.growth = 0 if forced or self.graph.out.tails is not None else GROWTH
        self.params.row_edges = ROW_EDGES * self.grid * WARPS
        self.params.fetch_edges = max(1, (active or self.graph.active) // FETCH_SHARE)
        self.params.pull_tails = NO_TAILS
        if (tails := self.graph.out.tails) is not None:
            self.params.pull_tails = pull_tails(m, tails.kept)
        self.params.set(**self._overrides)

    def take_near(self) -> None:
        """Let plain searches push narrow frontiers by blocks, if degrees are small."""
        g, p = self.graph, self.params
        small = self.longest <= LONGEST_NEAR and g.m <= MEAN_NEAR * g.active
        kind = self.offset == "u32" and not g.directed and p.growth
        if kind and small and self.grid <= MOST_BLOCKS:
            most = NEAR_ROOM // max(self.longest, 1)
            p.near = self._overrides.get("near", most)
            p.lanes = (-(-g.m // max(g.active, 1)) - 1).bit_length()

    def end_with(self, last: int, targets: Ids | None) -> None:
        """Set the end of searches: a last level, or all targets found.

        targets: int64 [k], ids of this graph, or None
        """
        self.params.set(last=last, targets=None, sought=0)
        if targets is None:
            return
        numbers = zeros(len(targets))
        numbers[: len(targets)] = self.graph.device_numbers(targets)
        self.params.set(targets=numbers, sought=len(targets))

    def forms_of_few(self) -> tuple[str, ...]:
        """Return what kernels for few vertices may be, nothing if there are many.

        AT_ONCE: the results of all ids fit the shared memory of all blocks; FEW_TREES:
        tree vertices are few
        """
        trees, threads = self._trees, THREADS * self.grid
        if (
            self.params.blocks > RESULT_BLOCKS * self.grid
            or RESULT_BLOCKS * self._block_bytes > self._most_shared
            or self.offset != "u32"
            or self.graph.out.tails is not None
        ):
            return ()
        coded = trees is not None and trees.count > UNCODED * threads
        return ("AT_ONCE",) if coded else ("AT_ONCE", "FEW_TREES")

    def results_launch(self) -> programs.Launch:
        """Return the kernel that writes results by id."""
        module = programs.Module(
            KERNELS / "results.cu",
            IN_IDS=1,
            ID="u64" if self.params.shares else "u32",
            NAME=programs.word_of(self.names),
        )
        kernel = module.kernel("results")
        shared = self._block_bytes
        # the rest is L1: a load that waits for memory holds a line there
        kernel.share_memory(RESULT_BLOCKS, shared)
        p = self.params
        return kernel.prepare(p, p.blocks, RESULT_THREADS, shared=shared)

    def search_bytes(self, *, at_once: bool, windows: bool) -> int:
        """Return the dynamic shared memory of a block of a whole search.

        at_once: whether it writes results by id; windows: whether it uses windows
        """
        results = RESULT_BLOCKS * self._block_bytes if at_once else 0
        if windows:
            words, coded = self.params.window_words, self.params.coded
            return window_bytes(words, coded, self.longest_range)
        return max(self.shared_bytes, results)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: for pulls and for destination ranges."""
        return tile_bytes(self.params.hub_words, self.longest_range)

    @property
    def _block_bytes(self) -> int:
        """Shared memory for results of a block of ids: a level and a parent each."""
        return 5 * int(self.params.block_ids)

    def _make(
        self, *names: str, make: Callable[[Any, Any], Any] = zeros, **changed: Any
    ) -> dict[str, Any]:
        """Make arrays of the table, and set the arguments of their names.

        make: as in ``allocate``; changed: fields of the shape that are known now
        """
        if changed:
            self.shape = replace(self.shape, **changed)
        table = self.shape.table
        made = allocate({x: table[x] for x in names if x in table}, make)
        self.params.set(**made)
        return made

    def _run(self, name: str, *arguments: Any) -> None:
        values = [np.uint32(a) if isinstance(a, int) else a for a in arguments]
        self._module.kernel(name)(self.grid * 8, 256, *values)

    def _degrees(self, lanes: int) -> tuple[int, float, int]:
        """Return (hubs, mean degree of a neighbour, pieces of other rows)."""
        cp, g = cuda.cupy(), self.graph
        self.squares, self.longest = 0.0, 0
        if not g.active:
            return 0, 1.0, 1
        rest = 0 if g.out.tails is None else g.out.tails.tailed
        long = g.out.lengths(0, rest).astype(np.float64)
        tails = float(long @ g.into.lengths(0, rest))
        top = min(g.active, MOST_HUBS + 1)
        degrees = g.out.lengths(0, top)
        self.longest = int(max(degrees.max(), long.max(initial=0)))
        if g.directed:  # which numbers follow only in the mean: see device_graph.py
            degrees = np.cumsum(degrees) // np.arange(1, top + 1)
        hubs, lane = 0, np.arange(top) // GRANULE % lanes
        for k in range(min(lanes, -(-top // GRANULE))):
            own = np.flatnonzero(lane == k)
            short = np.flatnonzero(degrees[own] < HUB_DEGREE)
            own = own[: short[0]] if len(short) else own
            hubs = max(hubs, int(own[-1]) + 1 if len(own) else 0)
        hubs = min(hubs, MOST_HUBS)
        total, longest = cp.zeros(1, dtype=cp.float64), cp.zeros(1, np.uint32)
        rows = uints(g.out.offsets), uints(g.into.offsets)
        self._run("lengths", *rows, rest, hubs, g.active, total, longest)
        self.squares, most = float(total.get()[0]) + tails, int(longest.get()[0])
        self.longest = max(self.longest, most)
        return hubs, self.squares / max(g.m, 1), max(-(-most // PIECE), 1)

    def see(self, seen: SeenEdges | None) -> None:
        """Restrict later searches to some edges, whose bits are arguments; None: all.

        First to eighth neighbours are those that are visible.
        """
        g, p, held = self.graph, self.params, self.held
        some = seen is not None or g.directed
        pulled = seen and seen.pulled
        bits: Any = np.uint64(0) if pulled is None else pulled.bits
        into = uints(g.into.offsets)
        names: Any = np.uint64(0) if p.shares else self.names
        for k, column in enumerate((held["first"], *held["column"])):
            self._run(
                "columns",
                into,
                g.into.columns,
                bits,
                names,
                g.active,
                *self._devices,
                k,
                int(seen is not None and not g.directed),
                len(column),
                column,
                np.uint64(0) if k else held["first_id"],
            )
        p.set(seen=None, tail_seen=None, more=None, bare=None, bare_count=0)
        if g.directed:
            p.set(in_seen=pulled and pulled.bits, in_tail_seen=pulled and pulled.tails)
        if not some:
            return
        if seen is not None:
            p.set(seen=seen.bits, tail_seen=seen.tails)
        self._find_more(bits)
        if g.whole or g.directed:  # nobody else finds what no visible edge enters
            ends = np.uint64(0) if pulled is None else pulled.ends
            bare = self._make("bare", bare=True)["bare"]
            count = cuda.cupy().zeros(1, np.uint32)
            self._run("bares", into, ends, g.active, bare, count)
            p.bare_count = int(count.get()[0])
            if self._between:
                p.set(bare=None, unentered=bare)

    def _find_more(self, bits: Any) -> None:
        """Find the vertices that have visible columns besides the first.

        bits: a bit for each column that pulls read; address 0 if all are visible
        """
        g, p, tails = self.graph, self.params, self.graph.into.tails
        tail_seen = p.in_tail_seen if g.directed else p.tail_seen
        more = self._make("more", bare=True)["more"]
        self._run(
            "with_more",
            uints(g.into.offsets),
            bits,
            np.uint64(0) if tails is None else tails.offsets,
            np.uint64(tail_seen or 0),
            0 if tails is None else tails.tailed,
            g.active,
            self._words,
            more,
        )

    def make_more(self) -> None:
        """Make what forms with counters need, which also serve masks."""
        if not self.params.more:
            with cuda.memory_of("records"):
                self._find_more(np.uint64(0))

    def _place_windows(self) -> None:
        """Choose the columns that pulls read with a window each (windows.py)."""
        g, p, held = self.graph, self.params, self.held
        forced, p.window_words = self._overrides.get("window_words"), 0
        if self.offset != "u32" or g.out.tails is not None:
            return
        later = zip(held["column"], self.shape.listed, strict=True)
        columns = [(held["first"], g.active), *later]
        room, starts = place_windows(columns, self._words, p.hub_words, forced)
        p.window_words = room
        p.window[: len(starts)] = starts

    def leaves_on(self, rows: int) -> Any:
        """Count the visible columns of the first rows that are leaves left out.

        Returns CuPy uint32 [rows].
        """
        g, p = self.graph, self.params
        counts = cuda.cupy().zeros(rows, np.uint32)
        if p.active < p.every:
            tail = 0 if g.out.tails is None else g.out.tails.columns.ctypes.data
            self._run(
                "leaves",
                uints(g.out.offsets),
                g.out.columns,
                np.uint64(p.seen or 0),
                np.uint64(p.tail_row or 0),
                np.uint64(tail or 0),
                np.uint64(p.tail_seen or 0),
                p.tailed,
                rows,
                p.bound,
                counts,
            )
        return counts

    def _places(self) -> None:
        """Compute the places of results by id: see results.cu."""
        cp, g, p = cuda.cupy(), self.graph, self.params
        place = self._make("place")["place"]
        self._run("places", g.vertices, g.active, p.block_ids, place)
        count = cp.zeros(max(self._words, 1), np.uint32)
        n, words = np.uint64(g.n), self._words
        self._run("count_pieces", n, g.vertices, g.active, words, p.block_ids, count)
        upto = np.cumsum(count.get(), dtype=np.uint32)
        pieces = int(upto[-1])
        made = cp.zeros((pieces, 2), np.uint32)
        key = cp.zeros(pieces, np.uint64)
        self._run(
            "make_pieces",
            n,
            g.vertices,
            g.active,
            words,
            p.block_ids,
            cp.asarray(upto),
            made,
            key,
        )
        key.sort()
        kept = self._make("piece", "piece_at", pieces=pieces)
        form = pieces, p.blocks, key, made, kept["piece"], kept["piece_at"]
        self._run("order_pieces", *form)

    def weights(self, hubs: int) -> Array:
        """Count the edges of each word's vertices that lead to columns below ``hubs``.

        Returns float64 [words].
        """
        g, words = self.graph, self._words
        weight = zeros(words)
        into = uints(g.into.offsets), g.into.columns
        self._run("weights", *into, g.active, hubs, words, weight)
        out: Array = weight[:words].get().astype(np.float64)
        return out

    def cut_ranges(self) -> None:
        """Cut the words into ranges with about equal numbers of edges from hubs.

        Words of trees have ranges of their own, the last ones.
        """
        p, grid, room = self.params, self.grid, self.range_room
        group = range_group(p.words, range_count(p.words, grid, room - 1), grid)
        edges, others = self.weights(p.hubs), tree_ranges(grid, group)
        self.cut(*parted_bounds(edges, p.words, grid, others, room, group), group)

    def cut(self, bounds: Array, longest: int, own: int, group: int = 1) -> None:
        """Cut rows of hubs at words.

        bounds, longest: where ranges begin, and words of the longest; own: number of
        ranges, without those of tree vertices alone
        group: number of ranges that are taken as one if a frontier has few edges
        """
        g, p = self.graph, self.params
        self.longest_range, p.cuts, p.group = longest * group, len(bounds) - 1, group
        self._cuts = (own, p.cuts)
        p.ranges = self._cuts[self._trees is None]
        made = self._make("range", "split", cuts=p.cuts)
        made["range"].set(np.asarray(bounds, np.uint32))
        if p.hubs:
            self._run(
                "splits",
                uints(g.out.offsets),
                g.out.columns,
                p.hubs,
                p.cuts,
                made["range"],
                made["split"],
            )

    def _state(self) -> None:
        """Allocate the arrays that a search writes."""
        made = self._make(
            "snapshot",
            "next_snapshot",
            "by_first",
            "next_by_first",
            "parent",
            "direct",
            "hub_queue",
            "said",
        )
        if self.shape.parents and not self.shape.in_ids:
            self.parent = made["parent"].view(np.int32)
            self.params.set(parent_out=self.parent)
        self._make_results("level_out", "level_wide", "parent_out")

    def _make_results(self, *names: str, **changed: Any) -> None:
        """Make arrays of results by name, like ``_make``, but do not clear them."""
        made = self._make(*names, make=cuda.cupy().empty, **changed)
        self.level = made.get("level_out", self.level)
        self.wide = made.get("level_wide", self.wide)
        self.parent = made.get("parent_out", self.parent)

    def want_levels(self, *, wanted: bool) -> None:
        """Make searches write levels, allocated at first use, or parents alone."""
        if wanted and self.level is None:
            self._make_results("level_out", "level_wide", levels=True)
        self.params.level_out = self.level.data.ptr if wanted else 0

    def renew(self) -> None:
        """Allocate new arrays for results by id; the present ones stay unchanged.

        The memory for levels beyond a byte stays: it holds no result then.
        """
        self._make_results("level_out", "parent_out")
