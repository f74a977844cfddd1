"""Every engine for whole graphs on a device, its kernels run on the CPU."""

import gc

import numpy as np
import pytest
from device_graphs import HostGraph, hubs
from directed_graphs import check, directed, part_of, whole_search
from drawn_examples import examples
from fast_graphs import (
    beside,
    binary_tree,
    fault,
    lone,
    path,
    roots_of,
    shuffled,
    star,
    wanted_levels,
)
from graphs import Tuples, complete, grid, kronecker, random_tuples, uniform
from hypothesis import given
from hypothesis import strategies as st

from distbfs.device.array_table import total_bytes
from distbfs.engines.cuda.common.graph_engine import COUNTERS, GraphEngine
from distbfs.engines.cuda.common.host_results import results_table
from distbfs.errors import UsageError
from distbfs.options import SearchOptions
from distbfs.registry import ENGINES, lookup
from distbfs.search.choose import has_option

EACH = pytest.mark.parametrize(
    ("engine", "method"),
    [
        (name, method)
        for name in ENGINES
        for kind in [lookup(ENGINES, "engine", name)]
        if issubclass(kind, GraphEngine)
        for method in kind.methods
    ],
)
SHAPES = {
    "one-edge": Tuples(4, [1, 1], [3, 3]),
    "random": random_tuples(700, 1500, 11),
    "kronecker": kronecker(9),
    "star": star(600),
    "grid": shuffled(grid(9)),
    "tree": shuffled(binary_tree(255)),
    "lonely": shuffled(beside(uniform(300, 900), path(9), lone(50))),
    "hubs": hubs(2, 700),
    "complete": complete(40),
}
MADE = {}


def host(name, wide=False):
    if (name, wide) not in MADE:
        MADE[name, wide] = HostGraph(SHAPES[name], wide)
    return MADE[name, wide]


def make(graph, engine, method, **options):
    kind = lookup(ENGINES, "engine", engine)
    return kind(SearchOptions.named(engine=engine, method=method, **options)).on_graph(
        graph
    )


def look_at_records(made, root, found):
    """Each record against the histogram of levels."""
    level = wanted_levels(made, root)
    sizes = np.bincount(level[level >= 0])
    log = found.records
    assert sum(r.found for r in log) == sizes[1:].sum()
    assert [r.found for r in log[: len(sizes) - 1]] == sizes[1:].tolist()
    assert all(r.seconds >= 0 for r in log)
    degrees = made.source.degrees
    alone = (degrees == 0).sum()
    for depth, record in enumerate(log):
        if record.direction.startswith("push"):
            repeats = log[depth - 1].extra.get("repeats_missed", 0) if depth else 0
            edges = degrees[level == depth].sum()
            assert edges <= record.checks <= edges + repeats * degrees.max()
            if record.direction == "push-no-queue":  # all that a pull had looked at
                assert (
                    record.frontier == (level < 0).sum() - alone + sizes[depth:].sum()
                )
                continue
            assert sizes[depth] <= record.frontier <= sizes[depth] + repeats
        else:
            unvisited = (level < 0) | (level > depth)
            assert record.found <= record.checks <= degrees[unvisited].sum()


@pytest.mark.pairs
@EACH
@pytest.mark.parametrize("in_ids", [True, False], ids=["ids", "numbers"])
def test_shapes(device, engine, method, in_ids):
    """Half of the graphs by id, the others by number."""
    for k, name in [*enumerate(SHAPES)][in_ids::2]:
        made = host(name, wide=k % 4 > 1)
        parents = k % 3 != 2
        options = {"internal_ids": not in_ids, "parents": parents}
        search = make(made.graph, engine, method, **options)
        for root in roots_of(made, 1):
            if not in_ids and not made.source.degrees[root]:
                found = search.search(root)
                assert (found.levels, int(found.level.max())) == (1, -1)
                continue
            found = search.search(root)
            told = fault(made, root, found, in_ids=in_ids, parents=parents)
            assert told is None, f"{name}, root {root}: {told}"
            assert found.levels == wanted_levels(made, root).max() + 1
            assert found.records == []
            assert found.level.dtype == np.int32
            assert not parents or found.parent.dtype == np.int32


@EACH
@pytest.mark.parametrize("direction", ["auto", "push"])
def test_records(device, engine, method, direction):
    kind = lookup(ENGINES, "engine", engine)
    options = {"asynchronous": False} if has_option(kind, "asynchronous") else {}
    for name in ("kronecker", "hubs", "grid", "lonely"):
        made = host(name)
        search = make(made.graph, engine, method, direction=direction, **options)
        for root in roots_of(made, 1):
            if not made.source.degrees[root]:
                continue
            found = search.search(root, records=True)
            assert fault(made, root, found) is None
            look_at_records(made, root, found)
            if direction == "push":
                assert all(r.direction.startswith("push") for r in found.records)


@EACH
@examples(4)
@given(n=st.integers(2, 90), density=st.integers(0, 4), seed=st.integers(0, 99))
def test_any_graph(device, engine, method, n, density, seed):
    made = HostGraph(random_tuples(n, density * n + 1, seed=seed))
    if not made.active:
        return
    search = make(made.graph, engine, method)
    for root in (0, n // 2, n - 1):
        assert fault(made, root, search.search(root)) is None


@EACH
@examples(5)
@given(matrix=directed())
def test_any_directed_graph(device, engine, method, matrix):
    """They push along edges out and pull along edges in."""
    maker = lookup(ENGINES, "engine", engine)(
        SearchOptions(engine=engine, method=method)
    )
    search = whole_search(maker, part_of(matrix))
    for root in range(min(matrix.shape[0], 3)):
        check(matrix, root, search.search(root))


@EACH
def test_wrong_roots_and_parts(device, engine, method):
    made = host("grid")
    search = make(made.graph, engine, method)
    for root in (-1, made.source.n):
        with pytest.raises(UsageError, match="allowed: 0 to 80"):
            search.search(root)
    maker = lookup(ENGINES, "engine", engine)(SearchOptions(engine=engine))
    assert not maker.domains


@EACH
@pytest.mark.parametrize("internal_ids", [False, True])
@pytest.mark.parametrize("parents", [False, True])
def test_memory_is_what_was_counted(device, engine, method, internal_ids, parents):
    """But for counters, records and, of bfs4k, pieces of rows that come later."""
    graph = HostGraph(kronecker(11)).graph
    form = {"internal_ids": internal_ids, "parents": parents}
    kind = lookup(ENGINES, "engine", engine)
    maker = kind(SearchOptions(engine=engine, method=method, **form))
    table = maker.table(graph)
    results = results_table(graph.n, parents=parents)
    later = {name: table.pop(name) for name in ("piece", "records") if name in table}
    most = total_bytes(table) + total_bytes({} if internal_ids else results)
    gc.collect()
    device.check("allocation")
    before = device.arrays.bytes
    search = maker.on_graph(graph)
    gc.collect()
    used = device.arrays.bytes - before
    search.search(0)
    assert most <= used <= most + total_bytes(later) + COUNTERS
