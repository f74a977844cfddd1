"""What type checkers see of the library: arguments and results."""

from importlib.util import find_spec

import pytest
from user_programs import check_typed

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
distbfs.bfs(graph, 0, depth_limit="2")  # wrong
distbfs.bfs([0, 1], 0)  # wrong

for place in (graph, "store", Path("store")):
    with distbfs.open(place, engine="reference", threads=2) as session:
        assert_type(session, distbfs.Session)
        assert_type(session.why, str)
        result = session.search(0, parents=False, stop=lambda: False)
        assert_type(result, distbfs.Result)
        level, parent = result.to_numpy()
        assert_type(level, Array | Any)
        assert_type(parent, npt.NDArray[np.int64] | None)
        session.search(0, records="yes")  # wrong
distbfs.open(3)  # wrong
distbfs.open(graph, "openmp")  # wrong
distbfs.open(graph, parts="two")  # wrong

assert_type(distbfs.path_lengths(graph, [0], dtype="int8"), Array)
assert_type(distbfs.reachable(graph, [(0, 1)]), Array)
assert_type(distbfs.betweenness(graph, normalized=False), Array)
assert_type(distbfs.closeness(graph), Array)
assert_type(distbfs.harmonic(graph, [0]), Array)
assert_type(distbfs.eccentricity(graph), Array)
assert_type(distbfs.diameter(graph), dict[str, Any])
assert_type(distbfs.within_hops(graph, [0], 2), Array)
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
