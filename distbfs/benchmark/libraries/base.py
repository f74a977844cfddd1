"""The contract of other libraries, with which engines are compared."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

import numpy as np

from distbfs import registry
from distbfs.build.host.rows import collect
from distbfs.engines.base import Query
from distbfs.errors import LibraryMissing, UsageError
from distbfs.graph.keys import BOTH, FORTH
from distbfs.options import SearchOptions
from distbfs.partition.layout import Layout
from distbfs.ranks.world import SoloWorld
from distbfs.search.held import Held
from distbfs.search.runners.base import Found, Runner
from distbfs.search.session import Session
from distbfs.search.vertices import Shard, VertexMap
from distbfs.timing import Stopwatch
from distbfs.types import Ids, Levels, Root, TupleSource, World


@dataclass(frozen=True)
class LibraryRows:
    """A graph by input ids, without loops and repeats.

    offsets: int64 [n + 1]; columns: int32 [m], ascending in each row
    directed: whether rows have only the edges that leave a vertex
    """

    offsets: Ids
    columns: Levels
    directed: bool = False

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.offsets) - 1

    @property
    def m(self) -> int:
        """Number of stored directed edges."""
        return len(self.columns)

    def pairs(self) -> tuple[Levels, Levels]:
        """Return each edge once, int32 (u, v); in a symmetric graph, u < v."""
        u = np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.offsets))
        once = (u < self.columns) | self.directed
        return u[once], self.columns[once]


def rows_of(source: TupleSource, *, directed: bool = False) -> LibraryRows:
    """Build rows from edge tuples; raise UsageError for 2^31 vertices or more.

    directed: whether tuples lead only from their first end to their second
    """
    n = source.n
    if n >= 1 << 31:
        raise UsageError(f"peers search fewer than 2^31 vertices, not {n}")
    way = FORTH if directed else BOTH
    rows = collect(source, SoloWorld(), 1, [0], None, Stopwatch(), way)[0]
    return LibraryRows(rows.offsets, rows.columns.view(np.int32), directed)


class Library(Protocol):
    """Another library's breadth-first search, called in its fastest way.

    module: the module to import; called: the call and the library, for reports
    ``__init__`` takes ``LibraryRows`` and is not timed
    """

    module: ClassVar[str]
    called: ClassVar[str]

    def __init__(self, rows: LibraryRows) -> None: ...

    def search(self, root: int) -> Any:
        """Search from a vertex; only this call is timed, until it has completed."""

    def levels(self, answer: Any, root: int) -> Levels:
        """Convert the answer of ``search`` to levels, int32 [n], -1 = unreached."""


def installed() -> list[str]:
    """Return the names of the installed libraries."""
    names = []
    for name in registry.LIBRARIES:
        kind: Any = registry.lookup(registry.LIBRARIES, "peer", name)
        if find_spec(kind.module) is not None:
            names.append(name)
    return names


ONE_SOURCE = "a library searches from one vertex, not from several sources"


class LibrarySearch(Runner):
    """Searches by a library; ``seconds`` is the time of the library's call."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def answer(self, root: Root, query: Query) -> Found:  # noqa: ARG002
        """Search from an id until no vertex is left; returns levels only."""
        if isinstance(root, np.ndarray):
            raise UsageError(ONE_SOURCE)
        began = time.perf_counter()
        answer = self._library.search(root)
        seconds = time.perf_counter() - began
        level = self._library.levels(answer, root)
        return Found([level], [None], int(level.max()) + 1, seconds)


def library_session(world: World, name: str, rows: LibraryRows) -> Session:
    """Return a session that searches by a library; LibraryMissing without it."""
    kind: Any = registry.lookup(registry.LIBRARIES, "peer", name)
    if find_spec(kind.module) is None:
        raise LibraryMissing(
            f"peer {name} needs {kind.module}, which is not installed; installed: "
            f"{', '.join(installed()) or 'none'}"
        )
    library: Library = kind(rows)
    degrees = np.diff(rows.offsets)
    ends = degrees * (1 + rows.directed)
    shard = Shard(0, ends, None, lambda ids: degrees[ids] > 0)
    held = Held(VertexMap(world, Layout(rows.n, 1), [shard]), edges=rows.m)
    method = f"{kind.called} {import_module(kind.module).__version__}"
    about = {"engine": name, "method": method, "peer": True}
    runner = LibrarySearch(library)
    options = SearchOptions(engine=name, parents=False)
    return Session(
        world, held, runner, options, describe=lambda: about, one_source=ONE_SOURCE
    )
