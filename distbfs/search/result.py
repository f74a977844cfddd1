"""What one search found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from distbfs.errors import UsageError, WrongTypeError
from distbfs.search.frames import (
    arrow_table,
    html_table,
    pandas_frame,
    polars_frame,
    whole_names,
)
from distbfs.search.paths import NO_PATHS
from distbfs.search.result_paths import ResultPaths
from distbfs.search.sources import described
from distbfs.search.vertices import (
    VertexMap,
    array_module,
    device_of,
    row_slices,
    values_of,
)
from distbfs.types import AnyArray, Array, Ids, Root, Take, slice_bounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from distbfs.search.parents import ParentCost
    from distbfs.search.paths import PathFinder
    from distbfs.search.runners.base import Found


class Names(Protocol):
    """What vertices are called where that is not their id."""

    def id_of(self, vertex: Any) -> int:
        """Return the id of a vertex; UsageError where there is none."""

    def named(self, ids: Array) -> Array:
        """Return what vertices int64 [k] are called, [k]."""

    def __contains__(self, vertex: object) -> bool: ...


Value = TypeVar("Value")
NO_PREDECESSOR = -9999  # of SciPy


def once(method: Callable[[Result], Value]) -> Callable[[Result], Value]:
    """Keep what a method of a result returns; ranks call it in the same order."""
    name = method.__name__

    @wraps(method)
    def call(result: Result) -> Value:
        kept: dict[str, Any] = result._kept
        if name not in kept:
            kept[name] = method(result)
        value: Value = kept[name]
        return value

    return call


class Result(ResultPaths):
    """Levels and parents of one search, where they were found.

    source: the vertex, or the set, that was searched from, as the caller named it
    roots: int64 [k], its ids, rising, each once; root: the first, of a vertex the one
    seconds: device time of the slowest device, else the wall time of the slowest rank
    wall_seconds: that wall time, None where it is ``seconds``
    records: one JSON-like dict a level, where records were asked for
    phases: this rank's seconds by phase; engine: what searched
    has_parents: whether parents were found too
    order: int64 [reached], ids as a queue finds them, or None (method "ordered")

    Arrays are indexed by vertex id and hold -1 for what was not reached; each root is
    its own parent, at level 0.  They are overwritten by the session's next search:
    ``keep`` returns a result that is not.  Of a session of several ranks, properties
    and methods but ``keep`` are collective, and equal on all ranks where nothing else
    is said.
    """

    def __init__(
        self,
        vertices: VertexMap,
        outcome: Found,
        root: Root,
        *,
        parents: bool,
        seconds: float,
        wall_seconds: float | None = None,
        source: Any = None,
        engine: str = "",
        names: Names | None = None,
        valid: Callable[[], bool] = lambda: True,
        take: Take = values_of,
        paths: PathFinder = NO_PATHS,
    ) -> None:
        self._paths = paths
        self._vertices, self._outcome, self._names = vertices, outcome, names
        self._valid, self._take = valid, take
        self._kept: dict[str, Any] = {}
        self.roots: Ids = np.atleast_1d(np.asarray(root, dtype=np.int64))
        self.root = int(self.roots[0])
        self.source = root if source is None else source
        self.seconds, self.wall_seconds = seconds, wall_seconds
        self.records, self.phases = outcome.records, outcome.phases
        self.parent_cost: ParentCost = outcome.parent_cost
        self.engine, self.has_parents = engine, parents
        self.order = None
        if outcome.order is not None:
            self.order = np.asarray(outcome.order, dtype=np.int64)

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {value}" for name, value in self._facts())
        return f"<distbfs.Result from {self._from()}, {facts}>"

    def _repr_html_(self) -> str:
        return html_table(f"search from {self._from()}", self._facts())

    def _from(self) -> str:
        """Return what a line says of the sources."""
        return described(
            [self.source] if len(self.roots) == 1 else self.sources.tolist()
        )

    @property
    def sources(self) -> Array:
        """The vertices that were searched from, [k], rising by id, by their names.

        >>> import distbfs
        >>> path = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> distbfs.bfs(path, [3, 0, 3]).sources
        array([0, 3])
        """
        return self.named(self.roots)

    def _facts(self) -> list[tuple[str, object]]:
        """Return what is shown; on several ranks what is known without the others."""
        alone = self._vertices.world.size == 1 and self._valid()
        facts: list[tuple[str, object]] = [
            (name, getattr(self, name))
            for name in ("reached", "depth")
            if alone or name in self._kept
        ]
        if not self._valid():
            facts.append(("gone", "as the session has searched again"))
        return [*facts, ("engine", self.engine)]

    def _arrays(self) -> tuple[Sequence[Any], Sequence[Any]]:
        if not self._valid():
            raise UsageError(
                "the session has searched again, and this result is gone; keep() it "
                "before the next search"
            )
        return self._outcome.level, self._outcome.parent

    def keep(self) -> Result:
        """Return a result whose arrays next searches leave alone.

        They are copies, or the search's own where it takes others from then on.  Raises
        ResourceError where device memory does not last.
        """
        level, parent = (list(arrays) for arrays in self._arrays())
        if self._outcome.give is None:
            level = [copied(x) for x in level]
            parent = [None if x is None else copied(x) for x in parent]
        else:
            self._outcome.give()
        kept: Result = object.__new__(Result)
        vars(kept).update(vars(self))
        numbers = {k: v for k, v in self._kept.items() if isinstance(v, int)}
        kept._kept = numbers
        kept._outcome = self._outcome.copy_with(level, parent)
        kept._valid, kept._take = lambda: True, values_of
        return kept

    @property
    def shards(self) -> list[tuple[Any, Any]]:
        """(level, parent or None) of each device or part of this rank (local).

        By local id k of part i, which is vertex ``k * parts + i`` inside.
        """
        return list(zip(*self._arrays(), strict=True))

    @property
    def level(self) -> Any:
        """Hops from the nearest source: int8, int16 or int32 [n] by vertex id.

        NumPy's, or CuPy's where one device holds all; UsageError where the vertices
        lie on several devices or ranks: see ``to_numpy``.
        """
        return self._whole(0)

    @property
    def parent(self) -> Any:
        """The vertex before each: int32 or int64 [n] by id; None where not asked for.

        Where it lies, and errors: as ``level``.
        """
        return self._whole(1) if self.has_parents else None

    def _whole(self, which: int) -> Any:
        vertices, arrays = self._vertices, self._arrays()[which]
        if vertices.whole_here:
            return arrays[0]
        if vertices.world.size > 1 or vertices.on_devices:
            raise UsageError(
                "the result lies on several devices or ranks; allowed: to_numpy(), or "
                "shards for what lies here"
            )
        return self._numpy()[which]

    @once
    def _numpy(self) -> tuple[Array, Ids | None]:
        level, parent = self._arrays()
        vertices = self._vertices
        levels = vertices.block(level, np.int32)
        if not self.has_parents:
            return levels, None
        return levels, vertices.outside(vertices.block(parent, np.int64))

    def to_numpy(self) -> tuple[Array, Ids | None]:
        """Return (level int32, parent int64 or None) on the host, by vertex id.

        On several ranks, rank r gets the ids ``slice_bounds(n, size, r)``.  May share
        memory with the result.
        """
        self._arrays()
        return self._numpy()

    def at(self, vertices: Any) -> tuple[Array, Ids | None]:
        """Return (level int32 [k], parent int64 [k] or None) of ids, integers [k].

        Raises WrongTypeError for what are no integers, UsageError for no vertices.
        """
        level, parent = self._arrays()
        ids = vertices
        if not (isinstance(ids, np.ndarray) and ids.dtype == np.int64):
            ids = np.asarray(vertices)
            if ids.size and ids.dtype.kind not in "iu":
                raise WrongTypeError(
                    "vertices are asked for by ids, integers; results by name are in "
                    "to_dict(), to_pandas() and the like"
                )
            ids = ids.astype(np.int64).ravel()
            self._vertices.check(ids, "")
        return self._vertices.values_at(
            level, parent, ids, parents=self.has_parents, take=self._take
        )

    @property
    @once
    def reached(self) -> int:
        """Number of vertices reached, the sources among them."""
        count = 0
        for level in self._arrays()[0]:
            with device_of(level):
                count += int((level >= 0).sum())
        return int(self._vertices.world.allreduce(np.array([count]))[0])

    @property
    @once
    def depth(self) -> int:
        """The largest level."""
        deepest = [-1]
        for level in self._arrays()[0]:
            with device_of(level):
                deepest.append(int(level.max()) if level.size else -1)
        return int(self._vertices.world.allreduce(np.array([max(deepest)]), "max")[0])

    @property
    @once
    def nedge(self) -> int:
        """Input tuples with an end in the reached component, as Graph500 counts.

        Loops and repeats count; each tuple once: half the ends at reached vertices.
        """
        shards = zip(self._vertices.shards, self._arrays()[0], strict=True)
        ends = sum(shard.ends_reached(level) for shard, level in shards)
        return int(self._vertices.world.allreduce(np.array([ends]))[0]) // 2

    def level_counts(self) -> Ids:
        """Return how many vertices each level has, int64 [depth + 1]."""
        counts = np.zeros(self.depth + 1, dtype=np.int64)
        for level in self._arrays()[0]:
            with device_of(level):
                xp = array_module(level)
                for some in row_slices(len(level)):
                    reached = level[some][level[some] >= 0]
                    if reached.size:
                        each = xp.bincount(reached, minlength=len(counts))
                        counts += np.asarray(each.get() if xp is not np else each)
        return self._vertices.world.allreduce(counts)

    @property
    def result_bytes(self) -> int:
        """Bytes of the arrays on this rank."""
        return sum(int(x.nbytes) for pair in self.shards for x in pair if x is not None)

    def named(self, ids: Array) -> Array:
        """Return what vertices are called: int64 ids, or an array of names."""
        return ids if self._names is None else self._names.named(ids)

    def frontier(self, k: int) -> Array:
        """Return the vertices on level k, ascending by id; none beyond the last level.

        On several ranks, those of this rank's block.

        >>> import distbfs
        >>> star = distbfs.Graph.from_edges([0, 0, 0], [1, 2, 3])
        >>> distbfs.bfs(star, 1).frontier(2)
        array([2, 3])
        """
        if k < 0:
            raise UsageError(f"level is {k}; allowed: 0 or more")
        return self.named(self._first() + np.flatnonzero(self.to_numpy()[0] == k))

    def _first(self) -> int:
        vertices = self._vertices
        world = vertices.world
        return slice_bounds(vertices.layout.n, world.size, world.rank)[0]

    def path_to(self, vertex: Any) -> list[Any]:
        """Return a shortest path from the nearest source to a vertex, both included.

        Raises UsageError where the vertex was not reached or parents are missing.

        >>> import distbfs
        >>> path = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> distbfs.bfs(path, 3).path_to(0)
        [3, 2, 1, 0]
        """
        at = vertex if self._names is None else self._names.id_of(vertex)
        self._vertices.check(np.array([at]))
        self._need_parents()
        steps = [int(at)]
        distance = int(self.at(np.array(steps))[0][0])
        if distance < 0:
            origin = self.source if len(self.roots) == 1 else self._from()
            raise UsageError(f"{vertex} was not reached from {origin}")
        for _ in range(distance):
            steps.append(self._parent_of(steps[-1]))
        steps.reverse()
        if self._names is None:
            return steps
        return [self._names.named(np.array([step]))[0] for step in steps]

    def _parent_of(self, vertex: int) -> int:
        vertices = self._vertices
        if vertices.whole_here and not vertices.on_devices:
            return int(self._outcome.parent[0][vertex])
        _, parent = self.at(np.array([vertex]))
        return -1 if parent is None else int(parent[0])

    def tree(self) -> Array:
        """Return the edges (parent, child) of the search trees, [reached - k, 2].

        There is a tree for each of the k sources.  By the level of the child, then by
        its id; in the order of the queue where that is known.  On several ranks, the
        children of this rank's block.

        >>> import distbfs
        >>> star = distbfs.Graph.from_edges([0, 0, 0], [1, 2, 3])
        >>> distbfs.bfs(star, 1).tree()
        array([[1, 0],
               [0, 2],
               [0, 3]])
        """
        self._need_parents()
        level, parent = self.to_numpy()
        if self.order is not None:
            child = self.order[len(self.roots) :]
        else:
            child = np.flatnonzero(level > 0)
            child = child[np.argsort(level[child], kind="stable")]
        pairs = [parent[child], self._first() + child]  # type: ignore[index]
        return self.named(np.stack(pairs, axis=1))

    def _columns(self) -> dict[str, Array]:
        """Return vertex, level and parent, [block] each, of this rank's vertices.

        Names are int64 where all are integers, else objects, and None for no parent.
        """
        level, parent = self.to_numpy()
        block = self._first() + np.arange(len(level))
        names = whole_names(self.named(block))
        columns = {"vertex": names, "level": level}
        if parent is not None:
            before = self.named(np.maximum(parent, 0)).astype(names.dtype)
            before[parent < 0] = -1 if names.dtype == np.int64 else None
            columns["parent"] = before
        return columns

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame of vertex, level and parent, a row for each vertex.

        Vertices are named as in the graph.  Level and parent are -1 for what was not
        reached; where names are no integers, such a parent is missing.  Without parents
        there is no such column.  On several ranks, the vertices of this rank's block.
        Raises LibraryMissing where pandas is.
        """
        return pandas_frame(self._columns())

    def to_polars(self) -> Any:
        """Return a polars DataFrame; see ``to_pandas``.

        Raises WrongTypeError where names are of types that make no column.
        """
        return polars_frame(self._columns())

    def to_arrow(self) -> Any:
        """Return an Arrow table; see ``to_polars``."""
        return arrow_table(self._columns())

    def to_dict(self) -> dict[Any, int]:
        """Return the level of each vertex that was reached, by name, rising by id.

        On several ranks, of this rank's block.

        >>> import distbfs
        >>> path = distbfs.Graph.from_edges([(0, 1), (1, 2)], n=9)
        >>> distbfs.bfs(path, 1).to_dict()
        {0: 1, 1: 0, 2: 1}
        """
        level = self.to_numpy()[0]
        reached = np.flatnonzero(level >= 0)
        names = self.named(self._first() + reached).tolist()
        return dict(zip(names, level[reached].tolist(), strict=True))

    def to_scipy(self) -> tuple[Array, Array]:
        """Return (order, predecessors) as ``scipy.sparse.csgraph`` has them.

        order: int32 [reached], ids by level, in the order of the queue where that is
        known (method "ordered"), which is SciPy's; predecessors: int32 [n], -9999 for
        sources and for what was not reached.  int64 where n does not fit int32.

        >>> import distbfs
        >>> star = distbfs.Graph.from_edges([0, 0, 0], [1, 2, 3])
        >>> distbfs.bfs(star, 1).to_scipy()[1].tolist()
        [1, -9999, 0, 0]
        """
        self._need_parents()
        if self._vertices.world.size > 1:
            raise UsageError("the result lies on several ranks; allowed: to_numpy()")
        level, parent = self.to_numpy()
        order = self.order
        if order is None:
            reached = np.flatnonzero(level >= 0)
            order = reached[np.argsort(level[reached], kind="stable")]
        kind = np.int32 if len(level) < 1 << 31 else np.int64
        before = np.where(level > 0, parent, NO_PREDECESSOR)  # type: ignore[arg-type]
        return order.astype(kind), before.astype(kind)

    def _need_parents(self) -> None:
        if not self.has_parents:
            raise UsageError("the search was made without parents")


def copied(array: AnyArray) -> AnyArray:
    """Return a copy of an array, on its device where it is on one."""
    with device_of(array):
        return array.copy()
