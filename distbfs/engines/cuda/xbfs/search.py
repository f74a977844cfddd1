"""Method ``fast`` of engine ``xbfs``: a whole search in one launch (search.cu)."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from typing import Any

import numpy as np

from distbfs.build.cuda.seen import SeenEdges
from distbfs.device import cuda, programs
from distbfs.device.reached import value_counts
from distbfs.device.stop_word import StopWord
from distbfs.device.structures import structure
from distbfs.device.take import Back
from distbfs.engines.base import (
    PRUNED,
    TAIL_BYTES,
    TAIL_COUNTS,
    WHOLE,
    FindPath,
    LevelRecord,
    ShortestPath,
    Until,
    WholeResult,
)
from distbfs.engines.cuda.xbfs.arrays import (
    HEADER,
    KERNELS,
    NO_LIMIT,
    ROWS,
    Arrays,
    last_and_targets,
    mask,
    too_deep,
    ways,
)
from distbfs.engines.cuda.xbfs.cluster import ClusterSearch, suits
from distbfs.engines.cuda.xbfs.lookups import DeviceLookups, has_hubs
from distbfs.engines.cuda.xbfs.seeds import begin_at_root, begin_at_set, split, way_of
from distbfs.errors import SearchStopped, UsageError
from distbfs.graph.device_graph import MAX_VERTICES, DeviceGraph
from distbfs.types import Ids, Root, Stop

CONTROL_BYTES = 8 * (4 * 16 + 3 * 16 + 16)  # with room at the end
STATE_AT = 2 * CONTROL_BYTES
STEPS = (
    "start",
    "push-block",
    "push",
    "push-marking",
    "pull",
    "pull-last",
    "gather",
    "flush",
    "results",
    "merge",
)
TREES = "trees"  # step of levels that trees alone have
COUNTERS = 4  # of a level: edge checks, looks at bits of hubs, columns of tails, lines
LINE_BYTES = 128  # what a read of host memory brings
FINISHING, DONE, STOPPED = 3, 4, 5  # of Phase in search.cuh


def tail_counts(counts: Ids) -> dict[str, list[int]]:
    """Return the reads of tails by level; counts: int [COUNTERS, levels]."""
    return {
        "tail_edges": counts[2].tolist(),
        TAIL_BYTES: (counts[3] * LINE_BYTES).tolist(),
    }


def cut(array: Any, count: int) -> Any:
    """Return the first elements of an array, or None for None."""
    return None if array is None else array[:count]


class FastSearch:
    """Searches a graph on one device.

    in_ids: results are by id, else by number; stepwise: use one launch per level
    levels: if false, write parents alone, except in searches with records, which count
    levels
    direction: "push" or "pull" takes one direction at all levels
    overrides: values for arguments of the kernel, for measurements and tests:
        mark_edges, pull_edges (see ``PushLimits``), tile (4 or 8), hub_words

    Raises UsageError if the graph or the direction does not fit, ResourceError if
    device memory is short.
    """

    def __init__(
        self,
        graph: DeviceGraph,
        *,
        parents: bool = True,
        levels: bool = True,
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
            raise UsageError("direction 'push' allows fewer than 2^32 edges")
        self.graph, self.in_ids, self._stepwise = graph, in_ids, stepwise
        self._levels = levels
        settings = {
            "push_only": direction == "push",
            "pull_only": direction == "pull",
            **(overrides or {}),
        }
        with cuda.memory_of("a search"):
            a = Arrays(
                graph,
                in_ids=in_ids,
                parents=parents,
                levels=levels,
                overrides=settings,
                pruned=True,
            )
            self._arrays = a
            # what is read at the end lies together: it comes in one copy
            kind = structure(HEADER, "State")
            size = STATE_AT + ctypes.sizeof(kind)
            self._kept = cuda.cupy().zeros(size, dtype=np.uint8)
            self._back = Back(self._kept)
            self._cluster: ClusterSearch | None = None
            narrow = graph.active and suits(graph, a.mean_next)
            if narrow and direction == "auto" and graph.tails is None:
                if levels:
                    a.widen()
                self._cluster = ClusterSearch(graph, a.wide, a.parent, in_ids=in_ids)
        self.params = self._arrays.params
        base, came = self._kept.data.ptr, self._back.pinned.data
        self.params.state = base + STATE_AT
        self._controls = (base, base + CONTROL_BYTES)  # in turn
        self._state = kind.from_buffer(came, STATE_AT)  # at the end of a launch
        control = structure(HEADER, "Control")
        self._ended = [control.from_buffer(came, k * CONTROL_BYTES) for k in range(2)]
        self._turn, self._results_taken, self._word = 0, False, StopWord()
        self._views: dict[tuple[bool, bool], tuple[Any, Any]] = {}
        self._launches: dict[tuple[int, bool, bool, bool], programs.Launch] = {}
        self._masked = False
        self._counts: Any = None
        self._trace: Any = None
        self._results = self._arrays.results_launch(self.params) if in_ids else None
        self._lookups: DeviceLookups | None = None
        self.path: FindPath | None = self._path if parents and has_hubs(graph) else None
        self._few: dict[str, int] = {}
        if in_ids or not graph.directed:
            self._few = self._arrays.forms_of_few(in_ids=in_ids)
        self._launch_usual()
        self._reset()

    def _serves_few(self, *, records: bool = False, plain: bool = True) -> bool:
        """Return whether a search may begin in the form for few vertices."""
        if self.graph.directed and not plain:
            return False
        return bool(self._few) and not (records or self._masked)

    def _launch_usual(self) -> None:
        """Load the form of searches that need only levels and parents."""
        plain = self.graph.directed and not self._stepwise
        plain = plain and self._arrays.plain(self.params)
        self._launch(0, few=self._serves_few(plain=plain), plain=plain)

    def _launch(self, count: int, *, few: bool, plain: bool = False) -> programs.Launch:
        """Return the launch of a search without (0) or with (1) counters.

        few: take the form for few vertices, which also writes results by id, but no
        levels that need more than a byte: then the search continues in the other form
        plain: take the form for searches without further requests

        The form that counts can also be restricted to some edges. For a directed graph
        it is the only one that can.
        """
        masked = self._masked or count > 0
        windows = bool(self.params.window_words) and not (masked or few)
        if self.graph.directed:
            count = int(masked)
            some = count or not self.in_ids or self._arrays.offset != "u32"
            plain = plain and not some
            windows = windows and plain
        form = count, masked, few, plain
        if form not in self._launches:
            module = programs.Module(
                KERNELS / "search.cu",
                OFFSET=self._arrays.offset,
                COUNT=count,
                IN_IDS=int(self.in_ids),
                SPLIT=int(self.graph.tails is not None),
                **mask(masked),
                **ways(self.graph),
                **({"PLAIN": 1} if plain else {}),
                **({"WINDOWS": 1} if windows else {}),
                **(self._few if few else {}),
            )
            at_once = few and self.in_ids
            launch = self._arrays.search_launch(
                module, self.params, at_once=at_once, windows=windows
            )
            self._launches[form] = launch
        return self._launches[form]

    def see(self, view: SeenEdges | None) -> None:
        """Restrict later searches to some edges; None: all."""
        with cuda.memory_of("a masked search"):
            self._arrays.see(view, whole=True)
            if self._cluster is not None:
                self._cluster.see(view)
        self._masked = view is not None
        self._launch_usual()

    def _path(
        self, root: Root, target: int, stop: Stop | None = None
    ) -> ShortestPath | None:
        """Find a shortest path by edge lookups from both ends; see ``FindPath``."""
        if stop is not None and stop():
            raise SearchStopped("the search was stopped before it began")
        # mutant: self._masked -> False : test_paths_between::test_masks
        if self._masked:  # lookups see all edges
            return None
        if self._lookups is None:
            self._lookups = DeviceLookups(self.graph)
        return self._lookups.path(np.atleast_1d(root), target)

    def _reset(self) -> None:
        """Make the next search itself clear the bitmaps with which it begins."""
        state = structure(HEADER, "State")(phase=DONE, dirty=1)
        self._kept.fill(0)
        self._kept[STATE_AT:].set(np.frombuffer(bytes(state), dtype=np.uint8))

    def search(
        self,
        root: Root,
        *,
        records: bool = False,
        until: Until = WHOLE,
        stop: Stop | None = None,
    ) -> WholeResult:
        """Search from ids; with records, use one launch per level, with counters.

        Raises UsageError for a root or a target that is not a vertex, SearchStopped.
        """
        stepwise = records or self._stepwise
        self._ask(root, until, None if stepwise else stop, counted=records)
        if self._cluster is not None and not (stepwise or self.params.from_set):
            result = self._by_cluster(self._cluster)
            if result is not None:
                return result
        self._begin(1 if stepwise else NO_LIMIT)
        self._count(records=records)
        plain = not (stepwise or self._masked) and self._arrays.plain(self.params)
        few = self._serves_few(records=records, plain=plain)
        launch = self._launch(int(records), few=few, plain=plain)
        seconds, launches, depth = 0.0, 0, 0
        steps: list[tuple[str, float]] = []
        while True:
            spent = self._run(launch, few=few)
            seconds += spent
            launches += 1
            phase, last_depth, depth = self._state.phase, depth, self._state.depth
            if depth > last_depth:
                # a search that a tree begins does not begin at level 0
                steps += [(TREES, 0.0)] * (depth - 1 - len(steps))
                step = self._state.step  # none: a tree leads to the last level
                steps.append((STEPS[step] if step else TREES, spent))
            elif steps:
                steps[-1] = (steps[-1][0], steps[-1][1] + spent)
            if phase == DONE:
                break
            if phase != STOPPED:  # a launch a level, or levels need more than a byte
                few = few and phase != FINISHING
                launch = self._launch(int(records), few=few)
                if stop is None or not stop():
                    continue
                self._reset()
            raise SearchStopped(f"the search was stopped at level {depth}")
        if too_deep(self.params, depth) and self._arrays.wide is None:
            seconds += self._results_again()  # which tell the highest level
        result = self._result(depth, seconds, launches)
        if records:
            result.records = self._records(result, steps)
        return result

    def _count(self, *, records: bool) -> None:
        """Make a search count its steps, as some forms always do; see ``_launch``."""
        counts = records or (self._masked and self.graph.directed)
        if counts and self._counts is None:
            self._counts = cuda.cupy().zeros((COUNTERS, ROWS), dtype=np.uint64)
        if counts:
            self._arrays.count_with(self.params)
        self.params.counts = self._counts.data.ptr if counts else 0
        if records:
            self._counts.fill(0)

    def _results_again(self) -> float:
        """Write levels again that need more than a byte; return the seconds."""
        with cuda.memory_of("levels of a deep graph"):
            self._arrays.widen()
        return 0.0 if self._results is None else self._results.timed(back=self._back)

    def _by_cluster(self, cluster: ClusterSearch) -> WholeResult | None:
        """Search by one cluster; None, now and later, if that is too small."""
        p = self.params
        depth, seconds, complete = cluster.search(
            p.root, p.last, p.targets, p.sought, self._word
        )
        if not complete:
            self._cluster = None
            return None
        level, parent = self._written(narrow=False)
        return WholeResult(level, parent, depth + 1, seconds, 1)

    def _written(self, *, narrow: bool) -> tuple[Any, Any]:
        """Return (level or None, parent or None), which searches write and keep."""
        form = narrow, bool(self.params.level_out)
        views = self._views.get(form)
        if views is None:
            a, count = self._arrays, self.graph.n if self.in_ids else self.graph.active
            level = (a.level if narrow else a.wide) if form[1] else None
            views = cut(level, count), cut(a.parent, count)
            self._views[form] = views
        return views

    def _records(
        self, result: WholeResult, steps: list[tuple[str, float]]
    ) -> list[LevelRecord]:
        """Return the records of all levels; finds are counted in the results."""
        g, active = self.graph, self.params.active
        around = max(result.levels - 1 - len(steps), 0)  # levels of trees alone, after
        rest = result.seconds - sum(seconds for _, seconds in steps)
        after = [(TREES, rest), *[(TREES, 0.0)] * around][:around]
        steps = [*steps, *after]
        most = len(steps) + 1
        sizes = value_counts(result.level, most).tolist()
        if self.in_ids:
            own = value_counts(result.level, most, g.vertices[:active]).tolist()
        else:
            own = value_counts(result.level[:active], most).tolist()
        counts = self._counts[:, :most].get().astype(np.int64)
        counts = np.pad(counts, [(0, 0), (0, most - counts.shape[1])])
        checks, looks, *_ = counts.tolist()
        tails = tail_counts(counts)
        log, left = [], active - own[0]
        for k, (step, seconds) in enumerate(steps, 1):
            frontier = left if step.startswith("pull") else own[k - 1]
            extra = {"hub_looks": looks[k], PRUNED: sizes[k] - own[k]}
            if self.graph.tails is not None:
                extra |= {name: tails[name][k] for name in TAIL_COUNTS}
            log.append(LevelRecord(step, frontier, checks[k], sizes[k], seconds, extra))
            left -= own[k]
        return log

    def trace(self, root: int) -> list[tuple[str, int, int, int, float]]:
        """Return the steps of one search in one launch, by the device's clock.

        A step is (name, depth, vertices, edges, seconds), where vertices and edges are
        those of the queue that a push made or, for a pull, the found and the unvisited
        vertices.
        """
        if self._trace is None:
            self._trace = cuda.cupy().zeros(ROWS * 4, dtype=np.uint64)
        self._trace.fill(0)
        self._ask(root, WHOLE)
        self._begin(NO_LIMIT)
        self.params.trace = self._trace.data.ptr
        self._count(records=False)
        few = self._serves_few(plain=False)
        self._run(self._launch(0, few=few), few=few)
        self.params.trace = 0
        rows = self._trace.get().reshape(-1, 4)
        rows = rows[rows[:, 0] > 0]
        self._reset()
        steps = []
        for before, row in pairwise(rows):
            what, depth = int(row[1]) >> 32, int(row[1]) & 0xFFFFFFFF
            seconds = (int(row[0]) - int(before[0])) * 1e-9
            steps.append((STEPS[what], depth, int(row[2]), int(row[3]), seconds))
        return steps

    def _ask(
        self,
        root: Root,
        until: Until,
        stop: Stop | None = None,
        *,
        counted: bool = False,
    ) -> None:
        """Set the roots, the arrays of results, and the word that can stop a search.

        counted: whether the vertices of each level are counted
        """
        p, n = self.params, self.graph.n
        ends = root[[0, -1]].tolist() if isinstance(root, np.ndarray) else [root]
        for one in ends:
            if not 0 <= one < n:
                raise UsageError(f"root is {one}; allowed: 0 to {n - 1}")
        if isinstance(root, np.ndarray):
            way = way_of(len(root), self.graph.active, push_only=bool(p.push_only))
            numbers, lone = split(self.graph.numbers_at(root), root)
            begin_at_set(self._arrays, p, numbers, lone, lone, way)
        else:
            p.root = p.root_id = root
            begin_at_root(p)
        last, targets = last_and_targets(until, root, n)
        self._arrays.end_with(p, last, targets)
        a = self._arrays
        together = bool(p.from_set) or self._masked or targets is not None
        if a.search_trees(a.params, together=together):
            a.clear()  # mutant: a.clear() -> pass : test_trees_from_every_place
            self._reset()
        self._word.stop = stop
        p.stop = self._word.address
        if self._results_taken:
            self._arrays.renew()
            self._views.clear()
            self._results_taken = False
        if not self._levels:
            with cuda.memory_of("levels of records"):
                a.want_levels(p, wanted=counted)

    def _begin(self, budget: int) -> None:
        """Begin a search with the bitmaps that the last one cleared."""
        p = self.params
        p.budget = budget
        p.snapshot, p.next_snapshot = p.next_snapshot, p.snapshot
        p.by_first, p.next_by_first = p.next_by_first, p.by_first

    def _run(self, launch: programs.Launch, *, few: bool) -> float:
        """Launch once, with the counters that the launch before has cleared."""
        p, other = self.params, self._turn
        self._turn = other ^ 1
        p.control, p.other = self._controls[self._turn], self._controls[other]
        then = None if few else self._results
        return launch.timed(then=then, back=self._back, word=self._word)

    def _result(self, depth: int, seconds: float, launches: int) -> WholeResult:
        narrow, state = not too_deep(self.params, depth), self._state
        level, parent = self._written(narrow=narrow)
        highest = state.base + self._ended[self._turn].highest
        deepest = highest if state.k else max(depth, highest)
        result = WholeResult(level, parent, deepest + 1, seconds, launches)
        if self.in_ids and narrow and self._cluster is None:
            result.give = self._give
        return result

    def _give(self) -> None:
        """Hand the arrays of results over to the caller."""
        self._results_taken = True
