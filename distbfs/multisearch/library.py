"""The Python interface to many searches at once; graphs are ``distbfs.Graph``.

Arrays [n] are by vertex id; for a graph of named nodes, this is the place of a node in
``graph.nodes``. Sources are vertices as ``distbfs.bfs`` takes them; None means all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import fields
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import xxhash

from distbfs import registry
from distbfs.errors import UsageError
from distbfs.multisearch.application import Application, Take, Task, no_rows
from distbfs.multisearch.base import Results, RunOptions, check_results
from distbfs.multisearch.pieces import Unfinished
from distbfs.multisearch.problem import Problem
from distbfs.multisearch.searchers import WholeSearcher
from distbfs.partition.part import Part
from distbfs.progress import Progress, Tell, no_progress, progress_bar
from distbfs.ranks.mpi import MpiWorld
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import choose_searcher
from distbfs.search.graph import Graph, check_graph
from distbfs.search.program_arrays import each_of
from distbfs.types import Array, Floats, Ids, Levels, Marks, RunnerName, World

Sources: TypeAlias = "Iterable[Any] | None"


@contextmanager
def ranks_of(comm: Any, graph: Graph) -> Iterator[World]:
    """Yield the ranks of a communicator, or this process alone for None (collective).

    Raises UsageError if the graphs of the ranks differ in size.
    """
    check_graph(graph)
    if comm is None:
        yield SoloWorld()
        return
    world = MpiWorld(comm)
    try:
        sizes = np.array([graph.n, graph._host_part.nn.edges])
        if (world.allreduce(sizes, "max") != world.allreduce(sizes, "min")).any():
            raise UsageError("ranks hold different graphs; allowed: the same on all")
        yield world
    finally:
        world.free()


@contextmanager
def searching(
    graph: Graph, engine: str, options: RunOptions, world: World
) -> Iterator[WholeSearcher]:
    """Yield the searcher for a graph and an engine, with its lock held.

    The graph keeps the searcher for later calls, but not its ranks.

    Raises WrongTypeError if it is not a graph.
    """

    def make(part: Part) -> WholeSearcher:
        return (kind or choose_searcher(engine)[0])(SoloWorld(), part, options)

    check_graph(graph)
    kind = None
    if world.size > 1:
        kind, _ = choose_searcher(engine, world)
    with graph._lock:
        name = engine if kind is None else kind.engine
        limits = options.device_memory, options.host_memory
        searcher: WholeSearcher = copy(
            graph._keep(("multisearch", name, *limits), make)
        )
        searcher.world, searcher.tails, searcher.options = world, {}, options
        with graph._lock.search():
            yield searcher


def ids_of(graph: Graph, sources: Sources) -> Ids:
    """Return the ids of sources, int64 [k]; raise UsageError if one is not a vertex.

    Call it before the search begins, because an iterator of sources may itself search.
    """
    check_graph(graph)
    if sources is None:
        return np.arange(graph.n, dtype=np.int64)
    ids = [graph.id_of(vertex) for vertex in each_of(sources, "sources")]
    return np.array(ids, dtype=np.int64)


def pairs_of(graph: Graph, pairs: Iterable[Any]) -> Ids:
    """Return the ids of pairs of vertices, int64 [q, 2]; see ``ids_of``."""
    check_graph(graph)
    ends = [
        [graph.id_of(vertex) for vertex in each_of(pair, "a pair")]
        for pair in each_of(pairs, "pairs")
    ]
    for place, pair in enumerate(ends):
        if len(pair) != 2:
            raise UsageError(f"pair {place} has {len(pair)} vertices; allowed: 2")
    return np.array(ends, dtype=np.int64).reshape(-1, 2)


def distinct(graph: Graph, sources: Sources) -> Ids:
    """Return the ids of sources, int64 [k], without repeats."""
    return np.array(list(dict.fromkeys(ids_of(graph, sources).tolist())), np.int64)


@contextmanager
def kept_rows(
    values: dict[str, Array], shape: tuple[int, int], dtype: str
) -> Iterator[Take]:
    """Yield a function that keeps rows of levels, in ``values`` at the end."""
    check_results(shape, dtype)
    rows = np.empty(shape, dtype)

    def take(first: int, some: Array) -> None:
        rows[first : first + len(some)] = some

    yield take
    values["level"] = rows


def shown(tell: Callable[[int, int], object] | bool | None) -> Progress:
    """Return a progress display: a bar, none, or calls of ``tell(done, total)``."""
    if not callable(tell):
        return progress_bar if tell else no_progress

    @contextmanager
    def progress(_: str, total: int) -> Iterator[Tell]:
        def show(done: int, more: int | None = None, /) -> None:
            tell(done, more or total)

        yield show

    return progress


def unfinished(
    app: Application,
    graph: Graph,
    place: str | PathLike[str],
    own: Mapping[str, Any],
    depth: int | None,
) -> Unfinished:
    """Return the file of finished searches; raise UsageError if the app keeps none."""
    if not app.resumes:
        raise UsageError(f"{app.name} cannot be resumed: give no file for it")
    part, digest = graph._host_part, xxhash.xxh3_128()
    for rows in (side["nn"] for side in part.sides):
        for array in (rows.offsets, rows.columns):
            digest.update(array.data)
    digest.update(part.vertices.data)
    facts = [graph.n, graph.directed, digest.hexdigest(), app.name, own, depth]
    anew, again = "delete it to begin anew", "the same call continues"
    return Unfinished(Path(place), facts, anew=anew, again=again)


def run_application(
    graph: Graph,
    name: str,
    places: Sources,
    engine: str,
    options: Mapping[str, Any],
    world: World,
    *,
    seed: int = 1,
    resume: str | PathLike[str] | None = None,
    progress: Callable[[int, int], object] | bool | None = None,
) -> Results:
    """Run an application; see ``search_many``."""
    check_graph(graph)
    app: Application = registry.lookup(registry.APPS, "application", name)
    ways = {field.name for field in fields(RunOptions)}
    chosen = RunOptions(**{k: v for k, v in options.items() if k in ways})
    own = app.options_of({k: v for k, v in options.items() if k not in ways})
    first = world.rank == 0
    sources, pairs = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    if app.takes == "pairs":
        pairs = pairs_of(graph, () if places is None else places)
    elif app.takes == "sources":
        sources = (ids_of if app.repeats else distinct)(graph, places)
    with searching(graph, engine, chosen, world) as searcher:
        file, values = None, dict[str, Array]()
        if app.takes == "sources":
            values["sources"] = sources
        if resume is not None:
            file = unfinished(app, graph, resume, own, chosen.depth)
        task = Task(
            searcher,
            sources,
            pairs,
            partial(kept_rows, values, (len(sources), graph.n)) if first else no_rows,
            progress=shown(progress if first else None),
            label=name,
            seed=seed,
            unfinished=file if first else None,
        )
        results = app.run(task, **own)
        facts = results.facts
        if rows := facts.get("largest"):
            names = graph.named(np.array([vertex for vertex, _ in rows])).tolist()
            largest = (value for _, value in rows)
            facts["largest"] = [*map(list, zip(names, largest, strict=True))]
        if file is not None and first:
            file.remove()
    return Results(values | results.values if first else {}, facts | searcher.tails)


def results_of(
    graph: Graph, name: str, places: Sources, engine: str, **options: Any
) -> Results:
    """Run an application on this process alone; see ``search_many``."""
    return run_application(graph, name, places, engine, options, SoloWorld())


def search_many(
    graph: Graph,
    problem: Problem | str,
    sources: Sources,
    engine: RunnerName = "auto",
    *,
    comm: Any = None,
    seed: int = 1,
    resume: str | PathLike[str] | None = None,
    progress: Callable[[int, int], object] | bool | None = None,
    **options: Any,
) -> Results:
    """Run a problem of your own from many sources, or an application by its name.

    Parameters
    ----------
    graph : Graph
        The graph.
    problem : Problem or str
        A problem, or an application of ``distbfs multisearch``: "apsp", "betweenness",
        "centralities", "closeness", "diameter", "eccentricity", "harmonic", "khop" or
        "reachability".
    sources : iterable of vertices, or None
        The vertices where searches begin, None for all; for "reachability", pairs of
        vertices.
    engine : {"auto", "reference", "openmp", "xbfs"}
        "auto" uses a CUDA device if there is one, else the CPU.
    comm : mpi4py.MPI.Comm, optional
        The ranks, which must all make this call with the same graph; each searches from
        a share of the sources. By default, only this process searches.
    seed : int, default 1
        Seed of the random sources of estimates.
    resume : path, optional
        File that keeps the finished searches of "closeness", "harmonic",
        "eccentricity", "centralities" or "betweenness". After an interruption, the same
        call continues from it; it is deleted at the end.
    progress : callable or True, optional
        Called with the number of finished searches and the number of all, by these
        applications and "apsp". True shows a bar, also in a notebook (where it needs
        ipywidgets).
    **options
        Options of the application, such as ``hops``, and those of ``RunOptions``:
        ``batch`` (searches at a time), ``threads``, ``depth`` (the last level),
        ``method``, ``memory`` (bytes); for engine "xbfs" also ``threshold``,
        ``device_memory`` and ``host_memory`` (bytes). With ``samples=K``, "closeness",
        "harmonic" and "betweenness" are estimated for all vertices from K random
        sources; with ``error=EPS``, from as many sources as this error requires. With a
        probability of ``confidence`` (0.95 by default), all exact values lie between
        the results "low" and "high". EPS is a share of the largest possible value,
        which is n - 1 for "harmonic" and 1 for "betweenness"; for "closeness", EPS is
        the error of mean distances as a share of the diameter of the largest component.

    Returns
    -------
    Results
        Arrays by name of state or, for an application, by the name that they have in
        the file that the command writes, such as ``results["within"]``;
        ``results.facts`` holds the figures that the command prints. With several ranks,
        only the first has the arrays of an application, and the arrays by pair of a
        problem.

    Raises
    ------
    UsageError
        The problem cannot run, a source is not a vertex, or a function of the problem
        failed; the message names the function and its line.
    WrongTypeError
        ``graph`` is not a Graph.
    InputError
        The file ``resume`` belongs to another graph, or to other sources or options.
    ResourceError
        Memory runs out, or the engine finds no device or compiler.

    Notes
    -----
    The functions of a problem are those of McLaughlin, Riedy, Bader 2015, Section III.
    Problems with ``bits`` run 64 to 512 searches in one traversal, with a bit for each
    search (Then et al., *The more the merrier*, VLDB 2014).

    Examples
    --------
    >>> import distbfs
    >>> import numpy as np
    >>> def visit_vertex(s, i, u, v):
    ...     np.add.at(s.edges, i, 1)
    >>> problem = distbfs.Problem(
    ...     "edges in reach",
    ...     (distbfs.State("edges", "int64", "search"),),
    ...     {"visit_vertex": visit_vertex},
    ... )
    >>> graph = distbfs.Graph.from_edges([0, 1, 3], [1, 2, 4])
    >>> distbfs.search_many(graph, problem, [0, 3], "reference")["edges"]
    array([4, 2])
    >>> distbfs.search_many(graph, "khop", [0, 3], hops=1)["within"]
    array([[1, 2],
           [1, 2]])
    >>> near = distbfs.search_many(graph, "harmonic", None, "reference", samples=3)
    >>> bool((near["low"] <= distbfs.harmonic(graph)).all())
    True
    """
    with ranks_of(comm, graph) as world:
        if isinstance(problem, str):
            return run_application(
                graph,
                problem,
                sources,
                engine,
                options,
                world,
                seed=seed,
                resume=resume,
                progress=progress,
            )
        if resume is not None or progress is not None:
            raise UsageError("resume and progress are for applications, given by name")
        chosen, ids = RunOptions(**options), ids_of(graph, sources)
        with searching(graph, engine, chosen, world) as searcher:
            return searcher.run(problem, ids)


def path_lengths(
    graph: Graph,
    sources: Sources = None,
    dtype: str = "auto",
    engine: RunnerName = "auto",
) -> Array:
    """Return the lengths of shortest paths from sources to all vertices.

    Parameters
    ----------
    graph : Graph
        The graph.
    sources : iterable of vertices, optional
        By default all vertices.
    dtype : {"auto", "int8", "int16", "int32"}
        "auto" chooses the narrowest that holds all lengths; "int8" holds levels up to
        126.
    engine : {"auto", "reference", "openmp", "xbfs"}
        See ``search_many``.

    Returns
    -------
    ndarray, shape (k, n)
        Hops from source k; -1 for unreached vertices.

    Raises
    ------
    UsageError
        A source is not a vertex, or a length does not fit ``dtype``.
    OutOfMemory
        The lengths do not fit the memory of this machine.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 1, 2, 2], [1, 2, 3, 4])
    >>> distbfs.path_lengths(graph, [0, 3])
    array([[0, 1, 2, 3, 3],
           [3, 2, 1, 0, 2]], dtype=int8)
    """
    return results_of(graph, "apsp", sources, engine, dtype=dtype)["level"]


def reachable(graph: Graph, pairs: Iterable[Any], engine: RunnerName = "auto") -> Marks:
    """Return whether the first vertex of each pair reaches the second.

    Parameters
    ----------
    graph : Graph
        The graph.
    pairs : iterable of pairs of vertices
        Each distinct first vertex is searched from once.
    engine : {"auto", "reference", "openmp", "xbfs"}
        See ``search_many``.

    Returns
    -------
    ndarray of bool, shape (q,)
        A flag for each pair.

    Raises
    ------
    UsageError
        A pair does not have two vertices.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 1], [1, 2], n=4)
    >>> distbfs.reachable(graph, [(0, 2), (0, 3)])
    array([ True, False])
    """
    return results_of(graph, "reachability", pairs, engine)["reachable"]


def betweenness(
    graph: Graph,
    sources: Sources = None,
    *,
    normalized: bool = True,
    endpoints: bool = False,
    engine: RunnerName = "auto",
) -> Floats:
    """Return betweenness centrality, exact or estimated from some sources.

    Parameters
    ----------
    graph : Graph
        The graph.
    sources : iterable of vertices, optional
        By default all vertices, so that values are exact. Fewer sources give an
        estimate, which is scaled as in NetworkX for ``k``.
    normalized : bool, default True
        Scale as NetworkX does by default.
    endpoints : bool, default False
        Whether the ends of paths are counted.
    engine : {"auto", "reference", "openmp", "xbfs"}
        See ``search_many``.

    Returns
    -------
    ndarray of float64, shape (n,)
        Betweenness by vertex id.

    Raises
    ------
    UsageError
        A source is not a vertex.

    Notes
    -----
    Source: Brandes, *A faster algorithm for betweenness centrality*, 2001.  Values are
    those of ``betweenness_centrality`` of NetworkX 3.6.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 1, 2, 2], [1, 2, 3, 4])
    >>> distbfs.betweenness(graph, normalized=False)
    array([0., 3., 5., 0., 0.])
    """
    ways = {"normalized": normalized, "endpoints": endpoints}
    return results_of(graph, "betweenness", sources, engine, **ways)["value"]


def closeness(
    graph: Graph,
    sources: Sources = None,
    *,
    normalized: bool = True,
    engine: RunnerName = "auto",
) -> Floats:
    """Return closeness centrality.

    Parameters
    ----------
    graph : Graph
        The graph.  In a directed one, distances are those to the vertex.
    sources : iterable of vertices, optional
        The vertices that are wanted, by default all.
    normalized : bool, default True
        Multiply by the share of vertices in reach, like ``wf_improved`` of NetworkX.
    engine : {"auto", "reference", "openmp", "xbfs"}
        See ``search_many``.

    Returns
    -------
    ndarray of float64, shape (n,)
        Closeness by vertex id; NaN for vertices that were not asked for.

    Raises
    ------
    UsageError
        A source is not a vertex.

    Notes
    -----
    Values are those of ``closeness_centrality`` of NetworkX (Freeman 1979; Wasserman
    and Faust 1994).

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 0, 0], [1, 2, 3])
    >>> distbfs.closeness(graph, [0, 1])
    array([1. , 0.6, nan, nan])
    """
    own = {"normalized": normalized}
    return results_of(graph, "closeness", sources, engine, **own)["value"]


def harmonic(
    graph: Graph, sources: Sources = None, *, engine: RunnerName = "auto"
) -> Floats:
    """Return harmonic centrality.

    Parameters
    ----------
    graph : Graph
        The graph.  In a directed one, distances are those to the vertex.
    sources : iterable of vertices, optional
        The vertices that are wanted, by default all.
    engine : {"auto", "reference", "openmp", "xbfs"}
        See ``search_many``.

    Returns
    -------
    ndarray of float64, shape (n,)
        The sum of 1 / distance over all vertices in reach, by vertex id; NaN for
        vertices that were not asked for.

    Raises
    ------
    UsageError
        A source is not a vertex.

    Notes
    -----
    Values are those of ``harmonic_centrality`` of NetworkX (Boldi and Vigna 2014).

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 0, 0], [1, 2, 3])
    >>> distbfs.harmonic(graph, [0, 1])
    array([ 3.,  2., nan, nan])
    """
    return results_of(graph, "harmonic", sources, engine)["value"]


def eccentricity(
    graph: Graph, sources: Sources = None, engine: RunnerName = "auto"
) -> Levels:
    """Return the distance from each vertex to the farthest vertex in its reach.

    Parameters
    ----------
    graph : Graph
        The graph; unlike in NetworkX it need not be connected.
    sources : iterable of vertices, optional
        The vertices that are wanted, by default all.
    engine : {"auto", "reference", "openmp", "xbfs"}
        See ``search_many``.

    Returns
    -------
    ndarray of int32, shape (n,)
        Hops by vertex id; -1 for vertices that were not asked for.

    Raises
    ------
    UsageError
        A source is not a vertex.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 1, 4], [1, 2, 5], n=6)
    >>> distbfs.eccentricity(graph)
    array([2, 1, 2, 0, 1, 1], dtype=int32)
    """
    return results_of(graph, "eccentricity", sources, engine)["value"]


def diameter(graph: Graph, engine: RunnerName = "auto") -> int:
    """Return the exact diameter of the largest component.

    ``search_many(graph, "diameter", None).facts`` also has the radius, the size of the
    component, and whether the graph is connected.

    Parameters
    ----------
    graph : Graph
        The graph.  In a directed one, the component is strongly connected.
    engine : {"auto", "reference", "openmp", "xbfs"}
        See ``search_many``.

    Returns
    -------
    int
        The largest number of hops between two vertices of that component.

    Raises
    ------
    UsageError
        The graph has no vertices.

    Notes
    -----
    A few searches suffice to bound all eccentricities. Source: Takes, Kosters,
    *Determining the Diameter of Small World Networks*, CIKM 2011.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 1, 2, 2], [1, 2, 3, 4])
    >>> distbfs.diameter(graph)
    3
    >>> distbfs.search_many(graph, "diameter", None).facts["radius"]
    2
    """
    most = results_of(graph, "diameter", None, engine).facts["diameter"]
    if most is None:
        raise UsageError("the graph has no vertices, and so no diameter")
    return int(most)


def within_hops(
    graph: Graph,
    sources: Sources = None,
    hops: int | None = None,
    engine: RunnerName = "auto",
) -> Ids:
    """Return the number of vertices within 0, 1, … hops of sources.

    Parameters
    ----------
    graph : Graph
        The graph.
    sources : iterable of vertices, optional
        By default all vertices.
    hops : int, optional
        The largest number of hops; by default, or if it is n or more, the largest
        depth.
    engine : {"auto", "reference", "openmp", "xbfs"}
        See ``search_many``.

    Returns
    -------
    ndarray of int64, shape (k, hops + 1)
        Counts, including the source.

    Raises
    ------
    UsageError
        A source is not a vertex, or ``hops`` is negative.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> distbfs.within_hops(graph, [0, 1], 2)
    array([[1, 2, 3],
           [1, 3, 4]])
    """
    return results_of(graph, "khop", sources, engine, hops=hops)["within"]
