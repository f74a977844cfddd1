"""Directed graphs on a device: pushes along edges out, pulls along edges in."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from directed_graphs import check, directed, matrix_of, part_of, whole_search
from directed_hosts import (
    SHAPES,
    DirectedHost,
    arcs_of,
    masks_of,
    records_fault,
    seen_of,
    split_at_eight,
)
from directed_hosts import roots_of as ends_of
from fast_faults import Faults
from fast_graphs import HUGE
from graphs import kronecker, random_tuples
from hypothesis import given, settings

import distbfs
from distbfs.engines.cuda.papers.xbfs import search as paper
from distbfs.engines.cuda.papers.xbfs.engine import XbfsPaperEngine
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.options import SearchOptions

PAIRS = [(f, d) for d in paper.DIRECTIONS for f in paper.ALLOWED[d]]


@cache
def large(name):
    """Graphs with rows of more than a chunk, and many without edges out or in."""
    if name == "layers":
        u = [*range(60), *[60] * 5000, *range(61, 5061)]
        v = [*range(1, 61), *range(61, 5061), *[5061] * 5000]
        return matrix_of(5100, u, v)
    source = kronecker(14) if name == "kronecker" else random_tuples(90_000, 240_000, 3)
    return matrix_of(source.n, source.u, source.v)


def whole(matrix, dtype=np.uint32, **options):
    options = SearchOptions.named(engine="xbfs-paper", **options)
    return whole_search(XbfsPaperEngine(options), part_of(matrix, dtype=dtype))


def roots_of(matrix, count):
    out, into = np.diff(matrix.indptr), np.diff(matrix.tocsc().indptr)
    some = np.random.default_rng(3).integers(0, matrix.shape[0], count)
    return [int(out.argmax()), int(into.argmax()), *some.tolist()]


@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize(("frontier", "direction"), PAIRS)
def test_every_frontier(frontier, direction, asynchronous):
    form = {"frontier": frontier, "direction": direction}
    for name in ("kronecker", "random", "layers"):
        matrix = large(name)
        search = whole(matrix, **form, asynchronous=asynchronous)
        for root in roots_of(matrix, 3):
            check(matrix, root, search.search(root))


@pytest.mark.parametrize("balance", paper.BALANCES)
@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
def test_every_balance(balance, asynchronous):
    for name in ("kronecker", "layers"):
        matrix = large(name)
        for direction in ("auto", "pull"):
            form = {"balance": balance, "direction": direction}
            search = whole(matrix, **form, asynchronous=asynchronous)
            for root in roots_of(matrix, 3):
                check(matrix, root, search.search(root, records=True))


@settings(max_examples=60, deadline=None)
@given(matrix=directed())
def test_any_directed_graph(matrix):
    for direction in paper.DIRECTIONS:
        search = whole(matrix, direction=direction)
        for root in range(min(matrix.shape[0], 3)):
            check(matrix, root, search.search(root))


def test_the_python_interface():
    matrix = large("kronecker")
    graph = distbfs.Graph.from_scipy(matrix, directed=True)
    for root in roots_of(matrix, 3):
        found = distbfs.bfs(graph, root)
        assert found.engine == "xbfs"
        level, parent = found.to_numpy()
        check(matrix, root, SimpleNamespace(level=level, parent=parent))


WAYS = (
    *({}, {"direction": "push"}, {"direction": "pull"}),
    {"overrides": {"mark_edges": 0, "row_edges": 0, "pull_edges": HUGE}},
    {"overrides": {"pull_edges": 0}},
    {"overrides": {"window_words": 8, "pull_edges": 30}},
)
MORE = {
    "kronecker-16": lambda: arcs_of(kronecker(16)),
    "random-large": lambda: arcs_of(random_tuples(90_000, 900_000, 3)),
}


@pytest.mark.parametrize("name", [*SHAPES, *MORE])
@pytest.mark.parametrize("in_ids", [True, False], ids=["ids", "numbers"])
def test_method_fast(name, in_ids):
    """Engine xbfs in every way, on graphs that the device builds."""
    faults = Faults()
    for wide in (False, True):
        made = DirectedHost((SHAPES | MORE)[name](), wide)
        for way in WAYS:
            search = FastSearch(made.graph, in_ids=in_ids, **way)
            for root in ends_of(made):
                faults.look(made, search, root, f"{name}, {wide}", **way)
    faults.tell()


@pytest.mark.parametrize("name", ["kronecker-16", "hubs", "dead-ends", "layers"])
def test_masks_of_method_fast(name):
    faults, made = Faults(), DirectedHost((SHAPES | MORE)[name]())
    for seed in range(3):
        vertices, edges, left = masks_of(made.source, seed)
        seen = seen_of(made, vertices, edges, left)
        other = DirectedHost(left, graph=made.graph)
        for k, way in enumerate(WAYS[:-1]):
            search = FastSearch(made.graph, in_ids=(k + seed) % 2 == 0, **way)
            search.see(seen)
            for root in ends_of(other):
                faults.look(other, search, root, f"{name}, mask {seed}", **way)
    faults.tell()


@pytest.mark.parametrize("name", ["kronecker-16", "hubs", "random-large", "layers"])
def test_tails_of_method_fast(name):
    faults, made = Faults(), DirectedHost((SHAPES | MORE)[name]())
    graph = split_at_eight(made.source)
    for k, way in enumerate(WAYS[:-1]):
        search = FastSearch(graph, in_ids=k % 2 == 0, **way)
        for root in ends_of(made):
            faults.look(made, search, root, name, **way)
            found = search.search(root, records=True)
            if said := records_fault(made, root, found):
                faults.lines.append(f"{name}, {way}: {said}")
    faults.tell()
