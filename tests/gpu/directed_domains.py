"""Directed graphs in a domain of devices, and what a right search of them is."""

import numpy as np
import scipy.sparse as sp
from device_parts import joined
from directed_hosts import masks_of
from graphs import fixed
from resident_parts import check_cut, resident_driver

from distbfs.build.cuda.seen import SeenMaker
from distbfs.engines.base import WHOLE
from distbfs.graph.device_graph import COLUMN_PAD


def directed_driver(source, parts, **options):
    """Return the driver of searches along arcs; see ``resident_driver``."""
    return resident_driver(source, parts, directed=True, **options)


def look(driver, source, root, *, until=WHOLE, **options):
    """Search and assert that the result is right; return it."""
    found = driver.search(root, until=until, **options)
    level, parent = (joined(x, source.n) for x in (found.level, found.parent))
    if level is None:
        level = levels_along(parent, root)
    wanted = check_cut(source, root, level, parent, until)
    assert found.levels == wanted.max() + 1
    assert found.seconds > 0
    return found


def levels_along(parent, root):
    """Return the levels that parents tell, -1 where they lead to no root."""
    child = np.flatnonzero((parent >= 0) & (np.arange(len(parent)) != root))
    ends = parent[child], child
    shape = (len(parent), len(parent))
    tree = sp.coo_matrix((np.ones(len(child)), ends), shape=shape).tocsr()
    far = sp.csgraph.dijkstra(tree, indices=root, unweighted=True)
    return np.where(np.isfinite(far), far, -1).astype(np.int32)


def look_from_set(driver, source, roots):
    """Search from several vertices and assert that levels are right."""
    found = driver.search(roots)
    wanted = source.distances(roots)
    assert found.levels == wanted.max() + 1
    np.testing.assert_array_equal(joined(found.level, source.n), wanted)
    parent = joined(found.parent, source.n)
    assert (parent[roots] == roots).all()
    child = np.flatnonzero(wanted > 0)
    np.testing.assert_array_equal(wanted[parent[child]], wanted[child] - 1)
    assert not len(child) or source.matrix[parent[child], child].all()


def check_records(source, root, found):
    """Assert that records tell the vertices found, and the edges of pushes."""
    level = source.distances(root)
    sizes = np.bincount(level[level >= 0]).tolist()
    assert [x["found"] for x in found.records] == sizes[1:]
    into = np.bincount(source.matrix.indices, minlength=source.n)
    for depth, x in enumerate(found.records):
        if x["direction"].startswith("push"):
            assert x["checks"] == source.degrees[level == depth].sum()
            continue
        # columns that a row has not are looked at, too: seven of a vertex
        left = (level > depth) | (level < 0)
        assert sizes[depth + 1] <= x["checks"]
        assert x["checks"] <= into[left].sum() + 7 * left.sum()


def check_rows(source, made):
    """Assert that parts have the edges out of their vertices, and those in."""
    ways = source.matrix, source.matrix.T.tocsr()
    for part in made:
        k = part.index
        vertices = part.vertices.get().astype(np.int64)
        names = part.ids_at(np.arange(part.slots)).get()
        sides = [(side.offsets, side.columns) for side in (part.out, part.into)]
        for matrix, side in zip(ways, sides, strict=True):
            offsets, columns = side[0].get().astype(np.int64), side[1].get()
            assert offsets[-1] == len(columns) - COLUMN_PAD
            for number, local in enumerate(vertices.tolist()):
                v = local * part.layout.parts + k
                got = columns[offsets[number] : offsets[number + 1]]
                assert (np.diff(got.astype(np.int64)) > 0).all()
                row = matrix.indices[matrix.indptr[v] : matrix.indptr[v + 1]]
                np.testing.assert_array_equal(np.sort(names[got]), np.sort(row))
        ends = np.zeros(part.n, np.int64)
        ends[part.ended.get()] = part.tuple_degrees.get()
        wanted = 2 * np.bincount(source.u, minlength=source.n)
        np.testing.assert_array_equal(ends, wanted[k :: part.layout.parts])
    edges = sum(part.m for part in made)
    assert edges == made[0].domain.edges == source.matrix.nnz


def mask(driver, source, seed):
    """Show a random part of the edges; return what is left."""
    vertices, edges, left = masks_of(source, seed)
    views = []
    for one in driver._parts:
        with one.part.ids.device:
            maker = SeenMaker.of_share(one.part)
            if edges is None:
                seen = maker.of_vertices(vertices)
            else:
                seen = maker.of_pairs(
                    lambda: [(left.u[k::2], left.v[k::2]) for k in (0, 1)]
                )
            mine = one.part.vertices.get().astype(np.int64)
            mine = mine * one.part.layout.parts + one.part.index
            np.testing.assert_array_equal(seen.ends.get(), left.degrees[mine])
            into = fixed(np.bincount(left.matrix.indices, minlength=left.n))
            np.testing.assert_array_equal(seen.incoming.ends.get(), into[mine])
            views.append(seen)
    driver.see(views)
    return left
