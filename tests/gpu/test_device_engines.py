"""Engines for whole graphs on the device: every one, and bfs4k with every knob."""

import numpy as np
import pytest
from device_graphs import HostGraph
from fast_graphs import (
    Proof,
    fault,
    graphs,
    host,
    roots_of,
    untils,
    wanted_levels,
)
from graphs import kronecker

from distbfs.build.cuda.graph import build
from distbfs.device import cuda
from distbfs.device.array_table import total_bytes
from distbfs.engines.cuda.common.graph_engine import GraphEngine
from distbfs.engines.cuda.papers.bfs4k.search import Bfs4kSearch
from distbfs.generate.cuda import device_tuples
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.road import Road
from distbfs.generate.uniform import Uniform
from distbfs.options import Knobs, SearchOptions
from distbfs.registry import ENGINES, lookup
from distbfs.validation.cuda import validate_on_device

METHODS = [
    (name, method)
    for name in ENGINES
    for kind in [lookup(ENGINES, "engine", name)]
    if issubclass(kind, GraphEngine)
    for method in kind.methods
]
EACH = pytest.mark.parametrize(("engine", "method"), METHODS)
KNOBS = [
    Knobs(),
    *(Knobs(k1=k1, k4=0, k5=0) for k1 in (1, 2, 4, 8, 16, 32)),
    *(Knobs(k2=k2, k3=k3) for k2, k3 in ((0.1, 1), (5, 16), (100, 1024))),
    *(Knobs(k4=k4, ext=ext) for k4 in (1, 2, 64) for ext in (True, False)),
    *(Knobs(k5=k5) for k5 in range(5)),
    *(Knobs(k6=k6, k5=0, k4=0) for k6 in (32, 64, 128, 256, 512, 1024)),
    *(Knobs(k7=k7, k1=1, k4=0, k5=0) for k7 in (0, 1, 10, 16)),
]
LARGE = {
    "kronecker": lambda: Kronecker(18),
    "uniform": lambda: Uniform.of_size(1 << 18, degree=32),
    "road": lambda: Road(1 << 17),
}


def make(graph, engine, method, **options):
    kind = lookup(ENGINES, "engine", engine)
    return kind(SearchOptions.named(engine=engine, method=method, **options)).on_graph(
        graph
    )


@EACH
def test_graphs(engine, method):
    """Ids and numbers take turns, which are others for the next method."""
    first = METHODS.index((engine, method))
    for k, name in enumerate(graphs()):
        made = host(name, wide=k % 4 == 3)
        parents, in_ids = k % 3 != 2, (k + first) % 2 == 0
        search = make(
            made.graph, engine, method, internal_ids=not in_ids, parents=parents
        )
        for root in roots_of(made, 2):
            if not made.source.degrees[root] and not in_ids:
                continue
            for records in (False, True):
                found = search.search(root, records=records)
                said = fault(made, root, found, in_ids=in_ids, parents=parents)
                assert said is None, f"{name}, root {root}: {said}"
                assert found.levels == wanted_levels(made, root).max() + 1


@pytest.mark.parametrize("knobs", KNOBS, ids=str)
def test_every_knob(knobs):
    """Each graph is claimed and hashed in turns, which are others for the next knob."""
    some = ("kronecker", "hubs", "grid-clique", "blobs-tail", "uniform-32", "star")
    for k, name in enumerate(some, KNOBS.index(knobs)):
        made = host(name)
        search = Bfs4kSearch(made.graph, knobs=knobs, claim=k % 2 == 0)
        for number in {0, made.active - 1, made.active // 2}:
            made.check(number, search.search(number))
            found = search.search(number, records=True)
            made.check(number, found)
            sizes = np.bincount(made.levels(number)[made.levels(number) >= 0])
            assert [r.found for r in found.records] == [*sizes[1:].tolist(), 0]


@EACH
@pytest.mark.parametrize("name", ["kronecker", "hubs", "grid-clique", "path"])
def test_searches_that_end_early(engine, method, name):
    made = host(name)
    search = make(made.graph, engine, method)
    for root in roots_of(made, 1):
        level = wanted_levels(made, root)
        for until in untils(level, root):
            found = search.search(root, until=until)
            said = fault(made, root, found, until=until)
            assert said is None, f"root {root}, {until}: {said}"
        assert fault(made, root, search.search(root)) is None


@EACH
@pytest.mark.parametrize("name", LARGE)
def test_larger_graphs_are_valid(engine, method, name):
    source = LARGE[name]()
    graph, tuples = build(source), device_tuples(source)
    search = make(graph, engine, method)
    for root in (1, int(graph.vertices[0]), int(graph.vertices[graph.active - 1])):
        found = search.search(root)
        said = validate_on_device(tuples, root, found.level, found.parent)
        assert said.valid, said.errors


def test_many_searches_with_contention():
    """All blocks find the same vertices; the proof needs no levels from elsewhere."""
    made = HostGraph(kronecker(16))
    proof = Proof(made)
    for claim in (True, False):
        search = Bfs4kSearch(made.graph, knobs=Knobs(k5=0), claim=claim)
        for number in np.random.default_rng(3).integers(0, made.active, 100).tolist():
            found = search.search(number)
            said = proof.fault(int(made.vertices[number]), found, in_ids=False)
            assert said is None


def test_overflowing_queues_are_made_again():
    """Capacities that repeats pass: kept to what distinct vertices need."""
    made = HostGraph(kronecker(14))
    search = Bfs4kSearch(
        made.graph, knobs=Knobs(k5=0), claim=False, capacity=made.active
    )
    for number in (0, 1, made.active - 1):
        made.check(number, search.search(number))


@EACH
def test_memory_is_at_most_what_was_said(engine, method):
    cuda.release()
    graph = build(Kronecker(18))
    kind = lookup(ENGINES, "engine", engine)
    maker = kind(SearchOptions(engine=engine, method=method))
    pool = cuda.cupy().get_default_memory_pool()
    before = pool.used_bytes()
    search = maker.on_graph(graph)
    search.search(int(graph.vertices[0]))
    need = total_bytes(maker.table(graph)) + 8 * graph.n
    assert pool.used_bytes() - before <= need + (4 << 20)
