"""What rows for resident searches must be, from the matrix of a graph."""

import numpy as np

from distbfs.exchange.world import SoloWorld
from distbfs.graph.device_graph import AT_LEAST, COLUMN_PAD, ISOLATED, degree_class
from distbfs.partition.device_resident import GRANULE, construct_resident


def resident_parts(source, parts, world=None, **options):
    """Return (parts of this rank, summary)."""
    return construct_resident(source, world or SoloWorld(), parts, **options)


def row_ends(source):
    """Ends of tuples that are no loops at each vertex, repeats counted."""
    other = source.u != source.v
    ends = np.concatenate([source.u[other], source.v[other]])
    return np.bincount(ends, minlength=source.n)


def expected_positions(source, parts):
    """Position of each id, -1 where it has no edge, and the granules of a part."""
    degrees, positions = row_ends(source), np.full(source.n, -1, np.int64)
    most = 0
    for part in range(parts):
        own = degrees[part::parts]
        order = np.argsort(-degree_class(own), kind="stable")
        order = order[: int((own > 0).sum())]
        numbers = np.arange(len(order))
        at = (numbers // GRANULE * parts + part) * GRANULE + numbers % GRANULE
        positions[order * parts + part] = at
        most = max(most, len(order))
    return positions, max(-(-most // GRANULE), 1)


def check_resident(source, made, summary):
    """Assert that parts are the rows of a graph by position."""
    parts = made[0].layout.parts
    positions, granules = expected_positions(source, parts)
    matrix, degrees = source.matrix, row_ends(source)
    assert summary.m == matrix.nnz == made[0].edges
    assert summary.loops == int((source.u == source.v).sum())
    for one in made:
        graph, k = one.graph, one.index
        own = positions[k::parts]
        active = int((own >= 0).sum())
        assert (graph.n, graph.active) == (len(own), active)
        assert (one.granules, one.local_count) == (granules, len(own))
        actives = [(positions[j::parts] >= 0).sum() for j in range(parts)]
        np.testing.assert_array_equal(one.actives, actives)
        ids = one.ids.get()
        some = np.flatnonzero(positions >= 0)
        np.testing.assert_array_equal(ids[positions[some]], some)
        vertices = graph.vertices.get().astype(np.int64)
        np.testing.assert_array_equal(one.position_of(np.arange(active)), own[vertices])
        numbers = np.full(len(own), ISOLATED)
        numbers[vertices] = np.arange(active)
        np.testing.assert_array_equal(graph.numbers.get(), numbers)
        np.testing.assert_array_equal(graph.tuple_degrees.get(), source.ends[k::parts])
        offsets, columns = graph.offsets.get(), graph.columns.get()
        assert graph.m == offsets[-1] == len(columns) - COLUMN_PAD
        for number, local in enumerate(vertices.tolist()):
            v = local * parts + k
            row = matrix.indices[matrix.indptr[v] : matrix.indptr[v + 1]]
            got = columns[offsets[number] : offsets[number + 1]]
            np.testing.assert_array_equal(got, np.sort(positions[row]))
        for least in range(1, AT_LEAST):
            assert (degrees[k::parts] >= least).sum() <= graph.at_least[least]
