"""What the host keeps and sets for searches of one device's rows.

``FastSearch`` (search.py) has a whole graph and ``MemberSearch`` (domain.py) the rows
of one device of a domain, each searched in one launch; ``BetweenShare``
(between_share.py) has those of a device of a domain among several. They have arrays,
forms of kernels, counters and results in common, and searches in one launch their roots
and ends as well.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda, programs, sources
from distbfs.device.reached import value_counts
from distbfs.device.sources import Variant
from distbfs.device.stop_word import StopWord
from distbfs.device.structures import Record, structure
from distbfs.device.take import Back
from distbfs.engines.base import PRUNED, TAIL_BYTES, LevelRecord, Query
from distbfs.engines.cuda.xbfs.arrays import ELSEWHERE, HEADER, ROWS, Arrays
from distbfs.engines.cuda.xbfs.block_memory import THREADS
from distbfs.engines.cuda.xbfs.limits import NO_LIMIT
from distbfs.engines.cuda.xbfs.search_table import BLOCK_EDGES, QUEUE_SHARE
from distbfs.graph.device_graph import ISOLATED
from distbfs.types import DeviceArray, Ids, Root, World

CONTROL_BYTES = 8 * (4 * 16 + 3 * 16 + 16)  # with room at the end
STATE_AT = 2 * CONTROL_BYTES  # in what a search keeps, after the two controls
BESIDE_AT = STATE_AT + 256
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
BY_QUEUE, BY_PULL = 1, 2  # ``FromSet`` in search.cuh


def has(form: Variant, macro: str) -> bool:
    """Return whether a form of the kernels is one with a macro."""
    return (macro, "1") in form


def tail_counts(counts: Ids) -> dict[str, list[int]]:
    """Return the reads of tails by level; counts: int [COUNTERS, levels]."""
    return {
        "tail_edges": counts[2].tolist(),
        TAIL_BYTES: (counts[3] * LINE_BYTES).tolist(),
    }


def cut(array: Any, count: int) -> Any:
    """Return the first elements of an array, or None for None."""
    return None if array is None else array[:count]


def level_records(
    world: World, shares: Sequence[ShareSearch], level: Iterable[Any], levels: int
) -> list[LevelRecord]:
    """Return the records of the levels from 1 on (collective).

    They have the counts of all devices, and the times of the first one.
    shares: this rank's devices; level: the levels that each of them has written
    levels: how many of them are told
    """
    first, names = shares[0], dict[int, str]()
    with cuda.cupy().cuda.Device(first.graph.cuda_device):
        steps = first.steps()
    seconds = dict.fromkeys(range(levels), 0.0)
    for name, k, *_, spent in steps:
        seconds[k] = seconds.get(k, 0.0) + spent
        if name.startswith("pu"):
            names.setdefault(k, name)
    sizes, counts = (np.zeros((k, levels), np.int64) for k in (2, COUNTERS))
    for share, array in zip(shares, level, strict=True):
        with array.device, cuda.memory_of("a search"):
            sizes += share.level_sizes(array, levels)
            counts += share.level_counts(levels)
    (sizes, searched), counts = world.allreduce(sizes), world.allreduce(counts)
    extras = {"hub_looks": counts[1].tolist(), PRUNED: (sizes - searched).tolist()}
    if first.graph.out.tails is not None:
        extras |= tail_counts(counts)
    log, left = [], first.vertices
    for k in range(1, levels):
        step = names.get(k, "push" if searched[k] else TREES)
        left -= int(searched[k - 1])
        frontier = left if step.startswith("pull") else int(searched[k - 1])
        extra = {name: int(values[k]) for name, values in extras.items()}
        checks, size = int(counts[0, k]), int(sizes[k])
        log.append(LevelRecord(step, frontier, checks, size, seconds[k], extra))
    return log


class ShareSearch:
    """Searches of one device's rows; call its methods with the device current.

    masked: whether searches see only some edges
    source: the file of its kernel; layout, index: which vertices the device owns
    by_number: whether results are by number
    own: arguments of searches (``Params`` in search.cuh); params: those of the kernel,
    which has them
    """

    source: Path
    by_number = False

    def __init__(
        self,
        arrays: Arrays,
        *,
        in_ids: bool,
        levels: bool,
        beside: type[Record] | None = None,
    ) -> None:
        """Allocate what a search keeps; beside: a structure that it keeps as well."""
        self.arrays, self.graph = arrays, arrays.graph
        self.own = self.params = arrays.params
        self.layout, self.index = self.graph.layout, self.graph.index
        self.in_ids, self._levels, self.masked = in_ids, levels, False
        # what is read at the end lies together: it comes in one copy
        kind, control = (structure(HEADER, name) for name in ("State", "Control"))
        size = STATE_AT + ctypes.sizeof(kind)
        if beside is not None:
            size = BESIDE_AT + ctypes.sizeof(beside)
        self._kept = cuda.cupy().zeros(size, dtype=np.uint8)
        self.own.state = self._kept.data.ptr + STATE_AT
        self._back = Back(self._kept)
        came = self._back.pinned.data  # at the end of a launch
        self._state = kind.from_buffer(came, STATE_AT)
        self._ended = [control.from_buffer(came, k * CONTROL_BYTES) for k in range(2)]
        self._turn, self._word = 0, StopWord()
        self.exact: dict[str, str | int] = {  # macros of all forms
            "OFFSET": arrays.offset,
            "IN_IDS": int(in_ids),
            "DIRECTED": int(self.graph.directed),
        }
        self._forms: dict[tuple[Any, ...], Variant] = {}
        self._launches: dict[Variant, programs.Launch] = {}
        self._results: programs.Launch | None = None
        self._counts: Any = None
        self._trace: Any = None
        self._written: dict[tuple[bool, bool], tuple[Any, Any]] = {}

    def _reset(self) -> None:
        """Make the next search itself clear the bitmaps with which it begins."""
        state = structure(HEADER, "State")(phase=DONE, dirty=1)
        at = slice(STATE_AT, STATE_AT + ctypes.sizeof(state))
        self._kept[at].set(np.frombuffer(bytes(state), dtype=np.uint8))

    def _launch(self, form: Variant) -> programs.Launch:
        """Return the launch of a search in a form."""
        if form not in self._launches:
            module = programs.Module(self.source, **dict(form))
            self._launches[form] = module.kernel("search").prepare(
                self.params,
                self.arrays.grid,
                THREADS,
                shared=self.arrays.search_bytes(
                    at_once=has(form, "AT_ONCE") and self.in_ids,
                    windows=has(form, "WINDOWS"),
                ),
                cooperative=True,
            )
        return self._launches[form]

    def _form_of(self, *, records: bool, may: tuple[str, ...] = ()) -> Variant:
        """Return the form of a search with or without records; may: see ``serving``."""
        key = records, self.masked, may
        if key not in self._forms:
            needs = {
                "COUNT": records,
                "SPLIT": self.graph.out.tails is not None,
                "MASKED": self.masked,
            }
            self._forms[key] = sources.serving(self.source, self.exact, needs, may)
        return self._forms[key]

    @property
    def _is_plain(self) -> bool:
        """Whether a search is for all levels from one root, and nothing else."""
        p = self.own
        one_way = p.push_only or p.pull_only
        asked = p.from_set or p.targets or p.stop or one_way or p.last != NO_LIMIT
        return self.graph.out.tails is None and not asked

    def _owned(self, ids: Ids) -> Ids:
        """Return the local ids of the vertices that the device owns, int64."""
        return self.layout.local_of(ids[self.layout.part_of(ids) == self.index])

    def _search_leaves(self, *, together: bool) -> None:
        """Search leaves like other vertices if ``together``, else leave them out."""
        if self.arrays.search_trees(together=together):
            # mutant: self.arrays.clear() -> pass : test_trees_from_every_place
            self.arrays.clear()
            self._reset()

    def _ask(self, root: Root, query: Query) -> None:
        """Set the roots, the end, the results, and the word that can stop a search.

        Raises UsageError for a target that is not a vertex.
        """
        p, layout, several = self.own, self.layout, isinstance(root, np.ndarray)
        until = query.until.beyond(root, layout.n)
        last = NO_LIMIT if until.depth is None else until.depth
        targets = until.targets
        own = None if targets is None else self._owned(targets)
        self.arrays.end_with(last, own)
        if not self._levels:  # records count the vertices of levels
            with cuda.memory_of("levels of records"):
                self.arrays.want_levels(wanted=query.records)
        together = several or self.masked or targets is not None
        self._search_leaves(together=together)
        if isinstance(root, np.ndarray):
            local = self._owned(root)
            numbers = self.graph.local_numbers(local)
            has = numbers != ISOLATED
            most = max(BLOCK_EDGES, self.graph.domain.active // QUEUE_SHARE)
            fits = p.push_only or len(root) <= most
            self._begin(BY_QUEUE if fits else BY_PULL, numbers[has], local[~has])
        else:
            mine = layout.part_of(root) == self.index
            p.root, p.root_id = (layout.local_of(root) if mine else ELSEWHERE), root
            self._begin()
        self._word.stop = query.stop
        p.stop = self._word.address

    def _begin(self, way: int = 0, numbers: Any = (), lone: Any = ()) -> None:
        """Make the next search begin at the roots of a set, or at ``root`` alone.

        way: how a set is taken on the first level, the same on all devices; 0: no set
        numbers: integers [k], of the roots that have one here; lone: int64 [j], local
        ids of the other roots here
        """
        p, cp = self.own, cuda.cupy()
        p.from_set, p.root_count, p.lone_count = way, len(numbers), len(lone)
        if not way:
            return
        p.root = p.root_id = ELSEWHERE
        lone = np.sort(lone)
        lones = np.concatenate([lone, self.layout.global_of(self.index, lone)])
        with cuda.memory_of("the roots of a search"):
            p.set(
                roots=cp.asarray(numbers.astype(np.uint32)) if len(numbers) else None,
                lones=cp.asarray(lones.astype(np.uint64)) if len(lone) else None,
            )

    def _swap_bitmaps(self) -> None:
        """Make a search begin with the bitmaps that the last one cleared."""
        p = self.own
        p.snapshot, p.next_snapshot = p.next_snapshot, p.snapshot
        p.by_first, p.next_by_first = p.next_by_first, p.by_first

    def take_counters(self, at: int, pair: Any = None) -> None:
        """Make the next launch count in counters 0 or 1; it may clear the other ones.

        pair: both counters, uint8; by default those that a search keeps
        """
        base = (self._kept if pair is None else pair).data.ptr
        self.own.control = base + at * CONTROL_BYTES
        self.own.other = base + (1 - at) * CONTROL_BYTES

    def _take_turn(self) -> None:
        """Make the next launch use the counters that the one before has cleared."""
        self._turn ^= 1
        self.take_counters(self._turn)

    def _count(self, *, counted: bool, records: bool, traced: bool = True) -> None:
        """Make the next search count in a form with counters.

        records: clear the counters first and, if traced, note steps
        """
        cp, p, traced = cuda.cupy(), self.own, records and traced
        if counted and self._counts is None:
            self._counts = cp.zeros((COUNTERS, ROWS), dtype=np.uint64)
        if counted:
            self.arrays.make_more()
        if traced and self._trace is None:
            self._trace = cp.zeros(ROWS * 4, dtype=np.uint64)
        p.counts = self._counts.data.ptr if counted else 0
        p.trace = self._trace.data.ptr if traced else 0
        if records:
            self._counts.fill(0)
        if traced:
            self._trace.fill(0)

    @property
    def vertices(self) -> int:
        """Number of vertices of all devices that it searches."""
        return int(self.own.active)

    @property
    def searched(self) -> DeviceArray:
        """The local ids of the vertices here that are searched, uint32."""
        return self.graph.vertices[: self.own.active]

    def level_sizes(self, level: DeviceArray, levels: int) -> Ids:
        """Count the vertices here, and those that are searched, by level; [2, levels].

        level: as written, by local id or number
        """
        if self.by_number:
            own = value_counts(level[: self.own.active], levels)
        else:
            own = value_counts(level, levels, self.searched)
        return np.array([value_counts(level, levels), own])

    def steps(self) -> list[tuple[str, int, int, int, float]]:
        """Return the notes of the last search with records, one for each step.

        A note is (name, level, vertices, edges, seconds), where vertices and edges are
        those of the frontier that a push made or, for a pull, the found and the
        unvisited vertices.
        """
        rows = self._trace.get().reshape(-1, 4)
        out = []
        for before, row in pairwise(rows[rows[:, 0] > 0].tolist()):
            what, depth = row[1] >> 32, row[1] & 0xFFFFFFFF
            seconds = (row[0] - before[0]) * 1e-9
            out.append((STEPS[what], depth, row[2], row[3], seconds))
        return out

    def level_counts(self, levels: int) -> Ids:
        """Return this device's counts of the last search with records, by level.

        int64 [COUNTERS, levels]
        """
        counts = self._counts[:, :levels].get().astype(np.int64)
        return np.pad(counts, [(0, 0), (0, levels - counts.shape[1])])

    def _levels_here(self, deepest: int) -> int:
        """Return the number of levels with vertices; deepest: of queues, in the end."""
        state = self._state
        highest = state.base + self._ended[self._turn].highest
        return 1 + int(highest if state.k else max(deepest, highest))

    def _results_again(self) -> float:
        """Write levels again that need more than a byte; return the seconds."""
        with cuda.memory_of("levels of a deep graph"):
            self.arrays.widen()
        return 0.0 if self._results is None else self._results.timed(back=self._back)

    def _results_of(self, *, narrow: bool) -> tuple[Any, Any]:
        """Return (level or None, parent or None), which searches write and keep.

        They are by local id or, without ``in_ids``, by number; narrow: levels are bytes
        """
        form = narrow, bool(self.own.level_out)
        if form not in self._written:
            a, graph = self.arrays, self.graph
            count = graph.n if self.in_ids else graph.active
            level = (a.level if narrow else a.wide) if form[1] else None
            self._written[form] = cut(level, count), cut(a.parent, count)
        return self._written[form]
