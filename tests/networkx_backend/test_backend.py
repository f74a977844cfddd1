"""The backend's functions against NetworkX's: results, their order, and errors."""

import gc
import inspect
import math
import re
import subprocess
import sys
from contextlib import suppress
from types import GeneratorType

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.device import cuda
from distbfs.errors import DeviceMissing
from distbfs.networkx_backend import backend
from distbfs.networkx_backend.graph import BackendGraph, whole_limit
from distbfs.networkx_backend.info import FUNCTIONS, get_info

KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
UNDIRECTED = ("connected_components", "is_connected")
CONNECTED = (
    *(*UNDIRECTED, "weakly_connected_components"),
    *("is_weakly_connected", "is_strongly_connected"),
)
ERRORS = (nx.NetworkXException, TypeError, ValueError)


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    def missing():
        raise DeviceMissing("no CUDA device: hidden by a test; use another machine")

    monkeypatch.setattr(cuda, "cupy", missing)


@st.composite
def graphs(draw, kinds=KINDS, most=10):
    """A graph of any kind; nodes are numbers, words and tuples in any order."""
    n = draw(st.integers(0, most))
    names = [k if k % 3 == 0 else f"n{k}" if k % 3 == 1 else (k, "x") for k in range(n)]
    if draw(st.booleans()):
        names = list(range(n))
    made = draw(st.sampled_from(kinds))()
    made.add_nodes_from(draw(st.permutations(names)))
    if n:
        node = st.sampled_from(names)
        made.add_edges_from(draw(st.lists(st.tuples(node, node), max_size=25)))
    return made


def told(error):
    """The text of an error; of what has no hash, as before Python 3.14."""
    return re.sub(r"^cannot use .* \((unhashable .*)\)$", r"\1", str(error))


def outcome(call):
    """What a call gives, iterators as lists, or the error that it raises."""
    try:
        result = call()
        if isinstance(result, GeneratorType) or hasattr(result, "__next__"):
            result = list(result)
    except ERRORS as error:
        return type(error), told(error)
    if isinstance(result, nx.Graph):
        return list(result), list(result.edges)
    return result


def same(name, graph, *args, **kwargs):
    ours = BackendGraph(*made(graph))
    answer = outcome(lambda: getattr(backend, name)(ours, *args, **kwargs))
    wanted = outcome(lambda: getattr(nx, name)(graph, *args, **kwargs))
    assert answer == wanted
    if isinstance(wanted, dict):
        assert list(answer) == list(wanted)
    check_types(answer)


def made(graph):
    return (backend.convert_from_nx(graph).graph,)


def check_types(value):
    """NumPy's numbers do not come out."""
    assert not isinstance(value, (np.generic, np.ndarray))
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple, set)):
        for item in value:
            check_types(item)


LIMITS = st.sampled_from(
    [None, 0, 1, 2, 3, 1.5, math.inf, -1, -math.inf, math.nan, 2**63, 1e300]
)
FROM_ONE = {
    "ancestors": (),
    "bfs_edges": ("depth_limit", "reverse"),
    "bfs_layers": (),
    "bfs_predecessors": ("depth_limit",),
    "bfs_successors": ("depth_limit",),
    "bfs_tree": ("depth_limit", "reverse"),
    "descendants": (),
    "generic_bfs_edges": ("depth_limit",),
    "single_source_shortest_path": ("cutoff",),
    "single_source_shortest_path_length": ("cutoff",),
    "single_target_shortest_path": ("cutoff",),
    "single_target_shortest_path_length": ("cutoff",),
}


@pytest.mark.parametrize("name", FROM_ONE)
@settings(max_examples=25, deadline=None)
@given(graph=graphs(), data=st.data())
def test_from_one_node(name, graph, data):
    node = data.draw(st.sampled_from([*graph, "nobody"]))
    options = {}
    for option in FROM_ONE[name]:
        values = st.booleans() if option == "reverse" else LIMITS
        options[option] = data.draw(values)
    if data.draw(st.booleans()):
        options = {}
    same(name, graph, node, **options)


@settings(max_examples=25, deadline=None)
@given(graph=graphs(), data=st.data())
def test_layers_from_several_nodes(graph, data):
    same("bfs_layers", graph, data.draw(st.lists(st.sampled_from([*graph, "nobody"]))))


@settings(max_examples=25, deadline=None)
@given(graph=graphs(), distance=st.sampled_from([0, 1, 2, 5, 99, -1, 1.0, 1.5]))
def test_descendants_at_distance(graph, distance):
    for node in [*graph][:2]:
        same("descendants_at_distance", graph, node, distance)
    same("descendants_at_distance", graph, "nobody", 1)


@settings(max_examples=25, deadline=None)
@given(graph=graphs(), data=st.data())
def test_has_path(graph, data):
    node = st.sampled_from([*graph, "nobody"])
    same("has_path", graph, data.draw(node), data.draw(node))


@settings(max_examples=25, deadline=None)
@given(graph=graphs(most=7), cutoff=LIMITS)
def test_all_pairs(graph, cutoff):
    same("all_pairs_shortest_path_length", graph, cutoff)


@pytest.mark.parametrize("name", CONNECTED)
@settings(max_examples=25, deadline=None)
@given(graph=graphs())
def test_components(name, graph):
    """NetworkX itself refuses directed graphs, or undirected ones."""
    wanted = outcome(lambda: getattr(nx, name)(graph))
    if isinstance(wanted, tuple) and wanted[0] is nx.NetworkXNotImplemented:
        ours = BackendGraph(*made(graph))
        assert outcome(lambda: getattr(nx, name)(ours)) == wanted
    else:
        same(name, graph)


@settings(max_examples=25, deadline=None)
@given(graph=graphs(most=5), data=st.data())
def test_eccentricity_and_diameter(graph, data):
    same("eccentricity", graph)
    node = st.sampled_from([*graph, "nobody"])
    same("eccentricity", graph, data.draw(node | st.lists(node, max_size=3)))
    same("eccentricity", graph, 3.5)
    same("eccentricity", graph, [[], *graph])
    with suppress(ValueError):  # of no nodes
        same("diameter", graph)


@pytest.mark.parametrize("name", FROM_ONE)
def test_what_has_no_hash(name):
    same(name, nx.path_graph(3), [[]])


def test_every_function_is_there_with_the_arguments_of_networkx():
    for name in FUNCTIONS:
        ours = list(inspect.signature(getattr(backend, name)).parameters)
        theirs = inspect.signature(getattr(nx, name)).parameters
        assert ours == [x for x in theirs if x in ours]
    assert set(FUNCTIONS) == set(get_info()["functions"])


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "answer"),
    [
        ("bfs_edges", (0, 1), {}, True),
        ("bfs_edges", (0, 1), {"sort_neighbors": sorted}, "sort_neighbors is not None"),
        ("bfs_edges", (0, 1, False, 2, sorted), {}, "sort_neighbors is not None"),
        ("generic_bfs_edges", (0, 1, iter), {}, "neighbors is not None"),
        ("generic_bfs_edges", (0, 1, None, 2), {}, True),
        ("eccentricity", (0,), {"sp": {}}, "sp is not None"),
        ("eccentricity", (0,), {"weight": "w"}, "weight is not None"),
        ("diameter", (0,), {"usebounds": True}, "usebounds is not None"),
        ("diameter", (0,), {"usebounds": False, "e": None}, True),
        ("has_path", (0, 1, 2), {}, True),
    ],
)
def test_what_is_left_to_networkx(name, args, kwargs, answer):
    assert backend.can_run(name, args, kwargs) == answer


def test_an_older_networkx_answers_itself(monkeypatch):
    for version, answer in [((3, 3), "NetworkX is older than 3.4"), ((3, 10), True)]:
        monkeypatch.setattr(backend, "VERSION", version)
        assert backend.can_run("bfs_edges", (nx.path_graph(3), 0), {}) == answer


def test_small_graphs_are_left_to_networkx():
    assert backend.should_run("bfs_edges", (nx.path_graph(9),), {}) != True  # noqa: E712
    assert backend.should_run("bfs_edges", (), {"G": nx.path_graph(999)}) is True


def test_what_takes_less_than_a_conversion_is_left_to_networkx():
    graph = nx.path_graph(999)
    for name in backend.CHEAP:
        assert backend.should_run(name, (graph, 0, 3), {}) == (
            "converting the graph takes longer"
        )
    ours = backend.convert_from_nx(graph)
    graph.__networkx_cache__["backends"] = {"distbfs": {"key": ours}}
    for name in backend.CHEAP:
        assert backend.should_run(name, (graph, 0, 3), {}) is True
        assert backend.should_run(name, (ours, 0, 3), {}) is True


@pytest.mark.parametrize("kind", KINDS)
def test_paths_between_any_two_nodes(kind):
    graph = kind(nx.gnm_random_graph(60, 70, seed=4, directed="Di" in kind.__name__))
    converted = BackendGraph(*made(graph))
    for source in range(0, 60, 7):
        for target in graph:
            wanted = nx.has_path(graph, source, target)
            assert backend.has_path(converted, source, target) == wanted


@pytest.mark.parametrize("edges", [0, 40, 90, 300])
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("name", [*CONNECTED, "bfs_layers"])
def test_components_of_larger_graphs(edges, words, name):
    one_way = name in CONNECTED[len(UNDIRECTED) :]
    graph = nx.gnm_random_graph(120, edges, seed=edges, directed=one_way)
    if edges == 300:
        nx.add_cycle(graph, range(120))
    if words:
        graph = nx.relabel_nodes(graph, {k: (str(k), k) for k in graph})
    for args in [()] if name in CONNECTED else [([v],) for v in [*graph][:5]]:
        same(name, graph, *args)


def test_garbage_is_collected_again():
    graph = BackendGraph(*made(nx.path_graph(9)))
    for collects in (True, False):
        (gc.enable if collects else gc.disable)()
        backend.single_source_shortest_path(graph, 0)
        backend.bfs_tree(graph, 0)
        assert gc.isenabled() == collects
    gc.enable()


@settings(max_examples=30, deadline=None)
@given(graph=graphs(kinds=(nx.Graph, nx.DiGraph)))
def test_there_and_back(graph):
    converted = backend.convert_from_nx(graph)
    assert backend.convert_from_nx(converted) is converted
    assert (len(converted), list(converted)) == (len(graph), list(graph))
    assert converted.is_directed() == graph.is_directed()
    assert not converted.is_multigraph()
    again = backend.convert_to_nx(converted)
    assert type(again) is type(graph)
    assert list(again) == list(graph)
    assert {v: set(x) for v, x in again.adj.items()} == {
        v: set(x) for v, x in graph.adj.items()
    }
    assert backend.convert_to_nx(7) == 7


def test_limits():
    assert [whole_limit(x) for x in (None, math.inf, 2, 2.5, -3)] == [
        *(None, None, 2, 3, 0)
    ]


def test_the_info_needs_no_networkx():
    code = (
        "import sys\nfrom distbfs.networkx_backend.info import get_info\n"
        "assert get_info()['backend_name'] == 'distbfs'\n"
        "assert not {'networkx', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
