"""Restriction of a session's searches to a view, for each kind of loaded graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.errors import UsageError
from distbfs.ranks.agreement import errors_of_all
from distbfs.search.vertices import VertexMap, row_slices
from distbfs.search.view import PartViews, View, seen_ends

if TYPE_CHECKING:
    from distbfs.build.cuda.seen import SeenEdges, SeenMaker
    from distbfs.partition.part import Part
    from distbfs.search.held import Held
    from distbfs.search.masked_rows import MaskedRows
    from distbfs.search.runners.base import Runner
    from distbfs.types import AnyArray, DeviceArray, Ids, Marks


class Masks(ABC):
    """Restricts the searches of a session to views; methods are collective.

    held: the graph; everything: the masks of all edges, one for each share
    vertices: the vertices of the graph; while a view is set, their ends of input tuples
    are the ends of visible edges, each of which counts once
    by_local: whether ``ends`` are by local id, else by the rows of the shards
    """

    by_local = False

    def __init__(self, held: Held, everything: Sequence[Any]) -> None:
        self._held, self._everything = held, everything
        self._all = self.vertices = held.vertices
        self._views: PartViews | None = None

    @abstractmethod
    def of(self, view: View) -> Sequence[Any]:
        """Return a mask for each share; see ``runners.base.Runner.see``."""

    @abstractmethod
    def ends(self, seen: Sequence[Any]) -> Sequence[AnyArray]:
        """Count the ends of visible edges at each vertex of each share."""

    def see(self, runner: Runner, view: View | None) -> None:
        """Restrict later searches to a part of the graph; None: to all."""
        every, here = self._all, self._all.on_devices
        if view is None or here:  # which lets go of the bits there were
            runner.see(self._everything)
        self.vertices = every
        if view is None:
            return
        memory = cuda.memory_of("a masked search") if here else nullcontext()
        with errors_of_all(every.world), memory:
            seen = self.of(view)
            runner.see(seen)
        with errors_of_all(every.world), memory:
            ends = self.ends(seen)
        shards = [
            replace(shard, ends=mine, rows=None if self.by_local else shard.rows)
            for shard, mine in zip(every.shards, ends, strict=True)
        ]
        self.vertices = VertexMap(every.world, every.layout, shards, every.permutation)

    def _views_of(self, load: Callable[[], Held] | None) -> PartViews:
        """Return the maker of edge flags for parts in host memory, made once."""
        if self._views is None:
            if load is None:
                raise UsageError("the edges of this graph are on devices alone")
            vertices, parts = (held := load()).vertices, held.parts
            self._views = PartViews(vertices.world, parts, vertices.outside)
        return self._views


class HostMasks(Masks):
    """Rows of the visible edges of parts in host memory."""

    def __init__(self, held: Held) -> None:
        super().__init__(held, held.parts)

    def of(self, view: View) -> list[Part]:
        """Return the parts with rows of the visible edges."""
        return self._views_of(lambda: self._held).of(view)

    def ends(self, seen: Sequence[Part]) -> list[Ids]:
        """Count the ends of visible edges, by the rows of the shards."""
        return seen_ends(self._all.world, seen)


class DeviceMasks(Masks):
    """Bits of the visible edges of rows on this rank's devices, possibly none.

    rows: makes masks of the rows
    """

    by_local = True

    def __init__(self, held: Held, rows: MaskedRows) -> None:
        super().__init__(held, [None] * len(held.vertices.shards))
        self._rows = rows

    def of(self, view: View) -> list[Any]:
        """Return the visible edges of each device."""
        # another rank may hold the graph
        return self._rows.made(self._way(view)) if self._everything else []

    def ends(self, seen: Sequence[Any]) -> list[DeviceArray]:
        """Count the ends of visible edges at each local id, by device (collective)."""
        return self._rows.ends(seen) if self._everything else []

    def _way(self, view: View) -> Callable[[SeenMaker], SeenEdges]:
        """Return a function that makes the edge bits of rows (collective)."""
        rows, vertices, edges = self._rows, view.vertices, view.edges
        if view.where is None and edges is None and vertices is not None:
            flags = self._inside(vertices)
            return lambda maker: maker.of_vertices(flags)
        if view.where is None and edges is not None and rows.whole:
            return lambda maker: maker.of_edges(edges, vertices)
        views = self._views_of(self._held.host_parts)
        own = SeenPairs(views, view, self._all.inside)
        if rows.world.size == 1:
            return lambda maker: maker.of_pairs(own)
        pairs = []
        for ends in own:  # as many on each rank
            for every in rows.world.allgather(np.concatenate(ends).astype(np.uint32)):
                u, v = every.reshape(2, -1)
                pairs.append((u, v))
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
