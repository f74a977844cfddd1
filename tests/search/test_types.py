"""What type checkers see of the library: arguments and results."""

from importlib.util import find_spec
from typing import get_args

import pytest
from user_programs import check_typed

from distbfs.registry import ENGINES, EXCHANGES, SEARCHERS
from distbfs.types import EngineName, ExchangeName, RunnerName

PROGRAM = """
from pathlib import Path
from typing import Any

import distbfs
import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

Array = npt.NDArray[Any]
graph = distbfs.Graph.from_edges([0, 1], [1, 2], directed=True)
assert_type(graph, distbfs.Graph)
assert_type(graph.n, int)
assert_type(distbfs.bfs(graph, 0, depth_limit=2, targets=[1]), distbfs.Result)
assert_type(distbfs.bfs(graph, 0).reached, int)
assert_type(graph.bfs(0), distbfs.Result)
assert_type(graph.num_edges, int)
graph.bfs(0, direction="up")  # wrong
distbfs.bfs(graph, 0, "gpu")  # wrong
distbfs.bfs(graph, 0, depth_limit="2")  # wrong
distbfs.bfs([0, 1], 0)  # wrong

for place in (graph, "store", Path("store")):
    with distbfs.open(place, engine="reference", threads=2) as session:
        assert_type(session, distbfs.Session)
        assert_type(session.why, str)
        result = session.search(0, parents=False, stop=lambda: False)
        assert_type(result, distbfs.Result)
        level, parent = result.to_numpy()
        assert_type(level, npt.NDArray[np.int32] | Any)
        assert_type(parent, npt.NDArray[np.int64] | None)
        session.search(0, records="yes")  # wrong
distbfs.open(3)  # wrong
distbfs.open(graph, "openmp")  # wrong
distbfs.open(graph, parts="two")  # wrong

assert_type(distbfs.path_lengths(graph, [0], dtype="int8"), Array)
assert_type(distbfs.reachable(graph, [(0, 1)]), npt.NDArray[np.bool_])
assert_type(distbfs.betweenness(graph, normalized=False), npt.NDArray[np.float64])
assert_type(distbfs.closeness(graph), npt.NDArray[np.float64])
assert_type(distbfs.harmonic(graph, [0]), npt.NDArray[np.float64])
assert_type(distbfs.eccentricity(graph), npt.NDArray[np.int32])
assert_type(distbfs.diameter(graph), int)
assert_type(distbfs.within_hops(graph, [0], 2), npt.NDArray[np.int64])
assert_type(distbfs.distances(graph, 0, [1]), npt.NDArray[np.int32])
assert_type(distbfs.connected_components(graph, "strong"), npt.NDArray[np.int64])
distbfs.connected_components(graph, "both")  # wrong
distbfs.closeness(graph, engine="gpu")  # wrong
distbfs.within_hops(graph, hops="2")  # wrong
distbfs.closeness(graph, None, False)  # wrong
states = (distbfs.State("level", "int32", "pair", -1),)
problem = distbfs.Problem("p", states, bits=True)
results = distbfs.search_many(graph, problem, [0], batch=3)
assert_type(results["level"], Array)
assert_type(distbfs.search_many(graph, "khop", None, hops=2)["within"], Array)
distbfs.search_many(graph, "closeness", None, resume="x", progress=lambda k, n: None)
distbfs.search_many(graph, "closeness", None, progress=3)  # wrong
distbfs.State("x", "int32", "edge")  # wrong
distbfs.search_many(graph, 3, None)  # wrong
distbfs.nothing  # wrong
"""


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("mypy") is None, reason="needs mypy")
def test_mypy_sees_the_library(tmp_path):
    check_typed(PROGRAM, tmp_path)


def names_in(kind):
    parts = get_args(kind)
    return {x for part in parts for x in (get_args(part) or [part])}


def test_names_in_types_are_those_that_are_registered():
    assert names_in(EngineName) == {"auto", *ENGINES}
    assert names_in(RunnerName) == {"auto", *SEARCHERS}
    assert names_in(ExchangeName) == {"auto", *EXCHANGES}
