"""Many searches in one traversal over the parts of all ranks: the loop over levels.

Each bit of a word stands for a search; every vertex has a word of the searches that
have visited it. Each level moves the words of the frontier along the edges of a part,
and between parts: words of delegates are ORed over all parts, and words of outer ends
go to their owners. Parts lie in host memory (``part_bits``) or on devices
(``domain_bits``).

Source: Then et al., The more the merrier, VLDB 2014.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import SearchStopped
from distbfs.exchange.router import gather
from distbfs.multisearch.base import SUMS

if TYPE_CHECKING:
    from distbfs.multisearch.base import RunOptions
    from distbfs.search.session import Session
    from distbfs.types import Array, Ids, Stop, World

MOST_SEARCHES = 512  # of a traversal, on hosts as on devices


@dataclass(frozen=True)
class Wanted:
    """The results that are wanted from a traversal.

    levels, counts: make these methods of ``PartSearches`` available
    sums: names in ``base.SUMS``; limit: the last level to search
    stop: function that is called before each level; SearchStopped is raised on all
    ranks if it returns True on one
    direction: of levels in host memory: auto, push or pull
    continued: whether sums are added to those of the run before
    """

    levels: bool = False
    counts: bool = True
    sums: tuple[str, ...] = ()
    limit: int | None = None
    stop: Stop | None = None
    direction: str = "auto"
    continued: bool = False


class PartSearches(ABC):
    """Searches the parts of all ranks, from as many sources as memory allows.

    Methods are collective; the memory of searches is kept from run to run.

    session: the session whose parts are searched; None for one whole graph, whose local
    ids are those of sources and results
    lanes: number of lanes of a word, 0 before memory is allocated; width: the most
    searches of a traversal
    deepest: largest level of the last traversal
    """

    lanes = 0
    width: int
    deepest: int

    def __init__(self, world: World, session: Session | None) -> None:
        self._world, self._session = world, session
        self._count = 0  # searches of the last run
        self._edges = 0  # out of the frontier, of all parts
        self._wanted = Wanted()

    def run_first(self, sources: Ids, options: RunOptions, wanted: Wanted) -> int:
        """Search from the first of the sources, ids int64 [k]; return their number.

        options: only ``batch``, ``memory`` and ``threads`` count here
        """
        size = min(options.batch or MOST_SEARCHES, MOST_SEARCHES, len(sources))
        self._fit(size, options, wanted)
        some, session = sources[: min(size, self.width)], self._session
        self.run(some if session is None else session.vertices.inside(some), wanted)
        return len(some)

    @abstractmethod
    def _fit(self, size: int, options: RunOptions, wanted: Wanted) -> None:
        """Have memory for ``size`` searches, or for as many as fit."""

    def narrow(self) -> bool:
        """Halve the number of sources at once, as memory ran out.

        Returns False if they are as few as they can be.
        """
        return False

    @abstractmethod
    def reversed(self) -> PartSearches:
        """Return searches along reversed edges of a directed graph.

        These searches must not run at the same time.
        """

    def dependencies_of_first(
        self, sources: Ids, options: RunOptions
    ) -> tuple[list[Array], int]:
        """Return the dependencies of the first ones of ``sources``, and their number.

        They are summed over these sources: float64 by local id, for each part (Brandes
        2001). sources, options: as in ``run_first``; ``stop`` counts as well. By
        default a separate search of the session finds the dependencies of one source.
        """
        session = self._session
        if session is None:
            raise ValueError("there is no session")
        result = session.search(int(sources[0]), parents=False, stop=options.stop)
        return session.paths.dependencies([level for level, _ in result.shards]), 1

    def run(self, sources: Ids, wanted: Wanted) -> None:
        """Search from up to ``width`` vertices, internal ids int64 [k]."""
        self._count, self._wanted = len(sources), wanted
        self._begin(sources, wanted)
        self.deepest = self._search(wanted)

    def _search(self, wanted: Wanted) -> int:
        """Search level by level; return the largest level."""
        depth, size = 0, self._next(0, wanted.stop)
        while size and depth != wanted.limit:
            self._world.doing = f"level {depth}"
            depth += 1
            self._make_room(depth)
            self._push(depth)
            size = self._next(depth, wanted.stop)
        self._world.doing = ""
        return depth if size or not depth else depth - 1

    def _next(self, depth: int, stop: Stop | None) -> int:
        """Make the pushed bits the frontier; count its vertices on all ranks."""
        queued, edges = self._settle(depth)
        asked = stop is not None and stop()
        own = np.array([queued, edges, asked], dtype=np.int64)
        queued, self._edges, stopped = self._world.allreduce(own).tolist()
        if stopped:
            self._world.doing = ""
            raise SearchStopped(f"the searches were stopped at level {depth}")
        return queued

    def counts(self) -> Array:
        """Return the number of vertices by search and level, int64 [k, levels]."""
        if not self._wanted.counts:
            raise ValueError("counts were not requested")
        own = np.ascontiguousarray(self._own_counts()[:, : self._count].T)
        return self._world.allreduce(own)[:, : self.deepest + 1]

    def _by_id(self, shards: Sequence[Array], dtype: type[np.number[Any]]) -> Array:
        """Convert values by local id of each part to [n] on rank 0, [0] on others."""
        if self._session is None:
            return shards[0]
        block = self._session.vertices.block(shards, dtype)
        return np.concatenate(gather(self._world, block))

    def sum_by_id(self, name: str) -> Array:
        """Return a sum of ``base.SUMS`` by id, [n] on rank 0, [0] on others."""
        return self._by_id(self.sums(name), np.dtype(SUMS[name]).type)

    def put_levels(self, out: Array) -> None:
        """Write levels by id to ``out``, [k, n]; if it is unsigned, reachability."""
        for search, row in enumerate(out):
            level = self._by_id(self.levels(search), np.int32)
            row[...] = level if out.dtype.kind == "i" else level >= 0

    def tail_counts(self) -> dict[str, int]:
        """Return the tail reads of the last run on all ranks (collective).

        Their names are those of ``TAIL_COUNTS``; the result is empty if no row has a
        tail.
        """
        return {}

    @abstractmethod
    def _begin(self, sources: Ids, wanted: Wanted) -> None:
        """Forget all searches; put the sources on level 0."""

    @abstractmethod
    def _make_room(self, depth: int) -> None:
        """Allocate room for a level."""

    @abstractmethod
    def _push(self, depth: int) -> None:
        """Move words from the frontier to a level, inside parts and between them."""

    @abstractmethod
    def _settle(self, depth: int) -> tuple[int, int]:
        """Make the new bits in a level's words the frontier.

        Returns the number of its vertices, and of the edges out of them if they are
        counted.
        """

    @abstractmethod
    def _own_counts(self) -> Array:
        """Count this rank's vertices by level and search, int64 [levels, …]."""

    @abstractmethod
    def levels(self, search: int) -> list[Array]:
        """Return the levels of a search, integers, of each part by local id."""

    @abstractmethod
    def levels_at(self, searches: Ids, vertices: Ids) -> Array:
        """Return the level of each vertex in each search, int32 [k]; -1 = unreached.

        searches: numbers of searches of the last run; vertices: internal ids; both
        int64 [k]. Both and the result are equal on all ranks.
        """

    @abstractmethod
    def sums(self, name: str) -> list[Array]:
        """Return sums of ``base.SUMS`` of each part by local id."""
