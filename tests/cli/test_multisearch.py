"""``distbfs multisearch``: files and figures of each application, and refusals."""

import csv
import gzip
import signal
from functools import cache

import h5py
import networkx as nx
import numpy as np
import pytest
from commands import (
    DISTBFS,
    begin,
    environment,
    files_in,
    finish,
    here,
    on,
    ranks_below,
    wait_until,
)
from graphs import Tuples, random_tuples
from launching import is_open_mpi, needs_mpi

from distbfs import registry
from distbfs.multisearch import searchers as sharing
from distbfs.plan import memory
from distbfs.search.holding import Source

GRAPH = random_tuples(90, 130, seed=6)
LEVELS = np.stack([GRAPH.distances(v) for v in range(GRAPH.n)])


def as_networkx():
    graph = nx.Graph()
    graph.add_nodes_from(range(GRAPH.n))
    graph.add_edges_from(zip(GRAPH.u.tolist(), GRAPH.v.tolist(), strict=True))
    return graph


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "edges.txt"
    lines = [f"{u} {v}" for u, v in zip(GRAPH.u, GRAPH.v, strict=True)]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def stores(edges):
    """The graph in one part and in two."""
    made = {}
    for parts in (1, 2):
        store = edges.with_name(f"store-{parts}")
        words = ("--parts", parts, "--vertices", GRAPH.n)
        assert here("convert", edges, "-o", store, *words).code == 0
        made[parts] = store
    return made


def run(app, store, *words, ranks=1):
    done = on(ranks, "multisearch", app, store, "--json", *words)
    return done.values["found"], done


EVERY = pytest.mark.parametrize(
    ("ranks", "parts", "divide"),
    [
        (1, 1, "auto"),
        (1, 2, "auto"),
        pytest.param(2, 1, "sources", marks=needs_mpi),
        pytest.param(2, 2, "parts", marks=needs_mpi),
    ],
)


@EVERY
def test_path_lengths(stores, tmp_path, ranks, parts, divide):
    out = tmp_path / "out.h5"
    words = ("--divide", divide, "-o", out)
    facts, _ = run("apsp", stores[parts], *words, ranks=ranks)
    assert facts["pairs_reached"] == (LEVELS >= 0).sum()
    assert facts["largest_level"] == LEVELS.max()
    with h5py.File(out) as file:
        assert file["level"].dtype.name == facts["dtype"] == "int8"
        np.testing.assert_array_equal(file["level"], LEVELS.astype(np.int8))
        assert file["level"].attrs["unreached"] == -1
        np.testing.assert_array_equal(file["sources"], np.arange(GRAPH.n))
    assert files_in(tmp_path) == ["out.h5"]


@cache
def centrality(name):
    """Return values by vertex in input ids, float64 [n], read-only."""
    graph = as_networkx()
    values = {
        "betweenness": nx.betweenness_centrality,
        "closeness": nx.closeness_centrality,
        "harmonic": nx.harmonic_centrality,
        "eccentricity": lambda _: dict(enumerate(LEVELS.max(axis=1))),
    }[name](graph)
    array = np.array([values[v] for v in range(GRAPH.n)])
    array.flags.writeable = False
    return array


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("ranks", "parts", "divide", "apps"),
    [
        (1, 1, "auto", ("betweenness", "closeness", "harmonic", "eccentricity")),
        (1, 2, "auto", ("betweenness", "closeness", "harmonic", "eccentricity")),
        pytest.param(2, 1, "sources", ("closeness", "harmonic"), marks=needs_mpi),
        pytest.param(2, 2, "parts", ("betweenness", "eccentricity"), marks=needs_mpi),
    ],
)
def test_values_of_vertices(stores, tmp_path, ranks, parts, divide, apps):
    """Ranks share other applications in other ways in the test of samples."""
    for app in apps:
        out = tmp_path / f"{app}.h5"
        run(app, stores[parts], "--divide", divide, "-o", out, ranks=ranks)
        with h5py.File(out) as file:
            value = file["value"][:]
            assert file["sources"].shape == (GRAPH.n,)
            assert file.attrs["app"] == app
        np.testing.assert_allclose(value, centrality(app), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(
    ("ranks", "parts", "divide", "apps"),
    [
        (1, 1, "auto", ("betweenness", "closeness", "harmonic")),
        (1, 2, "auto", ("betweenness", "closeness", "harmonic")),
        pytest.param(2, 1, "sources", ("betweenness",), marks=needs_mpi),
        pytest.param(2, 2, "parts", ("closeness",), marks=needs_mpi),
    ],
)
def test_samples(stores, tmp_path, ranks, parts, divide, apps):
    out = tmp_path / "out.h5"
    for app in apps:
        words = ("--samples", 30, "--divide", divide, "-o", out, "--force")
        facts, _ = run(app, stores[parts], *words, ranks=ranks)
        exact = centrality(app)
        with h5py.File(out) as file:
            low, high = file["low"][:], file["high"][:]
            assert (low <= file["value"][:]).all()
            assert file["sources"].shape == (30,)
            assert file.attrs["samples"] == 30
        assert ((low <= exact + 1e-9) & (exact <= high + 1e-9)).all()
        assert facts["samples"] == 30
        assert facts["widest_bounds"] == (high - low).max()
        words = ("--error", 0.3, "--confidence", 0.9, "--divide", divide)
        facts, done = run(app, stores[parts], *words, ranks=ranks)
        assert facts["error"] == 0.3
        assert facts["confidence"] == 0.9
        said = f"{facts['samples']} samples for an error of 0.3 with a probability of "
        assert f"{app}: {said}0.9" in done.err
    assert files_in(tmp_path) == ["out.h5"]


@pytest.mark.thorough
@EVERY
def test_radius_and_diameter(stores, ranks, parts, divide):
    graph = as_networkx()
    inside = graph.subgraph(max(nx.connected_components(graph), key=len))
    wanted = {"radius": nx.radius(inside), "diameter": nx.diameter(inside)}
    for app in ("diameter", "eccentricity"):
        facts, _ = run(app, stores[parts], "--divide", divide, ranks=ranks)
        assert {name: facts[name] for name in wanted} == wanted
        assert facts["vertices"] == len(inside)
        assert facts["connected"] is False
    text = here("multisearch", "diameter", stores[parts]).out
    assert "no: figures are of the largest component" in text


@EVERY
def test_reachability_and_hops(stores, tmp_path, ranks, parts, divide):
    pairs = np.random.default_rng(3).integers(0, GRAPH.n, (60, 2))
    path, words = tmp_path / "pairs.txt", ("--divide", divide)
    path.write_text("# from, to\n" + "".join(f"{u}, {v}\n" for u, v in pairs))
    reached = LEVELS[pairs[:, 0], pairs[:, 1]] >= 0
    out = tmp_path / ("out.csv" if parts == 1 else "out.h5")
    asks = ("reachability", stores[parts], "--pairs", path, "-o", out)
    facts, _ = run(*asks, *words, ranks=ranks)
    assert facts == {"pairs": 60, "reachable": int(reached.sum())}
    if parts == 1:
        wanted = [f"{u},{v},{int(r)}" for (u, v), r in zip(pairs, reached, strict=True)]
        assert out.read_text().splitlines() == ["from,to,reachable", *wanted]
    else:
        with h5py.File(out) as file:
            np.testing.assert_array_equal(file["pair"], pairs)
            np.testing.assert_array_equal(file["reachable"], reached)
    out = tmp_path / "hops.h5"
    run("khop", stores[parts], "--hops", 2, "-o", out, *words, ranks=ranks)
    with h5py.File(out) as file:
        within = file["within"][:]
    near = [((LEVELS >= 0) & (k >= LEVELS)).sum(axis=1) for k in range(3)]
    np.testing.assert_array_equal(within, np.stack(near, axis=1))


@pytest.mark.parametrize("hops", [1 << 31, 1 << 63])
def test_hops_beyond_all_levels(stores, tmp_path, hops):
    out = tmp_path / "hops.h5"
    run("khop", stores[1], "--hops", hops, "-o", out, ranks=1)
    with h5py.File(out) as file:
        within = file["within"][:]
    assert within.shape == (GRAPH.n, LEVELS.max() + 1)
    np.testing.assert_array_equal(within[:, -1], (LEVELS >= 0).sum(axis=1))


def test_sources_of_a_number_and_of_a_file(stores, tmp_path):
    store, out = stores[1], tmp_path / "out.h5"
    picked = []
    for seed in (1, 1, 2):
        run("apsp", store, "--sources", 7, "--seed", seed, "-o", out, "--force")
        with h5py.File(out) as file:
            picked.append(file["sources"][:].tolist())
            np.testing.assert_array_equal(
                file["level"], LEVELS[picked[-1]].astype(np.int8)
            )
    assert picked[0] == picked[1] != picked[2]
    assert len(set(picked[0])) == 7
    listed = tmp_path / "sources.txt"
    listed.write_text("5 # one\n80\n5\n")
    for app, wanted in (("khop", [5, 80, 5]), ("closeness", [5, 80])):
        run(app, store, "--sources", listed, "-o", out, "--force")
        with h5py.File(out) as file:
            assert file["sources"][:].tolist() == wanted
    with h5py.File(out) as file:
        known = np.flatnonzero(~np.isnan(file["value"][:]))
    assert known.tolist() == [5, 80]
    for app in ("apsp", "betweenness", "closeness", "eccentricity", "khop"):
        run(app, store, "--sources", 0, "-o", out, "--force")
        with h5py.File(out) as file:
            assert file["sources"].shape == (0,)


def test_tables_and_types_of_levels(stores, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    for dtype in ("int8", "int16", "int32"):
        out = tmp_path / f"{dtype}.parquet"
        run("apsp", stores[2], "--sources", 9, "--dtype", dtype, "-o", out)
        table = parquet.read_table(out)
        level = np.array(table["level"].to_pylist())
        sources = table["source"].to_pylist()
        wanted = LEVELS[sources].astype(dtype)
        assert str(table.schema.field("level").type) == (
            f"fixed_size_list<element: {dtype}>[{GRAPH.n}]"
        )
        np.testing.assert_array_equal(level, wanted)


def table_of(path):
    """Return the columns of a result table, by name."""
    if path.suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(path).to_pydict()
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        rows = csv.reader(file, delimiter="\t" if ".tsv" in path.name else ",")
        columns = zip(*rows, strict=True)
        return {head: [*map(float, cells)] for head, *cells in columns}


@pytest.mark.thorough
@pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".parquet"])
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_tables_of_results(stores, tmp_path, ending, ranks):
    out, listed = tmp_path / f"out{ending}", tmp_path / "sources"
    listed.write_text("80\n5\n")
    arrays = tmp_path / "out.h5"
    for app in ("centralities", "closeness", "betweenness", "eccentricity"):
        words = ("--sources", listed, "--force", "-o")
        for place in (out, arrays):
            run(app, stores[ranks], *words, place, ranks=ranks)
        columns = table_of(out)
        of_all = app == "betweenness"
        known = [*range(GRAPH.n)] if of_all else [5, 80]
        assert columns.pop("vertex") == known
        with h5py.File(arrays) as file:
            assert {*columns} == {*file} - {"sources"}
            for name, values in columns.items():
                assert values == file[name][:][known].tolist()
    run("khop", stores[1], *words, out, "--hops", 1)
    assert table_of(out) == {
        "source": [80, 80, 5, 5],
        "hops": [0, 1, 0, 1],
        "within": [
            (LEVELS[s] <= h)[LEVELS[s] >= 0].sum() for s in (80, 5) for h in (0, 1)
        ],
    }


def test_a_table_of_levels_by_vertex(stores, tmp_path):
    out = tmp_path / "out.csv"
    run("apsp", stores[1], "--sources", 3, "-o", out)
    columns = table_of(out)
    assert columns["vertex"] == [*range(GRAPH.n)] * 3
    sources = columns["source"][:: GRAPH.n]
    assert columns["level"] == LEVELS[np.array(sources, int)].ravel().tolist()
    done = here("multisearch", "apsp", stores[1], "--sources", 3, "-o", "-")
    assert done.out == out.read_text()
    refused = here("multisearch", "apsp", stores[1], "-o", "-", "--json").refusal
    assert "- is stdout, for one output alone" in refused


def test_long_paths_take_wider_levels(tmp_path, monkeypatch):
    path = tmp_path / "path.txt"
    path.write_text("".join(f"{k} {k + 1}\n" for k in range(250)))
    assert here("convert", path, "-o", tmp_path / "store").code == 0
    monkeypatch.setattr(sharing, "ROWS_BYTES", 251 * 50)
    listed = tmp_path / "sources.txt"
    listed.write_text("".join(f"{125 + k}\n" for k in range(101)))
    out = tmp_path / "out.h5"
    words = ("-o", out, "--sources", listed)
    done = here("multisearch", "apsp", tmp_path / "store", *words)
    assert done.code == 0
    assert "does not fit int8" in done.err
    with h5py.File(out) as file:
        assert file["level"].dtype == np.int16
        assert file["level"][100, 0] == 225
    words = ("-o", tmp_path / "no.h5", "--dtype", "int8", "--sources", listed)
    refused = here("multisearch", "apsp", tmp_path / "store", *words)
    assert refused.code == 2
    assert "level 126" not in refused.err
    assert refused.err.count("does not fit int8") == 1
    assert not (tmp_path / "no.h5").exists()
    assert not [name for name in files_in(tmp_path) if "partial" in name]


def test_ids_of_the_file(tmp_path):
    path = tmp_path / "named.csv"
    path.write_text("a,b\nb,c\nx,y\n")
    store, out = tmp_path / "store", tmp_path / "out.h5"
    assert here("convert", path, "-o", store, "--relabel").code == 0
    facts, _ = run("betweenness", store, "-o", out, "--no-normalized")
    assert facts["largest"][0] == ["b", 1.0]
    with h5py.File(out) as file:
        ids = [name.decode() for name in file["ids"][:]]
        assert file["value"][ids.index("b")] == 1
    ends, _ = run("betweenness", store, "--no-normalized", "--endpoints")
    assert (ends["largest"][0], ends["endpoints"]) == (["b", 3.0], True)
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("a c\na x\n")
    done = here("multisearch", "reachability", store, "--pairs", pairs, "--json")
    assert done.values["found"]["answers"] == [True, False]
    parquet = pytest.importorskip("pyarrow.parquet")
    table = tmp_path / "out.parquet"
    run("apsp", store, "-o", table)
    assert sorted(parquet.read_table(table)["source"].to_pylist()) == list("abcxy")
    words = ("--pairs", pairs, "-o", tmp_path / "pairs.parquet")
    run("reachability", store, *words)
    rows = parquet.read_table(tmp_path / "pairs.parquet").to_pydict()
    assert rows == {"from": ["a", "a"], "to": ["c", "x"], "reachable": [True, False]}
    run("eccentricity", store, "-o", tmp_path / "far.csv")
    lines = (tmp_path / "far.csv").read_text().splitlines()
    assert lines == ["vertex,value", "a,2", "b,1", "c,2", "x,1", "y,1"]


def test_pairs_of_names_with_blanks(tmp_path):
    path, pairs = tmp_path / "named.csv", tmp_path / "pairs"
    path.write_text("a 1,b 2\nb 2,c 3\nx,y\n")
    assert here("convert", path, "-o", tmp_path / "store", "--relabel").code == 0
    pairs.write_text("a 1,c 3\na 1\tx\nx y\n")
    words = ("reachability", tmp_path / "store", "--pairs", pairs, "--json")
    done = here("multisearch", *words)
    assert done.values["found"]["answers"] == [True, False, True]


def test_engines_agree(stores, tmp_path):
    rows = []
    for engine, more in (("openmp", ()), ("reference", ()), ("openmp", ("arrays",))):
        out = tmp_path / f"{len(rows)}.h5"
        method = ("--method", *more) if more else ()
        words = ("--engine", engine, *method, "-o", out)
        assert here("multisearch", "closeness", stores[1], *words).code == 0
        with h5py.File(out) as file:
            rows.append(file["value"][:])
    assert (rows[0] == rows[1]).all()
    assert (rows[0] == rows[2]).all()


def test_directed_stores(tmp_path):
    path, store = tmp_path / "edges.txt", tmp_path / "store"
    path.write_text("0 1\n1 2\n")
    assert here("convert", path, "-o", store, "--directed").code == 0
    facts, _ = run("diameter", store)
    assert (facts["diameter"], facts["vertices"], facts["connected"]) == (0, 1, False)
    facts, done = run("eccentricity", store)
    assert facts["diameter"] is None
    assert "CUDA" not in done.err
    _, done = run("eccentricity", store, "--verbose")
    assert "auto: no CUDA device" in done.err
    for app in ("closeness", "centralities"):
        rows = []
        for divide in ("sources", "parts"):
            out = tmp_path / f"{app}-{divide}.h5"
            words = ("--divide", divide, "-o", out)
            assert here("multisearch", app, store, *words).code == 0
            with h5py.File(out) as file:
                rows.append({k: x[:].tolist() for k, x in file.items()})
        assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["apsp", "--sources", "91"], "--sources is 91; allowed: 0 to 90, a file, all"),
        (["apsp", "--sources", "none.txt"], "none.txt: No such file"),
        (["apsp", "-o", "out.txt"], "apsp; allowed: .h5, .hdf5, .csv, .tsv, .parquet"),
        (["closeness", "--samples", "1"], "1 is not in the range x>=2"),
        (["harmonic", "--samples", "9", "--sources", "9"], "give no sources"),
        (["khop", "--samples", "9"], "khop has no option 'samples'; allowed: hops"),
        (["closeness", "-o", "out.npy"], "closeness; allowed: .h5, .hdf5, .csv"),
        (["diameter", "-o", "out.h5"], "leave out --output"),
        (["apsp", "-o", "/none/out.h5"], "there is no folder /none"),
        (["reachability"], "reachability needs --pairs"),
        (["apsp", "--pairs", "x"], "apsp takes no --pairs"),
        (["apsp", "--hops", "2"], "apsp has no option 'hops'; allowed: dtype"),
        (["khop", "--no-normalized"], "khop has no option 'normalized'; allowed: hops"),
        (["apsp", "--threshold", "many"], "threshold is 'many'; allowed: auto"),
        (["apsp", "--method", "hybrid", "--engine", "openmp"], "allowed: bits, arrays"),
        (["apsp", "--domain", "1"], "--domain is for parts on devices; add --divide"),
        (
            ["apsp", "--divide", "parts", "--engine", "openmp", "--domain", "1"],
            "--domain is for parts on devices, not in host memory",
        ),
        (
            ["apsp", "--divide", "parts", "--engine", "reference"],
            "engine reference does not search these parts from many sources; allowed:",
        ),
        (["nothing"], "'nothing' is not one of 'apsp'"),
    ],
)
def test_refusals(stores, tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    done = here("multisearch", words[0], stores[1], *words[1:])
    assert done.code == 2
    lines = [
        line for line in done.err.splitlines() if "engine " not in line or text in line
    ]
    assert len(lines) == 1
    assert text in lines[0]
    assert not files_in(tmp_path)


def test_pairs_that_are_refused(stores, tmp_path):
    for text, reason in (
        ("1 2\n3\n", ":2: 1 words; allowed: two"),
        ("1 x\n", ":1: target 'x' is not a vertex;"),
    ):
        path = tmp_path / "pairs.txt"
        path.write_text(text)
        done = here("multisearch", "reachability", stores[1], "--pairs", path)
        assert reason in done.refusal


def test_an_output_that_is_there_stays(stores, tmp_path):
    out = tmp_path / "out.h5"
    out.write_text("mine")
    assert "give --force" in here("multisearch", "apsp", stores[1], "-o", out).refusal
    assert out.read_text() == "mine"


def test_a_full_disk_leaves_no_results(stores, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    for app, place, left in (
        ("apsp", "distbfs.store.hdf5_file.os.pwrite", []),
        ("closeness", "distbfs.store.hdf5_file.os.pwrite", []),
        ("closeness", "distbfs.multisearch.result_files.new_file", ["out.h5.partial"]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, full)
            done = here("multisearch", app, stores[1], "-o", tmp_path / "out.h5")
        assert done.code == 3
        assert "the disk is full" in done.err
        assert files_in(tmp_path) == left, "searches that are done are kept"


def test_a_run_that_is_stopped_leaves_nothing(tmp_path):
    """A signal ends the run between two levels; the file never appears."""
    source = Tuples(20_000, range(19_999), range(1, 20_000))
    path, store = tmp_path / "path.txt", tmp_path / "store"
    path.write_text(
        "\n".join(f"{u} {v}" for u, v in zip(source.u, source.v, strict=True))
    )
    assert here("convert", path, "-o", store).code == 0
    path.unlink()
    words = ["multisearch", "apsp", str(store), "-o", str(tmp_path / "out.h5")]
    process = begin(1, [*DISTBFS, *words, "--dtype", "int16"], environment())
    wait_until(lambda: any("partial" in x for x in files_in(tmp_path)), process)
    process.terminate()
    done = finish(process)
    assert done.code == 0
    assert "stopped" in done.err
    assert done.err.endswith("; what was done is lost\n")
    assert all(name.startswith("store") for name in files_in(tmp_path))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A store that takes many levels to search."""
    folder = tmp_path_factory.mktemp("path")
    lines = [f"{k} {k + 1}" for k in range(1999)]
    (folder / "path.txt").write_text("\n".join(lines))
    assert here("convert", folder / "path.txt", "-o", folder / "store").code == 0
    return folder / "store"


def done_in(file):
    """How many searches the file of an unfinished run holds."""
    try:
        with h5py.File(file, locking=False) as held:
            return int(held["done"][:].sum())
    except OSError:  # it is not there yet
        return 0


@pytest.mark.parametrize(
    ("ranks", "number"),
    [
        (1, signal.SIGKILL),
        (1, signal.SIGTERM),
        (1, signal.SIGINT),
        pytest.param(2, signal.SIGKILL, marks=needs_mpi),
        pytest.param(2, signal.SIGTERM, marks=needs_mpi),
    ],
)
def test_killed_and_resumed(path, tmp_path, ranks, number):
    """By another command line, too, as far as results are the same."""
    if ranks > 1 and number == signal.SIGTERM and is_open_mpi():
        pytest.skip("mpirun of Open MPI ends the ranks itself when it gets SIGTERM")
    out, partial = tmp_path / "out.h5", tmp_path / "out.h5.partial"
    words = ["multisearch", "closeness", str(path), "-o", str(out), "--threads", "1"]
    process = begin(ranks, [*DISTBFS, *words, "--batch", "4"], environment())
    wait_until(lambda: done_in(partial), process)
    below = ranks_below(process).values()  # each may write to the file to its end
    process.send_signal(number)
    stopped = finish(process, ranks=below)
    kept = done_in(partial)
    assert 0 < kept < 2000
    assert not out.exists()
    assert "Traceback" not in stopped.err
    if number != signal.SIGKILL:
        word = "stopped" if number == signal.SIGTERM else "interrupted"
        assert stopped.code == (0 if number == signal.SIGTERM else 130)
        said = f"{word} after {kept} of 2000 sources; the same command continues\n"
        assert stopped.err.endswith(said)
    else:
        assert stopped.code != 0
    for other in (
        [*words[:1], "harmonic", *words[2:]],
        [*words, "--no-normalized"],
        [*words, "--sources", "9"],
        [*words, "--samples", "9"],
    ):
        refused = here(*other)
        assert refused.code == 2
        refusal = f"{partial} is from another run: graph, sources or options differ"
        assert refusal in refused.err.splitlines()[-1]
    again = here(*words, "--json")
    assert again.values["found"]["resumed"] == kept
    assert f"continuing after {kept} of 2000 sources" in again.err
    place = np.arange(2000)
    total = (place * (place + 1) + (1999 - place) * (2000 - place)) / 2
    with h5py.File(out) as file:
        np.testing.assert_allclose(file["value"], 1999 / total, rtol=1e-12)
    assert files_in(tmp_path) == ["out.h5"]


def test_how_ranks_share_is_decided(monkeypatch):
    source = Source(1000, 2, tuples=Tuples(1000, [0] * 2500, [1] * 2500))

    class Two:
        rank, size, hosts = 0, 2, ("a", "a")

        def allreduce(self, values, op):
            assert op == "min"
            return values

    monkeypatch.setattr(memory, "machine_memory", lambda: (1 << 40, "physical"))
    way, why = sharing.choose_sharing(Two(), source, "auto")
    assert way == "sources"
    assert "may fill 409.6 GiB" in why
    monkeypatch.setattr(memory, "machine_memory", lambda: (1 << 24, "physical"))
    assert sharing.choose_sharing(Two(), source, "auto")[0] == "parts"
    assert sharing.choose_sharing(Two(), source, "sources")[0] == "sources"


def test_every_application_is_in_the_help():
    text = " ".join(here("multisearch", "--help").out.split())
    for name in registry.APPS:
        assert name in text
