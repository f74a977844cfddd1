"""Searches of whole graphs on CPUs: arrays for the C code here, and its calls."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cc
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate
from distbfs.device.calls import LongCall
from distbfs.device.structures import structure
from distbfs.engines.base import (
    NO_PATH,
    PRUNED,
    LevelRecord,
    Query,
    ShortestPath,
    Until,
    WholeResult,
    WholeSearch,
)
from distbfs.errors import OutOfMemory, SearchStopped, UsageError
from distbfs.graph.csr import CSR
from distbfs.graph.trees import first_tree, trees_last
from distbfs.partition.part import Part, mask_of, mask_words
from distbfs.types import Array, Ids, Root, Stop

METHODS = ("fast", "push", "hybrid", "ordered")
BOTH_ENDS = "both_ends"
NO_LIMIT = (1 << 63) - 1
DIRECTIONS = {"auto": 0, "push": 1, "pull": 2}
MODES = ("push-serial", "push", "push-marking", "pull")
TREES = "trees"  # what a record calls a level that no vertex of the core is in
STOPPED = -2
NOBODY: Ids = np.zeros(0, dtype=np.int64)
COUNTS = ("mode", "frontier", "checks", "found")
RECORD = np.dtype([*((name, np.int64) for name in COUNTS), ("seconds", "f8")])


def prepare(
    method: str = "fast", offset_bytes: int = 4, *, masked: bool = False
) -> ctypes.CDLL:
    """Load or compile the library of a method; masked: whether it tests edge bits."""
    offset = "uint32_t" if offset_bytes == 4 else "uint64_t"
    source = source_of(method)
    library = cc.load(source, OFFSET=offset, MASKED=int(masked))
    getattr(library, f"search_{source.stem}").restype = ctypes.c_int64
    return library


def source_of(method: str) -> Path:
    """Return the C file of a method, or of BOTH_ENDS; hybrid has pushes alone, too."""
    name = "hybrid" if method == "push" else method
    return Path(__file__).with_name(f"{name}.c")


def first_of(rows: CSR, active: int) -> Array:
    """Return the first column of each row, uint32 [active]; for an empty row, itself.

    Only rows of unvisited vertices are read, so a row that begins with itself never
    matches.
    """
    first = np.arange(active, dtype=np.uint32)
    filled = rows.occupied()
    first[filled] = rows.columns[rows.first_edges(filled)]
    return first


def rows_for(out: CSR, into: CSR, active: int) -> dict[str, Any]:
    """Return the members of ``whole_graph`` for rows out and rows in, of one width."""
    offsets, in_offsets = out.offsets, into.offsets
    if offsets.itemsize != in_offsets.itemsize:
        offsets, in_offsets = (x.astype(np.uint64) for x in (offsets, in_offsets))
    degrees, entering = (np.diff(x[: active + 1]) for x in (offsets, in_offsets))
    pairs = (degrees.astype(np.float64) * entering).sum()
    return {
        "edges": out.edges,
        "mean_next": float(pairs / max(out.edges, 1)),
        "offsets": offsets,
        "columns": out.columns,
        "in_offsets": in_offsets,
        "in_columns": into.columns,
    }


def array_table(n: int, active: int, *, parents: bool = True) -> ArrayTable:
    """Return the arrays of an ``OpenMPWhole``; only results and numbers are by id.

    n, active: number of vertices, and of those with edges

    The arrays are allocated in this order: searches of long, thin graphs took a tenth
    longer when the parents came last.
    """
    words = mask_words(active)
    by_number = ArrayPlan(np.uint32, 64 * words)
    table: ArrayTable = {"level": ArrayPlan(np.int32, n)}
    if parents:
        table["parent"] = ArrayPlan(np.int32, n)
    return table | {
        "numbers": ArrayPlan(np.uint32, n),
        "marks": ArrayPlan(np.uint8, 64 * words),
        "first": by_number,
        "vertices": by_number,
        "visited": ArrayPlan(np.uint64, words),
        "next": ArrayPlan(np.uint64, words),
        "found_by": by_number,
        "queue": [ArrayPlan(np.uint32, active + 1)] * 2,
        "rates": ArrayPlan(np.float64, 65 * 3),
    }


def team_rates(rates: Array) -> Array | None:
    """Clear what a search keeps of how fast one thread and all are; see levels.h.

    Returns the array, or None: nothing is kept, and all threads take what is not small.
    """
    rates[:] = 0
    return rates


class OpenMPWhole(WholeSearch):
    """Searches one part without delegates (a ``WholeSearch``)."""

    def __init__(
        self, part: Part, method: str, threads: int, direction: str, parents: bool
    ) -> None:
        n = part.local_count
        if n >= 1 << 31:
            raise UsageError(
                f"engine openmp searches up to 2^31 - 1 vertices per part, not {n}; "
                "use more parts"
            )
        way = DIRECTIONS["push" if method == "push" else direction]
        self._how = ctypes.c_int(threads), ctypes.c_int(way)
        self._method = method
        self._active = part.active
        self._vertices = part.vertices
        table = array_table(n, part.active, parents=parents)
        arrays: dict[str, Any] = allocate(table, cc.aligned_empty)
        self._level, self._parent = arrays["level"], arrays.get("parent")
        self._numbers: Array = arrays.pop("numbers")
        self._numbers[part.vertices] = np.arange(n, dtype=np.uint32)
        # roots of the last search that the next one leaves alone: no edge enters them
        self._isolated = NOBODY
        self._graph = self._prepare(part, arrays)
        self.see(part)

    def _choose(self, part: Part) -> None:
        """Load the library that tests edge bits if the part has some."""
        offset_bytes = part.nn.offsets.itemsize
        masked = part.nn.bits is not None
        self._library = prepare(self._method, offset_bytes, masked=masked)
        name = f"search_{source_of(self._method).stem}"
        self._function = getattr(self._library, name)
        self._both_ends = partial(prepare, BOTH_ENDS, offset_bytes, masked=masked)

    def see(self, part: Part) -> None:
        """Restrict searches to the edges in the part's rows; see ``WholeSearch``."""
        self._choose(part)
        self._graph.reached = -1
        # mutant: self._write(slice(None), -1, -1) -> pass
        #   : test_views_that_close_vertices
        self._write(slice(None), -1, -1)
        first = first_of(part.pulled, part.active)
        self._graph.held["first"][: part.active] = first
        self._close(part)
        self._graph.set(seen=part.nn.bits, in_seen=part.pulled.bits)
        self._trees = self._trees_of(part)

    def _trees_of(self, part: Part) -> int:
        """Return the number of vertices in trees that a search may set at the end."""
        if self._method != "fast" or part.directed or part.nn.bits is not None:
            return 0
        offsets, columns = part.nn.offsets, part.nn.columns
        core = first_tree(offsets, columns, part.active)
        first = self._graph.held["first"][: part.active]
        if not trees_last(offsets, columns, first, core):
            return 0
        on_tree = np.flatnonzero(first[core:] >= core)
        self._graph.chained = int(on_tree[-1]) + 1 if len(on_tree) else 0
        return part.active - core

    def _prepare(self, part: Part, arrays: dict[str, Any]) -> Any:
        active = part.active
        self._marks: Array = arrays["marks"]
        self._marks[:] = 0
        arrays["vertices"][:active] = part.vertices[:active]
        for name in ("first", "vertices"):
            arrays[name][active:] = 0
        return structure(source_of(self._method), "whole_graph")(
            active=active,
            words=mask_words(active),
            depth=NO_LIMIT,
            reached=-1,
            rates=team_rates(arrays.pop("rates")),
            names=arrays["vertices"],
            **arrays,
            **rows_for(part.nn, part.pulled, active),
        )

    def _close(self, part: Part) -> None:
        """Mark the vertices to which visible edges lead, if these are not all."""
        filled, enterable = part.pulled.occupied(), None
        closed = part.active - len(filled)
        if closed:
            enterable = mask_of(filled, mask_words(part.active) * 64)
        self._graph.set(enterable=enterable, closed=closed)

    def answer(self, root: Root, query: Query) -> WholeResult:
        """Search from ids; see ``WholeSearch``."""
        until, records = query.until, query.records
        if len(self._isolated):
            self._write(self._isolated, -1, -1)
        ids = root if isinstance(root, np.ndarray) else np.array([root])
        numbers, alone = self._numbers[ids], NOBODY
        roots = numbers[numbers < self._active]
        if len(roots) < len(ids):
            alone = ids[numbers >= self._active]
        # mutant: self._graph.closed -> False : test_roots_that_no_edge_enters
        self._isolated = ids if len(alone) or self._graph.closed else NOBODY
        self._leave_trees(roots, until)
        self._graph.roots = roots.ctypes.data
        self._graph.root_count = len(roots)
        targets = self._targets(until)
        self._graph.depth = NO_LIMIT if until.depth is None else until.depth
        self._graph.targets = targets.ctypes.data if len(targets) else None
        self._graph.wanted = len(targets)
        log = np.zeros(self._active + 1, dtype=RECORD) if records else None
        noted = cc.pointer(log)
        levels = self._run(self._library, self._function, query.stop, *self._how, noted)
        if levels < 0:
            raise OutOfMemory("no memory for the queues of a search")
        if not len(roots):
            levels = 1
        order = self._order()
        if len(alone):
            self._write(alone, 0, alone)
            order = None if order is None else np.concatenate([alone, order])
        result = WholeResult(self._level, self._parent, levels, order=order)
        if log is not None:
            log["frontier"][0] += len(alone)
            result.records = self._records(log, levels)
        return result

    def path(self, root: Root, target: int, stop: Stop | None = None) -> ShortestPath:
        """Find a shortest path by a search from both ends; see ``FindPath``."""
        if stop is not None and stop():
            raise SearchStopped("the search was stopped before it began")
        if target in np.atleast_1d(root):
            return ShortestPath(np.array([target], dtype=np.int64))
        ends = self._numbers[np.append(root, target)]
        ends = ends[ends < self._active]
        if len(ends) < 2 or ends[-1] != self._numbers[target]:
            return NO_PATH
        library, checks = self._both_ends(), ctypes.c_int64()
        sources = cc.arguments(ends, len(ends) - 1)
        goal = ctypes.c_uint32(ends[-1]), ctypes.byref(checks)
        function = library.search_both_ends
        length = self._run(library, function, stop, *sources, *goal)
        ids = self._vertices[self._graph.held["queue"][0][:length]]
        return ShortestPath(ids.astype(np.int64), checks.value)

    def _run(
        self, library: ctypes.CDLL, function: Any, stop: Stop | None, *arguments: Any
    ) -> int:
        """Call a search; raise SearchStopped when ``stop`` returns True."""
        call = LongCall.again(library, stop)
        self._graph.stop = call.stop
        try:
            value: int = call(function, ctypes.byref(self._graph), *arguments)
        except BaseException:  # perhaps during a level
            self._marks[:] = 0
            self._graph.reached = -1
            raise
        if value == STOPPED:
            raise SearchStopped("the search was stopped between two levels")
        return value

    def _leave_trees(self, roots: Array, until: Until) -> None:
        """Leave trees out of the levels of a search, if it reaches all of them.

        A single root, a number, may be in a tree, several may not.
        """
        core, graph = self._active - self._trees, self._graph
        whole = until.depth is None and until.targets is None and len(roots) > 0
        if not whole or (len(roots) > 1 and (roots >= core).any()):
            core = self._active
        if core != graph.active:
            # mutant: = -1 -> = 0 : test_searches_with_and_without_trees_in_turn
            graph.reached = -1
        graph.active, graph.words = core, mask_words(core)
        graph.trees = self._active - core

    def _records(self, log: Array, levels: int) -> list[LevelRecord]:
        """Return the records of levels, which include the vertices of trees."""
        core, trees = self._graph.active, self._graph.trees
        frontier, finds = log["frontier"], log["found"]
        if trees:
            on_trees = self._level[self._vertices[core : self._active]]
            sizes, pruned = (
                np.bincount(level[level >= 0], minlength=levels + 1)
                for level in (self._level, on_trees)
            )
            frontier, finds = sizes, sizes[1:]
        return [
            LevelRecord(
                TREES if trees and not log["frontier"][k] else MODES[log["mode"][k]],
                int(frontier[k]),
                int(log["checks"][k]),
                int(finds[k]),
                float(log["seconds"][k]),
                {PRUNED: int(pruned[k + 1])} if trees else {},
            )
            for k in range(levels)
        ]

    def _targets(self, until: Until) -> Array:
        """Return the numbers of the targets; none if one is unreachable."""
        if until.targets is None:
            return np.zeros(0, dtype=np.uint32)
        numbers = self._numbers[until.targets]
        return numbers[: len(numbers) * bool((numbers < self._active).all())]

    def _order(self) -> Array | None:
        """Return the ids of reached vertices in the order of the queue."""
        if self._method != "ordered":
            return None
        return self._vertices[
            self._graph.held["queue"][0][: np.count_nonzero(self._level >= 0)]
        ]

    def _write(self, vertices: Ids | slice, level: int, parent: Root) -> None:
        self._level[vertices] = level
        if self._parent is not None:
            self._parent[vertices] = parent
