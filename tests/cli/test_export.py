"""``distbfs export``: stores go out to files and come back equal."""

import numpy as np
import pytest
from commands import files_in, here, on
from graphs import random_tuples
from launching import needs_mpi

from distbfs.registry import WRITERS
from distbfs.store.hdf5 import open_store
from distbfs.store.tuples import StoreTuples

GRAPH = random_tuples(150, 260, seed=5)
ENDINGS = {
    "edge-list": ".txt",
    "matrix-market": ".mtx",
    "gap-sg": ".sg",
    "parquet": ".parquet",
}


def edges_of(store):
    opened = open_store(store)
    pairs = np.concatenate([*StoreTuples(opened).edges()])
    assert len(pairs) == opened.manifest.m // 2
    return opened.manifest.n, sorted(map(tuple, pairs.tolist()))


@pytest.fixture(params=[1, 3])
def store(request, tmp_path):
    path = tmp_path / "graph.el"
    pairs = zip(GRAPH.u.tolist(), GRAPH.v.tolist(), strict=True)
    path.write_text("".join(f"{u} {v}\n" for u, v in pairs))
    made = tmp_path / "store"
    words = ("--parts", request.param, "-t", 4, "-o", made)
    assert here("convert", path, "--vertices", 160, *words).code == 0
    path.unlink()
    return made


def test_edges_come_once(store):
    u, v = GRAPH.u, GRAPH.v
    pairs = {(min(x), max(x)) for x in zip(u.tolist(), v.tolist(), strict=True)}
    n, edges = edges_of(store)
    assert n == 160
    assert edges == sorted(x for x in pairs if x[0] < x[1])


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_what_goes_out_comes_back_equal(store, tmp_path, name):
    file = tmp_path / f"out{ENDINGS[name]}"
    done = here("export", store, "-o", file, "--json")
    assert done.err == ""
    n, edges = edges_of(store)
    values = {"format": name, "n": n, "edges": len(edges), "store": str(store)}
    values |= {"file": str(file), "bytes": file.stat().st_size}
    assert done.values == values
    again = tmp_path / "again"
    assert here("convert", file, "-o", again, "--parts", 2).code == 0
    assert edges_of(again) == (n, edges)
    other = tmp_path / "other"
    assert here("export", store, "-o", other, "--format", name).code == 0
    assert other.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_parts_that_hold_no_edge_from_its_smaller_end(tmp_path, name):
    (tmp_path / "graph.el").write_text("0 1\n")
    store, file = tmp_path / "store", tmp_path / f"out{ENDINGS[name]}"
    words = ("--parts", 2, "-t", 9, "-o", store)
    assert here("convert", tmp_path / "graph.el", *words).code == 0
    assert here("export", store, "-o", file).code == 0
    assert here("convert", file, "-o", tmp_path / "again").code == 0
    assert edges_of(tmp_path / "again") == (2, [(0, 1)])


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_stores_with_ids(tmp_path, name):
    file = tmp_path / "graph.csv"
    file.write_text("b,a\nc,a\nd,d\nb,é\n")
    store, again = tmp_path / "store", tmp_path / "again"
    assert here("convert", file, "-o", store, "--relabel").code == 0
    out = tmp_path / f"out{ENDINGS[name]}"
    done = here("export", store, "-o", out)
    assert done.code == 0
    if name in ("matrix-market", "gap-sg"):
        assert "vertices by number, without the ids of their file" in done.err
        assert here("convert", out, "-o", again).code == 0
        assert edges_of(again) == edges_of(store)
        return
    assert done.err == ""
    assert here("convert", out, "-o", again, "--relabel").code == 0
    assert edges_of(again) == edges_of(store)
    every = np.arange(5)
    names = open_store(again).load_ids().names(every)
    assert names == open_store(store).load_ids().names(every) == [*"abcd", "é"]


def test_refused_and_nothing_left_behind(store, tmp_path):
    (tmp_path / "there.el").write_text("mine")
    before = files_in(tmp_path)
    for words, text in (
        ((store, "-o", tmp_path / "there.el"), "exists; give --force"),
        ((store, "-o", tmp_path / "a.xyz"), "the ending names no format"),
        ((store, "-o", tmp_path), "the ending names no format"),
        ((store, "-o", tmp_path / "a.sg.gz"), "are not compressed"),
        ((store, "-o", tmp_path / "none" / "a.el"), "there is no folder"),
        ((tmp_path, "-o", tmp_path / "a.el"), "no graph store"),
    ):
        assert text in here("export", *words).refusal
        assert files_in(tmp_path) == before
    part = sorted(store.glob("part*"))[-1]
    body = bytearray(part.read_bytes())
    body[len(body) // 2] ^= 1
    part.write_bytes(body)
    assert part.name in here("export", store, "-o", tmp_path / "a.el").refusal
    assert files_in(tmp_path) == before
    assert (tmp_path / "there.el").read_text() == "mine"


@needs_mpi
def test_on_two_ranks(store, tmp_path):
    one, two = tmp_path / "one.el", tmp_path / "two.el"
    assert here("export", store, "-o", one).code == 0
    done = on(2, "export", store, "-o", two)
    assert (done.code, done.err) == (0, "")
    assert one.read_bytes() == two.read_bytes()
    assert "exists; give --force" in on(2, "export", store, "-o", two).refusal
