"""Engine ``xbfs``: whole graphs on one CUDA device, and parts on several."""

from __future__ import annotations

from typing import Any

from distbfs.device import cuda
from distbfs.engines.base import DeviceSearch
from distbfs.engines.cuda.fast import FastSearch
from distbfs.engines.cuda.level import LevelPart
from distbfs.engines.cuda.memory import LISTS, search_bytes
from distbfs.engines.cuda.paper import BALANCES
from distbfs.engines.cuda.part import CudaPart
from distbfs.engines.cuda.whole import PARTS_ONLY, OnHost, changed, graph_of_part
from distbfs.engines.cuda.xbfs_paper import STRATEGIES
from distbfs.errors import UsageError
from distbfs.generate.hashing import Permutation
from distbfs.graph.device_graph import MAX_VERTICES, DeviceGraph
from distbfs.options import SearchOptions, check_choice
from distbfs.partition.device_part import DevicePart, part_to_device
from distbfs.partition.layout import Placement
from distbfs.partition.part import Part

METHODS = ("fast",)
PARTS_METHODS = ("auto", "resident", "captured")  # how levels of parts run
PAPER_ONLY = tuple(name for name in STRATEGIES if name != "balance")
NEEDS_SYMMETRIC = (
    "engine xbfs searches symmetric graphs, and this one is directed; use xbfs-paper"
)


def check_options(options: SearchOptions, method: str, *, parts: bool) -> None:
    """Raise UsageError for options that contradict each other or the engine.

    parts: parts may be searched, whose pulls can share their work in other ways too
    """
    check_choice("method", method, METHODS + PARTS_METHODS)
    check_choice("balance", options.balance, ("auto", *BALANCES))
    if changed(options, ("knobs",)):
        raise UsageError("knobs is no option of engine xbfs")
    if name := changed(options, PAPER_ONLY if parts else STRATEGIES):
        raise UsageError(f"{name} is for engine xbfs-paper; the engine is xbfs")


class XbfsEngine:
    """Method fast; of parts auto, resident and captured."""

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
        here = options.method in ("", "resident", "auto")
        inside = () if here else ("internal_ids",)
        if not whole and (name := changed(options, inside)):
            raise UsageError(f"{name} is for a graph in one part alone")
        if whole and options.method in PARTS_METHODS:
            raise UsageError(
                f"method '{options.method}' is for several parts; give --parts or "
                "start several ranks"
            )
        if not whole and options.method not in ("", *PARTS_METHODS):
            raise UsageError(
                f"method '{options.method}' searches a graph in one part alone; "
                "leave --method out for several parts or delegates"
            )

    @staticmethod
    def for_directed(options: SearchOptions) -> SearchOptions:  # noqa: ARG004
        """Raise UsageError: only symmetric graphs are searched."""
        raise UsageError(NEEDS_SYMMETRIC)

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
        if graph.directed:
            raise UsageError(NEEDS_SYMMETRIC)
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
            parents=o.parents,
            in_ids=not o.internal_ids,
            listed=int(graph.at_least[2 : 2 + LISTS].sum()),
            multiprocessors=cuda.multiprocessors(),
        )
        cuda.require(need, f"a search by engine xbfs of {graph.n} vertices")
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
            **cuda.describe(),
        }
