"""How a session's searches come to see a view: made for what holds the graph."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from distbfs.errors import UsageError
from distbfs.search.choose import kind_of
from distbfs.search.vertices import VertexMap
from distbfs.search.view import PartViews, View, seen_ends

if TYPE_CHECKING:
    from distbfs.search.runners.base import Runner
    from distbfs.search.session import Held
    from distbfs.types import Array, World


class Sight(Protocol):
    """Hands views to a runner.

    vertices: those of the graph; while a view is seen, ends of input tuples are those
        of edges that are seen, each counted once
    """

    vertices: VertexMap

    def see(self, view: View | None) -> None:
        """See some of the graph in later searches; None: all (collective)."""


def sight_of(world: World, held: Held, runner: Runner, engine: str) -> Sight:
    """Return what makes views for a graph; UsageError where nothing does."""
    if not kind_of(engine).masks:
        raise UsageError(
            f"engine {engine} sees all vertices and edges; masks are for engines "
            "openmp and reference"
        )
    if held.parts:
        return PartSight(world, held, runner)
    raise UsageError(
        f"engine {engine} takes no masks here; allowed: engines openmp and reference"
    )


def with_ends(vertices: VertexMap, ends: list[Array]) -> VertexMap:
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
