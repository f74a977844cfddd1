"""Threads that share a graph or a session, functions that search, forked children."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from graphs import check_search, random_tuples
from test_session import session_of
from waiting import ends, halted, in_child

import distbfs
from distbfs.errors import UsageError
from distbfs.options import SearchOptions

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
THREADS = 4
SOURCE = random_tuples(3000, 9000, seed=1)
FORMS = [
    (1, {"engine": "openmp", "threads": 2, "method": "push"}),
    (1, {"engine": "openmp"}),
    (1, {"engine": "reference"}),
    (3, {"engine": "openmp", "threshold": 8}),
]
EACH = pytest.mark.parametrize(("parts", "options"), FORMS)


@pytest.fixture
def graph():
    return distbfs.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])


@EACH
def test_threads_share_a_session(parts, options):
    session = session_of(SOURCE, parts, **options)
    known = {root: SOURCE.distances(root) for root in range(5)}

    def search(root):
        wanted, found = known[root], session.search(root)
        level, parent = found.to_numpy()
        reached = np.flatnonzero(wanted > 0)
        assert (wanted[parent[reached]] == wanted[reached] - 1).all()
        if parts == 1:
            assert (found.level == wanted).all()
        assert found.reached == found.level_counts().sum() == (wanted >= 0).sum()
        far = int(wanted.argmax())
        assert len(found.path_to(far)) == wanted[far] + 1
        assert found.at([far])[0].tolist() == [wanted[far]]
        assert (level == wanted).all()

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(search, [*range(5)] * 16))
    session.close()


@EACH
def test_a_search_leaves_results_of_other_threads(parts, options):
    session = session_of(SOURCE, parts, **options)
    first = session.search(0)
    handed = first.to_numpy()
    assert ends(lambda: session.search(7).reached) > 1
    check_search(SOURCE, 0, *first.to_numpy())
    second = session.search(1)
    session.search(2)
    with pytest.raises(UsageError, match="searched again"):
        second.to_numpy()
    check_search(SOURCE, 0, *first.to_numpy())
    with ThreadPoolExecutor(1) as pool:  # a thread that might search
        pool.submit(int).result()
        handed = session.search(0).to_numpy()
        session.search(3)
        check_search(SOURCE, 0, *handed)


def test_a_closed_session_refuses(graph):
    session = distbfs.open(graph)
    found = session.search(0)
    session.close()
    for use in (
        lambda: session.search(0),
        lambda: session.see(session.view(vertices=[True] * 5)),
        lambda: session.connected(np.array([0])),
    ):
        with pytest.raises(UsageError, match="the session is closed"):
            use()
    session.close()
    assert found.level.tolist() == [0, 1, 2, 3, 4]
    kept = graph._session(SearchOptions())
    kept.close()
    assert distbfs.bfs(graph, 0).depth == 4


@pytest.mark.parametrize("engine", ["openmp", "reference"])
def test_sources_and_targets_that_search(graph, engine):
    def each(*vertices):
        for vertex in vertices:
            assert distbfs.bfs(graph, vertex, engine).reached == 5
            assert session.search(vertex).reached == 5
            yield vertex

    def search(*targets):
        found, again = (
            call(each(0, 4), targets=each(*targets) if targets else None)
            for call in (partial(distbfs.bfs, graph, engine=engine), session.search)
        )
        assert (found.level == again.level).all()
        return found.level.tolist()

    with distbfs.open(graph, engine=engine) as session:
        assert ends(search) == [0, 1, 2, 1, 0]
        assert ends(lambda: search(1)) == [0, 1, -1, 1, 0]
        assert ends(lambda: distbfs.k_hop_subgraph(graph, each(2), 1)).edges.size == 4


@pytest.mark.parametrize(("parts", "options"), FORMS[2:])
def test_stop_cannot_use_its_session(parts, options):
    session = session_of(SOURCE, parts, **options)
    for use in (
        lambda: session.search(1),
        lambda: session.see(session.view(vertices=np.ones(3000, bool))),
        session.close,
    ):
        with pytest.raises(UsageError, match="cannot search its graph"):
            ends(lambda use=use: session.search(0, stop=use))
        found = ends(lambda: session.search(0))
        check_search(SOURCE, 0, *found.to_numpy())


def test_a_child_of_a_fork_during_a_search(graph):
    session = distbfs.open(graph, engine="reference")

    def search():
        assert distbfs.bfs(graph, 0, "reference").level.tolist() == [0, 1, 2, 3, 4]
        assert distbfs.bfs(graph, 0).path_counts().tolist() == [1] * 5

    def refused():
        with pytest.raises(UsageError, match="open the graph again"):
            session.search(0)
        session.close()

    kept = graph._session(SearchOptions(engine="reference"))
    with halted(lambda stop: kept.search(0, stop=stop)):
        assert in_child(search) == 0
    with halted(lambda stop: session.search(0, stop=stop)):
        assert in_child(refused) == 0
        assert in_child(search) == 0
    assert in_child(lambda: session.search(0)) == 0
    assert session.search(0).reached == 5


def test_a_child_of_a_fork_in_stop(graph):
    kept = graph._session(SearchOptions(engine="reference"))

    def search():
        assert distbfs.bfs(graph, 0, "reference").level.tolist() == [0, 1, 2, 3, 4]

    codes = []
    kept.search(0, stop=lambda: codes.append(in_child(search)))
    assert codes == [0] * len(codes) != []
