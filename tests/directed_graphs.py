"""Directed graphs as parts, and what their searches must find."""

from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

from distbfs.engines.base import WHOLE, on_device
from distbfs.formats.attributes import Values
from distbfs.graph.csr import CSR
from distbfs.options import BuildOptions
from distbfs.partition.layout import Layout
from distbfs.partition.part import Part
from distbfs.ranks.world import SoloWorld
from distbfs.search.graph_input import HeldTuples
from distbfs.store.write import write_graph


def csr(matrix, dtype=np.uint32):
    return CSR(matrix.indptr.astype(dtype), matrix.indices.astype(np.uint32))


def part_of(matrix, seed=0, dtype=np.uint32):
    """A directed part; numbers are permuted, vertices without edges last."""
    n = matrix.shape[0]
    degrees = np.diff(matrix.indptr) + np.diff(matrix.tocsc().indptr)
    shuffled = np.random.default_rng(seed).permutation(n)
    vertices = shuffled[np.argsort(degrees[shuffled] == 0, kind="stable")]
    inside = matrix[vertices][:, vertices].tocsr()
    none, ids = CSR.empty(0), np.zeros(0, np.int64)
    return Part(
        Layout(n, 1),
        0,
        n,
        ids,
        ids,
        csr(inside, dtype),
        CSR.empty(n),
        none,
        none,
        vertices.astype(np.uint32),
        degrees[vertices].astype(np.int64),
        2 * np.diff(inside.indptr).astype(np.int64),
        int((degrees > 0).sum()),
        {"nn": csr(inside.T.tocsr(), dtype)},
    )


def whole_search(engine, part):
    """The search of a whole graph by any engine, with results on the host."""
    if not on_device(engine):
        return engine.whole(part)
    from distbfs.build.cuda import graph_of_rows  # noqa: PLC0415 - of CUDA
    from distbfs.engines.cuda.common import host_results  # noqa: PLC0415

    search = engine.on_graph(graph_of_rows.graph_of_part(engine.name, part))

    def on_host(root, **asked):
        result = search.search(root, **asked)
        result.level = host_results.host_levels(result.level)
        if result.parent is not None:
            result.parent = result.parent.get().astype(np.int64)
        return result

    return SimpleNamespace(search=on_host)


def matrix_of(n, u, v):
    """Edges u -> v without loops and repeats."""
    u, v = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
    u, v = u[u != v], v[u != v]
    matrix = sp.csr_matrix((np.ones(len(u)), (u, v)), shape=(n, n))
    matrix.data[:] = 1
    return matrix


def distances(matrix, root):
    hops = shortest_path(matrix, unweighted=True, indices=root)
    return np.where(np.isinf(hops), -1, hops).astype(np.int32)


def check(matrix, root, result, until=WHOLE):
    """Levels are SciPy's up to where the search may end, parents are edges."""
    wanted = distances(matrix, root)
    if until.targets is not None and len(until.targets):
        ends = wanted[until.targets]
        if (ends >= 0).all():
            wanted[wanted > ends.max()] = -1
    if until.depth is not None:
        wanted[wanted > until.depth] = -1
    check_arrays(matrix, root, result.level, result.parent, wanted)


def check_arrays(matrix, root, level, parent, wanted=None):
    """Levels are as wanted, by default SciPy's, and parents are edges."""
    if wanted is None:
        wanted = distances(matrix, root)
    np.testing.assert_array_equal(level, wanted)
    assert parent[root] == root
    np.testing.assert_array_equal(parent >= 0, wanted >= 0)
    child = np.flatnonzero(wanted > 0)
    np.testing.assert_array_equal(wanted[parent[child]], wanted[child] - 1)
    if len(child):
        assert (np.asarray(matrix[parent[child], child]) == 1).all()


@st.composite
def directed(draw, most=30):
    n = draw(st.integers(1, most))
    vertex = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(vertex, vertex), max_size=90))
    return matrix_of(n, [p[0] for p in pairs], [p[1] for p in pairs])


DENSE = 99  # seed of a graph whose levels are pulled


def tuples(seed):
    """Random (n, u, v) with loops and repeats: sparse, dense, a chain, a star."""
    rng = np.random.default_rng(seed)
    n = 4000 if seed == DENSE else int(rng.integers(2, 120))
    count = 20 * n if seed == DENSE else int(rng.integers(0, 6 * n))
    u, v = rng.integers(0, n, (2, count))
    if seed % 4 == 1:
        u, v = np.arange(n - 1), np.arange(1, n)
    if seed % 4 == 2:
        u, v = np.append(u, np.zeros(n, int)), np.append(v, np.arange(n))
    return n, u, v


def stored(folder, n, u, v, parts=1, threshold=None, **attributes):
    """Write a directed store; attributes: values of tuples by name."""
    source = HeldTuples(u, v, n)
    options = BuildOptions(directed=True, threads=1, threshold=threshold)
    source.attributes = {name: Values(values) for name, values in attributes.items()}
    write_graph(SoloWorld(), source, folder, parts, options)
