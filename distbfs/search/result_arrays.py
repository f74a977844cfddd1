"""The arrays of one search: levels and parents, and the counts made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MappingView, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import wraps
from threading import active_count
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

import numpy as np

from distbfs.device.arrays import device_of, host_array, is_of_device
from distbfs.device.reached import value_counts
from distbfs.errors import UsageError, WrongTypeError
from distbfs.partition.layout import Layout
from distbfs.ranks.world import SoloWorld
from distbfs.search.frames import html_table
from distbfs.search.paths import NO_PATHS, NoPaths
from distbfs.search.program_arrays import array_of, each_of
from distbfs.search.sources import described
from distbfs.search.store_names import NodeNames, VertexNames
from distbfs.search.vertices import (
    Shard,
    VertexMap,
    count_reached,
    row_slices,
)
from distbfs.types import AnyArray, Array, Ids, Levels, Root

if TYPE_CHECKING:
    from typing_extensions import Self

    from distbfs.locks import ForkLock
    from distbfs.search.paths import PathFinder
    from distbfs.search.runners.base import Found


Owner = TypeVar("Owner", bound="ResultArrays")
Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


def reading(
    method: Callable[Concatenate[Owner, Arguments], Value],
) -> Callable[Concatenate[Owner, Arguments], Value]:
    """Hold the session's lock in a method that reads the session's arrays."""

    @wraps(method)
    def call(
        result: Owner, /, *args: Arguments.args, **named: Arguments.kwargs
    ) -> Value:
        lock = result._lock
        if lock is None:
            return method(result, *args, **named)
        with lock:
            return method(result, *args, **named)

    return call


def once(method: Callable[[ResultArrays], Value]) -> Callable[[ResultArrays], Value]:
    """Cache the value of a result's method; ranks call it in the same order."""
    name = method.__name__

    @wraps(method)
    def call(result: ResultArrays) -> Value:
        kept: dict[str, Any] = result._kept
        if name not in kept:
            kept[name] = method(result)
        value: Value = kept[name]
        return value

    return call


NO_GRAPH = NoPaths(
    "counts and sets of shortest paths, and edges within hops, need the graph, which a "
    "pickled result lacks; call them where the search was made"
)


def always() -> bool:
    """Return True: no session overwrites the result."""
    return True


def no_rows(_: Ids) -> NoReturn:
    """Raise UsageError: a pickled result has no graph."""
    raise UsageError(NO_GRAPH.refusal)


def without_graph(n: int, names: Array | None) -> dict[str, Any]:
    """Return attributes of a result that need no graph, session or device.

    names: names of all n vertices, None if vertices are named by id
    """
    shard = Shard(0, None, None, no_rows)
    return {
        "_vertices": VertexMap(SoloWorld(), Layout(n, 1), [shard]),
        "_names": None if names is None else NodeNames(names),
        "_lock": None,
        "_valid": always,
        "_paths": NO_GRAPH,
    }


class ResultArrays:
    """The part of a ``Result`` that needs neither paths nor tables."""

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
        names: VertexNames | None = None,
        lock: ForkLock | None = None,
        valid: Callable[[], bool] = always,
        paths: PathFinder = NO_PATHS,
    ) -> None:
        self._paths = paths
        self._vertices, self._outcome, self._names = vertices, outcome, names
        self._lock, self._valid = lock, valid
        self._kept: dict[str, Any] = {}
        self.roots: Ids = np.atleast_1d(np.asarray(root, dtype=np.int64))
        self.root = int(self.roots[0])
        self.source = root if source is None else source
        if isinstance(source, (Iterator, MappingView)):  # gone through, or of another
            self.source = self.sources.tolist()
        self.seconds, self.wall_seconds = seconds, wall_seconds
        self.records, self.phases = outcome.records, outcome.phases
        self.engine, self.has_levels, self.has_parents = engine, True, parents
        self.order = None
        if outcome.order is not None:
            self.order = np.asarray(outcome.order, dtype=np.int64)

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {value}" for name, value in self._facts())
        return f"<distbfs.Result from {self._from()}, {facts}>"

    def _repr_html_(self) -> str:
        return html_table(f"search from {self._from()}", self._facts())

    def _from(self) -> str:
        """Return the sources as text of one line."""
        return described(
            [self.source] if len(self.roots) == 1 else self.sources.tolist()
        )

    @property
    def sources(self) -> Array:
        """The sources by name, ascending by id, shape (k,).

        Examples
        --------
        >>> import distbfs
        >>> path = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> distbfs.bfs(path, [3, 0, 3]).sources
        array([0, 3])
        """
        return self.named(self.roots)

    def _origin(self) -> str:
        return f"{self.source}" if len(self.roots) == 1 else self._from()

    def _facts(self) -> list[tuple[str, object]]:
        """Return the rows to show; on several ranks, those that need no other rank."""
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
                "the session has searched again or was closed, and this result is "
                "gone; call keep() before that"
            )
        return self._outcome.level, self._outcome.parent

    @reading
    def __getstate__(self) -> dict[str, Any]:
        """Return the state to be pickled: arrays in host memory, without the graph.

        Raises UsageError if the result is overwritten, WrongTypeError on several
        ranks.
        """
        vertices, (level, parent) = self._vertices, self._arrays()
        if vertices.world.size > 1:
            raise WrongTypeError(
                "a result on several ranks cannot be pickled; allowed: to_numpy() on "
                "all ranks, and its arrays"
            )
        arrays: tuple[Any, Any] = self._numpy()
        if vertices.whole_here:  # of the width that they have
            arrays = (level[0], parent[0])
        held = [[None if x is None else host_array(x)] for x in arrays]
        ids = np.arange(vertices.layout.n)
        return {
            **vars(self),
            "_kept": {x: getattr(self, x) for x in ("reached", "depth", "nedge")},
            "_outcome": replace(
                self._outcome, level=held[0], parent=held[1], give=None
            ),
            **without_graph(len(ids), None if self._names is None else self.named(ids)),
        }

    def __copy__(self) -> Self:
        return self.keep()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copy = self.keep()  # the graph does not change, and is shared
        for name in ("roots", "source", "order", "records", "phases"):
            setattr(copy, name, deepcopy(getattr(self, name), memo))
        return copy

    def _own(self) -> None:
        """Take the arrays from the session, or copy them; its lock is held."""
        level, parent = (list(arrays) for arrays in self._arrays())
        if self._outcome.give is None:
            level, parent = (
                [None if x is None else copied(x) for x in arrays]
                for arrays in (level, parent)
            )
        else:
            self._outcome.give()
        self._kept = {k: v for k, v in self._kept.items() if isinstance(v, int)}
        self._outcome = replace(self._outcome, level=level, parent=parent)
        self._lock, self._valid = None, always

    def _save(self) -> None:
        """Own the arrays unless they have been overwritten; the lock is held."""
        if self._lock is not None and self._valid():
            self._own()

    def _save_among_threads(self) -> None:
        """Own the arrays that were returned, if another thread may overwrite them."""
        if self._vertices.whole_here and active_count() > 1:
            self._save()

    def _drop_levels(self) -> None:
        """Free the levels, but keep their number (collective)."""
        _ = self.depth
        none = [None] * len(self._outcome.level)
        self._outcome = replace(self._outcome, level=none)
        self.has_levels = False

    @reading
    def keep(self) -> Self:
        """Return a result that later searches of the session do not overwrite.

        Returns
        -------
        Result
            It has copies of the arrays, or the arrays themselves if the session can
            allocate new ones.

        Raises
        ------
        UsageError
            The session has searched again already.
        ResourceError
            Device memory runs out.

        Examples
        --------
        >>> import distbfs
        >>> path = distbfs.Graph.from_edges([0, 1], [1, 2])
        >>> with distbfs.open(path) as session:
        ...     first = session.search(0).keep()
        ...     second = session.search(2)
        >>> first.to_dict()
        {0: 0, 1: 1, 2: 2}
        """
        kept = object.__new__(type(self))
        vars(kept).update(vars(self))
        kept._own()
        return kept

    @property
    def shards(self) -> list[tuple[Any, Any]]:
        """Pairs (level, parent) of arrays, one for each device or part of this rank.

        Entry k of part i is vertex ``k * parts + i``, in internal ids.  Levels or
        parents that were not requested are None.  The property is local: other ranks
        need not read it.
        """
        return list(zip(*self._arrays(), strict=True))

    @property
    def level(self) -> Levels | Any:
        """Hops from the nearest source, shape (n,), by vertex id; -1 for unreached.

        int8, int16 or int32; None if levels were not requested.  A NumPy array, or a
        CuPy array where one device holds all.  It raises UsageError if the vertices
        lie on several devices or ranks: use ``to_numpy``.
        """
        return self._whole(0) if self.has_levels else None

    @property
    def parent(self) -> Array | Any:
        """The vertex before each on a shortest path, shape (n,), by vertex id.

        int32 or int64; -1 for unreached; None if parents were not requested.  It is in
        the memory where ``level`` is or would be, and raises the same errors.
        """
        return self._whole(1) if self.has_parents else None

    @reading
    def _whole(self, which: int) -> Any:
        vertices = self._vertices
        self._save_among_threads()
        arrays = self._arrays()[which]
        if vertices.whole_here:
            return arrays[0]
        if vertices.world.size > 1 or vertices.on_devices:
            raise UsageError(
                "the result lies on several devices or ranks; allowed: to_numpy(), or "
                "shards for what lies here"
            )
        return self._numpy()[which]

    @once
    def _numpy(self) -> tuple[Array | None, Ids | None]:
        level, parent = self._arrays()
        vertices = self._vertices
        levels = vertices.block(level, np.int32) if self.has_levels else None
        if not self.has_parents:
            return levels, None
        # mutant: outside(vertices.block(parent, np.int64)) -> block(parent, np.int64)
        #   : test_results_in_input_ids
        return levels, vertices.outside(vertices.block(parent, np.int64))

    @reading
    def to_numpy(self) -> tuple[Levels | Any, Ids | None]:
        """Return levels and parents in host memory.

        Returns
        -------
        level : ndarray of int32, shape (n,), or None
            By vertex id; it may share memory with the result.  None if levels were
            not requested.
        parent : ndarray of int64, shape (n,), or None
            The same for parents.

        Notes
        -----
        On several ranks, each gets a block of consecutive ids: rank r of p gets the ids
        ``range(r * n // p, (r + 1) * n // p)``.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([0], [1], n=3)
        >>> distbfs.bfs(graph, 0).to_numpy()
        (array([ 0,  1, -1], dtype=int32), array([ 0,  0, -1]))
        """
        self._arrays()
        if not self._vertices.on_devices:
            self._save_among_threads()
        return self._numpy()

    @reading
    def at(self, vertices: Any) -> tuple[Levels | Any, Ids | None]:
        """Return levels and parents of some vertices.

        Parameters
        ----------
        vertices : array_like of vertices, shape (k,)
            Ids, or names of nodes; equal on all ranks.

        Returns
        -------
        level : ndarray of int32, shape (k,), or None
            -1 for unreached; None if levels were not requested.
        parent : ndarray, shape (k,), or None
            Parents, int64, -1 for unreached; if nodes have names, names as objects,
            None for unreached.

        Raises
        ------
        WrongTypeError
            ``vertices`` are not integers, and the graph has no names.
        UsageError
            One of them is not a vertex.

        Examples
        --------
        >>> import distbfs
        >>> path = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> distbfs.bfs(path, 0).at([3, 1])
        (array([3, 1], dtype=int32), array([2, 0]))
        """
        if self._names is not None:
            several = each_of(vertices, "vertices")
            named = [self._names.id_of(vertex) for vertex in several]
            levels, parents = self._at(np.array(named, dtype=np.int64))
            if parents is not None:
                kind = self.named(parents[:0]).dtype
                parents = self._named_parents(parents, kind)
            return levels, parents
        ids = vertices
        if not (type(ids) is np.ndarray and ids.dtype == np.int64):
            ids = array_of(vertices, "vertices")
            if ids.size and ids.dtype.kind not in "iu":
                raise WrongTypeError(
                    "vertices are given by ids, integers; results by name are in "
                    "to_dict(), to_pandas() and the like"
                )
            ids = ids.astype(np.int64).ravel()
        self._vertices.check(ids)
        return self._at(ids)

    def _at(self, ids: Ids) -> tuple[Levels | Any, Ids | None]:
        """Return (level int32 [k], parent int64 [k]) of ids, int64 [k] (collective)."""
        level, parent = self._arrays()
        return self._vertices.values_at(
            level if self.has_levels else None,
            parent if self.has_parents else None,
            ids,
        )

    def _of_reached(self) -> Sequence[Any]:
        """Return arrays of the shards that are -1 exactly for unreached vertices."""
        return self._arrays()[0 if self.has_levels else 1]

    @property
    @reading
    @once
    def reached(self) -> int:
        """Number of vertices reached, including the sources."""
        count = 0
        for values in self._of_reached():
            with device_of(values):
                count += count_reached(values)
        return int(self._vertices.world.allreduce(np.array([count]))[0])

    @property
    @reading
    @once
    def depth(self) -> int:
        """The largest level."""
        deepest = [-1]
        for level in self._arrays()[0]:
            if level is not None and level.size:
                with device_of(level):
                    deepest.append(int(level.max()))
        most = int(self._vertices.world.allreduce(np.array([max(deepest)]), "max")[0])
        return most if most >= 0 else self._outcome.levels - 1

    @property
    @reading
    @once
    def nedge(self) -> int:
        """Number of input tuples with an end in the reached component, as in Graph500.

        Loops and repeats count, each tuple once.  In a directed graph it counts tuples
        that leave a reached vertex.  ``nedge / seconds`` is TEPS.
        """
        shards = zip(self._vertices.shards, self._of_reached(), strict=True)
        ends = sum(shard.ends_reached(values) for shard, values in shards)
        return int(self._vertices.world.allreduce(np.array([ends]))[0]) // 2

    @reading
    def level_counts(self) -> Ids:
        """Return the number of vertices on each level.

        Returns
        -------
        ndarray of int64, shape (depth + 1,)
            Vertices by level.

        Raises
        ------
        UsageError
            The search was made without levels.

        Examples
        --------
        >>> import distbfs
        >>> star = distbfs.Graph.from_edges([0, 0, 0], [1, 2, 3])
        >>> distbfs.bfs(star, 1).level_counts()
        array([1, 1, 2])
        """
        self._need_levels()
        counts = np.zeros(self.depth + 1, dtype=np.int64)
        for level in self._arrays()[0]:
            if is_of_device(level):
                counts += value_counts(level, len(counts))
                continue
            for some in row_slices(len(level)):
                reached = level[some][level[some] >= 0]
                counts += np.bincount(reached, minlength=len(counts))
        return self._vertices.world.allreduce(counts)

    def named(self, ids: Array) -> Array:
        """Return the names of vertices.

        Parameters
        ----------
        ids : ndarray of int64, shape (k,)
            Vertex ids.

        Returns
        -------
        ndarray, shape (k,)
            Names as objects, or ``ids`` where vertices have none.

        Examples
        --------
        >>> import distbfs
        >>> import networkx as nx
        >>> import numpy as np
        >>> graph = distbfs.Graph.from_networkx(nx.path_graph("abc"))
        >>> distbfs.bfs(graph, "a").named(np.array([2]))
        array(['c'], dtype=object)
        """
        return ids if self._names is None else self._names.named(ids)

    def _named_parents(self, parent: Ids, kind: Any) -> Array:
        """Return the names of parents, dtype int64 or object; -1 becomes -1 or None."""
        names = self.named(np.maximum(parent, 0)).astype(kind)
        names[parent < 0] = -1 if kind == np.int64 else None
        return names

    def _called(self, path: list[int]) -> list[Any]:
        return path if self._names is None else self.named(np.array(path)).tolist()

    def _need_parents(self) -> None:
        if not self.has_parents:
            raise UsageError("the search was made without parents")

    def _need_levels(self) -> None:
        if not self.has_levels:
            raise UsageError("the search was made without levels")

    def _reached(self, target: Any) -> int:
        """Return the id of a vertex that was reached; UsageError for others."""
        self._need_levels()
        at = target if self._names is None else self._names.id_of(target)
        self._vertices.check(np.array([at]), "target ")
        if self._at(np.array([at]))[0][0] < 0:
            raise UsageError(f"{target} was not reached from {self._origin()}")
        return int(at)


def copied(array: AnyArray) -> AnyArray:
    """Return a copy of an array, on its device where it is on one."""
    with device_of(array):
        # mutant: .copy() -> : test_session::test_kept_results_outlast_the_next_search
        return array.copy()
