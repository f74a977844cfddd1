"""Searches for parents alone in host memory: on one part, on several, on ranks."""

import numpy as np
import pytest
from graphs import (
    NAMED,
    Tuples,
    build,
    check_search,
    kronecker,
    levels_by,
    random_tuples,
)
from parents_alone import check_parents, check_session
from sessions import open_parts
from worlds import on_ranks

import distbfs
from distbfs import registry
from distbfs.benchmark.graph500 import validation_of
from distbfs.errors import UsageError
from distbfs.options import SearchOptions
from distbfs.ranks.world import SoloWorld

PATH = np.arange(400)
GRAPHS = {
    "kronecker": kronecker(8),
    "isolated": NAMED["isolated"],
    "sparse": random_tuples(300, 350, seed=4),
    "long": Tuples(402, PATH, PATH + 1),
}
METHODS = [("openmp", x) for x in ("push", "hybrid", "fast")] + [("reference", "")]
NEITHER = "a search without levels and without parents gives nothing"


@pytest.mark.parametrize(("engine", "method"), METHODS)
@pytest.mark.parametrize("name", GRAPHS)
def test_one_part(name, engine, method):
    source = GRAPHS[name]
    options = SearchOptions(engine, method, threads=2, levels=False)
    made = build(source, 1)[0]
    session = open_parts(SoloWorld(), made, options)
    check_session(session, source)
    session.close()


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["openmp", "reference"])
@pytest.mark.parametrize("parts", [2, 3])
def test_parts(parts, engine):
    for name in ("kronecker", "long"):
        source = GRAPHS[name]
        options = SearchOptions(engine, threads=1, levels=False, stepwise=True)
        made = build(source, parts, threshold=8)[0]
        session = open_parts(SoloWorld(), made, options)
        check_session(session, source)
        session.close()


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_gather_no_levels(monkeypatch, ranks):
    """Each has its block of parents, and all tell the same of the whole."""
    monkeypatch.setitem(registry.EXCHANGES, "threads", "worlds:ThreadExchange")
    source = GRAPHS["kronecker"]
    root = int(source.degrees.argmax())
    options = SearchOptions.named(exchange="threads", threads=1, levels=False)

    def work(world):
        made, _ = build(source, 6, world, threshold=8)
        session = open_parts(world, made, options)
        found = session.search(root)
        sent = []
        gather = world.alltoall
        world.alltoall = lambda values: (sent.append(values[0].dtype), gather(values))[
            1
        ]
        level, parent = found.to_numpy()
        assert level is None
        assert not any(kind == np.int32 for kind in sent)
        assert found.at(np.array([root]))[1].tolist() == [root]
        answer = validation_of(session, source)(found)
        assert answer.valid, answer.errors
        session.close()
        return parent, found.depth, found.reached, found.nedge, len(found.tree())

    rows = on_ranks(ranks, work)
    parent = np.concatenate([row[0] for row in rows])
    wanted = check_search(source, root, levels_by(parent), parent)
    facts = (wanted.max(), (wanted >= 0).sum(), source.ends[wanted >= 0].sum() // 2)
    assert all(row[1:4] == facts for row in rows)
    assert sum(row[4] for row in rows) == (wanted > 0).sum()


@pytest.mark.parametrize("engine", ["auto", "openmp", "reference"])
def test_of_a_graph(engine):
    source = GRAPHS["sparse"]
    graph = distbfs.Graph.from_edges(source.u, source.v, source.n)
    for root in (0, 7, 299):
        check_parents(distbfs.bfs(graph, root, engine, levels=False), source)
    found = distbfs.bfs(graph, 0, engine, levels=False)
    assert found.level is None
    assert len(found.parent) == source.n
    assert f"reached {found.reached}, depth {found.depth}" in repr(found)
    assert list(found.to_pandas().columns) == ["vertex", "parent"]
    assert found.to_arrow().column_names == ["vertex", "parent"]
    with pytest.raises(UsageError, match="without levels"):
        found.to_scipy()
    with pytest.raises(UsageError, match=NEITHER):
        distbfs.bfs(graph, 0, engine, levels=False, parents=False)
    with distbfs.open(graph, engine=engine) as session:
        check_parents(session.search(3, levels=False), source)
        assert session.search(3).level is not None
        with pytest.raises(UsageError, match=NEITHER):
            session.search(3, levels=False, parents=False)
    with pytest.raises(UsageError, match=NEITHER):
        distbfs.open(graph, levels=False, parents=False)


def test_an_order_without_levels():
    graph = distbfs.Graph.from_edges([0, 0, 1, 2, 5], [2, 1, 3, 4, 6])
    both = distbfs.bfs(graph, 0, "openmp", method="ordered")
    alone = distbfs.bfs(graph, 0, "openmp", method="ordered", levels=False)
    assert alone.tree().tolist() == both.tree().tolist()
    with pytest.raises(UsageError, match="7 is not a vertex"):
        alone.path_to(7)
    with pytest.raises(UsageError, match="5 was not reached from 0"):
        alone.path_to(5)
