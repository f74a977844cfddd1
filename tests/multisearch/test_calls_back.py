"""Functions that a call of many searches calls, and that search its graph."""

from functools import partial

import numpy as np
import pytest
from waiting import ends, halted, in_child

import distbfs
from distbfs.errors import UsageError
from distbfs.multisearch.problem import FUNCTIONS

PAIRS = [(0, 2), (4, 1)]
REFUSED = "cannot search its graph"
CALLS = {
    "path_lengths": lambda graph, some: distbfs.path_lengths(graph, some([0, 3])),
    "reachable": lambda graph, some: distbfs.reachable(graph, some(PAIRS)),
    "a pair": lambda graph, some: distbfs.reachable(graph, map(some, PAIRS)),
    "betweenness": lambda graph, some: distbfs.betweenness(graph, some([0, 3])),
    "closeness": lambda graph, some: distbfs.closeness(graph, some([0, 3])),
    "harmonic": lambda graph, some: distbfs.harmonic(graph, some([0, 3])),
    "eccentricity": lambda graph, some: distbfs.eccentricity(graph, some([0, 3])),
    "within_hops": lambda graph, some: distbfs.within_hops(graph, some([0, 3]), 2),
    "khop": lambda graph, some: distbfs.search_many(graph, "khop", some([3]))["within"],
    "problem": lambda graph, some: distbfs.search_many(
        graph,
        distbfs.Problem("counts", (distbfs.State("count", "int64", "level"),)),
        some([0, 3]),
    )["count"],
}


@pytest.fixture
def graph():
    return distbfs.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])


@pytest.mark.parametrize("name", CALLS)
def test_sources_and_pairs_that_search(graph, name):
    def searching(vertices):
        for vertex in vertices:
            assert distbfs.bfs(graph, 0).reached == 5
            assert distbfs.eccentricity(graph)[0] == 4
            yield vertex

    call = CALLS[name]
    found = ends(lambda: call(graph, searching))
    assert np.array_equal(found, call(graph, list), equal_nan=True)


@pytest.mark.parametrize("engine", ["openmp", "reference"])
def test_functions_that_search_are_refused(graph, engine):
    def search(*_):
        return distbfs.bfs(graph, 0, engine).reached < 0

    def many(*_):
        return distbfs.eccentricity(graph)[0] < 0

    calls = [
        *(("harmonic", {"progress": call}) for call in (search, many)),
        ("apsp", {"progress": search}),
        *((distbfs.Problem("own", functions={name: search}), {}) for name in FUNCTIONS),
    ]
    if engine == "reference":
        calls.append(("harmonic", {"stop": search}))
    for problem, ways in calls:
        with pytest.raises(UsageError, match=REFUSED):
            ends(partial(distbfs.search_many, graph, problem, [0], engine, **ways))
        assert ends(lambda: distbfs.bfs(graph, 0, engine)).level.tolist() == [*range(5)]
        assert ends(lambda: distbfs.eccentricity(graph, None, engine)).max() == 4


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_a_fork_during_many_searches(graph):
    def search():
        assert distbfs.bfs(graph, 0).level.tolist() == [*range(5)]
        assert distbfs.eccentricity(graph).tolist() == [4, 3, 2, 3, 4]

    def call(stop):
        distbfs.search_many(graph, "harmonic", None, progress=stop)

    with halted(call):
        assert in_child(search) == 0
    codes = []
    distbfs.search_many(
        graph, "harmonic", None, progress=lambda *_: codes.append(in_child(search))
    )
    assert codes == [0] * len(codes) != []


def test_a_bar_is_shown_if_progress_is_true(graph, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "rich.progress.Progress.update", lambda *_, **values: shown.append(values)
    )
    distbfs.search_many(graph, "harmonic", None, progress=False)
    assert shown == []
    distbfs.search_many(graph, "harmonic", None, progress=True)
    assert shown[-1]["completed"] == len(graph)
