"""``distbfs bfs FILE``: a graph file is searched as the store that convert makes."""

import h5py
import numpy as np
import pytest
from commands import here, on, write_edge_list
from graphs import random_tuples
from launching import needs_mpi

GRAPH = random_tuples(120, 260, seed=3)
NAMED = """\
from,to,weight
ada,bob,1
bob,cy,5
cy,dora,1
dora,ada,9
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_edge_list(tmp_path_factory.mktemp("files") / "edges.txt", GRAPH)


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "named.csv"
    path.write_text(NAMED)
    return path


def rows_of(done):
    """Return what is told of each search, without its times."""
    told = ("source", "sources", "reached", "depth", "nedge", "paths_to")
    searches = done.values["searches"]
    return [{k: x[k] for k in told if k in x} for x in searches]


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_as_a_store(file, tmp_path, ranks):
    store, output = tmp_path / "store", tmp_path / "out.h5"
    assert here("convert", file, "-o", store).code == 0
    words = ("-s", 0, "-s", 17, "--source-set", "3,40", "--json")
    told = rows_of(on(ranks, "bfs", file, *words, "-o", output))
    assert told == rows_of(here("bfs", store, *words))
    with h5py.File(output) as found:
        levels = found["level"][:]
    for row, root in enumerate((0, 17)):
        assert np.array_equal(levels[row], GRAPH.distances(root))


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_names_and_attributes(named, ranks):
    words = ("bfs", named, "--relabel", "-s", "ada", "--json")
    [found] = rows_of(on(ranks, *words, "--paths-to", "cy"))
    assert (found["source"], found["reached"], found["depth"]) == ("ada", 4, 2)
    assert found["paths_to"]["count"] == 2
    light = ("--keep", "weight", "--where", "weight < 3")
    [found] = rows_of(on(ranks, *words, *light))
    assert (found["reached"], found["depth"]) == (2, 1)


def test_directed(named):
    words = ("bfs", named, "--relabel", "--directed", "-s", "bob", "--json")
    assert rows_of(here(*words))[0]["depth"] == 3


def test_the_first_line_may_be_left_out(tmp_path):
    path = tmp_path / "sizes.txt"
    path.write_text("5 4\n0 1\n1 2\n2 3\n3 4\n")
    words = ("bfs", path, "-s", 1, "--json")
    for header, reached in (((), 6), (("--header",), 5), (("--no-header",), 6)):
        done = here(*words, *header)
        assert rows_of(done)[0]["reached"] == reached
        assert ("may state sizes" in done.err) == (not header)


def test_text_ids_need_relabel(named, tmp_path):
    said = "named.csv:2: 'ada' is not an id; --relabel takes ids of any text"
    assert said in here("bfs", named, "-s", "ada").refusal
    assert said in here("convert", named, "-o", tmp_path / "x").refusal


def test_what_is_no_store_says_how_to_make_one(file, tmp_path):
    refusal = here("info", file).refusal
    assert refusal.endswith(f"'distbfs convert {file} -o FOLDER'")
    store = tmp_path / "store"
    assert here("convert", file, "-o", store).code == 0
    said = "is of graph files, and"
    assert f"--relabel {said}" in here("bfs", store, "-s", 0, "--relabel").refusal
    assert f"--header {said}" in here("bfs", store, "-s", 0, "--header").refusal
    one_based = here("bfs", store, "-s", 0, "--zero-based").refusal
    assert f"--one-based {said}" in one_based


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_what_is_not_there(tmp_path, ranks):
    done = on(ranks, "bfs", tmp_path / "nowhere.txt", "-s", 0)
    assert "there is no such file or folder" in done.refusal
