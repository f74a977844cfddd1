"""Restriction of a session's searches to a view, on devices; see ``sight``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from distbfs.build.cuda.seen import SeenEdges, SeenMaker
from distbfs.device import cuda
from distbfs.partition.share import numbers_of, positions_of
from distbfs.search.sight import Masks
from distbfs.search.vertices import row_slices

if TYPE_CHECKING:
    from distbfs.partition.share import Share
    from distbfs.search.held import Held
    from distbfs.search.vertices import VertexMap
    from distbfs.search.view import View
    from distbfs.types import DeviceArray, Ids, Marks, World


class DeviceMasks(Masks):
    """Bits of the visible edges of rows, on each device of this rank.

    vertices, load: see ``Masks``
    world: the ranks that have the rows; shares: those of this rank, possibly none
    """

    by_local = True

    def __init__(
        self,
        vertices: VertexMap,
        load: Callable[[], Held],
        world: World,
        shares: Sequence[Share],
    ) -> None:
        super().__init__(vertices, [None] * len(shares), load)
        self._world, self._shares = world, shares

    @cached_property
    def _makers(self) -> list[tuple[SeenMaker, SeenMaker | None]]:
        makers = []
        for share in self._shares:
            with share.ids.device, cuda.memory_of("the ids of other domains"):
                outer = None if share.out.outer is None else SeenMaker.of_outer(share)
                makers.append((SeenMaker.of_share(share), outer))
        return makers

    def of(self, view: View) -> list[SeenEdges]:
        """Return the visible edges of each device."""
        # another rank may hold the graph
        return self.made(self._way(view)) if self._shares else []

    def made(self, make: Callable[[SeenMaker], SeenEdges]) -> list[SeenEdges]:
        """Return the visible edges of each device; make returns the bits of rows."""
        seen = []
        for share, (inner, outer) in zip(self._shares, self._makers, strict=True):
            with share.ids.device:
                seen.append(make(inner))
                seen[-1].outer = None if outer is None else make(outer)
        return seen

    def _way(self, view: View) -> Callable[[SeenMaker], SeenEdges]:
        """Return a function that makes the edge bits of rows (collective)."""
        world, vertices, edges = self._world, view.vertices, view.edges
        if view.where is None and edges is None and vertices is not None:
            flags = self._inside(vertices)
            return lambda maker: maker.of_vertices(flags)
        first = self._shares[0]
        alone = world.size == len(self._shares) == first.domain.devices == 1
        if view.where is None and edges is not None and alone and not first.out.outer:
            return lambda maker: maker.of_edges(edges, vertices)
        self.views().check(view)
        if world.size == 1:
            return lambda maker: maker.of_pairs(lambda: self._pairs(view))
        pairs = []
        for ends in self._pairs(view):  # as many on each rank
            for every in world.allgather(np.concatenate(ends).astype(np.uint32)):
                u, v = every.reshape(2, -1)
                pairs.append((u, v))
        return lambda maker: maker.of_pairs(lambda: pairs)

    def _pairs(self, view: View) -> Iterator[tuple[Ids, Ids]]:
        """Yield internal ids of the ends of visible edges; see ``PartViews.pairs``."""
        for u, v in self.views().pairs(view):
            yield self._all.inside(u), self._all.inside(v)

    def _inside(self, flags: Marks) -> Marks:
        """Return flags by internal id, bool [n]."""
        if self._all.permutation is None:
            return flags
        turned = np.zeros(len(flags), np.bool_)
        for some in row_slices(len(flags)):
            ids = np.arange(some.start, some.stop)
            turned[self._all.inside(ids)] = flags[some]
        return turned

    def ends(self, seen: Sequence[SeenEdges]) -> list[DeviceArray]:
        """Count the ends of visible edges at each local id, by device (collective).

        The ends at a delegate are summed over all domains. In a directed graph, both
        ends of an edge count where it leaves.
        """
        if not self._shares:
            return []
        positions = np.arange(len(self._shares[0].delegates))
        of_delegates = np.zeros(len(positions), np.int64)
        for share, edges in zip(self._shares, seen, strict=True):
            device, numbers = numbers_of(positions, share.domain.devices)
            here, rows = device == share.device, edges.ends[: share.normals].get()
            # mutant: += -> = : test_between_domains_of_one_device
            of_delegates[here] += rows[numbers[here]]
        of_delegates = self._world.allreduce(of_delegates)
        every = []
        for share, edges in zip(self._shares, seen, strict=True):
            owned, vertices = share.owned, share.vertices
            places = positions_of(owned, share.device, share.domain.devices)
            with share.ids.device:
                cp = cuda.cupy()
                ends = cp.zeros(share.n, np.uint32)
                normals = edges.ends[share.normals :]
                if edges.outer is not None:
                    normals = normals + edges.outer.ends
                ends[vertices[share.normals :]] = normals
                of_owned = cp.asarray(of_delegates[places].astype(np.uint32))
                ends[vertices[cp.asarray(owned)]] = of_owned
                # mutant: 1 + share.directed -> 1
                #   : test_masked_sessions::test_one_device
                ends *= np.uint32(1 + share.directed)
                every.append(ends)
        return every
