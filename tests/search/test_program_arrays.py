"""Arrays, columns and tables of other libraries, wherever a program hands them over."""

import numpy as np
import pytest

import distbfs
from distbfs.errors import InputError, WrongTypeError
from distbfs.service.client import _start, encoded

GRAPH = distbfs.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
LIBRARIES = ("numpy", "pandas", "polars", "pyarrow")


def made(library, values):
    """Return values, with None for what is missing, as a column of a library."""
    if library == "numpy":
        missing = [x is None for x in values]
        return np.ma.array([x or type(values[0])() for x in values], mask=missing)
    module = pytest.importorskip(library)
    if library == "pandas":
        kind = "boolean" if isinstance(values[0], bool) else "Int64"
        return module.Series(values, dtype=kind)
    return (module.Series if library == "polars" else module.array)(values)


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_are_vertices_edges_and_flags(library):
    ids, flags = made(library, [1, 4]), made(library, [True, True, True, False, True])
    assert distbfs.bfs(GRAPH, ids).level.tolist() == [1, 0, 1, 1, 0]
    assert distbfs.bfs(GRAPH, 3, targets=ids).depth == 2
    assert distbfs.bfs(GRAPH, 0).at(ids)[0].tolist() == [1, 4]
    assert distbfs.path_lengths(GRAPH, ids)[:, 0].tolist() == [1, 4]
    assert distbfs.Graph.from_edges(ids, made(library, [0, 3])).num_edges == 2
    seen = distbfs.bfs(GRAPH, 0, "openmp", vertices=flags)
    assert seen.level.tolist() == [0, 1, 2, -1, -1]
    assert encoded({**_start(ids), "targets": ids}) == (
        b'{"sources":[1,4],"targets":[1,4]}'
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_masked_and_null_values_are_refused_everywhere(library):
    ids, flags = made(library, [1, None]), made(library, [True] * 4 + [None])
    for ask in (
        lambda: distbfs.bfs(GRAPH, ids),
        lambda: distbfs.bfs(GRAPH, 0, targets=ids),
        lambda: distbfs.bfs(GRAPH, 0).at(ids),
        lambda: distbfs.bfs(GRAPH, 0, vertices=flags),
        lambda: distbfs.bfs(GRAPH, 0, edges=flags),
        lambda: distbfs.path_lengths(GRAPH, ids),
        lambda: distbfs.reachable(GRAPH, [ids]),
        lambda: distbfs.Graph.from_edges(ids, [0, 1]),
        lambda: GRAPH.by_name(flags),
        lambda: encoded({"targets": ids}),
    ):
        with pytest.raises(InputError, match="has 1 masked or null values"):
            ask()


def test_masks_inside_lists_and_dlpack():
    masked = np.ma.array([0, 4], mask=[False, True])
    for edges in (masked[None], [masked], [(0, 1), masked]):
        with pytest.raises(InputError, match="1 masked or null"):
            distbfs.Graph.from_edges(edges)
    with pytest.raises(InputError, match="src has 1 masked"):
        distbfs.Graph.from_dlpack(masked, np.array([0, 1]))
    assert distbfs.Graph.from_dlpack(masked[:1], np.ma.array([3])).n == 4


@pytest.mark.parametrize("library", LIBRARIES[1:])
def test_a_kept_column_has_nulls_only_where_they_are_nan(library):
    module = pytest.importorskip(library)
    table = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    take = getattr(distbfs.Graph, f"from_{library.removeprefix('py')}")
    whole, real = [1 << 60, None], [1.5, None]
    if library == "pandas":
        whole, real = module.array(whole, "Int64"), module.array(real, "Float32")
    frame = getattr(module, table)
    ends = {"u": [0, 1], "v": [1, 2]}
    with pytest.raises(
        InputError, match="column w has a null; every row needs a value"
    ):
        take(frame({**ends, "w": whole}), keep=["w"])
    graph = take(frame({**ends, "w": real}), keep=["w"])
    assert distbfs.bfs(graph, 0, "openmp", where="w > 0").reached == 2
    for relabel in (False, True):
        with pytest.raises(InputError, match="has a null; every row needs an id"):
            take(frame({"u": real, "v": real}), relabel=relabel)


def test_sparse_columns_are_columns():
    pandas = pytest.importorskip("pandas")
    ends = {name: pandas.arrays.SparseArray([0, 0, 2]) for name in "uv"}
    assert distbfs.Graph.from_pandas(pandas.DataFrame(ends)).n == 3


def test_tables_are_pairs_and_not_names_of_columns():
    pandas = pytest.importorskip("pandas")
    pairs = pandas.DataFrame({"u": [0, 0], "v": [2, 4]})
    assert distbfs.reachable(GRAPH, pairs).tolist() == [True, True]
    assert distbfs.Graph.from_edges(pairs).degree(0) == 2
    with pytest.raises(WrongTypeError, match="2 dimensions"):
        distbfs.bfs(GRAPH, pairs)


def test_ids_that_are_asked_for_are_checked():
    for wrong in ([-1], np.array([-1]), np.array([5])):
        with pytest.raises(distbfs.UsageError, match="is not a vertex"):
            distbfs.bfs(GRAPH, 0).at(wrong)
