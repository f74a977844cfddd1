"""Rows of a store of one part, for ranks that own them."""

from __future__ import annotations

import shutil
from itertools import product

import h5py
import numpy as np
import pytest
from directed_graphs import matrix_of, tuples
from directed_graphs import stored as directed_store
from graphs import build, complete, kronecker, random_tuples, uniform
from store_graphs import reconcile
from worlds import on_ranks

from distbfs.device import cc
from distbfs.errors import StoreError
from distbfs.formats.attributes import Values
from distbfs.options import BuildOptions
from distbfs.plan import host_memory
from distbfs.ranks.world import SoloWorld
from distbfs.store.hdf5 import open_store, schema
from distbfs.store.owned_rows import is_divided_by_rows, load_rows
from distbfs.store.write import write_graph

GRAPHS = {
    "kronecker": lambda: kronecker(8),
    "uniform": lambda: uniform(700, 900),
    "complete": lambda: complete(40),
    "few": lambda: random_tuples(3, 2, 1),
    "no edges": lambda: random_tuples(5, 0, 1),
}


def stored(folder, source, **options):
    options = BuildOptions(**{"threshold": None, **options})
    write_graph(SoloWorld(), source, folder, 1, options)
    return open_store(folder)


def rows_of(world, source, store, parts, form):
    """Return the parts of a rank that own rows, from a store or from tuples."""
    if form == "store":
        own = range(world.rank, parts, world.size)
        return [load_rows(store, parts, index) for index in own]
    return build(source, parts, world, owned=True)[0]


@pytest.mark.parametrize(
    ("form", "parts"), [*product(["store", "tuples"], [2, 3, 7]), ("store", 1)]
)
@pytest.mark.parametrize("name", GRAPHS)
def test_owners_have_the_rows_of_their_vertices(tmp_path, name, parts, form):
    source, ranks = GRAPHS[name](), 2 if parts == 2 else 1
    store = stored(tmp_path / "graph", source)
    assert is_divided_by_rows(SoloWorld(), store)
    whole, seen = store.load_part(0), []
    groups = on_ranks(ranks, lambda world: rows_of(world, source, store, parts, form))
    for index, part in enumerate(part for group in groups for part in group):
        part.check()
        assert (part.index, part.owns_rows, part.threshold) == (index, True, 0)
        u, v = part.delegates[part.dd.sources()], part.delegates[part.dd.columns]
        assert (u % parts == index).all()
        seen.append(np.stack([u, v], axis=1))
        ids = part.ids()
        assert (np.sort(ids) == np.arange(index, store.manifest.n, parts)).all()
        numbers = whole.numbers[ids]
        np.testing.assert_array_equal(part.degrees, whole.degrees[numbers])
        np.testing.assert_array_equal(part.tuple_degrees, whole.tuple_degrees[numbers])
        assert (part.nn.edges, part.nd.edges, part.dn.edges, part.active) == (0,) * 4
        degrees = whole.degrees[whole.numbers[part.delegates]]
        np.testing.assert_array_equal(part.delegate_degrees, degrees)
    pairs = np.concatenate(seen)
    ids = whole.ids()
    wanted = np.stack([ids[whole.nn.sources()], ids[whole.nn.columns]], axis=1)
    np.testing.assert_array_equal(
        pairs[np.lexsort(pairs.T)], wanted[np.lexsort(wanted.T)]
    )


@pytest.mark.parametrize("slice_bytes", [24, 64, 1 << 20])
@pytest.mark.parametrize("native", [True, False])
def test_slices_that_cut_rows(tmp_path, monkeypatch, slice_bytes, native):
    store = stored(tmp_path / "graph", kronecker(6))
    wanted = [load_rows(store, 3, index).dd.columns for index in range(3)]
    monkeypatch.setattr(schema, "SLICE_BYTES", slice_bytes)
    if not native:
        monkeypatch.setattr(cc, "load_or_none", lambda *_, **__: None)
    read = []
    for index in range(3):
        part = load_rows(store, 3, index, read.append)
        np.testing.assert_array_equal(part.dd.columns, wanted[index])
    whole = store.load_part(0)
    arrays = whole.nn.columns, whole.nn.offsets, whole.vertices, whole.degrees
    assert sum(read) == 3 * sum(x.nbytes for x in (*arrays, whole.tuple_degrees))


def test_what_is_not_one_part_in_nn(tmp_path):
    with_delegates = stored(tmp_path / "delegates", kronecker(7), threshold=20)
    write_graph(SoloWorld(), kronecker(7), tmp_path / "two", 2, BuildOptions())
    for store in (with_delegates, open_store(tmp_path / "two")):
        assert not is_divided_by_rows(SoloWorld(), store)


def test_ranks_without_room_for_what_all_hold(tmp_path, monkeypatch):
    """One of them is enough."""
    store = stored(tmp_path / "graph", kronecker(7))
    need = 80 * 128 + 4 * store.manifest.m // 2
    for room in (need - 1, need):
        monkeypatch.setattr(
            host_memory,
            "may_fill",
            lambda world, room=room: (room if world.rank else 1 << 40, ""),
        )
        told = on_ranks(2, lambda world: is_divided_by_rows(world, store))
        assert told == [room == need] * 2


def test_attributes_are_those_of_the_rows(tmp_path):
    source = uniform(60, 300)
    u, v = source.u, source.v
    source.attributes = {
        "weight": Values(u * v % 13),
        "kind": Values(((u + v) % 3).astype(np.int32), ("air", "rail", "road")),
    }
    store = stored(tmp_path / "graph", source)
    for index in range(2):
        part = load_rows(store, 2, index)
        a, b = part.delegates[part.dd.sources()], part.delegates[part.dd.columns]
        weight, kind = (part.attributes[x] for x in ("weight", "kind"))
        np.testing.assert_array_equal(weight.values["dd"], a * b % 13)
        np.testing.assert_array_equal(kind.values["dd"], (a + b) % 3)
        assert (weight.words, kind.words) == (None, ("air", "rail", "road"))
        assert all(not len(weight.values[x]) for x in ("nn", "nd", "dn"))


def test_attributes_of_directed_rows(tmp_path):
    """They are with the edges out of a vertex and with those into it."""
    n, u, v = tuples(3)
    directed_store(tmp_path / "graph", n, u, v, weight=u * v % 13)
    matrix, seen = matrix_of(n, u, v), 0
    for index in range(2):
        part = load_rows(open_store(tmp_path / "graph"), 2, index)
        weight = part.attributes["weight"].values
        for name, rows in (("dd", part.dd), ("incoming_dd", part.incoming["dd"])):
            a, b = part.delegates[rows.sources()], part.delegates[rows.columns]
            np.testing.assert_array_equal(weight[name], a * b % 13)
            arcs = (a, b) if name == "dd" else (b, a)
            assert (np.asarray(matrix[arcs]) == 1).all()
            seen += len(a)
    assert seen == 2 * matrix.nnz


def refused(folder, match, index=0):
    with pytest.raises(StoreError, match=match) as caught:
        load_rows(open_store(folder), 2, index)
    assert "\n" not in str(caught.value)
    assert "part-00000.h5" in str(caught.value)


def test_a_rank_sees_damage_in_the_rows_of_another(tmp_path):
    store = stored(tmp_path / "graph", kronecker(7))
    path = store.folder / "part-00000.h5"
    for place in (0, -1):
        damaged = shutil.copytree(store.folder, tmp_path / f"damaged{place}")
        with h5py.File(path, "r") as file:
            columns = file["nn/columns"]
            info = columns.id.get_chunk_info(0)
            at = info.byte_offset + (4 * columns.size - 4 if place else 0)
        with (damaged / "part-00000.h5").open("r+b") as file:
            file.seek(at)
            value = file.read(1)
            file.seek(at)
            file.write(bytes([value[0] ^ 1]))
        for index in (0, 1):
            refused(damaged, "/nn/columns is altered", index)


CONTENTS = {
    "first offset": ("nn/offsets", "row offsets do not start at 0", 0, 1),
    "offsets fall": ("nn/offsets", "row offsets do not rise", 3, 1 << 20),
    "last offset": ("nn/offsets", "last row offset is not", -1, 1 << 20),
    "vertices twice": ("vertices", "not a permutation", 0, 100),
    "vertices huge": ("vertices", "not a permutation", 0, (1 << 32) - 1),
    "column": ("nn/columns", "a column is not below", 0, 128),
    "column of an empty row": ("nn/columns", "a column is not below", 0, 127),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_forged_contents(tmp_path, case):
    name, match, place, value = CONTENTS[case]
    store = stored(tmp_path / "graph", kronecker(7))
    owner = int(store.load_part(0).vertices[0]) % 2 if name == "nn/columns" else 0

    def forge(file):
        values = file[name][:]
        values[place] = value
        file[name][:] = values

    reconcile(store, forge, (0,))
    refused(store.folder, match, owner)


@pytest.mark.parametrize("more", [5, -5])
def test_offsets_that_end_elsewhere_than_the_columns(tmp_path, more):
    """Rows would be copied from beyond them, or be left unread."""
    store = stored(tmp_path / "graph", kronecker(7))
    active = store.manifest.records[0].active

    def forge(file):
        values = file["nn/offsets"][:].astype(np.int64)
        values[active:] += more
        file["nn/offsets"][:] = np.minimum(values, values[-1])

    reconcile(store, forge, (0,))
    refused(store.folder, "the last row offset is not the number of columns")
