"""The Python interface to many searches at once; graphs are ``distbfs.Graph``.

>>> import distbfs
>>> graph = distbfs.Graph.from_edges([0, 1, 2, 2], [1, 2, 3, 4])
>>> distbfs.path_lengths(graph, [0, 3])
array([[0, 1, 2, 3, 3],
       [3, 2, 1, 0, 2]], dtype=int8)
>>> distbfs.betweenness(graph, normalized=False)
array([0., 3., 5., 0., 0.])
>>> ends = distbfs.diameter(graph)
>>> ends["radius"], ends["diameter"]
(2, 3)

Arrays [n] are by vertex id, which is the place of a node in ``graph.nodes`` for a graph
of named nodes.  Sources are vertices as ``distbfs.bfs`` takes them; None is all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np

from distbfs import registry
from distbfs.errors import UsageError
from distbfs.exchange.world import SoloWorld
from distbfs.multisearch.application import Application, Take, Task
from distbfs.multisearch.apps import betweenness as of_betweenness
from distbfs.multisearch.apps import closeness as of_closeness
from distbfs.multisearch.apps import diameter as of_diameter
from distbfs.multisearch.apps import eccentricity as of_eccentricity
from distbfs.multisearch.apps import khop, paths
from distbfs.multisearch.apps import reachability as of_reachability
from distbfs.multisearch.base import Results, RunOptions
from distbfs.multisearch.problem import Problem
from distbfs.multisearch.searchers import WholeSearcher
from distbfs.options import check_several
from distbfs.partition.part import Part
from distbfs.search.breadth_first import check_graph
from distbfs.search.choose import choose_runner
from distbfs.search.graph import Graph
from distbfs.types import Array, Ids

Sources: TypeAlias = "Iterable[Any] | None"


@contextmanager
def searching(
    graph: Graph, engine: str, options: RunOptions | None = None
) -> Iterator[WholeSearcher]:
    """Yield what runs problems on a graph, kept with it for an engine, alone.

    WrongTypeError for what is no graph.
    """

    def make(part: Part) -> WholeSearcher:
        runner, _ = choose_runner(engine)
        return WholeSearcher(SoloWorld(), runner, part, chosen)

    check_graph(graph)
    chosen = options or RunOptions()
    with graph.lock:
        searcher: WholeSearcher = graph.kept(("multisearch", engine), make)
        searcher.options = chosen
        yield searcher


def ids_of(graph: Graph, sources: Sources) -> Ids:
    """Return the ids of vertices, int64 [k]; UsageError for what is none."""
    if sources is None:
        return np.arange(graph.n, dtype=np.int64)
    several = check_several("sources", sources)
    return np.array([graph.id_of(vertex) for vertex in several], dtype=np.int64)


def pairs_of(graph: Graph, pairs: Iterable[Any]) -> Ids:
    """Return the ids of pairs of vertices, int64 [q, 2]; UsageError for others."""
    ends = [
        [graph.id_of(vertex) for vertex in check_several("a pair", pair)]
        for pair in check_several("pairs", pairs)
    ]
    for place, pair in enumerate(ends):
        if len(pair) != 2:
            raise UsageError(f"pair {place} has {len(pair)} vertices; allowed: 2")
    return np.array(ends, dtype=np.int64).reshape(-1, 2)


def distinct(graph: Graph, sources: Sources) -> Ids:
    """Return the ids of vertices, int64 [k], each once."""
    return np.array(list(dict.fromkeys(ids_of(graph, sources).tolist())), np.int64)


class KeptArrays:
    """Keeps what an application hands over; see ``application.Output``."""

    def __init__(self, count: int, n: int) -> None:
        self.values: dict[str, Array] = {}
        self._shape = (count, n)

    def keep(self, arrays: Mapping[str, Array]) -> None:
        """Keep arrays by name."""
        self.values.update(arrays)

    def keep_pairs(self, answers: Array) -> None:
        """Keep an answer for each pair."""
        self.values["reachable"] = answers

    @contextmanager
    def rows(self, dtype: str) -> Iterator[Take]:
        """Yield what keeps rows of levels."""
        level = np.empty(self._shape, dtype=dtype)

        def take(first: int, rows: Array) -> None:
            level[first : first + len(rows)] = rows

        yield take
        self.values["level"] = level


def run_application(
    graph: Graph, name: str, places: Sources, engine: str, options: Mapping[str, Any]
) -> Results:
    """Run an application; see ``search_many``."""
    check_graph(graph)
    app: Application = registry.lookup(registry.APPS, "application", name)
    ways = {field.name for field in fields(RunOptions)}
    chosen = RunOptions(**{k: v for k, v in options.items() if k in ways})
    own = app.options_of({k: v for k, v in options.items() if k not in ways})
    sources, pairs = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    if app.takes == "pairs":
        pairs = pairs_of(graph, () if places is None else places)
    elif app.takes == "sources":
        sources = (ids_of if app.repeats else distinct)(graph, places)
    with searching(graph, engine, chosen) as searcher:
        kept = KeptArrays(len(sources), graph.n)
        facts = app.run(Task(searcher, sources, pairs, kept), **own)
    return Results(kept.values, facts)


def search_many(
    graph: Graph,
    problem: Problem | str,
    sources: Sources,
    engine: str = "auto",
    **options: Any,
) -> Results:
    """Run a problem of one's own from sources, or an application by its name.

    problem: see ``Problem`` and ``State``; or a name as of ``distbfs multisearch``,
    whose ``sources`` may be pairs of vertices (reachability)
    engine: "auto", "reference", "openmp" or "xbfs"; options: of ``RunOptions``, as
    ``batch``, ``threads``, ``depth``, ``method``, ``threshold``, and those of the
    application, as ``hops``

    Results are found by name of state, or by their name in the file that the command
    writes; ``facts`` are what it prints.  Raises UsageError for a problem that cannot
    run, and for an error in one of its functions, which it names with the line.

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
    >>> distbfs.search_many(graph, problem, [0, 3])["edges"]
    array([4, 2])
    >>> distbfs.search_many(graph, "khop", [0, 3], hops=1)["within"]
    array([[1, 2],
           [1, 2]])
    """
    if isinstance(problem, str):
        return run_application(graph, problem, sources, engine, options)
    chosen = RunOptions(**options)
    with searching(graph, engine, chosen) as searcher:
        return searcher.run(problem, ids_of(graph, sources), chosen)


def path_lengths(
    graph: Graph, sources: Sources = None, dtype: str = "auto", engine: str = "auto"
) -> Array:
    """Return the lengths of shortest paths from sources, [k, n].

    dtype: int8 (to 126), int16 or int32, -1 = unreached; "auto": the narrowest that
    holds all of them.
    """
    with searching(graph, engine) as searcher:
        return paths.levels(searcher, ids_of(graph, sources), dtype)


def reachable(graph: Graph, pairs: Iterable[Any], engine: str = "auto") -> Array:
    """Return whether the first vertex of each pair reaches the second, bool [q]."""
    with searching(graph, engine) as searcher:
        return of_reachability.reachability(searcher, pairs_of(graph, pairs))


def betweenness(
    graph: Graph,
    sources: Sources = None,
    *,
    normalized: bool = True,
    endpoints: bool = False,
    engine: str = "auto",
) -> Array:
    """Return betweenness as NetworkX has it, float64 [n].

    endpoints: whether the ends of paths are counted.  Of some sources: an estimate,
    scaled as by ``k`` there.
    """
    with searching(graph, engine) as searcher:
        return of_betweenness.betweenness(
            searcher,
            distinct(graph, sources),
            normalized=normalized,
            endpoints=endpoints,
        )


def closeness(
    graph: Graph,
    sources: Sources = None,
    *,
    normalized: bool = True,
    engine: str = "auto",
) -> Array:
    """Return closeness as NetworkX has it, float64 [n], NaN for other vertices.

    normalized: ``wf_improved`` there.
    """
    with searching(graph, engine) as searcher:
        return of_closeness.closeness(
            searcher, distinct(graph, sources), normalized=normalized
        )


def eccentricity(graph: Graph, sources: Sources = None, engine: str = "auto") -> Array:
    """Return how far the farthest vertex in reach is, int32 [n], -1 for other vertices.

    Unlike NetworkX it takes graphs that are not connected.
    """
    with searching(graph, engine) as searcher:
        return of_eccentricity.eccentricity(searcher, distinct(graph, sources))[0]


def diameter(graph: Graph, engine: str = "auto") -> dict[str, Any]:
    """Return ``diameter``, ``radius`` and ``vertices`` of the largest component.

    And whether the graph is ``connected``, and the ``searches`` that it took.  Exact.
    """
    with searching(graph, engine) as searcher:
        return of_diameter.diameter(searcher)


def within_hops(
    graph: Graph,
    sources: Sources = None,
    hops: int | None = None,
    engine: str = "auto",
) -> Array:
    """Return the vertices within 0, 1, … hops of sources, int64 [k, hops + 1].

    hops: None, or n and more, for all, up to the largest depth of the sources
    """
    with searching(graph, engine) as searcher:
        return khop.khop(searcher, ids_of(graph, sources), hops)
