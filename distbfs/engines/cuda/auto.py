"""The engine that ``--engine auto`` stands for on one device: chosen for each graph."""

from __future__ import annotations

from typing import Any

from distbfs import registry
from distbfs.device import cuda
from distbfs.engines.base import DeviceSearch
from distbfs.engines.cuda.choice import Chosen, Shape, choose_engine
from distbfs.engines.cuda.knobs import degrees_of
from distbfs.engines.cuda.xbfs import XbfsEngine
from distbfs.graph.device_graph import DeviceGraph
from distbfs.options import SearchOptions

OWN = ("method", "stepwise")  # of engine xbfs


class AutoEngine(XbfsEngine):
    """Engine xbfs until a graph is there; then what ``choice`` takes for it.

    ``chosen``: what was taken for the last graph, None where there was no choice:
    options of xbfs were given, or pulls alone asked for.
    """

    def __init__(self, options: SearchOptions) -> None:
        super().__init__(options)
        self.chosen: Chosen | None = None
        self._taken: Any = None
        usual = SearchOptions()
        self._free = options.direction != "pull" and all(
            getattr(options, name) == getattr(usual, name) for name in OWN
        )

    def on_graph(self, graph: DeviceGraph) -> DeviceSearch:
        """Prepare the searches of a graph by the engine that suits it.

        One search is run to see how many levels there are.
        """
        search = super().on_graph(graph)
        if not self._free or not graph.active:
            return search
        root = int(graph.vertices[0])
        levels = search.search(root).levels
        shape = Shape(degrees_of(graph), levels, graph.m)
        push_only = self.options.direction == "push"
        self.chosen = choose_engine(shape, push_only=push_only)
        if self.chosen.engine == "xbfs":
            return search
        del search
        cuda.release()
        kind = registry.lookup(registry.ENGINES, "engine", self.chosen.engine)
        o = self.options
        options = SearchOptions(
            engine=self.chosen.engine,
            method=self.chosen.method,
            threads=o.threads,
            parents=o.parents,
            direction=o.direction,
            internal_ids=o.internal_ids,
        )
        self._taken = kind(options)
        found: DeviceSearch = self._taken.on_graph(graph)
        return found

    def describe(self) -> dict[str, Any]:
        """Return what the engine runs on, for reports; ``chosen_for``: why this one."""
        told = super().describe() if self._taken is None else self._taken.describe()
        return told | ({"chosen_for": self.chosen.why} if self.chosen else {})
