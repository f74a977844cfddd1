"""``distbfs export``: stores go out to files and come back equal."""

import subprocess

import numpy as np
import pytest
from commands import DISTBFS, files_in, here, on
from graphs import random_tuples
from launching import clean_environment, needs_mpi

from distbfs.registry import WRITERS
from distbfs.store import tuples
from distbfs.store.hdf5 import open_store
from distbfs.store.tuples import StoreTuples

GRAPH = random_tuples(150, 260, seed=5)
ENDINGS = {
    "edge-list": ".txt",
    "matrix-market": ".mtx",
    "gap-sg": ".sg",
    "parquet": ".parquet",
}
SAID = "distbfs: {}: matrix-market counts vertices from 1, the store from 0\n"


def edges_of(store):
    opened = open_store(store)
    pairs = np.concatenate([np.zeros((0, 2), int), *StoreTuples(opened).edges()])
    assert len(pairs) * (1 if opened.manifest.directed else 2) == opened.manifest.m
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


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(WRITERS))
def test_what_goes_out_comes_back_equal(store, tmp_path, name):
    file = tmp_path / f"out{ENDINGS[name]}"
    done = here("export", store, "-o", file, "--json")
    assert done.err == (SAID.format(file) if name == "matrix-market" else "")
    n, edges = edges_of(store)
    values = {"format": name, "vertices": n, "edges": len(edges), "store": str(store)}
    values |= {"file": str(file), "bytes": file.stat().st_size}
    assert done.values == values
    again = tmp_path / "again"
    assert here("convert", file, "-o", again, "--parts", 2).code == 0
    assert edges_of(again) == (n, edges)
    other = tmp_path / "other"
    assert here("export", store, "-o", other, "--format", name).code == 0
    assert other.read_bytes() == file.read_bytes()


def some_graph(seed):
    """Vertices and tuples: isolated vertices, loops, repeats, ways back; 0: a loop."""
    n = 3 + 5 * seed
    u, v = np.random.default_rng(seed).integers(0, n - 2, (2, 4 * n if seed else 1))
    return n, list(zip(u.tolist(), v.tolist(), strict=True))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("parts", [0, 1, 3])
@pytest.mark.parametrize("name", sorted(WRITERS))
def test_random_graphs_come_back_equal(tmp_path, monkeypatch, name, parts, seed):
    """No parts stand for a directed graph; chunks of 5 edges hold none at times."""
    monkeypatch.setattr(tuples, "CHUNK", 5)
    n, pairs = some_graph(seed)
    store, again, out = (tmp_path / x for x in ("store", "again", f"o{ENDINGS[name]}"))
    graph = tmp_path / "graph.npy"
    np.save(graph, np.array(pairs, dtype=np.int64).reshape(-1, 2))
    words = ("--parts", parts) if parts else ("--directed",)
    made = here("convert", graph, "-o", store, "--vertices", n, *words, "-t", 2)
    assert made.code == 0
    done = here("export", store, "-o", out, "--json")
    said = SAID.format(out) if name == "matrix-market" else ""
    assert (done.code, done.err) == (0, said)
    edges = {x if not parts else (min(x), max(x)) for x in pairs if x[0] != x[1]}
    assert edges_of(store) == (n, sorted(edges))
    assert done.values["edges"] == len(edges)
    done = here("convert", out, "-o", again, *words)
    assert (done.code, "both ways" in done.err) == (0, False)
    assert open_store(again).manifest.directed == (not parts)
    assert edges_of(again) == (n, sorted(edges))


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_files_state_whether_edges_lead_one_way(tmp_path, name):
    (tmp_path / "graph.el").write_text("0 1\n1 2\n2 0\n")
    out, again = tmp_path / f"out{ENDINGS[name]}", tmp_path / "again"
    for words in ((), ("--directed",)):
        store = tmp_path / f"store{len(words)}"
        assert here("convert", tmp_path / "graph.el", "-o", store, *words).code == 0
        assert here("export", store, "-o", out, "--force").code == 0
        if not words:
            refused = here("convert", out, "-o", again, "--directed").refusal
            assert "lead both ways; leave out --directed" in refused
    taken = here("convert", out, "-o", again)
    noted = "directed edges are read as undirected without --directed" in taken.err
    assert noted == (name != "matrix-market"), "general matrices do not say"
    assert edges_of(again) == (3, [(0, 1), (0, 2), (1, 2)])


@pytest.mark.parametrize("name", ["edge-list", "parquet"])
def test_directed_stores_with_ids(tmp_path, name):
    file, store, again = (tmp_path / x for x in ("graph.csv", "store", "again"))
    file.write_text("c,a\na,b\nb,c\nd,d\n")
    words = ("--relabel", "--directed")
    assert here("convert", file, "-o", store, *words).code == 0
    out = tmp_path / f"out{ENDINGS[name]}"
    assert here("export", store, "-o", out).code == 0
    assert here("convert", out, "-o", again, *words).code == 0
    assert edges_of(again) == edges_of(store) == (4, [(0, 1), (1, 2), (2, 0)])


@pytest.mark.thorough
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


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(WRITERS))
def test_ids_from_1_on_come_back(tmp_path, name):
    """The last vertex has no edges."""
    (tmp_path / "graph.el").write_text("1 2\n2 3\n")
    store, out, again = (tmp_path / x for x in ("store", f"o{ENDINGS[name]}", "again"))
    words = ("--one-based", "--vertices", 4)
    assert here("convert", tmp_path / "graph.el", "-o", store, *words).code == 0
    done = here("export", store, "-o", out)
    lost = "gap-sg counts vertices from 0, the store from 1" in done.err
    assert (done.code, lost) == (0, name == "gap-sg")
    assert here("convert", out, "-o", again).code == 0
    assert edges_of(again) == edges_of(store) == (4, [(0, 1), (1, 2)])
    first = 0 if name == "gap-sg" else 1
    assert open_store(again).manifest.first_id == first
    assert here("bfs", out, "-s", 4 if first else 3).code == 0
    assert here("bfs", out, "-s", 0).code == (2 if first else 0)


def test_refused_and_nothing_left_behind(store, tmp_path):
    (tmp_path / "there.el").write_text("mine")
    before = files_in(tmp_path)
    for words, text in (
        ((store, "-o", tmp_path / "there.el"), "exists; give --force"),
        ((store, "-o", tmp_path / "a.xyz"), "the ending names no format"),
        ((store, "-o", tmp_path), "is a folder; give the name of a file"),
        ((store, "-o", tmp_path / "a.sg.gz"), "are not compressed"),
        ((store, "-o", tmp_path / "none" / "a.el"), "there is no folder"),
        ((tmp_path, "-o", tmp_path / "a.el"), "not a graph store"),
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


@pytest.mark.thorough
@needs_mpi
def test_on_two_ranks(store, tmp_path):
    one, two = tmp_path / "one.el", tmp_path / "two.el"
    assert here("export", store, "-o", one).code == 0
    done = on(2, "export", store, "-o", two)
    assert (done.code, done.err) == (0, "")
    assert one.read_bytes() == two.read_bytes()
    assert "exists; give --force" in on(2, "export", store, "-o", two).refusal


@pytest.mark.thorough
@pytest.mark.parametrize("store", [3], indirect=True)
@pytest.mark.parametrize("name", WRITERS)
def test_a_dash_is_stdout(store, tmp_path, name):
    file = tmp_path / f"out{ENDINGS[name]}"
    assert here("export", store, "-o", file).code == 0
    words = [] if name == "edge-list" else ["--format", name]
    line = [*DISTBFS, "export", str(store), "-o", "-", *words]
    done = subprocess.run(line, capture_output=True, env=clean_environment())
    assert (done.returncode, done.stdout) == (0, file.read_bytes()), done.stderr
    assert "for one output alone" in here("export", store, "-o", "-", "--json").refusal
    assert "- is stdout" in here("partition", store, "-o", "-").refusal
