"""Restriction of a session's searches to a view, for each kind of loaded graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distbfs.device import cuda
from distbfs.ranks.agreement import errors_of_all
from distbfs.search.vertices import VertexMap
from distbfs.search.view import PartViews, View, seen_ends

if TYPE_CHECKING:
    from distbfs.partition.part import Part
    from distbfs.search.held import Held
    from distbfs.search.runners.base import Runner
    from distbfs.types import AnyArray, Ids


class Masks(ABC):
    """Restricts the searches of a session to views; methods are collective.

    vertices: the vertices of the graph; while a view is set, their ends of input tuples
    are the ends of visible edges, each of which counts once
    everything: the masks of all edges, one for each share
    load: returns the graph as parts in host memory, with its attributes
    by_local: whether ``ends`` are by local id, else by the rows of the shards
    """

    by_local = False

    def __init__(
        self, vertices: VertexMap, everything: Sequence[Any], load: Callable[[], Held]
    ) -> None:
        self._everything, self._load = everything, load
        self._all = self.vertices = vertices
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

    def views(self) -> PartViews:
        """Return the maker of edge flags, made once (collective)."""
        if self._views is None:
            vertices, parts = (held := self._load()).vertices, held.parts
            self._views = PartViews(vertices.world, parts, vertices.outside)
        return self._views


class HostMasks(Masks):
    """Rows of the visible edges of parts in host memory."""

    def __init__(self, held: Held) -> None:
        super().__init__(held.vertices, held.parts, lambda: held)

    def of(self, view: View) -> list[Part]:
        """Return the parts with rows of the visible edges."""
        return self.views().of(view)

    def ends(self, seen: Sequence[Part]) -> list[Ids]:
        """Count the ends of visible edges, by the rows of the shards."""
        return seen_ends(self._all.world, seen)
