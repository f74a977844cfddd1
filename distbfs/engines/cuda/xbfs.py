"""The engine for one CUDA device: XBFS as published, and what goes beyond it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from distbfs.device import cuda
from distbfs.engines.base import DeviceSearch, LevelRecord
from distbfs.engines.cuda.fast import FastSearch
from distbfs.engines.cuda.memory import LISTS, search_bytes
from distbfs.engines.cuda.paper import ALLOWED, BALANCES, FRONTIERS, PaperSearch
from distbfs.engines.cuda.resident import MOST_PARTS
from distbfs.engines.cuda.whole import (
    PARTS_ONLY,
    ById,
    NumberResult,
    OnHost,
    changed,
    graph_of_part,
)
from distbfs.errors import UsageError
from distbfs.generate.hashing import Permutation
from distbfs.graph.device_graph import MAX_VERTICES, DeviceGraph
from distbfs.options import SearchOptions, check_choice
from distbfs.partition.part import Part

METHODS = ("fast", "paper")
PAPER_ONLY = ("frontier", "balance", "asynchronous")
WHOLE_ONLY = ("frontier", "asynchronous")
NEEDS_PAPER = (
    "method 'fast' of engine xbfs searches symmetric graphs, and this one is directed; "
    "allowed: paper"
)
COUNTED = ("found_early", "repeats", "handed_out", "donations")  # in records of paper
PULLS = "warp"  # how pulls of method paper share their work where nothing is asked for


def check_options(options: SearchOptions, method: str, *, parts: bool) -> None:
    """Raise UsageError for options that contradict each other or the engine.

    parts: parts may be searched, whose pulls can share their work in other ways too
    """
    check_choice("method", method, METHODS)
    check_choice("balance", options.balance, ("auto", *BALANCES))
    if changed(options, ("knobs",)):
        raise UsageError("knobs is no option of engine xbfs")
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
    takes = ("stepwise", "internal_ids")
    on_device = alone = True
    directed = False
    domains = False
    devices = MOST_PARTS

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
        if not whole and (name := changed(options, WHOLE_ONLY)):
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
        return graph_of_part(self.name, part, source, permutation)

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
            by_number = PaperByNumber(graph, o)
            return ById(graph, by_number, in_ids=not o.internal_ids, parents=o.parents)
        return FastSearch(
            graph,
            parents=o.parents,
            in_ids=not o.internal_ids,
            direction=o.direction,
            stepwise=o.stepwise,
        )

    def whole(self, part: Part) -> OnHost:
        """Prepare the search of a graph that is one part without delegates."""
        if self.options.internal_ids:
            raise UsageError("internal_ids is for searches of a graph on the device")
        return OnHost(self.on_graph(self.graph_of(part)))

    def describe(self) -> dict[str, Any]:
        """Return what the engine runs on, for reports."""
        return {
            "engine": self.name,
            "method": self.method,
            "threads": 1,
            "strategies": {name: getattr(self.options, name) for name in PAPER_ONLY},
            **cuda.describe(),
        }


class PaperByNumber:
    """Method ``paper`` as a ``NumberSearch``."""

    def __init__(self, graph: DeviceGraph, options: SearchOptions) -> None:
        self._search = PaperSearch(
            graph,
            frontier=options.frontier,
            balance=PULLS if options.balance == "auto" else options.balance,
            asynchronous=options.asynchronous,
            direction=options.direction,
            parents=options.parents,
            stepwise=options.stepwise,
        )

    def search(self, number: int, *, records: bool = False) -> NumberResult:
        """Search from a vertex number."""
        found = self._search.search(number, records=records)
        log = [
            LevelRecord(
                r["direction"],
                r["frontier"],
                r["checks"],
                r["found"] + r["found_early"],
                r["seconds"],
                {name: r[name] for name in COUNTED},
            )
            for r in found.records
        ]
        level, parent = found.level, found.parent
        return NumberResult(level, parent, found.levels, found.seconds, log)
