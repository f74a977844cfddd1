"""The backend against NetworkX on graphs that change, on views of them, on any node.

Values, order, the types of nodes, and errors are compared, through NetworkX's dispatch,
which keeps conversions.
"""

import random
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
from test_backend import told
from test_networkx_suite import needs_entry_points

import distbfs
from distbfs.errors import InputError
from distbfs.networkx_backend import backend
from distbfs.networkx_backend.backend import BETWEEN_TWO
from distbfs.networkx_backend.info import FUNCTIONS

KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
OF_GRAPHS = (
    *("all_pairs_shortest_path", "average_shortest_path_length", "center", "diameter"),
    *("betweenness_centrality", "connected_components", "is_bipartite"),
    *("is_connected", "periphery", "radius", "weakly_connected_components"),
    *("is_strongly_connected", "is_weakly_connected"),
)
MULTI_SOURCE = ("multi_source_dijkstra_path", "multi_source_dijkstra_path_length")
STEPS = 12


class Words(nx.DiGraph):
    """A subclass that adds to what NetworkX does and changes none of it."""

    def add_edge(self, u, v, **attributes):
        super().add_edge(u, v, **attributes, word=f"{u} to {v}")


@pytest.fixture(autouse=True)
def no_warnings(monkeypatch):
    monkeypatch.setattr(nx.config, "warnings_to_ignore", {"cache"})


def comparable(value):
    """A text that tells values, their order and types apart."""
    if isinstance(value, set):
        return sorted(map(repr, value))
    if isinstance(value, dict) and all(type(x) in (float, int) for x in value.values()):
        sums = {k: f"{x:.11g}" for k, x in value.items() if type(x) is float}
        return repr({**value, **sums})
    if isinstance(value, nx.Graph):
        return repr((type(value), list(value), list(value.edges)))
    if isinstance(value, list):
        return list(map(comparable, value))
    return repr(value)


def outcome(name, args, options, backend):
    """What a call gives, or its error; None where it is left to NetworkX."""
    try:
        result = getattr(nx, name)(*args, **options, backend=backend)
        if isinstance(result, Iterator):
            result = list(result)
    except (nx.NetworkXException, TypeError, ValueError) as error:
        return type(error), told(error)
    return comparable(result)


def same(name, *args, **options):
    result, wanted = (
        outcome(name, args, options, backend) for backend in ("distbfs", "networkx")
    )
    assert result == wanted, (name, args[1:], options)


def arguments(rng, name, graph):
    """Arguments of a call after the graph: nodes, those equal to them, and others."""

    def node():
        nodes = [*graph, "nobody", 99, -1, 2.5, [], [[]], np.array([1, 2])]
        drawn = rng.choice(nodes[: len(graph)] * 8 + nodes)
        if isinstance(drawn, int) and rng.random() < 0.3:
            drawn = rng.choice([float(drawn), np.int64(drawn), np.float32(drawn)])
        return rng.choice([True, False]) if rng.random() < 0.04 else drawn

    def ends():
        return {end: node() for end in ("source", "target") if rng.random() < 0.6}

    limit = rng.choice([None, None, 0, 1, 2, 3, 1.5, float("inf"), float("nan"), -1])
    if name in OF_GRAPHS:
        return (), {}
    special = {
        "all_pairs_shortest_path_length": lambda: ((limit,), {}),
        "bfs_layers": lambda: (
            rng.choice([(node(),), ([node(), node(), node()],)]),
            {},
        ),
        "bidirectional_shortest_path": lambda: ((node(), node()), {}),
        "closeness_centrality": lambda: (rng.choice([(), (node(),)]), {}),
        "descendants_at_distance": lambda: (
            (node(), rng.choice([0, 1, 2, 2.0, 1.5, True, "1", 99])),
            {},
        ),
        "eccentricity": lambda: (
            rng.choice([(), (node(),), ([node(), node()],)]),
            {},
        ),
        "harmonic_centrality": lambda: (
            rng.choice([(), (node(),), ([node(), node()], None, [node(), node()])]),
            {},
        ),
        "has_path": lambda: ((node(), node()), {}),
        **dict.fromkeys(BETWEEN_TWO, lambda: ((), ends())),
        **dict.fromkeys(
            MULTI_SOURCE, lambda: (([node(), node()], limit), {"weight": None})
        ),
    }
    if name in special:
        return special[name]()
    options = {}
    if name.startswith("single"):
        options["cutoff"] = limit
    elif name not in ("ancestors", "descendants"):
        options["depth_limit"] = limit
    if name in ("bfs_edges", "bfs_tree"):
        options["reverse"] = rng.random() < 0.5
    return (node(),), options


def change(rng, graph):
    """Change a graph by one of its public methods."""

    def name():
        return rng.choice([*range(12), "a", frozenset("b"), "c", np.int64(12)])

    nodes, edges = list(graph), list(graph.edges())
    pairs = [(name(), name()) for _ in range(rng.randrange(1, 8))]
    ways = [
        lambda: graph.add_node(name()),
        lambda: graph.add_edge(name(), name()),
        lambda: graph.add_edges_from(pairs),
        lambda: graph.add_edges_from(pairs),
        lambda: graph.update(edges=pairs),
        lambda: graph.add_weighted_edges_from((u, v, 2.0) for u, v in pairs),
        lambda: nodes and graph.remove_node(rng.choice(nodes)),
        lambda: graph.remove_nodes_from(nodes[:1]),
        lambda: edges and graph.remove_edge(*rng.choice(edges)),
        lambda: graph.remove_edges_from(edges[:2]),
        lambda: rng.random() < 0.2 and graph.clear_edges(),
    ]
    rng.choice(ways)()


def view_of(rng, graph):
    """A view; filters leave both directions of an edge or none."""
    chosen = [node for node in graph if rng.random() < 0.8]
    salt = rng.random()

    def keep_edge(u, v, key=0):
        return hash((frozenset((u, v)), key, salt)) % 5 > 0

    ways = [
        lambda: graph.subgraph(chosen),
        lambda: nx.subgraph_view(graph, filter_node=lambda v: hash((v, salt)) % 5 > 0),
        lambda: nx.subgraph_view(graph, filter_edge=keep_edge),
        lambda: nx.restricted_view(graph, chosen[:2], list(graph.edges)[:2]),
        lambda: graph.edge_subgraph(list(graph.edges)[::2]),
        lambda: graph.to_directed(as_view=True),
        lambda: graph.to_undirected(as_view=True),
        lambda: graph.copy(as_view=True),
    ]
    if graph.is_directed():
        ways.append(lambda: graph.reverse(copy=False))
    return rng.choice(ways)()


@pytest.mark.thorough
@needs_entry_points
@pytest.mark.parametrize("kind", [*KINDS, Words])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(x, marks=pytest.mark.thorough) for x in (2, 3))]
)
def test_views_and_changes(kind, seed):
    rng = random.Random(f"{kind.__name__} {seed}")
    graph = kind()
    if seed % 2:
        graph.add_nodes_from(range(6))
    for _ in range(4):
        change(rng, graph)
    views = [graph]
    for _ in range(STEPS):
        if len(views) < 6:
            views.append(view_of(rng, rng.choice(views)))
        for view in rng.sample(views, min(3, len(views))):
            for name in rng.sample(list(FUNCTIONS), 5):
                args, options = arguments(rng, name, view)
                same(name, view, *args, **options)
        change(rng, graph)
    nx.freeze(graph)
    for view in views:
        for name in FUNCTIONS:
            args, options = arguments(rng, name, view)
            same(name, view, *args, **options)


@pytest.mark.thorough
@needs_entry_points
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", [False, True])
def test_order_of_larger_graphs(kind, named):
    directed = kind().is_directed()
    graph = kind(nx.gnm_random_graph(300, 900, seed=7, directed=directed))
    if named:
        order = random.Random(7).sample(range(300), 300)
        graph = nx.relabel_nodes(graph, {k: (order[k], "x") for k in graph})
    for node in [*graph][:1]:
        for name in FUNCTIONS:
            if name in (*OF_GRAPHS, "eccentricity", "has_path"):
                continue
            args = () if name.startswith("all_pairs") else (node,)
            if name == "descendants_at_distance":
                args = (node, 3)
            if name == "bidirectional_shortest_path":
                args = (node, [*graph][-1])
            options = {"weight": None} if name in MULTI_SOURCE else {}
            args = ([*graph][:3],) if name in MULTI_SOURCE else args
            same(name, graph, *args, **options)
    same("bfs_layers", graph, [*graph][::60])


@needs_entry_points
def test_every_view_is_converted_again():
    graph = nx.path_graph(5)
    views = [
        graph.subgraph(range(4)),
        graph.to_directed(as_view=True),
        nx.subgraph_view(graph, filter_node=lambda v: v < 4),
        graph.to_directed(as_view=True).reverse(copy=False),
    ]
    for view in views:
        assert nx.has_path(view, 0, 3, backend="distbfs")
    graph.remove_edge(1, 2)
    for view in views:
        assert not nx.has_path(view, 0, 3, backend="distbfs")


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_multigraph_of_which_edges_are_filtered(kind):
    graph = kind([(0, 1), (0, 1), (1, 2), (1, 2), (2, 3), (0, 3)])
    view = nx.subgraph_view(graph, filter_edge=lambda u, v, key: {u, v} != {1, 2})
    assert distbfs.bfs(distbfs.Graph.from_networkx(view), 0).level.tolist() == (
        [0, 1, 2, 1] if kind is nx.MultiGraph else [0, 1, -1, 1]
    )


def test_a_filter_that_leaves_one_direction_is_left_to_networkx():
    view = nx.subgraph_view(nx.path_graph(4), filter_edge=lambda u, v: u < v)
    with pytest.raises(NotImplementedError, match="one direction only; allowed"):
        backend.convert_from_nx(view)
    with pytest.raises(InputError, match="one direction only; allowed"):
        distbfs.Graph.from_networkx(view)


def test_graphs_with_neighbours_of_their_own_are_left_to_networkx():
    class Complement(nx.Graph):
        def neighbors(self, node):
            return iter(set(self) - set(self._adj[node]) - {node})

    graph = Complement([(0, 1), (1, 2)])
    reason = "Complement has its own neighbors"
    assert backend.can_run("bfs_edges", (graph, 0), {}) == reason
    assert backend.can_run("bfs_edges", (), {"G": graph, "source": 0}) == reason
    assert backend.can_run("bfs_edges", (Words(), 0), {}) is True


def test_single_searches_of_filtered_views_are_left_to_networkx():
    graph = nx.path_graph(999)
    view = graph.subgraph(range(998))
    reason = "a filtered view is converted again for each call"
    assert backend.should_run("bfs_edges", (view, 0), {}) == reason
    assert backend.should_run("diameter", (view,), {}) is True
    assert backend.should_run("bfs_edges", (graph.copy(as_view=True), 0), {}) is True
