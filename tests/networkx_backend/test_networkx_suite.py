"""NetworkX's own tests of the functions that the backend has, run through it."""

import copy
import json
import os
import pickle
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import networkx as nx
import pytest

import distbfs
from distbfs.networkx_backend import backend
from distbfs.networkx_backend.info import FUNCTIONS, get_info

MODULES = (
    "bipartite.tests.test_basic",
    "centrality.tests.test_betweenness_centrality",
    "centrality.tests.test_closeness_centrality",
    "centrality.tests.test_harmonic_centrality",
    "components.tests.test_connected",
    "shortest_paths",
    "tests.test_dag",
    "tests.test_distance_measures",
    "traversal.tests.test_bfs",
)
SLOW = "not resistance and not kemeny and not effective_graph and not barycenter"


def installed():
    names = entry_points(group="networkx.backends").names
    return "distbfs" in names or bool(os.environ.get("CI"))


needs_entry_points = pytest.mark.skipif(
    not installed(), reason="distbfs is not installed: no entry points"
)


@needs_entry_points
def test_conversion_is_kept_on_the_graph(monkeypatch):
    converted = []

    def counting(*args, convert=backend.convert_from_nx, **kwargs):
        converted.append(1)
        return convert(*args, **kwargs)

    monkeypatch.setattr(backend, "convert_from_nx", counting)
    graph = nx.path_graph(4)
    nx.config.warnings_to_ignore.add("cache")
    for _ in range(3):
        assert nx.diameter(graph, backend="distbfs") == 3
        assert nx.has_path(graph, 0, 3, backend="distbfs")
    edges = len(converted)
    assert edges <= 2, "one for each set of edge attributes"
    graph.add_edge(0, 3)
    assert nx.diameter(graph, backend="distbfs") == 2
    assert len(converted) == edges + 1
    assert nx.diameter(copy.deepcopy(graph), backend="distbfs") == 2
    assert nx.diameter(pickle.loads(pickle.dumps(graph)), backend="distbfs") == 2


@needs_entry_points
def test_networkx_finds_the_backend():
    assert nx.utils.backends.backend_info["distbfs"] == get_info()


@pytest.mark.thorough
@needs_entry_points
def test_the_suite_of_networkx_passes(tmp_path):
    calls = tmp_path / "calls.json"
    root = Path(distbfs.__file__).parents[1]
    path = os.pathsep.join([str(Path(__file__).parent), str(root)])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-p", "calls_plugin", "-k", SLOW, "--pyargs"),
            *(f"networkx.algorithms.{name}" for name in MODULES),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "BACKEND_CALLS": str(calls),
            "NETWORKX_TEST_BACKEND": "distbfs",
            "NETWORKX_FALLBACK_TO_NX": "True",
        },
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
    assert "failed" not in done.stdout
    made = json.loads(calls.read_text())
    untested = {"generic_bfs_edges", "multi_source_dijkstra_path"}
    if backend.BEFORE_3_5:
        untested.add("multi_source_dijkstra_path_length")
    assert set(FUNCTIONS) - set(made) == untested, "NetworkX has no test"
