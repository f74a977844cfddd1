"""A graph that stays loaded and is searched many times."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import ref

import numpy as np

from distbfs.device import cuda
from distbfs.distinct import distinct
from distbfs.engines.base import WHOLE, Query, Until
from distbfs.errors import DistbfsError, InputError, UsageError, WrongTypeError
from distbfs.formats.ids import no_vertex
from distbfs.locks import SearchLock
from distbfs.options import check_wanted
from distbfs.search.choose import kind_of, no_masks
from distbfs.search.paths import NO_PATHS, PATHS_OF_ALL
from distbfs.search.program_arrays import each_of
from distbfs.search.result import Result
from distbfs.search.sources import (
    ids_of_set,
    read_once,
    read_targets,
    vertices_of,
)
from distbfs.search.view import View
from distbfs.timing import Trace, kept

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from distbfs.options import SearchOptions
    from distbfs.partition.layout import Layout
    from distbfs.search.held import Held, Separated
    from distbfs.search.paths import PathFinder
    from distbfs.search.runners.base import Runner
    from distbfs.search.sight import Masks
    from distbfs.search.store_names import VertexNames
    from distbfs.types import Array, Ids, Root, Stop, World


class Session:
    """A graph that stays loaded and is searched many times; made by ``distbfs.open``.

    A context manager: leaving it frees the graph.  Methods are collective over the
    ranks.

    Attributes
    ----------
    why : str
        Why this engine, these devices and this exchange were chosen.
    options : SearchOptions
        How searches run.
    world : World
        The ranks.
    held : Held
        The graph where it is searched.
    vertices : VertexMap
        Maps vertex ids to parts, and back.
    separated : Separated or None
        This rank's shares of the graph, where domains of devices search level by
        level.
    lock : SearchLock
        The lock that each use of the session holds.
    closed : bool
        Whether it was closed.
    at_close : list of callable
        Functions to call when the session is closed.

    Notes
    -----
    Threads may share a session: their searches run one after the other, and a search of
    one thread does not overwrite the results of others.  ``see`` affects the searches
    of all threads; a thread that holds ``lock`` excludes all others.  Functions that a
    search calls, such as ``stop``, cannot use its session, and must not wait for
    another thread that does.  A forked child process may use the session unless it is
    on a device, or another thread searched during the fork.  On several ranks, let only
    one thread use it, because all ranks must make the same calls in the same order.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3])
    >>> distbfs.open(graph, engine="reference")
    <distbfs.Session, 4 vertices, engine reference>
    >>> with distbfs.open(graph, engine="reference") as session:
    ...     for source in (0, 3):
    ...         found = session.search(source)
    ...         print(source, found.reached, found.depth, found.nedge)
    0 4 2 4
    3 4 2 4
    """

    def __init__(
        self,
        world: World,
        held: Held,
        runner: Runner,
        options: SearchOptions,
        *,
        describe: Callable[[], dict[str, Any]],
        notes: dict[str, str] | None = None,
        why: str = "",
        names: VertexNames | None = None,
        one_source: str = "",
        paths: PathFinder = NO_PATHS,
        masks: Masks | None = None,
    ) -> None:
        self._paths, self._masks = paths, masks
        self.world, self.held, self.options = world, held, options
        self.why, self.vertices = why, held.vertices
        self._runner, self._describe, self._names = runner, describe, names
        self._notes, self._one_source = notes or {}, one_source
        self._trace: Trace | None = None
        self.separated: Separated | None = None
        self.at_close: list[Callable[[], object]] = []
        self.lock = SearchLock()
        self.closed, self._process = False, os.getpid()
        self._searches, self._searcher = 0, get_ident()
        self._last: Callable[[], Result | None] = lambda: None
        self._view: View | None = None

    def __reduce__(self) -> NoReturn:
        raise WrongTypeError(
            "a session cannot be pickled or copied; allowed: a Graph, or the folder of "
            "a store, to be opened again"
        )

    def __repr__(self) -> str:
        facts = f"{self.n} vertices, engine {self.options.engine}"
        return f"<distbfs.Session, {facts}{', closed' if self.closed else ''}>"

    @property
    def layout(self) -> Layout:
        """Number of vertices ``n`` and of ``parts``."""
        return self.vertices.layout

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.layout.n

    def _check_usable(self) -> None:
        """Raise UsageError if the session is closed, or its devices are lost."""
        if self.closed:
            raise UsageError("the session is closed; open the graph again")
        if self.held.devices and os.getpid() != self._process:
            raise UsageError(
                "the session is on a device, which no forked process can use; open the "
                "graph again"
            )

    @property
    def paths(self) -> PathFinder:
        """The finder of all shortest paths; it raises UsageError if a view is set."""
        # mutant: _paths if self._view is None else PATHS_OF_ALL -> _paths
        #   : test_paths_are_of_all_edges
        return self._paths if self._view is None else PATHS_OF_ALL

    @property
    def edges(self) -> int:
        """Number of stored directed edges on all ranks (collective)."""
        return int(self.world.allreduce(np.array([self.held.edges]))[0])

    def describe(self) -> dict[str, Any]:
        """Return engine, devices and options of searches, for reports.

        Returns
        -------
        dict
            JSON values by name: engine, method, threads, mode, exchange, and further
            ones of the engine.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([0], [1])
        >>> with distbfs.open(graph, engine="reference") as session:
        ...     session.describe()["method"]
        'numpy'
        """
        return {**self._describe(), **self._runner.describe(), **self.held.facts}

    def notes(self) -> dict[str, str]:
        """Return further lines of the report as text, by name.

        Examples
        --------
        >>> import distbfs
        >>> with distbfs.open(distbfs.Graph.from_edges([0], [1])) as session:
        ...     session.notes()
        {}
        """
        return dict(self._notes)

    def check(self, vertices: Ids) -> None:
        """Raise UsageError unless all are vertices.

        Parameters
        ----------
        vertices : ndarray, shape (k,)
            int64 ids, or names where the graph has names.

        Examples
        --------
        >>> import distbfs
        >>> import numpy as np
        >>> with distbfs.open(distbfs.Graph.from_edges([0], [1])) as session:
        ...     session.check(np.array([0, 1]))
        """
        self.vertices.check(self._ids(vertices))

    def connected(self, vertices: Ids) -> Array:
        """Return which vertices have a neighbour other than themselves.

        Parameters
        ----------
        vertices : ndarray, shape (k,)
            int64 ids, or names where the graph has names; equal on all ranks.

        Returns
        -------
        ndarray of bool, shape (k,)
            The flags.

        Examples
        --------
        >>> import distbfs
        >>> import numpy as np
        >>> graph = distbfs.Graph.from_edges([0], [1], n=3)
        >>> with distbfs.open(graph) as session:
        ...     session.connected(np.array([0, 2]))
        array([ True, False])
        """
        ids = self._ids(vertices)
        with self.lock.search():
            self._check_usable()
            return self.vertices.connected(ids)

    def _ids(self, vertices: Any) -> Ids:
        """Return the ids of vertices; without names, the vertices are ids already."""
        if self._names is None:
            ids: Ids = vertices
            return ids
        return np.array([self._names.id_of(x) for x in vertices], dtype=np.int64)

    def view(
        self, vertices: Any = None, edges: Any = None, where: str | None = None
    ) -> View:
        """Return a view, the vertices and edges that searches may see, for ``see``.

        Parameters
        ----------
        vertices : array_like of bool, shape (n,), optional
            Flags by vertex id, equal on all ranks; by default all are seen.
        edges : array_like of bool, shape (edges,), optional
            Flags of the edges (u, v) with u < v, sorted by u, then by v; in a directed
            store, sorted by source, then by target.  Equal on all ranks.
        where : str, optional
            A predicate over attributes that the store keeps, such as ``"weight < 3"``.

        Returns
        -------
        View
            The view.

        Raises
        ------
        WrongTypeError, InputError, UsageError
            See ``Graph.view``.

        Examples
        --------
        >>> import distbfs
        >>> with distbfs.open(distbfs.Graph.from_edges([0, 1], [1, 2])) as session:
        ...     session.view(edges=[True, False])
        <distbfs.View of 1 of 2 edges>
        """
        return View(self.n, vertices, edges, where)

    def see(self, view: View | None) -> None:
        """Limit later searches to some vertices and edges.

        Parameters
        ----------
        view : View or None
            The view of later searches, None for all vertices and edges.  The arrays
            that an engine needs for a view are made once and kept as long as it is in
            use.

        Raises
        ------
        UsageError
            The engine does not support views, or an attribute was not kept.
        InputError
            The view is of another graph.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> with distbfs.open(graph, engine="reference") as session:
        ...     session.see(session.view(vertices=[True, True, False, True]))
        ...     session.search(0).to_numpy()[0]
        array([ 0,  1, -1, -1], dtype=int32)
        """
        with self.lock.search():
            self._check_usable()
            self._see(view)

    def _see(self, view: View | None) -> None:
        if view is not None and view.whole:
            view = None
        if view is self._view:
            return
        if view is not None and view.n != self.n:
            raise InputError(f"the view has {view.n} vertices, the graph {self.n}")
        masks, engine = self._masks, self.options.engine
        if masks is None or not kind_of(engine).masks:
            raise UsageError(no_masks(engine))
        try:
            masks.see(self._runner, view)
        except DistbfsError:  # on all ranks: what was seen before may be gone
            self._view = None
            masks.see(self._runner, None)
            raise
        self._view = view

    def _id_of(self, vertex: Any, what: str = "source") -> int:
        if self._names is not None:
            return self._names.id_of(vertex)
        whole = isinstance(vertex, (int, np.integer)) and not isinstance(vertex, bool)
        if not whole or not 0 <= vertex < self.n:
            raise UsageError(f"{what} {vertex!r:.60} {no_vertex(self.n)}")
        return int(vertex)

    def _roots_of(self, source: Any) -> Root:
        """Return the id of a vertex, or the ids of a set; a set of one is a vertex."""
        several = vertices_of(source, self._names)
        if several is None:
            return self._id_of(source)
        ids = ids_of_set(several, self.n, self._id_of)
        if len(ids) > 1 and self._one_source:
            raise UsageError(self._one_source)
        return ids if len(ids) > 1 else int(ids[0])

    def _check_seen(self, root: Root) -> None:
        """Raise UsageError if the view hides a source, or one source of a set."""
        if self._view is None:
            return
        ids = np.atleast_1d(np.asarray(root, dtype=np.int64))
        names = self._names
        self._view.check_sources(
            ids, lambda some: (some if names is None else names.named(some)).tolist()
        )

    def _until(self, depth_limit: int | None, targets: Iterable[Any] | None) -> Until:
        """Return the end of a search, with targets by internal ids, or WHOLE."""
        if depth_limit is None and targets is None:
            return WHOLE
        ids: Ids | None = None
        if targets is not None:
            named = [
                self._id_of(vertex, "target") for vertex in each_of(targets, "targets")
            ]
            outside = np.array(named, dtype=np.int64)
            if self._view is not None and not self._view.sees(outside).all():
                return Until(depth_limit)  # one is never reached
            # mutant: self.vertices.inside(outside) -> outside : test_targets_and_depth
            ids = distinct(self.vertices.inside(outside))
        return Until(depth_limit, ids)

    def _begin(
        self, source: Any, depth_limit: int | None, targets: Iterable[Any] | None
    ) -> tuple[Root, Root, Until]:
        """Return the sources by id and by internal id, and the end of a search.

        The result of the search before is no longer valid.
        """
        self._check_usable()
        self._save_last()
        root = self._roots_of(source)
        self._check_seen(root)
        until = self._until(depth_limit, targets)
        self._searches += 1
        if isinstance(root, np.ndarray):
            return root, np.sort(self.vertices.inside(root)), until
        return root, self.vertices.one_inside(root), until

    def search(
        self,
        source: Any,
        *,
        levels: bool = True,
        parents: bool = True,
        depth_limit: int | None = None,
        targets: Iterable[Any] | None = None,
        stop: Stop | None = None,
        records: bool = False,
    ) -> Result:
        """Search breadth-first from a vertex, or from all of a set at once.

        Parameters
        ----------
        source : vertex or iterable of vertices
            An id, or the name of a node where the graph has names.  A list, set, range,
            array or tuple is a set: levels count from the nearest of its vertices.
            A tuple is a name if a node has that name.
        levels, parents : bool, default True
            Whether the result has levels, and parents, if the session was not opened
            without them.
        depth_limit : int, optional
            The last level that is searched, 0 or more.
        targets : iterable of vertices, optional
            The search ends with the level that finds the last of them.
        stop : callable, optional
            A function that returns whether to stop, called before each level; searches
            that run on devices without the host call it before the first level and
            about every millisecond.  Pass it on all ranks or on none.
        records : bool, default False
            Whether to count and time each level, which is slower.

        Returns
        -------
        Result
            Valid until the next search of the session; after ``keep``, permanently.

        Raises
        ------
        UsageError
            A source or target is not a vertex, a source is not seen, a set is empty,
            the engine searches from one vertex only, or neither levels nor parents
            remain to be found.
        SearchStopped
            ``stop`` returned True on one rank while levels were left; raised on all
            ranks.

        Notes
        -----
        ``seconds`` of the result is the time until levels and parents are complete on
        every rank.  The first search of a process also starts its threads.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> with distbfs.open(graph, engine="reference") as session:
        ...     found = session.search(0, depth_limit=1, records=True)
        ...     found.reached, [entry["direction"] for entry in found.records]
        (2, ['push'])
        """
        levels = levels and self.options.levels
        parents = parents and self.options.parents
        check_wanted(levels=levels, parents=parents)
        source, targets = read_once(source, self._names), read_targets(targets)
        with self.lock.search():
            root, inside, until = self._begin(source, depth_limit, targets)
            until = until.beyond(inside, self.n)
            first = int(root[0]) if isinstance(root, np.ndarray) else root
            turn = self._searches
            self.world.barrier()
            began = time.perf_counter()
            with kept(self._trace, "search", root=first):
                query = Query(records, parents, until, stop)
                outcome = self._runner.answer(inside, query)
            self.world.barrier()
            wall = time.perf_counter() - began
            if self.world.size > 1:
                wall = float(self.world.allreduce(np.array([wall]), "max")[0])
            on_device = outcome.seconds is not None
            result = Result(
                self.vertices if self._masks is None else self._masks.vertices,
                outcome,
                root,
                parents=parents,
                seconds=wall if outcome.seconds is None else outcome.seconds,
                wall_seconds=wall if on_device else None,
                source=source,
                engine=self.options.engine,
                names=self._names,
                lock=self.lock,
                # mutant: turn == self._searches -> True
                #   : test_session::test_the_next_search_ends_a_result
                valid=lambda: turn == self._searches,
                paths=self.paths,
            )
            self._last = ref(result)
            if not levels:  # engines may have them all the same
                result._drop_levels()
            return result

    @property
    def both_ends(self) -> bool:
        """Whether ``path`` searches from both ends."""
        return self._runner.path is not None

    def path(
        self, source: Any, target: Any, *, stop: Stop | None = None
    ) -> list[Any] | None:
        """Find a shortest path to a vertex from another, or from the nearest of a set.

        Engine openmp in one process searches from both ends, which looks at fewer
        edges.  Engine xbfs, with a whole graph on one device, looks up edges from both
        ends where the graph has hubs, and searches if that does not suffice.  Other
        engines search until they reach the target.

        Parameters
        ----------
        source : vertex or iterable of vertices
            See ``search``.
        target : vertex
            An id, or the name of a node where the graph has names.
        stop : callable, optional
            See ``search``.

        Returns
        -------
        list or None
            Vertices from the source to ``target``, both included; None if no path leads
            there.

        Raises
        ------
        UsageError
            See ``search``; also if ``both_ends`` is false and the session was opened
            without parents.
        SearchStopped
            See ``search``.

        Notes
        -----
        As after a search, the result of the previous search is no longer valid.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> with distbfs.open(graph, engine="reference") as session:
        ...     session.path(3, 0)
        [3, 2, 1, 0]
        """
        source = read_once(source, self._names)
        find = self._runner.path
        with self.lock:  # no other thread searches before the path is known
            if find is not None:
                with self.lock.search():
                    _, inside, until = self._begin(source, None, [target])
                    if until.targets is None:  # it is not seen
                        return None
                    roots = np.atleast_1d(np.asarray(inside))
                    shortest = find(roots, int(until.targets[0]), stop)
                if shortest is not None:
                    path = self.vertices.outside(shortest.vertices)
                    named = path if self._names is None else self._names.named(path)
                    return named.tolist() or None
            result = self.search(source, targets=[target], stop=stop)
            _, parent = result._at(np.array([self._id_of(target, "target")]))
            reached = parent is None or parent[0] >= 0
            return result.path_to(target) if reached else None

    def _save_last(self) -> None:
        """Copy the arrays of the last result if another thread uses it."""
        before, self._searcher = self._searcher, get_ident()
        last = self._last()
        if last is not None and before != self._searcher:
            last._save()

    @property
    def on_devices(self) -> bool:
        """Whether all ranks that have results have them on devices (collective)."""
        flag = np.array([self.vertices.on_devices])
        return bool(self.world.allreduce(flag.astype(np.uint8), "max")[0])

    def room(self, most: int) -> int:
        """Return the number of bytes that kept results may take.

        Parameters
        ----------
        most : int
            The largest number of bytes that is needed.

        Returns
        -------
        int
            ``most``, or less if devices have less free memory; equal on all ranks.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([0], [1])
        >>> with distbfs.open(graph, engine="reference") as session:
        ...     session.room(1 << 20)
        1048576
        """
        if self.held.devices:
            share = 2 if self.layout.parts == 1 else 4  # others are collected as well
            most = min(most, cuda.free_bytes() // share)
        return int(self.world.allreduce(np.array([most]), "min")[0])

    def watch(self, trace: Trace) -> None:
        """Keep the phases of later searches in a trace (local).

        Parameters
        ----------
        trace : distbfs.timing.Trace
            The trace.

        Examples
        --------
        >>> import distbfs
        >>> from distbfs.timing import Trace
        >>> trace = Trace()
        >>> with distbfs.open(distbfs.Graph.from_edges([0], [1])) as session:
        ...     session.watch(trace)
        ...     found = session.search(0)
        >>> trace.spans[-1].name
        'search'
        """
        self._trace = trace
        self._runner.watch(trace)

    def close(self) -> None:
        """Free the memory of searches; the session cannot search any more.

        Examples
        --------
        >>> import distbfs
        >>> session = distbfs.open(distbfs.Graph.from_edges([0], [1]))
        >>> session.search(0).reached
        2
        >>> session.close()
        """
        with self.lock:
            if self.lock.torn:  # the memory is the parent's
                self.closed = True
        if not self.closed:
            with self.lock.search():
                self.closed = True
                if self.vertices.on_devices and not self.vertices.whole_here:
                    self._searches += 1  # results lie in memory that is freed
                self._runner.close()
                while self.at_close:
                    self.at_close.pop()()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or self.world.size == 1:  # other ranks may not be here
            self.close()
