"""``distbfs info``: what is shown is what the store holds."""

import json
import shutil

import pytest
from commands import here, on, write_edge_list
from graphs import NAMED, kronecker, random_tuples
from launching import needs_mpi

from distbfs import __version__
from distbfs.exchange.world import SoloWorld
from distbfs.options import BuildOptions
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
    assert values["n"] == tuples.n
    assert values["m"] == tuples.matrix.nnz == sum(part.edges for part in loaded)
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
        assert values["shares"][name] == pytest.approx(edges / values["m"])
    for part, told in zip(loaded, values["per_part"], strict=True):
        sizes = {name: array.nbytes for name, array in part_arrays(part).items()}
        assert told["array_bytes"] == sum(sizes.values())
        assert told["edges"] == part.edges
        assert told["active"] == part.active
        for name in SUBGRAPHS:
            both = sizes[f"{name}/offsets"] + sizes[f"{name}/columns"]
            assert told["subgraph_bytes"][name] == both
        file = stores[parts] / f"part-{part.index:05d}.h5"
        assert told["file_bytes"] == file.stat().st_size


@pytest.mark.parametrize("parts", PARTS)
def test_formula_and_spread(stores, parts):
    values = here("info", stores[parts], "--json").values
    n, m, d, nn = (values[name] for name in ("n", "m", "delegates", "nn"))
    sizes = values["bytes"]
    assert sizes["formula"] == 8 * n + 8 * d * parts + 4 * m + 4 * nn
    closing = 4 * 4 * parts
    narrow = 4 * nn if parts == 1 else 0
    assert sizes["subgraphs"] == sizes["formula"] + closing - narrow
    assert sizes["files"] == sum(x.stat().st_size for x in stores[parts].iterdir())
    for name, one in values["spread"].items():
        each = [part[name] for part in values["per_part"]]
        assert (one["smallest"], one["largest"]) == (min(each), max(each))
        assert one["total"] == sum(each)
        assert one["imbalance"] == pytest.approx(max(each) * parts / sum(each))


def test_text_is_readable(stores):
    done = here("info", stores[3])
    assert (done.code, done.err) == (0, "")
    values = here("info", stores[3], "--json").values
    lines = [line.split() for line in done.out.splitlines()]
    rows = {" ".join(line[:2]): line for line in lines if line}
    assert rows["vertices n"][2:] == ["512"]
    assert "loops and" in done.out
    assert "ids are those of the input" in done.out
    assert ["threshold", "TH", str(values["threshold"])] in lines
    nn = next(line for line in lines if line[:1] == ["nn"])
    assert "".join(nn[1:-3]) == str(values["nn"])
    assert nn[-3] == f"{values['shares']['nn']:.1%}"
    for word in ("smallest", "mean", "largest", "over mean", "bytes on disk", "8dp"):
        assert word in done.out


def test_one_part_is_told_in_one_column(stores):
    out = here("info", stores[1]).out
    assert "smallest" not in out
    assert "32-bit nn columns" in out


def test_relabelling_and_source_of_a_converted_file(tmp_path):
    file = write_edge_list(tmp_path / "some.txt", random_tuples(150, 260, seed=5))
    stored = tmp_path / "store"
    words = ("convert", file, "-o", stored, "--parts", "2", "--permute-seed", "7")
    assert here(*words).code == 0
    out = here("info", stored).out
    assert "ids permuted by a hash, seed 7" in out
    assert "some.txt" in out


@pytest.mark.parametrize("name", ["one-vertex", "no-edges", "loops", "star"])
@pytest.mark.parametrize("parts", [1, 3])
def test_small_graphs(tmp_path, name, parts):
    stored = write(NAMED[name], tmp_path / "s", parts)
    values = here("info", stored, "--json").values
    assert values["m"] == NAMED[name].matrix.nnz
    done = here("info", stored)
    assert (done.code, done.err) == (0, "")


@needs_mpi
def test_ranks_print_once(stores):
    done = on(2, "info", stores[3], "--json")
    assert json.loads(done.out) == here("info", stores[3], "--json").values


def test_missing_argument():
    assert "'STORE' (see 'distbfs info --help')" in here("info").refusal


def test_no_store(tmp_path):
    assert "there is no such folder" in here("info", tmp_path / "x").refusal
    assert "it is no graph store" in here("info", tmp_path).refusal


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
