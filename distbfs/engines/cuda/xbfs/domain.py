"""One device's share of the searches of a domain of several devices (domain.cu).

Arrays are those of method ``fast`` for the rows of the part; arrays that other devices
write are in memory that all devices have mapped.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from distbfs.build.cuda.seen import SeenEdges
from distbfs.device import cuda
from distbfs.device.structures import Record, structure
from distbfs.engines.base import Query
from distbfs.engines.cuda.xbfs.arrays import KERNELS, Arrays, ways
from distbfs.engines.cuda.xbfs.limits import NO_LIMIT, one_way, too_deep
from distbfs.engines.cuda.xbfs.share_search import (
    BESIDE_AT,
    DONE,
    STOPPED,
    ShareSearch,
    has,
)
from distbfs.engines.cuda.xbfs.shared import (
    ALONE,
    HEADER,
    MOST_PARTS,
    SharedMemory,
)
from distbfs.errors import UsageError
from distbfs.options import SearchOptions
from distbfs.partition.share import Share
from distbfs.types import Root

if TYPE_CHECKING:
    from distbfs.device.timed_graph import TimedGraph


class MemberSearch(ShareSearch):
    """Searches of one part; create it and call its methods with its device current.

    Its creation has two steps: call ``connect`` once ``shared`` is connected.
    overrides: as in ``Arrays``

    Raises UsageError for options and sizes that are not supported.
    """

    source = KERNELS / "domain.cu"

    def __init__(
        self,
        part: Share,
        options: SearchOptions,
        overrides: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        if options.stepwise:
            raise UsageError("levels led by the host were requested")
        in_ids, self.part = not options.internal_ids, part
        self.device = part.cuda_device
        arrays = Arrays(
            part,
            in_ids=in_ids,
            parents=options.parents,
            levels=options.levels,
            pruned=options.direction != "pull" and part.layout.parts > 1,
            overrides={**one_way(options.direction, part.m), **overrides},
        )
        self.shared = SharedMemory(arrays, part, arrays.searched or 0)
        control = structure(HEADER, "DeviceControl")
        super().__init__(arrays, in_ids=in_ids, levels=options.levels, beside=control)
        self._reset()
        self._control = control.from_buffer(self._back.pinned.data, BESIDE_AT)
        self._met = 0
        self._outside, self._together = 0, False  # see ``Member``; ``_search_leaves``
        self._root: Root = 0  # of the last search

    def connect(self) -> None:
        """Set the arguments of searches, once ``shared`` is connected."""
        self.arrays.make_queues(self.part.domain.active, MOST_PARTS * ALONE)
        self.params = structure(HEADER, "Member", ways(self.graph))(
            own=self.arrays.params,
            device=self._kept.data.ptr + BESIDE_AT,
            **self.shared.arguments,
        )
        self.own: Record = self.params.own
        self.arrays.move(self.own)
        self._search_leaves(together=False)
        self._results = self.arrays.results_launch() if self.in_ids else None

    def _search_leaves(self, *, together: bool) -> None:
        """Search leaves like other vertices if ``together``, else leave them out."""
        super()._search_leaves(together=together)
        self._together, p = together, self.params
        p.active_all, p.outside = self.vertices, 0 if together else self._outside

    @property
    def leaves_out(self) -> bool:
        """Whether the current search leaves out leaves."""
        return bool(self.own.active < self.own.every)

    @property
    def vertices(self) -> int:
        """Number of vertices of all parts that it searches."""
        some: int = self.own.active * self.layout.parts
        return some if self.leaves_out else self.part.domain.active

    def see(self, view: SeenEdges | None) -> None:
        """Restrict later searches to some edges; None: all."""
        with cuda.memory_of("a masked search"):
            self.arrays.see(view)
        self.masked = view is not None
        self.prepare()

    def prepare(self, *, records: bool = False) -> TimedGraph:
        """Load the kernels, so that no device waits for that during a search.

        Returns the search, with or without counters, as a CUDA graph.
        """
        may = ("PLAIN",) * self._is_plain
        form = self._form_of(records=records, may=may)
        launch = self._launch(form)
        self._count(counted=has(form, "COUNT"), records=records)
        return launch.record(then=self._results, back=self._back)

    def ready(self, root: Root, query: Query) -> None:
        """Set the arguments of a search from ids.

        ``stop`` is called in ``wait``; if it returns True, all parts end at one level.
        Raises UsageError for a target that is not a vertex.
        """
        self._root = root
        self._swap_bitmaps()
        self._ask(root, query)
        self._take_turn()
        self._graph = self.prepare(records=query.records)
        self._graph.set_arguments()
        cuda.cupy().cuda.Device().synchronize()  # the results of the last search

    def start(self) -> None:
        """Begin the search; only launch anything else once all parts have begun."""
        self._graph.launch()

    def wait(self) -> tuple[float, int, int, int]:
        """Wait; return (device seconds, levels with vertices here, failure, end).

        failure: 0, or 1 + the part for which this device waited in vain
        end: 0, or 1 + the level at which the search was stopped, equal on all parts
        """
        seconds, state = self._graph.wait(self._word), self._state
        self._wide = too_deep(self.own, state.depth)
        if self._wide and state.phase == DONE and self.arrays.wide is None:
            seconds += self._results_again()  # which tell the highest level
        failed = self._control.failed  # once is for ever: messages may be left
        if self._control.met == self._met:  # it has not come to the end
            failed = int(self.shared.failed.get()[0])
        self._met = self._control.met
        levels = self._levels_here(self._control.deepest)
        end = 1 + state.depth if state.phase == STOPPED else 0
        if state.phase == DONE:
            self._learn(state)
        return seconds, levels, failed, end

    def _learn(self, state: Record) -> None:
        """Note how many vertices lie outside a component with at least half of them.

        All parts learn the same number from a search that ended with a pull.
        """
        whole = not self._together and self.own.last == NO_LIMIT
        whole = whole and not self.graph.directed
        # mutant: 2 * state -> state : test_a_component_that_is_known
        if whole and state.k and 2 * state.left <= self.vertices:
            self._outside = state.left

    def results(self) -> tuple[Any, Any]:
        """Return (level int8 or int32, parent int32 or int64), by local id.

        Either is None if it was not requested. If searches use internal ids, results
        are converted to ids here.
        """
        level, parent = self._results_of(narrow=not self._wide)
        if self.in_ids:
            return level, parent
        return self.part.by_id(self._root, level, parent)
