"""Commands on a graph file: they answer as of the store that convert makes."""

import json

import h5py
import numpy as np
import pytest
from commands import DISTBFS, environment, here, on, write_edge_list
from graphs import random_tuples
from launching import needs_mpi, run

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
    refusal = here("verify", file).refusal
    assert refusal.endswith(f"'distbfs convert {file} -o FOLDER'")
    store = tmp_path / "store"
    assert here("convert", file, "-o", store).code == 0
    said = "is for graph files, and"
    assert f"--relabel {said}" in here("bfs", store, "-s", 0, "--relabel").refusal
    assert f"--header {said}" in here("bfs", store, "-s", 0, "--header").refusal
    one_based = here("bfs", store, "-s", 0, "--zero-based").refusal
    assert f"--one-based {said}" in one_based


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
@pytest.mark.parametrize("name", ["file", "named"])
def test_info_of_a_file(name, tmp_path, ranks, request):
    file, store = request.getfixturevalue(name), tmp_path / "store"
    words = ["--relabel", "--directed"] if name == "named" else []
    assert here("convert", file, "-o", store, *words).code == 0
    told = on(ranks, "info", file, *words, "--degrees", "--json").values
    known = here("info", store, "--degrees", "--json").values
    assert told["store"] == str(file)
    kind = told.pop("ids", {}).get("kind")
    assert kind == known.pop("ids", {}).get("kind")
    told["diameter"].pop("searches"), known["diameter"].pop("searches")
    del told["store"]
    assert told == {key: known[key] for key in told}
    text = on(ranks, "info", file, *words).out
    assert "made of        " + file.name in text
    assert "on disk" not in text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("ranks", "divide"),
    [(1, "auto"), *(pytest.param(2, x, marks=needs_mpi) for x in ("parts", "sources"))],
)
def test_many_searches_of_a_file(file, tmp_path, ranks, divide):
    store, asks = tmp_path / "store", ("-o", "-", "--divide", divide)
    assert here("convert", file, "-o", store).code == 0
    for app in ("closeness", "eccentricity", "khop"):
        told = on(ranks, "multisearch", app, file, *asks)
        assert told.code == 0
        assert told.out == here("multisearch", app, store, "-o", "-").out
    assert len(told.out.splitlines()) > GRAPH.n


def test_many_searches_of_directed_and_named_files(named):
    words = ("multisearch", "khop", named, "--relabel", "--directed", "--hops", 1)
    done = here(*words, "-o", "-")
    assert done.out.splitlines()[:3] == ["source,hops,within", "ada,0,1", "ada,1,2"]
    values = here(*words, "--json").values
    assert (values["vertices"], values["directed"]) == (4, True)
    divided = here(*words, "--divide", "parts", "-o", "-")
    assert divided.out == done.out


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_a_service_of_a_file(named, tmp_path, ranks):
    lines = [
        {"id": 1, "op": "distances", "source": "ada", "targets": ["cy", "bob"]},
        {"id": 2, "op": "stats"},
    ]
    asks = tmp_path / "in"
    asks.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shell = f"{' '.join(DISTBFS)} serve {named} --relabel < {asks}"
    if ranks > 1:
        shell = f"mpiexec -n {ranks} {shell}"
    done = run(["sh", "-c", shell], 60, environment())
    assert done.returncode == 0, done.stderr
    ready, *answers = map(json.loads, ['"ready"', *done.stdout.splitlines()[1:]])
    one, stats = sorted(answers, key=lambda x: x["id"])
    assert (ready, one["distances"]) == ("ready", [2, 1])
    about = stats["graph"]
    assert about["store"] == str(named)
    assert [about[x] for x in ("vertices", "edges", "tuples", "ids")] == [
        4,
        4,
        4,
        "text",
    ]
    refusal = here("serve", "-").refusal
    assert "GRAPH - needs --socket or --http" in refusal


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_what_is_not_there(tmp_path, ranks):
    done = on(ranks, "bfs", tmp_path / "nowhere.txt", "-s", 0)
    assert "there is no such file or folder" in done.refusal
