"""How a session's searches come to see a view: made for what holds the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from distbfs.build.cuda.seen import SeenMaker
from distbfs.device import cuda
from distbfs.errors import DistbfsError, UsageError
from distbfs.exchange.agreement import first_reason
from distbfs.exchange.world import SoloWorld
from distbfs.search.choose import kind_of, no_masks
from distbfs.search.vertices import VertexMap
from distbfs.search.view import PartViews, View, seen_ends

if TYPE_CHECKING:
    from distbfs.graph.device_graph import DeviceGraph
    from distbfs.search.runners.base import Runner
    from distbfs.search.session import Held
    from distbfs.types import AnyArray, Ids, World


class Sight(Protocol):
    """Hands views to a runner.

    vertices: those of the graph; while a view is seen, ends of input tuples are those
        of edges that are seen, each counted once
    """

    vertices: VertexMap

    def see(self, view: View | None) -> None:
        """See some of the graph in later searches; None: all (collective)."""


def sight_of(world: World, held: Held, runner: Runner, engine: str) -> Sight:
    """Return the maker of views for a graph; UsageError where there is none."""
    if not kind_of(engine).masks:
        raise UsageError(no_masks(engine))
    if held.parts:
        return PartSight(world, held, runner)
    if held.host_parts is not None:
        return GraphSight(world, held, runner)
    raise UsageError(
        f"engine {engine} takes masks on one device, and this graph is searched by "
        "several; ask for devices 1, or for engine openmp"
    )


def with_ends(vertices: VertexMap, ends: Sequence[AnyArray]) -> VertexMap:
    """Return the vertices of a graph with other ends, one array for each shard."""
    shards = [
        replace(shard, ends=mine)
        for shard, mine in zip(vertices.shards, ends, strict=True)
    ]
    return VertexMap(vertices.world, vertices.layout, shards, vertices.permutation)


class PartSight:
    """Views of parts in host memory."""

    def __init__(self, world: World, held: Held, runner: Runner) -> None:
        self._world, self._parts, self._runner = world, held.parts, runner
        self._all = self.vertices = held.vertices
        self._views = PartViews(world, held.parts, held.vertices.outside)

    def see(self, view: View | None) -> None:
        """See some of the graph in later searches; None: all (collective)."""
        if view is None:
            self._runner.see(self._parts)
            self.vertices = self._all
            return
        parts = self._views.of(view)
        self._runner.see(parts)
        self.vertices = with_ends(self._all, seen_ends(self._world, parts))


class GraphSight:
    """Views of a graph on one device, of this rank or of rank 0 for all."""

    def __init__(self, world: World, held: Held, runner: Runner) -> None:
        self._world, self._held, self._runner = world, held, runner
        self._all = self.vertices = held.vertices
        self._maker: SeenMaker | None = None
        self._views: PartViews | None = None

    def see(self, view: View | None) -> None:
        """See some of the graph in later searches; None: all (collective)."""
        problem: DistbfsError | None = None
        self.vertices = self._all
        try:
            if self._held.graph is not None:
                self._see(self._held.graph, view)
        except DistbfsError as error:
            problem = error
        reason = first_reason(self._world, str(problem or ""))
        if problem is not None:
            raise problem
        if reason:
            raise UsageError(reason)

    def _see(self, graph: DeviceGraph, view: View | None) -> None:
        self._runner.see([None])  # which lets go of the bits there were
        if view is None:
            return
        with cuda.memory_of("a masked search"):
            if self._maker is None:
                self._maker = SeenMaker(graph)
            if view.edges is None and view.where is None and view.vertices is not None:
                seen = self._maker.of_vertices(view.vertices)
            else:
                seen = self._maker.of_pairs(Pairs(self._views_of_parts(), view))
            self._runner.see([seen])
            ends = cuda.cupy().zeros(graph.n, np.uint32)
            ends[graph.vertices] = seen.ends
        self.vertices = with_ends(self._all, [ends])

    def _views_of_parts(self) -> PartViews:
        """Return the maker of flags for stored edges, in host memory."""
        if self._views is None:
            if self._held.host_parts is None:
                raise UsageError("the edges of this graph are on a device alone")
            held = self._held.host_parts()
            outside = held.vertices.outside
            self._views = PartViews(SoloWorld(), held.parts, outside)
        return self._views


class Pairs:
    """The ends of the edges that are seen of parts; see ``PartViews.pairs``."""

    def __init__(self, views: PartViews, view: View) -> None:
        views.check(view)
        self._views, self._view = views, view

    def __iter__(self) -> Iterator[tuple[Ids, Ids]]:
        return self._views.pairs(self._view)
