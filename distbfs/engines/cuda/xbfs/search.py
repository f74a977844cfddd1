"""Method ``fast`` of engine ``xbfs``: a whole search in one launch (search.cu)."""

from __future__ import annotations

import numpy as np

from distbfs.build.cuda.seen import SeenEdges
from distbfs.build.cuda.share_rows import ShareRows
from distbfs.device import cuda, programs
from distbfs.device.reached import value_counts
from distbfs.engines.base import (
    WHOLE,
    FindPath,
    LevelRecord,
    ShortestPath,
    Until,
    WholeResult,
)
from distbfs.engines.cuda.xbfs.arrays import KERNELS, Arrays
from distbfs.engines.cuda.xbfs.cluster import ClusterSearch, suits
from distbfs.engines.cuda.xbfs.limits import NO_LIMIT, one_way, too_deep
from distbfs.engines.cuda.xbfs.lookups import DeviceLookups, has_hubs
from distbfs.engines.cuda.xbfs.seeds import swap_bitmaps
from distbfs.engines.cuda.xbfs.share_search import (
    DONE,
    FINISHING,
    STEPS,
    STOPPED,
    TREES,
    Form,
    ShareSearch,
    level_records,
)
from distbfs.errors import SearchStopped, UsageError
from distbfs.graph.device_graph import DeviceGraph
from distbfs.types import Root, Stop


class FastSearch(ShareSearch):
    """Searches a graph on one device.

    in_ids: results are by id, else by number; stepwise: use one launch per level
    levels: if false, write parents alone, except in searches with records, which count
    levels
    direction: "push" or "pull" takes one direction at all levels
    overrides: values for arguments of the kernel, for measurements and tests:
        mark_edges, pull_edges (see ``PushLimits``), tile (4 or 8), hub_words

    Raises UsageError if the direction does not fit, ResourceError if device memory is
    short.
    """

    source = KERNELS / "search.cu"

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
        with cuda.memory_of("a search"):
            a = Arrays(
                graph,
                in_ids=in_ids,
                parents=parents,
                levels=levels,
                overrides={**one_way(direction, graph.m), **(overrides or {})},
                pruned=True,
            )
            share = ShareRows.of_graph(graph)
            super().__init__(a, share, in_ids=in_ids, levels=levels)
            self._cluster: ClusterSearch | None = None
            narrow = graph.active and suits(graph, a.mean_next)
            if narrow and direction == "auto" and graph.tails is None:
                if levels:
                    a.widen()
                self._cluster = ClusterSearch(graph, a.wide, a.parent, in_ids=in_ids)
        self._reset()
        self._stepwise, self._results_taken = stepwise, False
        self._results = a.results_launch(self.params) if in_ids else None
        self._lookups: DeviceLookups | None = None
        self.path: FindPath | None = self._path if parents and has_hubs(graph) else None
        if in_ids or not graph.directed:
            self._few = a.forms_of_few(in_ids=in_ids)
        self._launch_usual()

    def _form(self, *, records: bool = False, few: bool, plain: bool = False) -> Form:
        """Return a form of the kernel.

        few: take the form for few vertices, which also writes results by id, but no
        levels that need more than a byte: then the search continues in the other form
        plain: take the form for searches without further requests; see ``_form_of``
        """
        form = self._form_of(records=records, plain=plain)
        windows = bool(self.params.window_words) and not (form.masked or few)
        if self.graph.directed:
            some = form.masked or not self.in_ids or self.arrays.offset != "u32"
            plain = plain and not some
        if self._only_plain:
            windows = windows and plain
        return form._replace(plain=plain, few=few, windows=windows)

    def _serves_few(self, *, records: bool = False, plain: bool = True) -> bool:
        """Return whether a search may begin in the form for few vertices."""
        if self._only_plain and not plain:
            return False
        return bool(self._few) and not (records or self.masked)

    @property
    def _only_plain(self) -> bool:
        """Whether forms for few vertices, and windows, are for plain searches alone.

        They are for directed graphs, and for results by number.
        """
        return self.graph.directed or not self.in_ids

    def _launch_usual(self) -> None:
        """Load the form of searches that need only levels and parents."""
        plain = self._only_plain and not (self._stepwise or self.masked)
        plain = plain and self._is_plain
        self._launch(self._form(few=self._serves_few(plain=plain), plain=plain))

    def see(self, view: SeenEdges | None) -> None:
        """Restrict later searches to some edges; None: all."""
        with cuda.memory_of("a masked search"):
            self.arrays.see(view, whole=True)
            if self._cluster is not None:
                self._cluster.see(view)
        self.masked = view is not None
        self._launch_usual()

    def _path(
        self, root: Root, target: int, stop: Stop | None = None
    ) -> ShortestPath | None:
        """Find a shortest path by edge lookups from both ends; see ``FindPath``."""
        if stop is not None and stop():
            raise SearchStopped("the search was stopped before it began")
        # mutant: self.masked -> False : test_paths_between::test_masks
        if self.masked:  # lookups see all edges
            return None
        if self._lookups is None:
            self._lookups = DeviceLookups(self.graph)
        return self._lookups.path(np.atleast_1d(root), target)

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
        self._prepare(root, until, None if stepwise else stop, counted=records)
        if self._cluster is not None and not (stepwise or self.params.from_set):
            result = self._by_cluster(self._cluster)
            if result is not None:
                return result
        plain = not (stepwise or self.masked) and self._is_plain
        few = self._serves_few(records=records, plain=plain)
        form = self._form(records=records, few=few, plain=plain)
        self._begin(1 if stepwise else NO_LIMIT, form, records=records)
        launch = self._launch(form)
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
                launch = self._launch(self._form(records=records, few=few))
                if stop is None or not stop():
                    continue
                self._reset()
            raise SearchStopped(f"the search was stopped at level {depth}")
        if too_deep(self.params, depth) and self.arrays.wide is None:
            seconds += self._results_again()  # which tell the highest level
        result = self._result(depth, seconds, launches)
        if records:
            result.records = self._records(result, steps)
        return result

    def _by_cluster(self, cluster: ClusterSearch) -> WholeResult | None:
        """Search by one cluster; None, now and later, if that is too small."""
        p = self.params
        depth, seconds, complete = cluster.search(
            p.root, p.last, p.targets, p.sought, self._word
        )
        if not complete:
            self._cluster = None
            return None
        level, parent = self._results_of(narrow=False)
        return WholeResult(level, parent, depth + 1, seconds, 1)

    def _records(
        self, result: WholeResult, steps: list[tuple[str, float]]
    ) -> list[LevelRecord]:
        """Return the records of all levels; finds are counted in the results."""
        g, active = self.graph, int(self.params.active)
        around = max(result.levels - 1 - len(steps), 0)  # levels of trees alone, after
        rest = result.seconds - sum(seconds for _, seconds in steps)
        after = [(TREES, rest), *[(TREES, 0.0)] * around][:around]
        steps = [*steps, *after]
        most = len(steps) + 1
        sizes = value_counts(result.level, most)
        if self.in_ids:
            own = value_counts(result.level, most, g.vertices[:active])
        else:
            own = value_counts(result.level[:active], most)
        counts, tails = self.level_counts(most), g.tails is not None
        return level_records(steps, sizes, own, counts, active, tails=tails)

    def trace(self, root: int) -> list[tuple[str, int, int, int, float]]:
        """Return the steps of one search in one launch; see ``steps``."""
        self._prepare(root, WHOLE, None)
        few = self._serves_few(plain=False)
        form = self._form(few=few)
        self._begin(NO_LIMIT, form, traced=True)
        self._run(self._launch(form), few=few)
        self._reset()
        return self.steps()

    def _prepare(
        self, root: Root, until: Until, stop: Stop | None, *, counted: bool = False
    ) -> None:
        """Check the roots, and set what a search is asked for; see ``_ask``."""
        n = self.graph.n
        ends = root[[0, -1]].tolist() if isinstance(root, np.ndarray) else [root]
        for one in ends:
            if not 0 <= one < n:
                raise UsageError(f"root is {one}; allowed: 0 to {n - 1}")
        self._ask(root, until, stop, self.graph.active, counted=counted)
        if self._results_taken:
            self.arrays.renew()
            self._written.clear()
            self._results_taken = False

    def _begin(
        self, budget: int, form: Form, *, records: bool = False, traced: bool = False
    ) -> None:
        """Begin a search of ``budget`` levels a launch."""
        self.params.budget = budget
        swap_bitmaps(self.params)
        self._count(counted=form.counts, records=records, traced=traced)

    def _run(self, launch: programs.Launch, *, few: bool) -> float:
        """Launch once; return the seconds."""
        self._take_turn()
        then = None if few else self._results
        return launch.timed(then=then, back=self._back, word=self._word)

    def _result(self, depth: int, seconds: float, launches: int) -> WholeResult:
        narrow = not too_deep(self.params, depth)
        level, parent = self._results_of(narrow=narrow)
        levels = self._levels_here(depth)
        result = WholeResult(level, parent, levels, seconds, launches)
        if self.in_ids and narrow and self._cluster is None:
            result.give = self._give
        return result

    def _give(self) -> None:
        """Hand the arrays of results over to the caller."""
        self._results_taken = True
