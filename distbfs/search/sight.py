"""Restriction of a session's searches to a view, for each kind of loaded graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from distbfs.device import cuda
from distbfs.errors import UsageError
from distbfs.ranks.agreement import errors_of_all
from distbfs.search.choose import kind_of, no_masks
from distbfs.search.vertices import VertexMap, row_slices
from distbfs.search.view import PartViews, View, seen_ends

if TYPE_CHECKING:
    from distbfs.build.cuda.seen import SeenEdges, SeenMaker
    from distbfs.partition.part import Part
    from distbfs.search.held import Held
    from distbfs.search.masked_rows import MaskedRows
    from distbfs.search.runners.base import Runner
    from distbfs.types import AnyArray, Array, DeviceArray, Ids, Marks, World


class Masks(Protocol):
    """Makes masks of the visible edges of this rank's shares; methods are collective.

    everything: the masks of all edges, one for each share
    by_local: whether ``ends`` are by local id, else by the rows of the shards
    """

    everything: Sequence[Any]
    by_local: bool

    def of(self, view: View) -> Sequence[Any]:
        """Return a mask for each share; see ``runners.base.Runner.see``."""

    def ends(self, seen: Sequence[Any]) -> Sequence[AnyArray]:
        """Count the ends of visible edges at each vertex of each share."""


class Sight:
    """Hands views to a runner.

    vertices: the vertices of the graph; while a view is set, their ends of input tuples
    are the ends of visible edges, each of which counts once
    """

    def __init__(
        self, vertices: VertexMap, runner: Runner, engine: str, masks: Masks | None
    ) -> None:
        if masks is None or not kind_of(engine).masks:
            raise UsageError(no_masks(engine))
        self._all = self.vertices = vertices
        self._runner, self._masks = runner, masks

    def see(self, view: View | None) -> None:
        """Restrict later searches to a part of the graph; None: to all (collective)."""
        masks, here = self._masks, self._all.on_devices
        if view is None or here:  # which lets go of the bits there were
            self._runner.see(masks.everything)
        self.vertices = self._all
        if view is None:
            return
        memory = cuda.memory_of("a masked search") if here else nullcontext()
        with errors_of_all(self._all.world), memory:
            seen = masks.of(view)
            self._runner.see(seen)
        with errors_of_all(self._all.world), memory:
            ends = masks.ends(seen)
        self.vertices = with_ends(self._all, ends, by_local=masks.by_local)


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


class HostMasks:
    """Rows of the visible edges of parts in host memory."""

    by_local = False

    def __init__(self, world: World, held: Held) -> None:
        self._world = world
        self.everything: Sequence[Any] = held.parts
        self._outside = held.vertices.outside
        self._views: PartViews | None = None

    def of(self, view: View) -> list[Part]:
        """Return the parts with rows of the visible edges."""
        if self._views is None:
            self._views = PartViews(self._world, self.everything, self._outside)
        return self._views.of(view)

    def ends(self, seen: Sequence[Part]) -> list[Ids]:
        """Count the ends of visible edges, by the rows of the shards."""
        return seen_ends(self._world, seen)


class DeviceMasks:
    """Bits of the visible edges of rows on this rank's devices, possibly none.

    rows: returns the rows (collective), on first use
    """

    by_local = True

    def __init__(self, held: Held, rows: Callable[[], MaskedRows]) -> None:
        self._held, self._all, self._rows = held, held.vertices, rows
        self.everything: Sequence[Any] = [None] * len(self._all.shards)
        self._made: MaskedRows | None = None
        self._views: PartViews | None = None

    def of(self, view: View) -> list[Any]:
        """Return the visible edges of each device."""
        if not self.everything:  # another rank holds the graph
            return []
        if self._made is None:
            self._made = self._rows()
        return self._made.made(self._way(self._made, view))

    def ends(self, seen: Sequence[Any]) -> list[DeviceArray]:
        """Count the ends of visible edges at each local id, by device (collective)."""
        return [] if self._made is None else self._made.ends(seen)

    def _way(self, rows: MaskedRows, view: View) -> Callable[[SeenMaker], SeenEdges]:
        """Return a function that makes the edge bits of rows (collective)."""
        vertices, edges = view.vertices, view.edges
        if view.where is None and edges is None and vertices is not None:
            flags = self._inside(vertices)
            return lambda maker: maker.of_vertices(flags)
        if view.where is None and edges is not None and rows.whole:
            return lambda maker: maker.of_edges(edges, vertices)
        pairs = self._pairs(rows.world, view)
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

    def _pairs(self, world: World, view: View) -> Iterable[tuple[Array, Array]]:
        """Return the ends of all visible edges, internal ids (collective)."""
        if self._views is None:
            self._views = views_of_parts(world, self._held)
        own = SeenPairs(self._views, view, self._all.inside)
        if world.size == 1:
            return own
        pairs = []
        for ends in own:  # as many on each rank
            for every in world.allgather(np.concatenate(ends).astype(np.uint32)):
                u, v = every.reshape(2, -1)
                pairs.append((u, v))
        return pairs


class SeenPairs:
    """The ends of the visible edges of parts; see ``PartViews.pairs``.

    inside: returns the internal ids of input ids
    """

    def __init__(
        self, views: PartViews, view: View, inside: Callable[[Ids], Ids]
    ) -> None:
        views.check(view)
        self._views, self._view, self._inside = views, view, inside

    def __iter__(self) -> Iterator[tuple[Ids, Ids]]:
        for u, v in self._views.pairs(self._view):
            yield self._inside(u), self._inside(v)


def views_of_parts(world: World, held: Held) -> PartViews:
    """Return the maker of edge flags for parts in host memory (collective)."""
    if held.host_parts is None:
        raise UsageError("the edges of this graph are on devices alone")
    parts = held.host_parts()
    return PartViews(world, parts.parts, parts.vertices.outside)
