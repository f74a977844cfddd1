"""The table of the arrays of a search: what it tells is what there is, at most."""

import pytest
from device_graphs import HostGraph
from directed_hosts import SHAPES, DirectedHost
from fast_graphs import beside, path, shuffled, star
from graphs import kronecker, random_tuples, uniform

from distbfs.device.array_table import total_bytes
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.engines.cuda.xbfs.search_table import SearchShape, expected_shape

GRAPHS = {
    "kronecker": kronecker(12),
    "hub": shuffled(beside(star(3000), uniform(900, 3000))),
    "path": shuffled(path(700)),
    "trees": random_tuples(4000, 4600, seed=4),
    "edge": path(2),
}
ONE_WAY = {"arcs": SHAPES["kronecker"], "hubs": SHAPES["hubs"], "ring": SHAPES["ring"]}


def graph_of(name):
    """Return a graph of the device by its name, symmetric or directed."""
    if name in ONE_WAY:
        return DirectedHost(ONE_WAY[name]()).graph
    return HostGraph(GRAPHS[name]).graph


def bytes_of(held):
    arrays = held if isinstance(held, list) else [held]
    return sum(x.nbytes for x in arrays)


@pytest.mark.parametrize("levels", [True, False])
@pytest.mark.parametrize("parents", [True, False])
@pytest.mark.parametrize("in_ids", [True, False])
@pytest.mark.parametrize("name", [*GRAPHS, *ONE_WAY])
def test_arrays_are_those_of_the_table(device, name, in_ids, parents, levels):
    if not parents and not levels:
        pytest.skip("a search has results")
    graph = graph_of(name)
    form = {"in_ids": in_ids, "parents": parents, "levels": levels}
    arrays = FastSearch(graph, **form).arrays
    shape = arrays.shape
    for array, plans in shape.table.items():
        held = bytes_of(arrays.held[array])
        need = total_bytes({array: plans})
        assert held == need or (held, need) == (4, 0), array  # one element at least


@pytest.mark.parametrize("in_ids", [True, False])
@pytest.mark.parametrize("name", [*GRAPHS, *ONE_WAY])
def test_none_is_larger_than_expected(device, name, in_ids):
    graph = graph_of(name)
    shape = FastSearch(graph, in_ids=in_ids).arrays.shape
    counts = graph.n, graph.active, graph.m, shape.grid
    form = {"in_ids": in_ids, "wide": True, "bare": graph.directed}
    most = expected_shape(*counts, **form).table
    for array, plans in shape.table.items():
        need = total_bytes({array: plans})
        assert need <= total_bytes({array: most[array]}), array


def test_ids_of_64_bits_have_wide_parents_and_no_names_of_columns():
    narrow = SearchShape(3000, 2000, 2, [0] * 7)
    wide = SearchShape(3000, 2000, 2, [0] * 7, wide_ids=True)
    names = narrow.table.keys() - wide.table.keys()
    assert names == {"first_id"}
    parents = [total_bytes({"x": one.table["parent_out"]}) for one in (narrow, wide)]
    assert parents == [4 * narrow.results, 8 * narrow.results]
