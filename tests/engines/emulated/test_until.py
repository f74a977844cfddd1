"""Searches of whole graphs that end early: every engine on a device, on the CPU.

A result ends with the last level that is wanted, as SciPy's distances cut there do.
"""

import numpy as np
import pytest
from device_graphs import HostGraph, hubs
from directed_graphs import check, matrix_of, part_of, whole_search
from fast_graphs import (
    beside,
    fault,
    lone,
    path,
    shuffled,
    untils,
    wanted_levels,
)
from graphs import grid, kronecker, random_tuples

from distbfs.engines.base import Until
from distbfs.engines.cuda.common.graph_engine import GraphEngine
from distbfs.engines.cuda.papers.bfs4k.search import Bfs4kSearch
from distbfs.engines.cuda.papers.xbfs.search import (
    ALLOWED,
    BALANCES,
    DIRECTIONS,
    PaperSearch,
)
from distbfs.errors import UsageError
from distbfs.options import Knobs, SearchOptions
from distbfs.registry import ENGINES, lookup

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
    "kronecker": kronecker(8),
    "hubs": hubs(2, 2100),
    "path": path(30),
    "grid": shuffled(beside(grid(7), path(5), lone(3))),
}
MADE = {}


def host(name):
    if name not in MADE:
        MADE[name] = HostGraph(SHAPES[name])
    return MADE[name]


def hold(made, root, found, until, *, in_ids=True):
    """Assert that a result ends where ``until`` says."""
    told = fault(made, root, found, in_ids=in_ids, until=until)
    assert told is None, f"root {root}, {until}: {told}"


def roots_of(made):
    """A hub, the last vertex with edges, and one without where there is one."""
    alone = np.flatnonzero(made.source.degrees == 0)[:1].tolist()
    return [int(made.vertices[0]), int(made.vertices[-1]), *alone]


@EACH
@pytest.mark.parametrize("in_ids", [True, False], ids=["ids", "numbers"])
def test_nothing_lies_beyond_the_last_level(device, engine, method, in_ids):
    """Half of the graphs by id, the others by number; roots take ends in turns."""
    kind = lookup(ENGINES, "engine", engine)
    options = SearchOptions(engine=engine, method=method, internal_ids=not in_ids)
    turn = int(in_ids)
    for name in [*SHAPES][in_ids::2]:
        made = host(name)
        search = kind(options).on_graph(made.graph)
        for root in roots_of(made):
            if not in_ids and not made.source.degrees[root]:
                continue
            whole, turn = wanted_levels(made, root), turn + 1
            for k, until in enumerate(untils(whole, root)[turn % 5 :: 5]):
                found = search.search(root, records=k % 3 == 0, until=until)
                hold(made, root, found, until, in_ids=in_ids)
        hold(made, root, search.search(root), Until(), in_ids=in_ids)


@EACH
def test_directed_graphs(device, engine, method):
    """By id, through searches of a part on the host."""
    source = random_tuples(60, 150, seed=4)
    matrix = matrix_of(source.n, source.u, source.v)
    options = SearchOptions(engine=engine, method=method)
    search = whole_search(lookup(ENGINES, "engine", engine)(options), part_of(matrix))
    for root in (0, 7, int(np.diff(matrix.indptr).argmax())):
        for depth, targets in ((0, None), (2, None), (None, [5, 9]), (3, [root])):
            held = None if targets is None else np.array(targets)
            until = Until(depth, held)
            check(matrix, root, search.search(root, until=until), until)


@EACH
def test_targets_that_are_no_vertex(device, engine, method):
    made = host("grid")
    options = SearchOptions(engine=engine, method=method)
    search = lookup(ENGINES, "engine", engine)(options).on_graph(made.graph)
    for target in (-1, made.source.n):
        with pytest.raises(UsageError, match=f"target is {target}; allowed: 0 to 56"):
            search.search(0, until=Until(targets=np.array([3, target])))


def by_number(made, search, number, until):
    """Search by number; ``until`` has ids."""
    targets = until.targets
    if targets is not None:
        numbers = made.numbers[targets].astype(np.int64)
        if (numbers >= made.active).any():
            return  # what has no number is not a target of such a search
        targets = numbers
    found = search.search(number, until=Until(until.depth, targets))
    hold(made, int(made.vertices[number]), found, until, in_ids=False)


@pytest.mark.parametrize(
    ("frontier", "direction"), [(f, d) for d in DIRECTIONS for f in ALLOWED[d]]
)
def test_strategies_of_xbfs_paper(device, frontier, direction):
    turn = 0
    for k, name in enumerate(SHAPES):
        made = host(name)
        search = PaperSearch(
            made.graph,
            frontier=frontier,
            direction=direction,
            balance=BALANCES[k],
        )
        for number in (0, made.active - 1):
            levels, turn = wanted_levels(made, made.vertices[number]), turn + 1
            for until in untils(levels, number)[turn % 6 :: 6]:
                by_number(made, search, number, until)


@pytest.mark.parametrize("claim", [True, False], ids=["claim", "hash"])
@pytest.mark.parametrize(
    "knobs", [Knobs(k5=0), Knobs(k5=4, k4=0), Knobs(k2=5, k3=1)], ids=str
)
def test_knobs_of_bfs4k(device, knobs, claim):
    """Levels of the grid, of one block alone, and rows in pieces."""
    turn = int(claim)
    for name in SHAPES:
        made = host(name)
        search = Bfs4kSearch(made.graph, knobs=knobs, claim=claim)
        for number in (0, made.active - 1):
            levels, turn = wanted_levels(made, made.vertices[number]), turn + 1
            for until in untils(levels, number)[turn % 6 :: 6]:
                by_number(made, search, number, until)
