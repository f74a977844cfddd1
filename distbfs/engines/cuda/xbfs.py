"""The engine for one CUDA device: XBFS as published, and what goes beyond it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.engines.base import (
    WHOLE,
    DeviceResult,
    DeviceSearch,
    LevelRecord,
    Until,
    WholeResult,
)
from distbfs.engines.cuda.fast import FastSearch
from distbfs.engines.cuda.level import LevelPart
from distbfs.engines.cuda.memory import LISTS, search_bytes
from distbfs.engines.cuda.paper import ALLOWED, BALANCES, FRONTIERS, PaperSearch
from distbfs.engines.cuda.part import CudaPart
from distbfs.engines.cuda.results import host_levels, host_parents
from distbfs.errors import SearchStopped, UsageError
from distbfs.generate.hashing import Permutation
from distbfs.graph.device_graph import ISOLATED, MAX_VERTICES, DeviceGraph
from distbfs.graph.device_rows import from_rows
from distbfs.options import SearchOptions, check_choice
from distbfs.partition.device_part import DevicePart, part_to_device
from distbfs.partition.layout import Placement
from distbfs.partition.part import Part
from distbfs.types import Stop

METHODS = ("fast", "paper")
PAPER_ONLY = ("frontier", "balance", "asynchronous")
WHOLE_ONLY = ("frontier", "asynchronous")
NEEDS_PAPER = (
    "method 'fast' of engine xbfs searches symmetric graphs, and this one is directed; "
    "allowed: paper"
)
PULLS = "warp"  # how pulls of method paper share their work where nothing is asked for
PARTS_ONLY = (
    *("exchange", "mask_reduce", "share_device", "trust_mpi"),
    *("local_all2all", "uniquify", "dd", "dn", "nd"),
)


def changed(options: SearchOptions, names: tuple[str, ...]) -> str:
    """Return the first of some options that was changed, else an empty text."""
    usual = SearchOptions()
    found = (x for x in names if getattr(options, x) != getattr(usual, x))
    return next(found, "")


def check_options(options: SearchOptions, method: str, *, parts: bool) -> None:
    """Raise UsageError for options that contradict each other or the engine.

    parts: parts may be searched, whose pulls can share their work in other ways too
    """
    check_choice("method", method, METHODS)
    check_choice("balance", options.balance, ("auto", *BALANCES))
    if method != "paper":
        if name := changed(options, WHOLE_ONLY if parts else PAPER_ONLY):
            raise UsageError(f"{name} is chosen with method 'paper' only")
        return
    check_choice("frontier", options.frontier, FRONTIERS)
    allowed = ALLOWED[options.direction]
    if options.frontier not in allowed:
        raise UsageError(
            f"frontier is '{options.frontier}' with direction '{options.direction}'; "
            f"allowed: {', '.join(allowed)}"
        )


class XbfsEngine:
    """Methods: fast (default) and paper (Gaihre et al. 2019)."""

    name = "xbfs"
    methods = METHODS
    on_device = True

    def __init__(self, options: SearchOptions) -> None:
        self.method = options.method or METHODS[0]
        check_options(options, self.method, parts=True)
        cuda.cupy()
        self.options = options

    @staticmethod
    def check(options: SearchOptions, *, whole: bool) -> None:
        """Raise UsageError for options that do not fit what is searched.

        whole: a graph in one part without delegates, else parts
        """
        check_options(options, options.method or METHODS[0], parts=not whole)
        if whole and (name := changed(options, PARTS_ONLY)):
            raise UsageError(f"{name} is for searches of parts; there is one part")
        if not whole and (name := changed(options, ("internal_ids", *WHOLE_ONLY))):
            raise UsageError(f"{name} is for a graph in one part alone")
        if not whole and options.method:
            raise UsageError(
                f"method '{options.method}' searches a graph in one part alone; "
                "leave --method out for several parts or delegates"
            )

    @staticmethod
    def for_directed(options: SearchOptions) -> SearchOptions:
        """Return options with the method that searches directed graphs.

        Raises UsageError where another one is asked for.
        """
        if options.method not in ("", "paper"):
            raise UsageError(NEEDS_PAPER)
        return replace(options, method="paper")

    def graph_of(
        self,
        part: Part,
        source: dict[str, Any] | None = None,
        permutation: Permutation | None = None,
    ) -> DeviceGraph:
        """Return a part that is a whole graph as a graph in device memory.

        permutation: what took input ids to the part's; ids of the graph are the input's
        """
        if part.layout.parts != 1 or part.delegate_count:
            raise UsageError(
                "engine xbfs searches a graph that is one part without delegates"
            )
        vertices = part.vertices
        if permutation is not None:
            vertices = permutation.inverse(vertices.astype(np.int64))
        return from_rows(
            part.layout.n,
            part.nn.offsets,
            part.nn.columns,
            vertices,
            part.tuple_degrees,
            int(part.tuple_degrees.sum()) // 2,
            0,
            source or {},
            incoming=part.incoming,
        )

    def on_graph(self, graph: DeviceGraph) -> DeviceSearch:
        """Prepare the searches of a graph in device memory."""
        self.check(self.options, whole=True)
        if graph.directed and self.method != "paper":
            raise UsageError(NEEDS_PAPER)
        if graph.n > MAX_VERTICES:
            raise UsageError(
                f"engine xbfs searches up to 2^31 vertices, not {graph.n}; use another "
                "engine"
            )
        o = self.options
        need = search_bytes(
            graph.n,
            graph.active,
            graph.m,
            method=self.method,
            parents=o.parents,
            in_ids=not o.internal_ids,
            listed=int(graph.at_least[2 : 2 + LISTS].sum()),
            multiprocessors=cuda.multiprocessors(),
        )
        cuda.require(need, f"a search by method {self.method} of {graph.n} vertices")
        if self.method == "paper":
            return PaperDevice(graph, self.options)
        return FastSearch(
            graph,
            parents=o.parents,
            in_ids=not o.internal_ids,
            direction=o.direction,
            stepwise=o.stepwise,
        )

    def whole(self, part: Part) -> XbfsWhole:
        """Prepare the search of a graph that is one part without delegates."""
        if self.options.internal_ids:
            raise UsageError("internal_ids is for searches of a graph on the device")
        return XbfsWhole(self.on_graph(self.graph_of(part)))

    def attach(self, part: Part, placement: Placement) -> CudaPart:
        """Copy a part to the device and prepare its stepwise search."""
        return self.on_part(part_to_device(part), placement)

    def on_part(self, part: DevicePart, placement: Placement) -> CudaPart:
        """Prepare the stepwise search of one part in device memory.

        Raises UsageError for options that parts do not have.
        """
        self.check(self.options, whole=False)
        o = self.options
        return CudaPart(part, placement, parents=o.parents, balance=o.balance)

    def on_level(self, part: DevicePart, placement: Placement) -> LevelPart:
        """Prepare the search of one part in device memory, levels without the host.

        Raises UsageError for options that parts do not have.
        """
        self.check(self.options, whole=False)
        return LevelPart(part, placement, self.options)

    def describe(self) -> dict[str, Any]:
        """Return what the engine runs on, for reports."""
        return {
            "engine": self.name,
            "method": self.method,
            "threads": 1,
            "strategies": {name: getattr(self.options, name) for name in PAPER_ONLY},
            **cuda.describe(),
        }


class PaperDevice:
    """Method ``paper``; results by id are gathered after the search, in its time."""

    def __init__(self, graph: DeviceGraph, options: SearchOptions) -> None:
        cp = cuda.cupy()
        self.graph, self.in_ids = graph, not options.internal_ids
        self._search = PaperSearch(
            graph,
            frontier=options.frontier,
            balance=PULLS if options.balance == "auto" else options.balance,
            asynchronous=options.asynchronous,
            direction=options.direction,
            parents=options.parents,
            stepwise=options.stepwise,
        )
        self._level = self._parent = None
        with cuda.memory_of("results"):
            if self.in_ids:
                self._level = cp.empty(graph.n, dtype=cp.int32)
            if self.in_ids and options.parents:
                self._parent = cp.empty(graph.n, dtype=cp.uint32)
        module = cuda.Module(Path(__file__).parent / "kernels" / "ids.cu", ANY=1)
        self._to_ids, self._alone = module.kernel("to_ids"), module.kernel("alone")
        self._events = cp.cuda.Event(), cp.cuda.Event()
        self._blocks = 8 * cuda.multiprocessors()

    def search(self, root: int, *, records: bool = False) -> DeviceResult:
        """Search from a vertex id."""
        n, null = np.uint32(self.graph.n), np.uint64(0)
        out = [null if x is None else x for x in (self._level, self._parent)]
        number = int(self.graph.numbers[root])
        if number == ISOLATED:
            if self._level is None:
                raise UsageError(f"vertex {root} has no edges and no number")
            seconds = self._timed(self._alone, n, np.uint32(root), *out)
            alone = [LevelRecord("alone", 1, 0, 0, seconds)] if records else []
            return DeviceResult(self._level, self._parent, 1, seconds, 1, alone)
        found = self._search.search(number, records=records)
        log = [
            LevelRecord(
                r["direction"],
                r["frontier"],
                r["checks"],
                r["found"] + r["found_early"],
                r["seconds"],
            )
            for r in found.records
        ]
        level, parent, levels = found.level, found.parent, found.levels
        if self._level is None:
            return DeviceResult(level, parent, levels, found.seconds, 1, log)
        maps = (self.graph.numbers, self.graph.vertices)
        given = (level, null if parent is None else parent)
        seconds = found.seconds + self._timed(self._to_ids, *maps, *given, n, *out)
        return DeviceResult(self._level, self._parent, levels, seconds, 2, log)

    def _timed(self, kernel: cuda.Kernel, *arguments: Any) -> float:
        """Launch a kernel on all of the device; return its seconds."""
        begin, end = self._events
        begin.record()
        kernel(self._blocks, 256, *arguments)
        end.record()
        end.synchronize()
        return float(cuda.cupy().cuda.get_elapsed_time(begin, end)) * 1e-3


class XbfsWhole:
    """Searches a part that was copied to the device (a ``WholeSearch``)."""

    def __init__(self, search: DeviceSearch) -> None:
        self._search = search

    def search(
        self,
        root: int,
        *,
        records: bool = False,
        until: Until = WHOLE,  # noqa: ARG002
        stop: Stop | None = None,
    ) -> WholeResult:
        """Search from a vertex id, to the end; results are copied to the host.

        ``stop`` is asked before the search alone: no host sees its levels.
        """
        if stop is not None and stop():
            raise SearchStopped("the search was stopped before it began")
        found = self._search.search(root, records=records)
        parent = None
        if found.parent is not None:
            parent = host_parents(found.parent).astype(np.int32)
        level = host_levels(found.level)
        return WholeResult(level, parent, found.levels, list(found.records))
