"""One device's share of the searches of a domain of several devices (domain.cu).

Arrays are those of method ``fast`` for the rows of the part; arrays that other devices
write are in memory that all devices have mapped.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.build.cuda.domain import MemberRows
from distbfs.build.cuda.seen import SeenEdges
from distbfs.device import cuda, programs
from distbfs.device.stop_word import StopWord
from distbfs.device.structures import Record, structure
from distbfs.device.take import Back
from distbfs.engines.base import WHOLE, Until
from distbfs.engines.cuda.xbfs.arrays import (
    ELSEWHERE,
    KERNELS,
    NO_LIMIT,
    ROWS,
    Arrays,
    last_and_targets,
    mask,
    too_deep,
    ways,
)
from distbfs.engines.cuda.xbfs.search import (
    CONTROL_BYTES,
    COUNTERS,
    DONE,
    STEPS,
    STOPPED,
)
from distbfs.engines.cuda.xbfs.seeds import (
    begin_at_root,
    begin_at_set,
    split,
    way_of,
)
from distbfs.engines.cuda.xbfs.shared import (
    ALONE,
    HEADER,
    MOST_PARTS,
    SharedMemory,
)
from distbfs.errors import UsageError
from distbfs.graph.device_graph import ISOLATED
from distbfs.options import SearchOptions
from distbfs.types import DeviceArray, Ids, Root, Stop

if TYPE_CHECKING:
    from distbfs.device.timed_graph import TimedGraph

STATE_AT = 2 * CONTROL_BYTES  # in what a search keeps, after the two controls
CONTROL_AT = STATE_AT + 256


def domain_problem(parts: int, options: SearchOptions) -> str:
    """Return the reason why one launch cannot search the parts, "" if it can."""
    if parts > MOST_PARTS:
        return f"{parts} devices; a domain has up to {MOST_PARTS}"
    if options.stepwise:
        return "levels led by the host were requested"
    return ""


class MemberSearch:
    """Searches of one part; create it and call its methods with its device current.

    Its creation has two steps: call ``connect`` once ``shared`` is connected.
    overrides: as in ``Arrays``

    Raises UsageError for options and sizes that are not supported.
    """

    def __init__(
        self,
        part: MemberRows,
        options: SearchOptions,
        overrides: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        problem = domain_problem(part.layout.parts, options)
        if problem:
            raise UsageError(problem)
        graph = part.graph
        if options.direction == "push" and graph.m >= 1 << 32:
            raise UsageError("direction 'push' allows fewer than 2^32 edges a part")
        self.part, self.options = part, options
        self.in_ids = not options.internal_ids
        self.device = int(graph.numbers.device)
        cp = cuda.cupy()
        self.arrays = Arrays(
            graph,
            in_ids=self.in_ids,
            parents=options.parents,
            levels=options.levels,
            names=part.names,
            shares=part.layout.parts if part.wide else 0,
            columns=len(part.names),
            # mutant: part.index -> 0 : test_masked_domains::test_one_domain
            devices=(part.layout.parts, part.index),
            pruned=options.direction != "pull" and part.layout.parts > 1,
            overrides={
                "push_only": options.direction == "push",
                "pull_only": options.direction == "pull",
                **overrides,
            },
            queues="later",
        )
        self.shared = SharedMemory(
            self.arrays,
            devices=part.layout.parts,
            index=part.index,
            granules=part.granules,
            edges=part.edges,
            active=int(part.actives.sum()),
            coded=self.arrays.searched or 0,
        )
        # what is read at the end lies together: it comes in one copy
        self._state, self._own_control, self._control = (  # classes
            structure(HEADER, name) for name in ("State", "Control", "DeviceControl")
        )
        size = CONTROL_AT + ctypes.sizeof(self._control)
        self._kept = cp.zeros(size, dtype=np.uint8)
        self._copy = Back(self._kept)
        self._reset()
        self._met = 0
        self._trace: Any = None
        self._counts: Any = None
        self._launches: dict[tuple[bool, bool, bool, bool], programs.Launch] = {}
        self._masked = False
        self._outside, self._together = 0, False  # see ``Member``; ``_search_leaves``
        self._turn, self._word = 0, StopWord()
        self._lone: Ids = np.zeros(0, np.int64)  # roots of a set without edges

    def _reset(self) -> None:
        """Make the next search begin by clearing the bitmaps."""
        clean = self._state(phase=DONE, dirty=1)
        at = slice(STATE_AT, STATE_AT + ctypes.sizeof(clean))
        self._kept[at].set(np.frombuffer(bytes(clean), dtype=np.uint8))

    def connect(self) -> None:
        """Set the arguments of searches, once ``shared`` is connected."""
        active, alone = int(self.part.actives.sum()), MOST_PARTS * ALONE
        self.arrays.make_queues(active, alone)
        own = self.arrays.params
        own.state = self._kept.data.ptr + STATE_AT
        control = self._kept.data.ptr + CONTROL_AT
        self.params = structure(HEADER, "Member", ways(self.part.graph))(
            own=own, device=control, **self.shared.arguments()
        )
        self.own = self.params.own
        self._search_leaves(together=False)
        self._results = self.arrays.results_launch(self.own) if self.in_ids else None

    def _search_leaves(self, *, together: bool) -> None:
        """Search leaves like other vertices if ``together``, else leave them out."""
        if self.arrays.search_trees(self.own, together=together):
            self.arrays.clear()
            self._reset()
        self.params.active_all = self.vertices
        self._together = together
        self.params.outside = 0 if together else self._outside

    @property
    def leaves_out(self) -> bool:
        """Whether the current search leaves out leaves."""
        return bool(self.own.active < self.own.every)

    @property
    def vertices(self) -> int:
        """Number of vertices of all parts that it searches."""
        some: int = self.own.active * self.part.layout.parts
        return some if self.leaves_out else int(self.part.actives.sum())

    @property
    def searched(self) -> DeviceArray:
        """The local ids of the vertices of this part that are searched, uint32."""
        return self.part.graph.vertices[: self.own.active]

    def _form(self, *, records: bool) -> tuple[bool, bool, bool, bool]:
        """Return a search's form: (counters, tails, masks, nothing but all levels).

        The form that counts also serves masks. A directed graph has fewer forms: that
        one serves tails, too, and is the only one for masks.
        """
        graph, masked = self.part.graph, self._masked or records
        split = graph.tails is not None
        if not graph.directed:
            plain = not masked and self.arrays.plain(self.own)
            return records, split, masked, plain
        every = masked or (split and not self.in_ids)
        return every, split or every, every, False

    def _launch(self, form: tuple[bool, bool, bool, bool]) -> programs.Launch:
        """Return the launch of a search in a form; see ``_form``."""
        if form not in self._launches:
            count, split, masked, plain = form
            module = programs.Module(
                KERNELS / "domain.cu",
                OFFSET=self.arrays.offset,
                COUNT=int(count),
                IN_IDS=int(self.in_ids),
                SPLIT=int(split),
                **mask(masked),
                **ways(self.part.graph),
                **({"PLAIN": 1} if plain else {}),
            )
            self._launches[form] = self.arrays.search_launch(module, self.params)
        return self._launches[form]

    def see(self, view: SeenEdges | None) -> None:
        """Restrict later searches to some edges; None: all."""
        with cuda.memory_of("a masked search"):
            self.arrays.show(self.own, view)
        self._masked = view is not None
        self.prepare()

    def _recorded(self, records: bool) -> TimedGraph:
        """Return the search, with or without counters, as a CUDA graph."""
        launch = self._launch(self._form(records=records))
        return launch.record(then=self._results, back=self._copy)

    def prepare(self, *, records: bool = False) -> None:
        """Load the kernels, so that no device waits for that during a search."""
        self._recorded(records)
        cp, (counted, *_) = cuda.cupy(), self._form(records=records)
        if records and self._trace is None:
            self._trace = cp.zeros(ROWS * 4, dtype=np.uint64)
        if counted and self._counts is None:
            self._counts = cp.zeros((COUNTERS, ROWS), dtype=np.uint64)
        if counted:
            self.arrays.count_with(self.own)

    def ready(
        self,
        root: Root,
        *,
        records: bool = False,
        until: Until = WHOLE,
        stop: Stop | None = None,
    ) -> None:
        """Set the arguments of a search from ids.

        stop: called in ``wait``; if it returns True, all parts end at the same level
        Raises UsageError for a target that is not a vertex.
        """
        p, layout = self.own, self.part.layout
        last, targets = last_and_targets(until, root, layout.n)
        if targets is not None:
            targets = layout.local_of(
                targets[layout.part_of(targets) == self.part.index]
            )
        self.arrays.end_with(p, last, targets)
        if not self.options.levels:  # records count the vertices of levels
            self.arrays.want_levels(p, wanted=records)
        some = isinstance(root, np.ndarray) or targets is not None
        self._search_leaves(together=some or self._masked)
        if isinstance(root, np.ndarray):
            self._begin_at(root)
        else:
            mine = layout.part_of(root) == self.part.index
            p.root, p.root_id = (layout.local_of(root) if mine else ELSEWHERE), root
            begin_at_root(p)
        p.snapshot, p.next_snapshot = p.next_snapshot, p.snapshot
        p.by_first, p.next_by_first = p.next_by_first, p.by_first
        base = self._kept.data.ptr
        self._turn ^= 1
        p.control = base + self._turn * CONTROL_BYTES
        p.other = base + (self._turn ^ 1) * CONTROL_BYTES
        self._word.stop = stop
        p.stop = self._word.address
        self.prepare(records=records)
        p.trace = self._trace.data.ptr if records else 0
        counted, *_ = self._form(records=records)
        p.counts = self._counts.data.ptr if counted else 0
        if records:
            self._trace.fill(0)
            self._counts.fill(0)
        self._graph = self._recorded(records)
        self._graph.set_arguments()
        cuda.cupy().cuda.Device().synchronize()  # the results of the last search

    def _begin_at(self, roots: Ids) -> None:
        """Set the roots, ids int64 [k] ascending, that this part has."""
        p, layout = self.own, self.part.layout
        own = layout.local_of(roots[layout.part_of(roots) == self.part.index])
        numbers, self._lone = split(self.part.graph.numbers_at(own), own)
        ids = layout.global_of(self.part.index, self._lone)
        active = int(self.part.actives.sum())
        way = way_of(len(roots), active, push_only=bool(p.push_only))
        begin_at_set(self.arrays, p, numbers, self._lone, ids, way)

    def start(self) -> None:
        """Begin the search; only launch anything else once all parts have begun."""
        self._graph.launch()

    def wait(self) -> tuple[float, int, int, int]:
        """Wait; return (device seconds, levels with vertices here, failure, end).

        failure: 0, or 1 + the part for which this device waited in vain
        end: 0, or 1 + the level at which the search was stopped, equal on all parts
        """
        seconds = self._graph.wait(self._word)
        kept = bytes(self._copy.pinned)
        state = self._state.from_buffer_copy(kept, STATE_AT)
        self._wide = too_deep(self.own, state.depth)
        if self._wide and state.phase == DONE and self.arrays.wide is None:
            seconds += self._results_again()  # which tell the highest level
            kept = bytes(self._copy.pinned)
        control = self._control.from_buffer_copy(kept, CONTROL_AT)
        failed = control.failed  # once is for ever: messages of that search may be left
        if control.met == self._met:  # it has not come to the end
            failed = int(self.shared.failed.get()[0])
        self._met = control.met
        own = self._own_control.from_buffer_copy(kept, self._turn * CONTROL_BYTES)
        highest = state.base + own.highest
        levels = 1 + (highest if state.k else max(control.deepest, highest))
        end = 1 + state.depth if state.phase == STOPPED else 0
        if state.phase == DONE:
            self._learn(state)
        return seconds, levels, failed, end

    def _learn(self, state: Record) -> None:
        """Note how many vertices lie outside a component with at least half of them.

        All parts learn the same number from a search that ended with a pull.
        """
        whole = not self._together and self.own.last == NO_LIMIT
        whole = whole and not self.part.graph.directed
        # mutant: 2 * state -> state : test_a_component_that_is_known
        if whole and state.k and 2 * state.left <= self.vertices:
            self._outside = state.left

    def _results_again(self) -> float:
        """Write levels again that need more than a byte; return the seconds."""
        with cuda.memory_of("levels of a deep graph"):
            self.arrays.widen()
        self.own.level_wide = self.arrays.wide.data.ptr
        return 0.0 if self._results is None else self._results.timed(back=self._copy)

    def results(self) -> tuple[Any, Any]:
        """Return (level int8 or int32, parent int32 or int64), by local id.

        Either is None if it was not requested. If searches use internal ids, results
        are converted to ids here.
        """
        cp, a = cuda.cupy(), self.arrays
        count = self.part.local_count if self.in_ids else self.part.graph.active
        level = None
        if self.own.level_out:
            level = (a.wide if self._wide else a.level)[:count]
            if not self.in_ids:
                level = self._by_id(level, ids=False)
        if a.parent is None:
            return level, None
        parent = a.parent[:count]
        if not self.in_ids:
            position = parent.view(np.uint32)
            none = position == ISOLATED
            parent = self.part.ids_at(cp.where(none, 0, position))
            parent[none] = -1
            kind = np.int64 if self.part.wide else np.int32
            parent = self._by_id(parent.astype(kind, copy=False), ids=True)
        return level, parent

    def _by_id(self, values: Any, *, ids: bool) -> Any:
        """Convert values by number to values by local id, -1 for vertices without one.

        ids: whether a root without edges, which has no number, gets its id, else 0
        """
        cp, graph, p = cuda.cupy(), self.part.graph, self.own
        out = cp.full(graph.n, -1, values.dtype)
        out[graph.vertices] = values
        if p.from_set:
            roots = self.part.layout.global_of(self.part.index, self._lone)
            out[cp.asarray(self._lone)] = cp.asarray(roots * ids).astype(values.dtype)
            return out
        mine = p.root != ELSEWHERE
        if mine and graph.numbers_at(np.array([p.root]))[0] == ISOLATED:
            out[p.root] = p.root_id * ids
        return out

    def steps(self) -> list[tuple[str, int, int, int, float]]:
        """Return the notes of the last search with records, one for each step.

        A note is (name, level, vertices, edges, seconds), where vertices and edges are
        those of the frontier that a push made or, for a pull, the found and the
        unvisited vertices.
        """
        rows = self._trace.get().reshape(-1, 4)
        rows = rows[rows[:, 0] > 0]
        out = []
        for k in range(1, len(rows)):
            what, depth = int(rows[k, 1]) >> 32, int(rows[k, 1]) & 0xFFFFFFFF
            seconds = (int(rows[k, 0]) - int(rows[k - 1, 0])) * 1e-9
            counts = (int(rows[k, 2]), int(rows[k, 3]))
            out.append((STEPS[what], depth, *counts, seconds))
        return out

    def counted(self, levels: int) -> Ids:
        """Return this device's counts of the last search with records, by level.

        int64 [COUNTERS, levels]
        """
        counts = self._counts.get()[:, :levels].astype(np.int64)
        return np.pad(counts, [(0, 0), (0, levels - counts.shape[1])])
