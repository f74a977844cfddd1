"""Whole graphs for many searches, and what NetworkX says of them."""

from functools import lru_cache, partial

import networkx as nx
import numpy as np
from graphs import build

from distbfs.multisearch.application import Task
from distbfs.multisearch.apps import betweenness as of_betweenness
from distbfs.multisearch.apps import closeness as of_closeness
from distbfs.multisearch.apps import eccentricity as of_eccentricity
from distbfs.multisearch.apps import harmonic as of_harmonic
from distbfs.multisearch.apps import paths as of_paths
from distbfs.multisearch.apps.components import largest_component
from distbfs.multisearch.apps.diameter import diameter
from distbfs.multisearch.apps.khop import khop
from distbfs.multisearch.apps.reachability import reachability
from distbfs.multisearch.library import kept_rows
from distbfs.multisearch.part_bits import PartBitSearches
from distbfs.store.whole import NO_DELEGATES

HOSTS = ("reference", "openmp")


def run_app(app, on, sources, **own):
    """Return (the values that an application keeps, its facts), on all ranks."""
    results = app.run(Task(on, sources), **app.APP.options_of(own))
    return results["value"], results.facts


def levels(on, sources, dtype="auto"):
    """Return levels [k, n] on rank 0, [0, n] on others."""
    values, count = {}, 0 if on.world.rank else len(sources)
    rows = partial(kept_rows, values, (count, on.n))
    of_paths.run(Task(on, sources, rows=rows), dtype=dtype)
    return values["level"]


def betweenness(on, sources, **own):
    return run_app(of_betweenness, on, sources, **own)[0]


def closeness(on, sources, **own):
    return run_app(of_closeness, on, sources, **own)[0]


def harmonic(on, sources):
    return run_app(of_harmonic, on, sources)[0]


def eccentricity(on, sources):
    return run_app(of_eccentricity, on, sources)


def whole(source, directed=False):
    """Return tuples as one part without delegates."""
    options = {"directed": True} if directed else {}
    [part], _ = build(source, 1, threshold=NO_DELEGATES, **options)
    return part


@lru_cache(64)
def by_networkx(source, directed=False):
    """Return tuples as a graph of NetworkX, loops included."""
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(source.n))
    graph.add_edges_from(zip(source.u.tolist(), source.v.tolist(), strict=True))
    return graph


@lru_cache(64)
def all_levels(source, directed=False):
    """Return levels from every vertex by NetworkX, int32 [n, n], -1 = unreached."""
    out = np.full((source.n, source.n), -1, dtype=np.int32)
    lengths = nx.all_pairs_shortest_path_length(by_networkx(source, directed))
    for u, result in lengths:
        out[u, list(result)] = list(result.values())
    out.flags.writeable = False
    return out


@lru_cache(64)
def centralities(source, directed=False):
    """Return closeness by ``normalized``, and harmonic centrality, by vertex."""
    graph = by_networkx(source, directed)
    close = {
        normalized: [*nx.closeness_centrality(graph, wf_improved=normalized).values()]
        for normalized in (True, False)
    }
    near = nx.harmonic_centrality(graph)
    return close, [near[v] for v in range(source.n)]


@lru_cache(64)
def of_component(source, directed=False):
    """Return the largest component by NetworkX, of equals the one of the least id."""
    kind = nx.strongly_connected_components if directed else nx.connected_components
    values = kind(by_networkx(source, directed))
    return sorted(max(values, key=lambda one: (len(one), -min(one))))


@lru_cache(64)
def facts_of(source, directed=False):
    """Return what ``diameter`` tells of the largest component."""
    graph, component = by_networkx(source, directed), of_component(source, directed)
    inside = graph.subgraph(component)
    return {
        "connected": len(component) == source.n,
        "vertices": len(component),
        "radius": nx.radius(inside),
        "diameter": nx.diameter(inside),
    }


@lru_cache(64)
def betweenness_by_networkx(source, directed=False, **ways):
    """Return betweenness by vertex."""
    graph = by_networkx(source, directed)
    return [*nx.betweenness_centrality(graph, **ways).values()]


def check_applications(on, source, limits=(None, 0, 2, 500)):
    """Compare applications of a searcher with NetworkX; rank 0 alone has pairs.

    limits: last levels, of ``khop``
    """
    first, directed = on.world.rank == 0, on.directed
    every, wanted = np.arange(source.n), all_levels(source, directed)
    rows = levels(on, every)
    assert rows.dtype == np.int8
    np.testing.assert_array_equal(rows, wanted.astype(np.int8)[: source.n * first])
    close, near = centralities(source, directed)
    for normalized in (True, False):
        got = closeness(on, every, normalized=normalized)
        np.testing.assert_allclose(got, close[normalized], rtol=1e-12)
    np.testing.assert_allclose(harmonic(on, every), near, rtol=1e-12)
    check_estimates(on, source)
    component, wanted_facts = of_component(source, directed), facts_of(source, directed)
    value, facts = eccentricity(on, every)
    np.testing.assert_array_equal(value, wanted.max(axis=1))
    back = on.turned() if directed else None
    np.testing.assert_array_equal(largest_component(on, None, back), component)
    if directed and not wanted_facts["connected"]:
        assert facts == {**dict.fromkeys(wanted_facts), "connected": False}
    else:
        assert facts == wanted_facts
    by_bounds = diameter(on)
    assert (len(component) > 2) <= by_bounds.pop("searches") <= source.n
    assert by_bounds == wanted_facts
    pairs = np.random.default_rng(1).integers(0, source.n, (50, 2))
    reached = wanted[pairs[:, 0], pairs[:, 1]] >= 0
    assert reachability(on, pairs).tolist() == reached.tolist()[: 50 * first]
    for hops in limits:
        counts = khop(on, every[:5], hops)
        if hops is None or hops >= source.n:
            assert counts.shape[1] == wanted[:5].max() + 1
        else:
            assert counts.shape[1] == hops + 1
        for row, level in zip(counts, wanted, strict=False):
            near = [((level >= 0) & (level <= k)).sum() for k in range(len(row))]
            assert row.tolist() == near


def check_estimates(on, source):
    """Bounds of centralities from samples hold; those of all vertices are exact."""
    close, near = centralities(source, on.directed)
    ways = [(of_closeness, close[x], {"normalized": x}) for x in (True, False)]
    for samples in (max(source.n // 2, 2), max(source.n, 2)):
        asked = {"samples": samples, "error": None, "confidence": None}
        for app, wanted, more in (*ways, (of_harmonic, near, {})):
            results = app.run(Task(on, np.arange(source.n)), **asked, **more)
            if on.world.rank:
                continue
            value, low, high = (results[x] for x in ("value", "low", "high"))
            assert (low <= np.array(wanted) + 1e-9).all()
            assert (np.array(wanted) <= high + 1e-9).all()
            if samples >= source.n:
                np.testing.assert_allclose(value, wanted, rtol=1e-12)


def check_betweenness(on, source):
    """Compare exact betweenness of a searcher with NetworkX."""
    every = np.arange(source.n)
    for ways in ({}, {"normalized": False, "endpoints": True}):
        wanted = betweenness_by_networkx(source, on.directed, **ways)
        got = betweenness(on, every, **ways)
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-14)


def host_searches(world, parts, lanes, threads):
    """Return bit-parallel searches of parts, with the memory of words of any width."""
    searches = PartBitSearches(world, parts)
    searches.allocate(lanes, threads)
    return searches
