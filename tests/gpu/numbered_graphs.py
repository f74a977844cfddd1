"""What a graph on a device must be, by NumPy: numbers, rows, and which trees are last.

The rules are those of device_graph.py, trees.py and numbering.py.
"""

from operator import attrgetter

import numpy as np

from distbfs.build.cuda.trees import MOST_ROUNDS
from distbfs.graph.device_graph import (
    AT_LEAST,
    COLUMN_PAD,
    ISOLATED,
    SEARCHED_UNIT,
    degree_class,
)

ARRAYS = ("out.offsets", "out.columns", "vertices", "numbers", "tuple_degrees")


def ends_of(source):
    """Both directions of each edge tuple that is not a loop, repeats kept."""
    other = source.u != source.v
    u, v = source.u[other], source.v[other]
    return np.r_[u, v].astype(np.int64), np.r_[v, u].astype(np.int64)


def tree_ranks(source):
    """Rounds in which vertices with one edge are taken away, and what they hang on.

    Rank 0: outside of trees.  The root of a tree that is a component has a rank, too.
    """
    rows, columns = ends_of(source)
    left = np.bincount(rows, minlength=source.n)
    links = np.bincount(rows, columns, source.n).astype(np.int64)  # sums of neighbours
    ranks, listed = np.zeros(source.n, np.int64), np.flatnonzero(left == 1)
    for number in range(1, MOST_ROUNDS + 1):
        to = links[listed]
        chosen = (left[listed] == 1) & ((left[to] != 1) | (listed > to))
        leaves, to = listed[chosen], to[chosen]
        ranks[leaves] = number
        np.subtract.at(left, to, 1)
        np.subtract.at(links, to, leaves)
        ranks[to[left[to] == 0]] = number + 1
        listed = np.unique(to[left[to] == 1])
    return ranks, links


def numbering_of(source, trees):
    """Vertices by number, ``at_least``, and (count, chain, at_least) of trees."""
    rows, _ = ends_of(source)
    degrees = np.bincount(rows, minlength=source.n)
    classes, bounds = degree_class(degrees), degree_class(np.arange(AT_LEAST))
    ranks, links = tree_ranks(source)
    hangs = ranks > 0
    core = int(((degrees > 0) & ~hangs).sum())
    fill = -core % SEARCHED_UNIT
    loose = np.flatnonzero((ranks == 1) & (ranks[links % source.n] == 0))
    if not trees or len(loose) < fill or hangs.sum() <= fill:
        order = np.argsort(-classes, kind="stable")
        active = np.count_nonzero(degrees)
        return (
            order[:active],
            [active, *((classes >= c).sum() for c in bounds[1:])],
            None,
        )
    loose = loose[:fill]
    inside = np.flatnonzero((degrees > 0) & ~hangs)
    inner, leaf = np.flatnonzero(ranks > 1), ranks == 1
    leaf[loose] = False
    order = (
        inside[np.argsort(-classes[inside], kind="stable")],
        loose,
        inner[np.argsort(-ranks[inner], kind="stable")],
        np.flatnonzero(leaf),
    )
    active, searched = int((degrees > 0).sum()), core + fill
    of_core = [int((classes[inside] >= c).sum()) for c in bounds]
    highest = classes[inner].max() if len(inner) else 0
    at_least = np.where(bounds <= highest, searched + len(inner), of_core)
    at_least[:2] = active, active
    of_core[:2] = searched, searched
    return np.concatenate(order), at_least, (active - searched, ranks.max(), of_core)


def expected(source, trees=True):
    """The fields of the graph of edge tuples; trees: whether they are set apart."""
    n, u, v = source.n, source.u, source.v
    vertices, at_least, apart = numbering_of(source, trees)
    active = len(vertices)
    numbers = np.full(n, ISOLATED, dtype=np.uint32)
    numbers[vertices] = np.arange(active)
    rows, columns = ends_of(source)
    keys = np.unique(numbers[rows].astype(np.int64) << 32 | numbers[columns])
    lengths = np.bincount(keys >> 32, minlength=active)
    return {
        "n": n,
        "active": active,
        "m": len(keys),
        "tuples": source.tuples,
        "loops": int((u == v).sum()),
        "at_least": at_least,
        "trees": apart,
        "out.offsets": np.concatenate([[0], np.cumsum(lengths)]),
        "out.columns": np.r_[keys & (1 << 32) - 1, np.zeros(COLUMN_PAD)].astype("u4"),
        "vertices": vertices,
        "numbers": numbers,
        "tuple_degrees": np.bincount(np.r_[u, v].astype(np.int64), minlength=n),
        "source": source.describe(),
    }


def check(graph, wanted, wide=False):
    """Compare all that the graph has."""
    assert graph.at_least.dtype == np.int64
    for name, value in wanted.items():
        found = attrgetter(name)(graph)
        if name in ARRAYS:
            kind = np.uint64 if wide and name == "out.offsets" else np.uint32
            assert found.dtype == kind, name
            found = found.get()
        elif name == "trees" and found is not None:
            found = found.count, found.chain, found.at_least.tolist()
        if name == "trees":
            assert found == value
        else:
            np.testing.assert_array_equal(found, value, err_msg=name)
    arrays = (graph.out.offsets, graph.out.columns, graph.vertices, graph.numbers)
    assert graph.nbytes == sum(a.nbytes for a in (*arrays, graph.tuple_degrees))
