"""``distbfs info``: what is shown is what the store holds."""

import json
import re
import shutil

import numpy as np
import pytest
from commands import here, on, write_edge_list
from graphs import NAMED, NO_VERTEX, kronecker, random_tuples
from launching import needs_mpi
from scipy.sparse.csgraph import connected_components

from distbfs import __version__
from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld
from distbfs.store.hdf5 import open_store
from distbfs.store.schema import part_arrays
from distbfs.store.write import write_graph
from distbfs.types import SUBGRAPHS

PARTS = (1, 3, 4)


def write(source, folder, parts, **options):
    write_graph(SoloWorld(), source, folder, parts, BuildOptions(**options))
    return folder


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    return {
        parts: write(kronecker(9), folder / f"in-{parts}", parts) for parts in PARTS
    }


@pytest.mark.parametrize("parts", PARTS)
def test_figures_are_those_of_the_parts(stores, parts):
    values = here("info", stores[parts], "--json").values
    store = open_store(stores[parts])
    loaded = [store.load_part(index) for index in range(parts)]
    tuples = kronecker(9)
    assert values["vertices"] == tuples.n
    assert (
        values["stored_edges"]
        == tuples.matrix.nnz
        == sum(part.edges for part in loaded)
    )
    assert values["tuples"] == tuples.tuples
    assert values["parts"] == parts == len(values["per_part"])
    assert values["delegates"] == loaded[0].delegate_count
    assert values["created_by"] == f"distbfs {__version__}"
    assert values["source"] == {"family": "test"}
    assert values["statistics"]["largest"] == tuples.degrees.max()
    assert values["statistics"]["isolated"] == (tuples.degrees == 0).sum()
    for name in SUBGRAPHS:
        edges = sum(getattr(part, name).edges for part in loaded)
        assert values[name] == edges
        assert values["shares"][name] == pytest.approx(edges / values["stored_edges"])
    for part, figures in zip(loaded, values["per_part"], strict=True):
        sizes = {name: array.nbytes for name, array in part_arrays(part).items()}
        assert figures["array_bytes"] == sum(sizes.values())
        assert figures["edges"] == part.edges
        assert figures["active"] == part.active
        for name in SUBGRAPHS:
            both = sizes[f"{name}/offsets"] + sizes[f"{name}/columns"]
            assert figures["subgraph_bytes"][name] == both
        file = stores[parts] / f"part-{part.index:05d}.h5"
        assert figures["file_bytes"] == file.stat().st_size


@pytest.mark.parametrize("parts", PARTS)
def test_formula_and_sums(stores, parts):
    values = here("info", stores[parts], "--json").values
    n, m, d, nn = (
        values[name] for name in ("vertices", "stored_edges", "delegates", "nn")
    )
    sizes = values["bytes"]
    assert sizes["formula"] == 8 * n + 8 * d * parts + 4 * m + 4 * nn
    closing = 4 * 4 * parts
    narrow = 4 * nn if parts == 1 else 0
    assert sizes["subgraphs"] == sizes["formula"] + closing - narrow
    assert sizes["files"] == sum(x.stat().st_size for x in stores[parts].iterdir())
    for name in ("vertices", "stored_edges"):
        each = [part[name.removeprefix("stored_")] for part in values["per_part"]]
        assert sum(each) == values[name]


def rows_of(out):
    """Return fields and tables of a text: first word or words -> rest of the line."""
    pairs = (re.split(r"  +", line, maxsplit=1) for line in out.splitlines() if line)
    return {pair[0]: pair[1:] for pair in pairs}


def test_text_tells_the_graph_and_no_more(stores):
    done = here("info", stores[3])
    assert (done.code, done.err) == (0, "")
    values, rows = here("info", stores[3], "--json").values, rows_of(done.out)
    assert rows["vertices"] == ["512"]
    assert rows["edges"] == [str(values["stored_edges"] // 2)]
    loops, repeats = values["loops"], values["repeats"]
    assert rows["input"] == [
        f"{values['tuples']} edges, of them {loops} loops and {repeats} repeats"
    ]
    for word in ("threshold", "delegates", "parts", "nn"):
        assert word not in done.out


def test_verbose_tells_how_it_is_stored(stores):
    done = here("info", stores[3], "--verbose")
    values, rows = here("info", stores[3], "--json").values, rows_of(done.out)
    assert done.out.startswith(here("info", stores[3]).out)
    assert rows["relabel"] == ["method none"]
    for name in ("threshold", "delegates", "parts"):
        assert rows[name] == [str(values[name])]
    assert rows["stored edges"] == [str(values["stored_edges"])]
    assert rows["nn"][0].split()[:2] == [
        str(values["nn"]),
        f"{values['shares']['nn']:.1%}",
    ]
    for part in values["per_part"]:
        names = ("vertices", "active", "edges", "array_bytes", "file_bytes")
        row = [str(part[name]) for name in ("part", *names)]
        assert row in [line.split() for line in done.out.splitlines()]


def test_relabelling_and_source_of_a_converted_file(tmp_path):
    file = write_edge_list(tmp_path / "some.txt", random_tuples(150, 260, seed=5))
    stored = tmp_path / "store"
    words = ("convert", file, "-o", stored, "--parts", "2", "--permute-seed", "7")
    assert here(*words).code == 0
    assert "method hash, seed 7" in here("info", stored, "-v").out
    assert rows_of(here("info", stored).out)["made of"] == ["some.txt (edge-list)"]


@pytest.mark.parametrize("name", ["one-vertex", "no-edges", "loops", "star"])
@pytest.mark.parametrize("parts", [1, 3])
def test_small_graphs(tmp_path, name, parts):
    stored = write(NAMED[name], tmp_path / "s", parts)
    values = here("info", stored, "--json").values
    assert values["stored_edges"] == NAMED[name].matrix.nnz
    done = here("info", stored, "-v")
    assert done.code == 0
    [said] = done.err.splitlines()  # nothing but what --verbose says of the program
    assert said.startswith("distbfs: version ")


@needs_mpi
def test_ranks_print_once(stores):
    done = on(2, "info", stores[3], "--json")
    assert json.loads(done.out) == here("info", stores[3], "--json").values


def test_missing_argument():
    assert "'GRAPH' (see 'distbfs info --help')" in here("info").refusal


def test_no_store(tmp_path):
    assert "there is no such file or folder" in here("info", tmp_path / "x").refusal
    assert "it is not a graph store" in here("info", tmp_path).refusal


def test_altered_manifest(stores, tmp_path):
    bad = tmp_path / "bad"
    shutil.copytree(stores[3], bad)
    file = bad / "manifest.h5"
    data = bytearray(file.read_bytes())
    at = data.index(b'"threshold"')
    data[at : at + 2] = b'"T'
    file.write_bytes(data)
    said = here("info", bad).refusal
    assert "manifest.h5" in said


def test_missing_part(stores, tmp_path):
    bad = tmp_path / "bad"
    shutil.copytree(stores[3], bad)
    (bad / "part-00001.h5").unlink()
    assert "part-00001.h5: No such file" in here("info", bad).refusal


# --degrees


def surveyed(values, source):
    """Compare with SciPy; the bound of the diameter lies between half and all of it."""
    degree, counts = np.unique(source.degrees, return_counts=True)
    assert values["degrees"] == {"degree": degree.tolist(), "vertices": counts.tolist()}
    count, label = connected_components(source.matrix, directed=False)
    sizes = np.sort(np.bincount(label))[::-1]
    components = values["components"]
    assert components["count"] == count
    assert components["largest"] == sizes[:5].tolist()
    pairs = zip(components["size"], components["components"], strict=True)
    assert dict(pairs) == dict(zip(*np.unique(sizes, return_counts=True), strict=True))
    largest = [k for k in range(count) if (label == k).sum() == sizes[0]]
    widths = [
        max(source.distances(v).max() for v in np.flatnonzero(label == k))
        for k in largest
    ]
    bound = values["diameter"]["at_least"]
    assert min(widths) / 2 <= bound <= max(widths)
    return bound, max(widths)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "parts"), [*zip(NAMED, (1, 3) * len(NAMED), strict=False), ("grid", 3)]
)
def test_survey_of_named_graphs(tmp_path, name, parts):
    stored = write(NAMED[name], tmp_path / "s", parts)
    values = here("info", stored, "--degrees", "--json").values
    bound, diameter = surveyed(values, NAMED[name])
    if name in ("path", "star", "binary-tree", "complete", "grid"):
        assert bound == diameter


def test_survey_on_the_screen(tmp_path):
    stored = write(NAMED["isolated"], tmp_path / "s", 1)
    plain = here("info", stored)
    done = here("info", stored, "--degrees")
    assert done.code == 0
    more = done.out.removeprefix(plain.out).splitlines()
    assert [line.split() for line in more[1:5]] == [
        ["degree", "vertices", "share"],
        ["0", "4", "57.1%"],
        ["1", "2", "28.6%"],
        ["2", "-", "3", "1", "14.3%"],
    ]
    assert more[6] == "5 components, the largest of 3, 1, 1, 1, 1 vertices"
    assert more[7].startswith("diameter of the largest at least 2, by ")


@needs_mpi
def test_survey_on_ranks(stores):
    done = on(2, "info", stores[4], "--degrees", "--json")
    alone = here("info", stores[4], "--degrees", "--json").values
    assert json.loads(done.out) == alone
    surveyed(alone, kronecker(9))


def test_survey_is_drawn(stores, tmp_path):
    pytest.importorskip("matplotlib")
    figure = tmp_path / "degrees.svg"
    assert here("info", stores[1], "--degrees", "--plot", figure).code == 0
    text = figure.read_text()
    assert text.startswith("<?xml")
    assert len(text) > 10_000
    empty = write(NAMED["no-edges"], tmp_path / "s", 1)
    assert here("info", empty, "--degrees", "--plot", tmp_path / "e.png").code == 0
    assert (
        "--plot draws the figures" in here("info", stores[1], "--plot", figure).refusal
    )
    said = here("info", stores[1], "--degrees", "--plot", tmp_path / "x.txt").refusal
    assert "a plot ends in '.txt'" in said


def test_survey_of_no_vertices(tmp_path):
    stored = write(NO_VERTEX, tmp_path / "s", 1)
    values = here("info", stored, "--degrees", "--json").values
    assert values["components"]["count"] == 0
    assert values["diameter"] == {"at_least": 0, "searches": 0}
    assert "0 components" in here("info", stored, "--degrees").out
