"""Searches of whole graphs that end early: every engine on a device, on the CPU.

A result ends with the last level that is wanted, as SciPy's distances cut there do.
"""

import numpy as np
import pytest
from device_graphs import HostGraph, hubs
from directed_graphs import check, matrix_of, part_of
from fast_graphs import beside, lone, path, shuffled, tree_fault, wanted_levels
from graphs import grid, kronecker, random_tuples

from distbfs.engines.base import Until
from distbfs.engines.cuda.bfs4k import Bfs4kSearch
from distbfs.engines.cuda.paper import ALLOWED, BALANCES, DIRECTIONS, PaperSearch
from distbfs.engines.cuda.results import host_levels, host_parents
from distbfs.engines.cuda.whole import GraphEngine
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


def cut(level, until):
    """Levels of a whole search, without those after the last that is wanted."""
    level, targets = level.copy(), until.targets
    if targets is not None and len(targets) and (level[targets] >= 0).all():
        level[level > level[targets].max()] = -1
    if until.depth is not None:
        level[level > until.depth] = -1
    return level


def ends(level, root):
    """Depths and targets: near, far, the root, unreached, several, and both."""
    far = int(level.argmax())
    near = int(np.flatnonzero(level == 1)[0]) if (level == 1).any() else root
    middle = int(np.flatnonzero(level == level.max() // 2)[0])
    targets = [[root], [near], [far], [near, root, middle, near], []]
    unreached = np.flatnonzero(level < 0)
    targets += [[near, int(v)] for v in (*unreached[:1], *unreached[-1:])]
    yield from (Until(depth) for depth in (0, 1, 2, int(level.max()), 10**6))
    yield from (Until(targets=np.array(x, dtype=np.int64)) for x in targets)
    yield Until(1, np.array([far]))
    yield Until(int(level.max()) + 3, np.array([near]))


def hold(made, root, found, until, *, in_ids=True):
    """Assert that a result ends where ``until`` says."""
    wanted = cut(wanted_levels(made, root), until)
    assert found.levels == wanted.max() + 1
    wanted = wanted if in_ids else wanted[made.vertices]
    np.testing.assert_array_equal(host_levels(found.level), wanted)
    told = tree_fault(made, root, host_parents(found.parent), wanted, in_ids)
    assert told is None, f"root {root}, {until}: {told}"


def roots_of(made):
    """A hub, the last vertex with edges, and one without where there is one."""
    alone = np.flatnonzero(made.source.degrees == 0)[:1].tolist()
    return [int(made.vertices[0]), int(made.vertices[-1]), *alone]


@EACH
@pytest.mark.parametrize("in_ids", [True, False], ids=["ids", "numbers"])
@pytest.mark.parametrize("name", SHAPES)
def test_nothing_lies_beyond_the_last_level(device, engine, method, in_ids, name):
    made = host(name)
    kind = lookup(ENGINES, "engine", engine)
    options = SearchOptions(engine=engine, method=method, internal_ids=not in_ids)
    search = kind(options).on_graph(made.graph)
    for root in roots_of(made):
        if not in_ids and not made.source.degrees[root]:
            continue
        whole = wanted_levels(made, root)
        for k, until in enumerate(ends(whole, root)):
            found = search.search(root, records=k % 3 == 0, until=until)
            hold(made, root, found, until, in_ids=in_ids)
        hold(made, root, search.search(root), Until(), in_ids=in_ids)


@EACH
def test_directed_graphs(device, engine, method):
    """By id, through searches of a part on the host."""
    source = random_tuples(60, 150, seed=4)
    matrix = matrix_of(source.n, source.u, source.v)
    options = SearchOptions(engine=engine, method=method)
    search = lookup(ENGINES, "engine", engine)(options).whole(part_of(matrix))
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
            return  # what has no number is no target of such a search
        targets = numbers
    found = search.search(number, until=Until(until.depth, targets))
    hold(made, int(made.vertices[number]), found, until, in_ids=False)


@pytest.mark.parametrize("stepwise", [True, False], ids=["stepwise", "resident"])
@pytest.mark.parametrize(
    ("frontier", "direction"), [(f, d) for d in DIRECTIONS for f in ALLOWED[d]]
)
def test_strategies_of_xbfs_paper(device, frontier, direction, stepwise):
    for k, name in enumerate(SHAPES):
        made = host(name)
        search = PaperSearch(
            made.graph,
            frontier=frontier,
            direction=direction,
            stepwise=stepwise,
            balance=BALANCES[k],
        )
        for number in (0, made.active - 1):
            for until in ends(wanted_levels(made, made.vertices[number]), number):
                by_number(made, search, number, until)


@pytest.mark.parametrize("stepwise", [True, False], ids=["stepwise", "resident"])
@pytest.mark.parametrize("claim", [True, False], ids=["claim", "hash"])
@pytest.mark.parametrize(
    "knobs", [Knobs(k5=0), Knobs(k5=4, k4=0), Knobs(k2=5, k3=1)], ids=str
)
def test_knobs_of_bfs4k(device, knobs, claim, stepwise):
    """Levels of the grid, of one block alone, and rows in pieces."""
    for name in SHAPES:
        made = host(name)
        search = Bfs4kSearch(made.graph, knobs=knobs, claim=claim, stepwise=stepwise)
        for number in (0, made.active - 1):
            for until in ends(wanted_levels(made, made.vertices[number]), number):
                by_number(made, search, number, until)
