"""Attributes kept by convert, and what bfs sees by them and by a file of vertices."""

import json

import numpy as np
import pytest
from commands import on
from launching import needs_mpi

ROWS = "0 1 5 road\n1 0 2 rail\n1 2 1 road\n2 3 9 rail\n3 3 1 road\n0 3 4 air\n"
FILES = {
    "edges.csv": (
        "u,v,weight,kind\n" + ROWS.replace(" ", ","),
        ["--keep", "weight", "--keep", "kind"],
    ),
    "edges.txt": (ROWS, ["--keep", "weight=3", "--keep", "kind=4"]),
}
MATRIX = "%%MatrixMarket matrix coordinate real symmetric\n4 4 3\n2 1 2\n3 2 1\n4 3 9\n"


@pytest.fixture(params=sorted(FILES))
def kept(request, tmp_path):
    """A store with two attributes."""
    text, words = FILES[request.param]
    path = tmp_path / request.param
    path.write_text(text)
    done = on(1, "convert", path, "-o", tmp_path / "store", *words)
    assert done.code == 0, done.err
    return tmp_path / "store"


def reached(store, *words, ranks=1):
    engine = ("--engine", "openmp", "--threads", "1")
    done = on(ranks, "bfs", store, "-s", "0", *engine, "--json", *words)
    assert done.code == 0, done.err
    return json.loads(done.out)["searches"][0]["reached"]


def test_predicates(kept):
    assert "weight (int64), kind (text)" in on(1, "info", kept).out
    assert reached(kept, "--where", "weight < 3") == 3  # of (0, 1) the smaller one
    again = kept.with_name("parts")
    words = ("--parts", "2", "--threshold", "1")
    assert on(1, "partition", kept, "-o", again, *words).code == 0
    assert reached(again, "--where", "weight < 3 or kind == 'air'") == 4


def test_numbers_of_32_bits_stay_so(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    weight = pyarrow.array([0.1, 0.2, None], pyarrow.float32())
    table = pyarrow.table({"u": [0, 1, 2], "v": [1, 2, 3], "w": weight})
    parquet.write_table(table, tmp_path / "edges.parquet")
    one, two = tmp_path / "1", tmp_path / "2"
    words = ("-o", one, "--keep", "w")
    assert on(1, "convert", tmp_path / "edges.parquet", *words).code == 0
    assert on(1, "partition", one, "-o", two, "--parts", "2").code == 0
    for store in (one, two):
        assert "w (float32)" in on(1, "info", store).out
        assert reached(store, "--where", "w <= 0.1") == 2
        assert reached(store, "--where", "w == 0.1 or w == 0.2") == 3


@needs_mpi
def test_ranks(kept):
    assert reached(kept, "--where", "weight < 3 or kind == 'air'", ranks=2) == 4


def test_vertices_and_refusals(tmp_path):
    (tmp_path / "m.mtx").write_text(MATRIX)
    store = tmp_path / "store"
    words = ("-o", store, "--keep", "w", "--first-id", "0")
    assert on(1, "convert", tmp_path / "m.mtx", *words).code == 0
    assert reached(store, "--where", "w <= 2") == 3
    np.save(tmp_path / "seen.npy", np.array([True, True, False, True]))
    (tmp_path / "seen.txt").write_text("0\n1\n3\n")
    for name in ("seen.npy", "seen.txt"):
        assert reached(store, "--vertices", tmp_path / name) == 2
    np.save(tmp_path / "wrong.npy", np.ones(3, bool))
    for words, line in (
        (["--where", "x < 3"], "'x' was not kept"),
        (["--where", "w < 'a'"], "can only be compared with a number"),
        (["--where", "open('x')"], "is not allowed"),
        (["--vertices", tmp_path / "wrong.npy"], "has 3 flags"),
        (["--vertices", tmp_path / "none.npy"], "No such file"),
    ):
        done = on(1, "bfs", store, "-s", "0", "--engine", "reference", *words)
        assert done.code == 2, words
        assert line in done.err.splitlines()[-1]
    words = ("--engine", "pan", "--where", "w <= 2")
    done = on(1, "bfs", store, "-s", "0", *words)
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert (
        "engine pan cannot be limited to some vertices and edges; allowed: engines"
        in line
    )
    levels = tmp_path / "levels.h5"
    words = ["--source-set", "0,1", "--engine", "reference", "--vertices"]
    words = ["bfs", store, *words, tmp_path / "seen.txt", "-o", levels]
    assert on(1, *words, "--depth-limit", "1").code == 0
    for more, line in (
        (["--source-set", "2,3"], "1 of 2 sources are vertices that are not seen"),
        (["--counts", "uint64"], "leave out --where and --vertices"),
        (["--paths-to", "3"], "leave out --where and --vertices"),
    ):
        done = on(1, *words[:-1], tmp_path / "other.h5", *more)
        assert done.code == 2, more
        assert line in done.err.splitlines()[-1]
    done = on(1, *words, "--depth-limit", "1", "--where", "w < 9")
    assert done.code == 2  # the file is of another view
    words = ("-o", tmp_path / "x", "--keep", "a", "--keep", "b")
    assert on(1, "convert", tmp_path / "m.mtx", *words).code == 2
