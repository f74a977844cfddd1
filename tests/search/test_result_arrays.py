"""Results, graphs, errors and sessions that are pickled or copied."""

import copy
import pickle
from importlib import import_module
from pkgutil import walk_packages
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

import distbfs
from distbfs import errors
from distbfs.generate.kronecker import Kronecker
from distbfs.service.client import HttpClient

WAYS = [
    lambda x: pickle.loads(pickle.dumps(x)),
    copy.copy,
    copy.deepcopy,
]
PAIRS = [(0, 1), (1, 2), (0, 3), (3, 2), (2, 4), (6, 7)]


def classes_of(kind):
    """Return a class and all that come from it."""
    return {kind}.union(*map(classes_of, kind.__subclasses__()))


def test_errors_of_all_classes():
    for module in walk_packages(distbfs.__path__, "distbfs."):
        if ".cuda" not in module.name and "__main__" not in module.name:
            import_module(module.name)
    others = {errors.ServiceError: ("busy", "text", 7)}
    for kind in classes_of(errors.DistbfsError):
        if kind.__name__ == "TooManyError":
            error = kind("text", 2.5)
        elif kind.__name__ == "KernelRefused":
            error = kind("text", "log")
        else:
            error = kind(*others.get(kind, ("text",)))
        for way in WAYS:
            again = way(error)
            assert type(again) is kind
            assert (str(again), again.args) == ("text", ("text",))
            assert vars(again) == vars(error)
            assert again.exit_code == error.exit_code


def searches():
    graph = distbfs.Graph.from_edges(PAIRS)
    named = distbfs.Graph.from_networkx(nx.path_graph("abcde"))
    yield distbfs.bfs(graph, 0), 4
    yield distbfs.bfs(graph, (x for x in (0, 6)), "reference"), 4
    yield distbfs.bfs(graph, {6: 1, 0: 2}.keys(), "openmp"), 4
    yield distbfs.bfs(graph, 0, "openmp", method="ordered"), 4
    yield distbfs.bfs(graph, 0, levels=False), 4
    yield distbfs.bfs(named, "a"), "e"


@pytest.mark.parametrize("way", WAYS)
def test_a_result_stands_alone(way):
    for result, far in searches():
        again = way(result)
        for mine, theirs in zip(again.to_numpy(), result.to_numpy(), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        if result.level is not None:
            assert again.level.dtype == result.level.dtype
            assert again.level is not result.level
        for name in ("reached", "depth", "nedge", "engine", "seconds", "records"):
            assert getattr(again, name) == getattr(result, name)
        assert again.path_to(far) == result.path_to(far)
        assert again.sources.tolist() == result.sources.tolist()
        assert again.tree().tolist() == result.tree().tolist()
        assert repr(again) == repr(result)
        assert list(again.to_pandas()["vertex"]) == list(result.to_pandas()["vertex"])
        assert len(pickle.dumps(again)) < 4000  # no graph


def test_a_pickled_result_has_no_graph_and_a_copy_has():
    result = distbfs.bfs(distbfs.Graph.from_edges(PAIRS), 0)
    for way in WAYS[1:]:
        assert way(result).path_count_to(4) == 2
    alone = WAYS[0](result)
    for ask in (
        alone.path_counts,
        lambda: alone.path_count_to(4),
        alone.edges_within,
    ):
        with pytest.raises(errors.UsageError, match="which a pickled result lacks"):
            ask()
    assert WAYS[0](alone).keep().level.tolist() == result.level.tolist()


def test_results_of_a_session():
    with distbfs.open(distbfs.Graph.from_edges(PAIRS), engine="openmp") as session:
        first = session.search(0)
        kept = [way(first) for way in WAYS]
        session.search(4)
        for result in kept:
            assert result.level.tolist() == [0, 1, 2, 1, 3, -1, -1, -1]
        for way in WAYS:
            with pytest.raises(errors.UsageError, match="this result is gone"):
                way(first)


def test_a_result_in_parts():
    tuples = Kronecker(6, 16, 1)
    with distbfs.open(tuples, parts=2, engine="openmp") as session:
        result = session.search(1)
        again = WAYS[0](result)
        assert again.level.tolist() == result.to_numpy()[0].tolist()
        assert again.path_to(2) == result.path_to(2)
        assert again.nedge == result.nedge


def test_a_result_on_ranks_is_not_pickled():
    result = distbfs.bfs(distbfs.Graph.from_edges(PAIRS), 0)
    result._vertices.world = SimpleNamespace(size=2)
    with pytest.raises(TypeError, match="on several ranks cannot be pickled"):
        pickle.dumps(result)


@pytest.mark.parametrize("way", WAYS)
def test_what_holds_a_connection_or_threads_refuses(way):
    session = distbfs.open(distbfs.Graph.from_edges(PAIRS))
    with session, pytest.raises(TypeError, match="a session cannot be pickled or co"):
        way(session)
    with pytest.raises(TypeError, match="cannot be pickled or copied; connect again"):
        way(object.__new__(HttpClient))
