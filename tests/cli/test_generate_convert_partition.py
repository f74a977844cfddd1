"""Stores that commands make: content, the same for every number of ranks, refusals."""

import re
import tempfile
import time

import numpy as np
import pytest
from commands import (
    DISTBFS,
    alone,
    check_results,
    files_in,
    here,
    injected,
    nedge,
    on,
    write_edge_list,
    write_matrix_market,
)
from graphs import Tuples, kronecker, random_tuples
from launching import needs_mpi, run

from distbfs.cli import convert
from distbfs.cli import shared as common
from distbfs.generate.chung_lu import ChungLu
from distbfs.generate.forest_fire import ForestFire
from distbfs.generate.formula import BinaryTree, Complete, Star
from distbfs.generate.formula import Path as PathGraph
from distbfs.generate.geometric import Geometric
from distbfs.generate.rmat import RmatB, RmatER
from distbfs.generate.road import Road
from distbfs.generate.small_world import SmallWorld
from distbfs.generate.stencil import Stencil
from distbfs.generate.triangulation import Triangulation
from distbfs.generate.uniform import Uniform
from distbfs.store.hdf5 import open_store

RANDOM = random_tuples(150, 260, seed=5)
SOURCES = (0, 3, 77, 149)


def manifest(store):
    return open_store(store).manifest


def digests(store):
    return [record.digests for record in manifest(store).records]


def counts(tuples):
    """n, m, tuples, loops and repeats, from the tuples alone."""
    loops = int((tuples.u == tuples.v).sum())
    m = tuples.matrix.nnz
    return (tuples.n, m, tuples.tuples, loops, tuples.tuples - loops - m // 2)


def counts_of(store):
    facts = manifest(store)
    return (facts.n, facts.m, facts.tuples, facts.loops, facts.repeats)


def search(store, output, sources=SOURCES, *more):
    """Search a store and return what ``--json`` says of each source."""
    words = [word for source in sources for word in ("--source", source)]
    done = here("bfs", store, *words, "-o", output, "--json", *more)
    return done.values["searches"]


@pytest.fixture
def make(tmp_path):
    """Make a store by a command on some ranks; returns its folder."""

    def command(name, *words, ranks=1):
        store = tmp_path / name
        done = on(ranks, *words, "-o", store)
        said = [x for x in done.err.splitlines() if "are ignored" not in x]
        assert (done.code, said) == (0, [])
        return store

    return command


# generate


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_generated_store(tmp_path, parts):
    store = tmp_path / "graph"
    words = ("generate", "kronecker", "-s", 7, "--edge-factor", 5, "--seed", 3)
    done = here(*words, "--parts", parts, "-o", store, "--json", "-t", 20)
    tuples = kronecker(7, 5, seed=3)
    names = ("vertices", "stored_edges", "tuples", "loops", "repeats")
    assert tuple(done.values[name] for name in names) == counts(tuples)
    assert counts_of(store) == counts(tuples)
    facts = manifest(store)
    assert (facts.parts, facts.threshold) == (parts, 20)
    delegates = int((tuples.degrees > 20).sum()) if parts > 1 else facts.delegates
    assert facts.delegates == done.values["delegates"] == delegates
    assert facts.source == {
        "family": "kronecker",
        "scale": 7,
        "edge_factor": 5,
        "seed": 3,
    }
    assert facts.relabel == {"method": "none"}
    edges = [done.values[f"{name}_edges"] for name in ("nn", "nd", "dn", "dd")]
    assert sum(edges) == facts.m
    files = [f"part-{k:05d}.h5" for k in range(parts)]
    assert files_in(store) == ["manifest.h5", *files]


def test_generated_store_on_the_screen(tmp_path):
    words = ("generate", "kronecker", "-s", 10, "--force", "-o", tmp_path / "graph")
    done, full = here(*words), here(*words, "--verbose")
    assert (done.code, done.err, full.code) == (0, "", 0)
    m = here(*words, "--json").values["stored_edges"]
    lines = [line.split(maxsplit=1) for line in done.out.splitlines()]
    assert ["vertices", "1024"] in lines
    assert ["edges", str(m // 2)] in lines
    for word in ("threshold", "delegates", "parts", "nn edges"):
        assert word not in done.out
    first, _, stored = full.out.partition("\n\n")  # the graph, then how it is stored
    assert [x.split()[0] for x in first.splitlines()] == [x[0] for x in lines]
    lines = [line.split() for line in stored.splitlines()]
    assert ["stored", "edges", "m", str(m)] in lines
    assert ["parts", "1"] in lines
    parts = here(*words, "--parts", 3)
    assert ["parts", "3"] in [line.split() for line in parts.out.splitlines()]


@pytest.mark.thorough
@needs_mpi
def test_generated_parts_are_the_same_for_every_number_of_ranks(make):
    words = ("generate", "kronecker", "-s", 9, "--seed", 2, "--parts", 4)
    one, two, four = (make(f"on-{k}", *words, ranks=k) for k in (1, 2, 4))
    assert digests(one) == digests(two) == digests(four)
    assert manifest(one) == manifest(two) == manifest(four)


def test_little_memory_takes_more_passes_to_the_same_parts(make, tmp_path):
    words = ("generate", "kronecker", "-s", 9, "--parts", 4)
    usual = make("usual", *words)
    little = ("--memory", 1e-4, "-o", tmp_path / "little", "--json")
    assert here(*words, *little).values["passes"] == 8
    assert digests(usual) == digests(tmp_path / "little")


def test_seeds_differ(make):
    first, second = (
        make(f"seed{k}", "generate", "kronecker", "-s", 7, "--seed", k) for k in (1, 2)
    )
    assert digests(first) != digests(second)


OTHERS = [
    (("uniform", "-s", 7, "--edge-factor", 5, "--seed", 3), Uniform(128, 640, 3)),
    (("uniform", "-s", 6), Uniform(64, 1024)),
    (("uniform", "-n", 101, "--degree", 2.5), Uniform(101, 126)),
    (("uniform", "-n", 101, "--edge-factor", 2), Uniform(101, 202)),
    (("road", "--vertices", 500, "--seed", 3), Road(500, 3)),
    (("road", "-s", 8), Road(256)),
    (("geometric", "-n", 300, "--degree", 6, "--seed", 3), Geometric(300, 6.0, 3)),
    (("geometric", "-s", 8), Geometric(256)),
    (("triangulation", "-n", 90, "--seed", 2), Triangulation(90, 2)),
    (("small-world", "-n", 90), SmallWorld(90, 20, 0.3)),
    (
        ("small-world", "-s", 6, "--neighbours", 4, "--rewired", 0.5),
        SmallWorld(64, 4, 0.5),
    ),
    (("stencil", "-n", 90), Stencil(90, 6, 2)),
    (
        ("stencil", "-s", 6, "--neighbours", 10, "--dimensions", 3),
        Stencil(64, 10, 3),
    ),
    (("chung-lu", "-n", 90), ChungLu(90, 16.0, 2.3, 1000, 0.1, 32)),
    (("forest-fire", "-n", 90), ForestFire(90, 0.35, 0.914)),
    (
        ("forest-fire", "-n", 90, "--forward", 0.3, "--backward", 0.5, "--seed", 4),
        ForestFire(90, 0.3, 0.5, 4),
    ),
    (("rmat-er", "-s", 6), RmatER(6)),
    (("rmat-b", "-s", 6, "--edge-factor", 4, "--seed", 2), RmatB(6, 4, 2)),
    (("complete", "-n", 20), Complete(20)),
    (("star", "-s", 5), Star(32)),
    (("path", "-n", 20), PathGraph(20)),
    (("binary-tree", "-n", 20), BinaryTree(20)),
]


def all_tuples(source):
    """The tuples of a source in memory."""
    return Tuples(source.n, *source.tuples_at(np.arange(source.tuples)))


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(("words", "source"), OTHERS)
def test_other_families(make, tmp_path, words, source, parts):
    store = make("graph", "generate", *words, "--parts", parts)
    tuples = all_tuples(source)
    assert counts_of(store) == counts(tuples)
    assert manifest(store).source == source.describe()
    assert manifest(store).relabel == {"method": "none"}
    sources = (0, 7, source.n - 1)
    answer = search(store, tmp_path / "out.h5", sources)
    check_results(tuples, tmp_path / "out.h5", sources)
    assert [one["nedge"] for one in answer] == [nedge(tuples, s) for s in sources]


@pytest.mark.parametrize("family", ["road", "geometric", "forest-fire", "uniform"])
def test_what_comes_before_the_tuples_is_told(tmp_path, monkeypatch, family):
    monkeypatch.setattr(common, "LINE_SECONDS", 0)
    done = here("generate", family, "-n", 999, "-o", tmp_path / "graph")
    assert done.code == 0, done.err
    assert ("generating: 100 %" in done.err) == (family != "uniform")
    assert "building: 100 %" in done.err


def test_fires_need_a_compiler(tmp_path):
    words = ("generate", "forest-fire", "-n", "9", "-o", str(tmp_path / "graph"))
    done = run([*DISTBFS, *words], env={"DISTBFS_CC": "none"})
    assert done.returncode == 3
    assert done.stderr.startswith("distbfs: no C compiler")


def test_building_and_writing_are_told_in_turn(tmp_path, monkeypatch):
    """In groups of parts, the tuples are read again after some are written."""
    monkeypatch.setattr(common, "LINE_SECONDS", 0)
    words = ("--parts", 3, "--threshold", 4, "--memory", 1e-6)
    done = here("generate", "kronecker", "-s", 9, *words, "-o", tmp_path / "graph")
    assert done.code == 0, done.err
    lines = [x.removeprefix("distbfs: ") for x in done.err.splitlines()]
    stages = [x.partition(":")[0] for x in lines]
    stages = [x for k, x in enumerate(stages) if not k or stages[k - 1] != x]
    parts = [("building", f"writing part {k}") for k in range(3)]
    assert stages == [x for pair in parts for x in pair]
    assert [x for x in lines if x.endswith(" 100 %") and "part" in x] == [
        f"writing part {k}: 100 %" for k in range(3)
    ]


@needs_mpi
@pytest.mark.parametrize(
    "words",
    [
        ("uniform", "-n", 999),
        ("road", "-n", 2000),
        ("geometric", "-n", 999),
        ("forest-fire", "-n", 400),
    ],
)
def test_other_families_are_the_same_for_every_number_of_ranks(make, words):
    one, two = (
        make(f"on-{k}", "generate", *words, "--parts", 4, ranks=k) for k in (1, 2)
    )
    assert manifest(one) == manifest(two)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words",
    [("uniform", "-n", 300), ("road", "-n", 900), ("small-world", "-n", 300)],
)
def test_other_families_partitioned_and_validated_by_their_tuples(make, words):
    first = make("first", "generate", *words, "--parts", 2)
    second = make("second", "partition", first, "--parts", 3)
    third = make("third", "partition", second, "--parts", 2)
    assert digests(third) == digests(first)
    for store in (first, second):
        report = here("graph500", "--graph", store, "--roots", 3, "--json").values
        assert report["notes"]["validated by"] == "its tuples"
        assert len(report["searches"]) == 3


# convert


@pytest.fixture(scope="module", params=["edge-list", "general", "symmetric"])
def file(request, tmp_path_factory):
    """A file of each kind with loops, repeats and comments."""
    folder = tmp_path_factory.mktemp("files")
    if request.param == "edge-list":
        return write_edge_list(folder / "graph.txt", RANDOM)
    return write_matrix_market(folder / "graph.mtx", RANDOM, request.param)


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_results_of_a_converted_graph_are_in_input_ids(file, parts, make, tmp_path):
    store = make("graph", "convert", file, "--parts", parts, "--first-id", 0)
    assert counts_of(store) == counts(RANDOM)
    relabel = {"method": "hash", "seed": 1} if parts > 1 else {"method": "none"}
    assert manifest(store).relabel == relabel
    answer = search(store, tmp_path / "out.h5")
    check_results(RANDOM, tmp_path / "out.h5", SOURCES)
    assert [one["nedge"] for one in answer] == [nedge(RANDOM, s) for s in SOURCES]


def test_other_permutations_give_the_same_results(make, tmp_path):
    file = write_edge_list(tmp_path / "graph.csv", RANDOM)
    stores = [
        make(f"seed{k}", "convert", file, "--parts", 2, "--permute-seed", k)
        for k in (1, 2)
    ]
    assert digests(stores[0]) != digests(stores[1])
    for store in stores:
        search(store, store.with_suffix(".h5"))
        check_results(RANDOM, store.with_suffix(".h5"), SOURCES)


@needs_mpi
def test_converted_parts_are_the_same_for_every_number_of_ranks(make, tmp_path):
    file = write_edge_list(tmp_path / "graph.el", RANDOM)
    one, two = (make(f"on-{k}", "convert", file, "--parts", 4, ranks=k) for k in (1, 2))
    assert manifest(one) == manifest(two)


def test_options_of_an_edge_list(make, tmp_path):
    path = tmp_path / "graph.data"
    path.write_text("1,2\n2,3\n")
    words = ("--format", "edge-list", "--one-based", "--vertices", 5)
    store = make("graph", "convert", path, *words)
    tuples = Tuples(5, [0, 1], [1, 2])
    assert counts_of(store) == counts(tuples)
    search(store, tmp_path / "out.h5", (1, 3, 5))
    check_results(tuples, tmp_path / "out.h5", (0, 2, 4))


@pytest.mark.parametrize("kind", ["pattern", "weights"])
def test_weights_are_not_looked_at_and_that_is_said(tmp_path, kind):
    path = tmp_path / "graph.el"
    path.write_text("0 1\n1 2\n" if kind == "pattern" else "0 1 5\n1 2 6\n")
    done = here("convert", path, "-o", tmp_path / "store", "--json")
    assert done.values["stored_edges"] == 4
    said = f"distbfs: {path}: columns after the second are ignored\n"
    assert done.err == ("" if kind == "pattern" else said)


def test_time_of_reading_is_told(tmp_path, monkeypatch):
    path = tmp_path / "graph.el"
    path.write_text("0 1\n")
    read = convert.read_file

    def slowly(*arguments):
        time.sleep(0.2)
        return read(*arguments)

    monkeypatch.setattr(convert, "read_file", slowly)
    words = ("convert", path, "-o", tmp_path / "store", "--force")
    assert here(*words, "--json").values["reading_seconds"] >= 0.2
    assert float(re.search(r"seconds +(\S+)", here(*words).out)[1]) >= 0.2


def test_without_a_compiler_parts_are_the_same(make, tmp_path):
    file = write_edge_list(tmp_path / "graph.el", RANDOM)
    compiled = make("compiled", "convert", file, "--parts", 2)
    words = ("convert", file, "--parts", 2, "-o", tmp_path / "plain")
    done = alone(*words, DISTBFS_CC="none")
    assert done.code == 0
    assert manifest(compiled) == manifest(tmp_path / "plain")


# partition


@pytest.mark.parametrize(("parts", "other"), [(1, 3), (2, 4), (4, 1), (4, 3)])
def test_partition_and_back(make, tmp_path, parts, other):
    words = ("--seed", 6, "--edge-factor", 4, "--parts", parts)
    first = make("first", "generate", "kronecker", "-s", 7, *words)
    second = make("second", "partition", first, "--parts", other)
    third = make("third", "partition", second, "--parts", parts)
    tuples = kronecker(7, 4, seed=6)
    assert counts_of(first) == counts_of(second) == counts_of(third) == counts(tuples)
    assert manifest(second).source == manifest(first).source
    assert digests(third) == digests(first)
    sources = (0, 5, 90)
    sums = [
        [one["nedge"] for one in search(store, store.with_suffix(".h5"), sources)]
        for store in (first, second, third)
    ]
    assert sums == [[nedge(tuples, root) for root in sources]] * 3
    check_results(tuples, second.with_suffix(".h5"), sources)


@pytest.mark.thorough
@pytest.mark.parametrize(("parts", "other"), [(1, 2), (2, 1), (2, 2), (4, 3)])
def test_partition_of_a_converted_graph(make, tmp_path, parts, other):
    file = write_edge_list(tmp_path / "graph.el", RANDOM)
    seed = ("--permute-seed", 9)
    first = make("first", "convert", file, "--parts", parts, *seed)
    second = make("second", "partition", first, "--parts", other, "-t", 3)
    third = make("third", "partition", second, "--parts", parts)
    for store in (second, third):
        assert counts_of(store) == counts(RANDOM)
        answer = search(store, store.with_suffix(".h5"))
        assert [one["nedge"] for one in answer] == [nedge(RANDOM, s) for s in SOURCES]
        check_results(RANDOM, store.with_suffix(".h5"), SOURCES)
    assert manifest(second).threshold == 3


@needs_mpi
def test_partition_on_ranks_that_do_not_divide_the_old_parts(make, tmp_path):
    file = write_edge_list(tmp_path / "graph.el", RANDOM)
    first = make("first", "convert", file, "--parts", 3)
    one = make("one", "partition", first, "--parts", 2)
    two = make("two", "partition", first, "--parts", 2, ranks=2)
    assert manifest(one) == manifest(two)


# refusals


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store, files that are good and bad, and a folder that is not a store."""
    made = tmp_path_factory.mktemp("folder")
    assert here("generate", "kronecker", "-s", 5, "-o", made / "store").code == 0
    write_edge_list(made / "good.txt", RANDOM)
    (made / "bad.txt").write_text("0 1\n# x\n1 2\n2 three\n")
    (made / "negative.txt").write_text("0 1\n-1 2\n")
    (made / "empty.txt").write_text("# nothing\n")
    (made / "short.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n"
    )
    (made / "large.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 4\n"
    )
    (made / "odd.xyz").write_text("01\n")
    (made / "papers").mkdir()
    (made / "papers" / "thesis.tex").write_text("years of work")
    return made


GENERATE = ("generate", "kronecker", "-s", 5, "-o")
ROAD = ("generate", "road", "-o", "new", "-n", 99)
UNIFORM = ("generate", "uniform", "-o", "new", "-n", 99)
REFUSED = [
    ((*GENERATE, "store"), "store exists; give --force to replace it"),
    (("convert", "good.txt", "-o", "store"), "store exists; give --force"),
    (("partition", "store", "-o", "store"), "is the store that is read"),
    (
        ("partition", "store", "-o", "store/in"),
        "is the store that is read, or inside it",
    ),
    (("partition", "store", "-o", "store", "--force"), "is the store that is read"),
    (("partition", "store", "-o", "./papers/../store"), "is the store that is read"),
    (("partition", "store", "-o", "papers"), "papers exists; give --force"),
    ((*GENERATE, "papers", "--force"), "is not a graph store; it is not replaced"),
    (("convert", "good.txt", "-o", "papers", "--force"), "is not a graph store"),
    ((*GENERATE, "no/store"), "no does not exist"),
    (
        (*GENERATE, "new", "-n", 9),
        "kronecker has no '--vertices'; allowed: '--scale', ",
    ),
    ((*GENERATE, "new", "--degree", 9), "kronecker has no '--degree'; allowed"),
    (("generate", "kronecker", "-o", "new"), "kronecker needs '--scale'"),
    (("generate", "uniform", "-o", "new"), "uniform needs '--scale' or '--vertices'"),
    (("generate", "road", "-o", "new"), "road needs '--scale' or '--vertices'"),
    ((*ROAD, "--edge-factor", 4), "road has no '--edge-factor'; allowed: '--scale', "),
    ((*ROAD, "--degree", 4), "road has no '--degree'; allowed: '--scale', '--vertic"),
    (
        ("generate", "path", "-o", "new", "-n", 9, "--seed", 2),
        "path has no '--seed'; allowed: '--scale', '--vertices'",
    ),
    (
        ("generate", "small-world", "-o", "new", "-n", 9, "--neighbours", 3),
        "neighbours is 3; allowed: even, 2 to 8",
    ),
    (("generate", "star", "-o", "new"), "star needs '--scale' or '--vertices'"),
    ((*ROAD, "--scale", 4), "give either '--scale' or '--vertices'"),
    ((*UNIFORM, "--degree", 4, "--edge-factor", 2), "give either '--edge-factor' or"),
    ((*UNIFORM, "--degree", 0), "0<x<=8192"),
    (("generate", "road", "-o", "new", "-n", 3), "vertices is 3; allowed: 4 to"),
    (("convert", "good.txt", "-o", "no/store"), "no does not exist"),
    (("partition", "store", "-o", "no/store"), "no does not exist"),
    (("partition", "papers", "-o", "new"), "papers: has no manifest.h5"),
    (("partition", "nowhere", "-o", "new"), "nowhere: there is no such file or folder"),
    (("convert", "bad.txt", "-o", "new"), "bad.txt:4: 'three'"),
    (("convert", "negative.txt", "-o", "new"), "negative.txt:2: "),
    (("convert", "empty.txt", "-o", "new"), "empty.txt: no edges"),
    (("convert", "short.mtx", "-o", "new"), "short.mtx:3: "),
    (("convert", "large.mtx", "-o", "new"), "large.mtx:3: "),
    (("convert", "odd.xyz", "-o", "new"), "odd.xyz: the format is not known"),
    (("convert", "nowhere.txt", "-o", "new"), "nowhere.txt: No such file"),
    (("convert", "papers", "-o", "new"), "thesis.tex: the format is not known"),
    (("convert", "short.mtx", "-o", "new", "--one-based"), "give neither"),
    (("convert", "good.txt", "-o", "new", "--vertices", 20), "good.txt:"),
]


@pytest.mark.parametrize(("words", "text"), REFUSED)
def test_refused_and_nothing_left_behind(folder, monkeypatch, words, text):
    monkeypatch.chdir(folder)
    before = files_in(folder)
    assert text in here(*words).refusal
    assert files_in(folder) == before


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            (*GENERATE, "new", "--parts", 3),
            "3 parts cannot be split evenly over 2 ranks",
        ),
        (
            ("convert", "good.txt", "-o", "new", "--parts", 1),
            "1 parts cannot be split evenly",
        ),
        (
            ("partition", "store", "-o", "new", "--parts", 5),
            "5 parts cannot be split evenly",
        ),
        REFUSED[0],
        ((*ROAD, "--degree", 4), "road has no '--degree'"),
        (("convert", "bad.txt", "-o", "new"), "bad.txt:4: 'three'"),
    ],
)
def test_refused_on_two_ranks(folder, monkeypatch, words, text):
    monkeypatch.chdir(folder)
    before = files_in(folder)
    assert text in on(2, *words).refusal
    assert files_in(folder) == before


def test_force_replaces_a_store(make, tmp_path):
    store = make("graph", "generate", "kronecker", "-s", 6, "--parts", 3)
    file = write_edge_list(tmp_path / "graph.el", RANDOM)
    make("graph", "convert", file, "--force")
    assert counts_of(store) == counts(RANDOM)
    assert files_in(tmp_path) == [
        "graph",
        "graph.el",
        "graph/manifest.h5",
        "graph/part-00000.h5",
    ]


def test_the_spool_of_a_file_is_removed(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    words = ("-o", folder / "spooled", "--force")
    assert here("convert", folder / "good.txt", *words).code == 0
    assert here("convert", folder / "bad.txt", *words).code == 2
    assert files_in(tmp_path) == []
    assert np.array_equal(counts_of(folder / "spooled"), counts(RANDOM))


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("rank", [0, 1])
def test_a_full_disk_of_one_rank_is_what_is_said(tmp_path, rank):
    store = tmp_path / "store"
    faults = injected(tmp_path / "log", full=rank)
    done = on(2, "generate", "kronecker", "--scale", 8, "-o", store, **faults)
    why = f"{store}: the disk is full (No space left on device)"
    assert (done.code, done.err) == (3, f"distbfs: rank {rank}: {why}\n")
    assert not store.exists()


@pytest.mark.parametrize("parts", [1, 4])
def test_a_graph_whose_parts_no_machine_holds(tmp_path, parts):
    words = ("complete", "--vertices", 60_000_000, "--parts", parts)
    done = alone("generate", *words, "-o", tmp_path / "store")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(
        "distbfs: building a graph of 60000000 vertices and 1799999970000000 tuples in "
        f"{parts} parts takes "
    )
    assert "PiB for a part" in done.err
    assert re.search(r"allowed: \d{5,} or more parts\n$", done.err)
    assert files_in(tmp_path) == []


def test_a_benchmark_whose_parts_no_machine_holds():
    words = ("--scale", 34, "--parts", 8, "--engine", "openmp")
    done = alone("graph500", *words)
    assert (done.code, done.out) == (3, "")
    assert "TiB for the 8 of this host" in done.err
    assert re.search(r"allowed: \d+ or more hosts like this, a rank and ", done.err)
