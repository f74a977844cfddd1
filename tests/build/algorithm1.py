"""What the parts of a graph must be, straight from the paper, and how they compare.

Source: Pan, Pearce, Owens 2018, Section III-B, Algorithm 1.
"""

from dataclasses import fields
from functools import cache

import networkx as nx
import numpy as np

from distbfs.graph.csr import CSR
from distbfs.partition.part import bits_of
from distbfs.types import SUBGRAPHS


def edge_distributor(edges, degree, threshold, p_rank, p_gpu):
    """Algorithm 1, line by line, for all edges (u -> v); returns (rank, GPU).

    Of lines 4 to 8 the other end is taken for one edge in four, by delegate numbers.
    """

    def to(vertex):
        return vertex % p_rank, (vertex // p_rank) % p_gpu  # P(v), G(v)

    u, v = edges.T
    normal = degree <= threshold
    high = np.flatnonzero(~normal)
    number = np.zeros(len(degree), dtype=np.int64)
    number[high[np.lexsort((high, -degree[high]))]] = np.arange(len(high))
    turned = ~normal[u] & ~normal[v] & ((number[u] + number[v]) % 4 == 0)
    undecided = np.ones(len(u), dtype=bool)
    rank, gpu = np.full(len(u), -1), np.full(len(u), -1)
    lines = [
        (normal[u], to(u)),  # 2
        (normal[v], to(v)),  # 3
        (degree[u] < degree[v], to(np.where(turned, v, u))),  # 4, 5
        (degree[u] > degree[v], to(np.where(turned, u, v))),  # 6, 7
        (np.ones(len(u), dtype=bool), to(np.where((u < v) ^ turned, u, v))),  # 8
    ]
    for condition, place in lines:
        here = undecided & condition
        rank[here], gpu[here] = place[0][here], place[1][here]
        undecided &= ~condition
    return rank, gpu


def decoded(parts):
    """All stored edges in vertex ids: int64 [m, 4], (u, v, part, subgraph), sorted."""
    ids = [part.ids() for part in parts]
    out = []
    for part in parts:
        d = part.delegates
        for kind, name in enumerate(SUBGRAPHS):
            graph = getattr(part, name)
            row, column = graph.sources(), graph.columns.astype(np.int64)
            u = ids[part.index][row] if name[0] == "n" else d[row]
            if name == "nn":
                v = np.full(len(column), -1)
                for k in range(len(parts)):
                    here = column >> 32 == k
                    v[here] = ids[k][column[here] & 0xFFFFFFFF]
            else:
                v = d[column] if name[1] == "d" else ids[part.index][column]
            place = np.full(len(u), part.index), np.full(len(u), kind)
            out.append(np.stack([u, v, *place], axis=1))
    edges = np.concatenate(out)
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


def expected_edges(source, threshold, p_rank, p_gpu):
    """What ``decoded`` must give."""
    edges, degree = source.edges, source.degrees
    rank, gpu = edge_distributor(edges, degree, threshold, p_rank, p_gpu)
    u, v = edges.T
    kind = (degree[u] > threshold) * 2 + (degree[v] > threshold)
    return np.column_stack([edges, gpu * p_rank + rank, kind])


def pairs(graph, *, turned=False):
    """(row, column) of a subgraph, sorted; or (column, row)."""
    ends = [graph.sources(), graph.columns.astype(np.int64)]
    first, second = ends[::-1] if turned else ends
    order = np.lexsort((second, first))
    return np.stack([first[order], second[order]])


def check_parts(source, parts, threshold, p_rank, p_gpu, block):
    """Assert all that is promised of parts 0 … p-1 (see ``partition.part``)."""
    assert [part.index for part in parts] == list(range(p_rank * p_gpu))
    np.testing.assert_array_equal(
        decoded(parts), expected_edges(source, threshold, p_rank, p_gpu)
    )
    degree = source.degrees
    high = np.flatnonzero(degree > threshold)
    delegates = high[np.lexsort((high, -degree[high]))]
    for part in parts:
        part.check()
        assert part.threshold == threshold
        np.testing.assert_array_equal(part.delegates, delegates)
        np.testing.assert_array_equal(part.delegate_degrees, degree[delegates])
        check_numbers(source, part, block)
        check_shape(part)


@cache
def core_of(source):
    """Return the vertices of the 2-core by NetworkX."""
    graph = nx.Graph(source.edges.tolist())
    return frozenset(nx.k_core(graph, 2))


def check_numbers(source, part, block):
    """Normal vertices with edges first: by block, by falling degree, by id.

    Of a whole graph those outside the 2-core follow, each with one neighbour before it
    at most, which is then the first of its row.
    """
    mine = np.arange(part.index, source.n, part.layout.parts)
    degree = source.degrees
    active = [v for v in mine if 0 < degree[v] <= part.threshold]
    p = part.layout.parts
    active.sort(key=lambda v: (v // p // block, -degree[v], v))
    assert part.active == len(active)
    ids = part.ids()
    whole = p == 1 and not part.delegate_count
    core = [v for v in active if v in core_of(source)] if whole else active
    np.testing.assert_array_equal(ids[: len(core)], core)
    np.testing.assert_array_equal(np.sort(ids[: part.active]), np.sort(active))
    for row in range(len(core), part.active):
        first, end = part.nn.offsets[row : row + 2].tolist()
        assert (part.nn.columns[first + 1 : end] > row).all()
    np.testing.assert_array_equal(np.sort(ids), mine)
    np.testing.assert_array_equal(part.degrees, degree[ids])
    np.testing.assert_array_equal(part.tuple_degrees, source.ends[ids])
    owned, local = part.owned_delegates()
    np.testing.assert_array_equal(part.delegates[owned], local * p + part.index)
    assert set(part.delegates[owned]) == set(part.delegates) & set(mine)


def check_shape(part):
    """Symmetry, order of rows, source lists and masks, types."""
    np.testing.assert_array_equal(pairs(part.dd), pairs(part.dd, turned=True))
    np.testing.assert_array_equal(pairs(part.dn), pairs(part.nd, turned=True))
    assert not (part.dd.sources() == part.dd.columns).any()
    for name in ("nd", "dn", "dd"):
        graph = getattr(part, name)
        ascending = np.diff(graph.columns.astype(np.int64)) > 0
        assert (ascending | (np.diff(graph.sources()) > 0)).all(), name
        assert graph.columns.dtype == np.uint32
        sources = np.unique(graph.sources())
        if name == "nd":
            np.testing.assert_array_equal(part.nd_sources, sources)
        else:
            mask = getattr(part, f"{name}_sources")
            assert len(mask) == -(-graph.rows // 64)
            np.testing.assert_array_equal(bits_of(mask, len(mask) * 64), sources)
    wide = part.layout.parts > 1
    assert part.nn.columns.dtype == (np.uint64 if wide else np.uint32)
    for name in SUBGRAPHS:
        assert getattr(part, name).offsets.dtype == np.uint32
    assert not part.nn.degrees()[part.active :].any()
    assert not part.nd.degrees()[part.active :].any()


def arrays_of(part):
    """Everything that a part holds, by name."""
    arrays = {}
    values = {item.name: getattr(part, item.name) for item in fields(part)}
    values |= {f"in_{name}": rows for name, rows in values.pop("incoming").items()}
    for name, value in values.items():
        if isinstance(value, CSR):
            arrays[f"{name}.offsets"] = value.offsets
            arrays[f"{name}.columns"] = value.columns
        elif name == "attributes":
            for attribute, kept in value.items():
                for rows, held in kept.values.items():
                    arrays[f"attributes.{attribute}.{rows}"] = held
        else:
            arrays[name] = np.asarray(value) if name != "layout" else value
    return arrays


def assert_same_parts(actual, expected):
    """Assert that parts are the same byte for byte."""
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        mine, theirs = arrays_of(one), arrays_of(other)
        assert mine.pop("layout") == theirs.pop("layout")
        assert mine.keys() == theirs.keys()
        for name, array in mine.items():
            assert array.dtype == theirs[name].dtype, name
            assert array.tobytes() == theirs[name].tobytes(), name
