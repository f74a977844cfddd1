"""Method ``fast`` of engine ``xbfs``: a whole search in one launch (search.cu)."""

from __future__ import annotations

import numpy as np

from distbfs.build.cuda.seen import SeenEdges
from distbfs.device import cuda
from distbfs.device.sources import Variant
from distbfs.engines.base import (
    FindPath,
    Query,
    ShortestPath,
    WholeResult,
    WholeSearch,
)
from distbfs.engines.cuda.xbfs.arrays import KERNELS, Arrays
from distbfs.engines.cuda.xbfs.cluster import ClusterSearch, suits
from distbfs.engines.cuda.xbfs.limits import one_way, too_deep
from distbfs.engines.cuda.xbfs.lookups import DeviceLookups, has_hubs
from distbfs.engines.cuda.xbfs.share_search import (
    FINISHING,
    STOPPED,
    ShareSearch,
    has,
    level_records,
)
from distbfs.errors import SearchStopped, UsageError
from distbfs.partition.share import Share
from distbfs.ranks.world import SoloWorld
from distbfs.types import Root, Stop


class FastSearch(ShareSearch, WholeSearch):
    """Searches a graph on one device.

    in_ids: results are by id, else by number
    levels: if false, write parents alone, except in searches with records, which count
    levels
    direction: "push" or "pull" takes one direction at all levels
    overrides: values for arguments of the kernel, for measurements and tests:
        mark_edges, pull_edges (see ``push_limits``), tile (4 or 8), hub_words

    Raises UsageError if the direction does not fit, ResourceError if device memory is
    short.
    """

    source = KERNELS / "search.cu"

    def __init__(
        self,
        graph: Share,
        *,
        parents: bool = True,
        levels: bool = True,
        in_ids: bool = True,
        direction: str = "auto",
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
            super().__init__(a, in_ids=in_ids, levels=levels)
            self._cluster: ClusterSearch | None = None
            narrow = graph.active and suits(graph, a.mean_next)
            if narrow and direction == "auto" and graph.out.tails is None:
                if levels:
                    a.widen()
                self._cluster = ClusterSearch(graph, a.wide, a.parent, in_ids=in_ids)
        a.take_near()
        self._reset()
        self.by_number, self._results_taken = not in_ids, False
        self._results = a.results_launch() if in_ids else None
        self._lookups: DeviceLookups | None = None
        self.path: FindPath | None = self._path if parents and has_hubs(graph) else None
        self._few = a.forms_of_few()
        self._launch(self._form())

    def _form(self, *, records: bool = False, few: bool = True) -> Variant:
        """Return a form of the kernel.

        few: the form for few vertices may be taken, which also writes results by id,
        but no levels that need more than a byte: then the search continues in another
        """
        may = self._few if few else ()
        # mutant: self._is_plain -> True : test_until_fast::test_after_every_step
        may += ("PLAIN",) * self._is_plain
        near = self._is_plain and bool(self.params.near)
        may += ("NEAR",) * near + ("WINDOWS",) * (bool(self.params.window_words) > near)
        return self._form_of(records=records, may=may)

    def see(self, view: SeenEdges | None) -> None:
        """Restrict later searches to some edges; None: all."""
        with cuda.memory_of("a masked search"):
            self.arrays.see(view)
            if self._cluster is not None:
                self._cluster.see(view)
        self.masked = view is not None
        self._launch(self._form())

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

    def answer(self, root: Root, query: Query) -> WholeResult:
        """Search from ids; with records, in a form with counters.

        Raises UsageError for a root or a target that is not a vertex, SearchStopped.
        """
        records = query.records
        n = self.graph.n
        ends = root[[0, -1]].tolist() if isinstance(root, np.ndarray) else [root]
        for one in ends:
            if not 0 <= one < n:
                raise UsageError(f"root is {one}; allowed: 0 to {n - 1}")
        self._ask(root, query)
        if self._results_taken:
            self.arrays.renew()
            self._written.clear()
            self._results_taken = False
        if self._cluster is not None and not (records or self.params.from_set):
            result = self._by_cluster(self._cluster)
            if result is not None:
                return result
        form = self._form(records=records)
        self._swap_bitmaps()
        self._count(counted=has(form, "COUNT"), records=records)
        seconds = self._run(form)
        if self._state.phase == FINISHING:  # levels need more than a byte
            seconds += self._run(self._form(records=records, few=False))
        depth = self._state.depth
        if self._state.phase == STOPPED:
            raise SearchStopped(f"the search was stopped at level {depth}")
        if too_deep(self.params, depth) and self.arrays.wide is None:
            seconds += self._results_again()  # which tell the highest level
        narrow = not too_deep(self.params, depth)
        level, parent = self._results_of(narrow=narrow)
        result = WholeResult(level, parent, self._levels_here(depth), seconds)
        if self.in_ids and narrow and self._cluster is None:
            result.give = self._give
        if records:
            # a last push may have found nothing
            levels = max(result.levels, *(1 + step[1] for step in self.steps()))
            result.records = level_records(SoloWorld(), [self], [result.level], levels)
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
        return WholeResult(level, parent, depth + 1, seconds)

    def _run(self, form: Variant) -> float:
        """Launch once; return the seconds."""
        self._take_turn()
        then = None if has(form, "AT_ONCE") else self._results
        launch = self._launch(form)
        return launch.timed(then=then, back=self._back, word=self._word)

    def _give(self) -> None:
        """Hand the arrays of results over to the caller."""
        self._results_taken = True
