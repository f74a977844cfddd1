"""Restriction of a session's searches to a view, for each kind of loaded graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from distbfs.device import cuda
from distbfs.errors import DistbfsError, UsageError
from distbfs.ranks.agreement import first_reason
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import kind_of, no_masks
from distbfs.search.vertices import VertexMap, row_slices
from distbfs.search.view import PartViews, View, seen_ends

if TYPE_CHECKING:
    from distbfs.build.cuda.seen import SeenEdges, SeenMaker
    from distbfs.graph.device_graph import DeviceGraph
    from distbfs.search.held import Held
    from distbfs.search.masked_rows import MaskedRows
    from distbfs.search.runners.base import Runner
    from distbfs.types import AnyArray, Array, Ids, Marks, World


class Sight(Protocol):
    """Hands views to a runner.

    vertices: the vertices of the graph; while a view is set, their ends of input tuples
    are the ends of visible edges, each of which counts once
    """

    vertices: VertexMap

    def see(self, view: View | None) -> None:
        """Restrict later searches to a part of the graph; None: to all (collective)."""


def sight_of(
    world: World,
    held: Held,
    runner: Runner,
    engine: str,
    rows: Callable[[], MaskedRows] | None,
) -> Sight:
    """Return the ``Sight`` of a graph; UsageError if the engine has no masks.

    rows: returns the rows of this rank's devices (collective), None unless several
    devices search
    """
    if not kind_of(engine).masks:
        raise UsageError(no_masks(engine))
    if held.parts:
        return PartSight(world, held, runner)
    if rows is not None:
        return DevicesSight(world, held, runner, rows())
    return GraphSight(world, held, runner)


def with_ends(
    vertices: VertexMap, ends: Sequence[AnyArray], *, by_local: bool
) -> VertexMap:
    """Return the vertices of a graph with new ends, one array for each shard.

    by_local: whether ends are indexed by local id, else by the rows of the old ends
    """
    shards = [
        replace(shard, ends=mine, rows=None if by_local else shard.rows)
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
        """Restrict later searches to a part of the graph; None: to all (collective)."""
        if view is None:
            self._runner.see(self._parts)
            self.vertices = self._all
            return
        parts = self._views.of(view)
        self._runner.see(parts)
        ends = seen_ends(self._world, parts)
        self.vertices = with_ends(self._all, ends, by_local=False)


class GraphSight:
    """Views of a graph on one device, of this rank, or of rank 0 for all ranks."""

    def __init__(self, world: World, held: Held, runner: Runner) -> None:
        self._world, self._held, self._runner = world, held, runner
        self._all = self.vertices = held.vertices
        self._maker: SeenMaker | None = None
        self._views: PartViews | None = None

    def see(self, view: View | None) -> None:
        """Restrict later searches to a part of the graph; None: to all (collective)."""
        self.vertices = self._all
        with errors_of_all(self._world):
            if self._held.graph is not None:
                self._see(self._held.graph, view)

    def _see(self, graph: DeviceGraph, view: View | None) -> None:
        from distbfs.build.cuda import seen as masking  # noqa: PLC0415 - of CUDA

        self._runner.see([None])  # which lets go of the bits there were
        if view is None:
            return
        with cuda.memory_of("a masked search"):
            if self._maker is None:
                self._maker = masking.SeenMaker(masking.rows_of_graph(graph))
            if view.where is None and view.edges is not None:
                seen = self._maker.of_edges(view.edges, view.vertices)
            elif view.where is None and view.vertices is not None:
                seen = self._maker.of_vertices(view.vertices)
            else:
                seen = self._maker.of_pairs(SeenPairs(self._views_of_parts(), view))
            self._runner.see([seen])
            ends = cuda.cupy().zeros(graph.n, np.uint32)
            each = np.uint32(1 + graph.directed)  # both at the vertex that it leaves
            # mutant: seen.ends * each -> seen.ends
            #   : test_masked_sessions::test_one_device
            ends[graph.vertices] = seen.ends * each
        self.vertices = with_ends(self._all, [ends], by_local=True)

    def _views_of_parts(self) -> PartViews:
        """Return the maker of flags for stored edges, in host memory."""
        if self._views is None:
            self._views = views_of_parts(SoloWorld(), self._held)
        return self._views


@contextmanager
def errors_of_all(world: World) -> Iterator[None]:
    """Raise an error of this rank, or else one of another, at the end (collective)."""
    problem: DistbfsError | None = None
    try:
        yield
    except DistbfsError as error:
        problem = error
    reason = first_reason(world, str(problem or ""))
    if problem is not None:
        raise problem
    if reason:
        raise UsageError(reason)


def views_of_parts(world: World, held: Held) -> PartViews:
    """Return the maker of edge flags for parts in host memory (collective)."""
    if held.host_parts is None:
        raise UsageError("the edges of this graph are on devices alone")
    parts = held.host_parts()
    return PartViews(world, parts.parts, parts.vertices.outside)


class DevicesSight:
    """Views of a graph on the devices of all ranks; rows: of this rank's devices."""

    def __init__(
        self, world: World, held: Held, runner: Runner, rows: MaskedRows
    ) -> None:
        self._world, self._held, self._runner, self._rows = world, held, runner, rows
        self._all = self.vertices = held.vertices
        self._views: PartViews | None = None

    def see(self, view: View | None) -> None:
        """Restrict later searches to a part of the graph; None: to all (collective)."""
        self._runner.see([None] * len(self._all.shards))  # lets go of the bits
        self.vertices = self._all
        if view is None:
            return
        make = self._way(view)
        seen: list[Any] = []
        with errors_of_all(self._world), cuda.memory_of("a masked search"):
            seen = self._rows.made(make)
            self._runner.see(seen)
        ends = self._rows.ends(seen)
        self.vertices = with_ends(self._all, ends, by_local=True)

    def _way(self, view: View) -> Callable[[SeenMaker], SeenEdges]:
        """Return a function that makes the edge bits of rows (collective)."""
        if view.edges is None and view.where is None and view.vertices is not None:
            flags = self._inside(view.vertices)
            return lambda maker: maker.of_vertices(flags)
        pairs = self._pairs(view)
        return lambda maker: maker.of_pairs(pairs)

    def _inside(self, flags: Marks) -> Marks:
        """Return flags by internal id, bool [n]."""
        if self._all.permutation is None:
            return flags
        turned = np.zeros(len(flags), np.bool_)
        for some in row_slices(len(flags)):
            ids = np.arange(some.start, some.stop)
            turned[self._all.inside(ids)] = flags[some]
        return turned

    def _pairs(self, view: View) -> list[tuple[Array, Array]]:
        """Return the ends of all visible edges, internal ids (collective)."""
        if self._views is None:
            self._views = views_of_parts(self._world, self._held)
        self._views.check(view)
        pairs = []
        for ends in self._views.pairs(view):  # as many on each rank
            own = np.concatenate([self._all.inside(x) for x in ends])
            for every in self._world.allgather(own.astype(np.uint32)):
                u, v = every.reshape(2, -1)
                pairs.append((u, v))
        return pairs


class SeenPairs:
    """The ends of the visible edges of parts; see ``PartViews.pairs``."""

    def __init__(self, views: PartViews, view: View) -> None:
        views.check(view)
        self._views, self._view = views, view

    def __iter__(self) -> Iterator[tuple[Ids, Ids]]:
        return self._views.pairs(self._view)
