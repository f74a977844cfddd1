"""``--directed``: stores with edges one way, searched, shown, verified, refused."""

import json
import re
import shutil
import subprocess

import h5py
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from commands import DISTBFS, environment, here, on, results_of
from launching import clean_environment, needs_mpi
from old_store import write_old_store
from scipy.sparse.csgraph import connected_components, shortest_path

import distbfs
from distbfs.generate.forest_fire import ForestFire
from distbfs.generate.kronecker import Kronecker
from distbfs.search.session import Session
from distbfs.store.hdf5 import open_store
from distbfs.store.schema import FORMAT_VERSION

SOURCES = (0, 1, 70, 127)


def matrix_of(source):
    """u -> v without loops and repeats."""
    u, v = source.tuples_at(np.arange(source.tuples))
    other = u != v
    ones = np.ones(other.sum())
    matrix = sp.csr_matrix((ones, (u[other], v[other])), shape=(source.n, source.n))
    matrix.data[:] = 1
    return matrix


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("directed") / "graph"
    words = ("generate", "kronecker", "-s", 7, "--edge-factor", 2, "--directed")
    assert here(*words, "-o", folder).code == 0
    return folder


GRAPH = Kronecker(7, 2)


@pytest.mark.parametrize("engine", ["openmp", "reference"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_store_of_before(tmp_path, engine, reverse):
    """It is verified, searched along edges and against them, and cut into parts."""
    folder, matrix = write_old_store(tmp_path / "old"), matrix_of(Kronecker(4, 2))
    wanted = shortest_path(matrix.T if reverse else matrix, unweighted=True)
    wanted[np.isinf(wanted)] = -1
    assert here("verify", folder).code == 0
    parts = tmp_path / "parts"
    assert here("partition", folder, "--parts", 3, "-o", parts).code == 0
    for store in (folder, parts):
        with distbfs.open(store, engine=engine, reverse=reverse) as session:
            levels = [session.search(v).to_numpy()[0].copy() for v in range(16)]
        np.testing.assert_array_equal(levels, wanted)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--engine", "reference"),
        ("--engine", "openmp", "--direction", "pull"),
        ("--engine", "openmp", "--direction", "push"),
        ("--engine", "openmp", "--method", "hybrid"),
        ("--engine", "openmp", "--method", "ordered"),
    ],
)
def test_searches_follow_the_edges(store, tmp_path, words):
    out = tmp_path / "out.h5"
    sources = [word for source in SOURCES for word in ("--source", source)]
    report = here("bfs", store, *sources, "-o", out, "--json", *words).values
    _, levels, parents = results_of(out)
    matrix = matrix_of(GRAPH)
    u, _ = GRAPH.tuples_at(np.arange(GRAPH.tuples))
    unlike = 0
    for row, root in enumerate(SOURCES):
        values = shortest_path(matrix, unweighted=True, indices=root)
        wanted = np.where(np.isinf(values), -1, values)
        np.testing.assert_array_equal(levels[row], wanted)
        child = np.flatnonzero(wanted > 0)
        if len(child):
            edges = np.asarray(matrix[parents[row][child], child])
            assert (edges == 1).all()
        one = report["searches"][row]
        assert one["reached"] == (wanted >= 0).sum()
        assert one["nedge"] == (wanted[u] >= 0).sum(), "tuples that leave the reached"
        both = shortest_path(matrix, unweighted=True, indices=root, directed=False)
        unlike += int((np.isinf(values) & ~np.isinf(both)).sum())
    assert unlike, "directions matter here"


def test_a_service_follows_the_edges(store):
    asked = [{"id": root, "op": "bfs", "source": root} for root in SOURCES]
    asked += [{"id": "path", "op": "path", "source": 1, "target": 0}]
    said = "".join(f"{json.dumps(request)}\n" for request in asked)
    done = subprocess.run(
        [*DISTBFS, "serve", store, "-v"],
        input=said,
        capture_output=True,
        text=True,
        env=clean_environment(environment()),
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "; auto: no CUDA device" in done.stderr
    lines = [json.loads(x) for x in done.stdout.splitlines() if x != "ready"]
    answers = {line["id"]: line for line in lines}
    matrix = matrix_of(GRAPH)
    for root in SOURCES:
        answer = answers[root]
        wanted = shortest_path(matrix, unweighted=True, indices=root)
        wanted = np.where(np.isinf(wanted), -1, wanted).astype(int)
        assert answer["level"] == wanted.tolist()
        assert answer["levels"] == np.bincount(wanted[wanted >= 0]).tolist()
        if root == 1:
            assert answers["path"]["distance"] == wanted[0]


def test_auto_says_why_it_stays_on_the_host(store):
    assert "; auto: no CUDA device" in here("bfs", store, "-s", 0, "-v").err


def test_no_device_is_code_3(store):
    for words in (("--engine", "xbfs"), ("--balance", "static")):
        done = here("bfs", store, "-s", 0, *words)
        assert (done.code, done.out) == (3, "")
        assert done.err.startswith("distbfs: no CUDA device")


def test_what_is_stored(store):
    manifest = open_store(store).manifest
    matrix = matrix_of(GRAPH)
    assert (manifest.directed, manifest.format_version) == (True, FORMAT_VERSION)
    assert (manifest.n, manifest.m, manifest.parts) == (GRAPH.n, matrix.nnz, 1)
    values = here("info", store, "--degrees", "--json").values
    assert values["directed"] is True
    count, label = connected_components(matrix, directed=False)
    assert values["components"]["count"] == count
    assert values["components"]["largest"][0] == np.bincount(label).max()
    degrees = np.diff(matrix.indptr) + np.diff(matrix.tocsc().indptr)
    degree, vertices = np.unique(degrees, return_counts=True)
    assert values["degrees"]["degree"] == degree.tolist()
    assert values["degrees"]["vertices"] == vertices.tolist()
    assert ", directed" in here("info", store).out
    assert here("verify", store).code == 0


def test_symmetric_stores_are_as_they_were(tmp_path):
    here("generate", "kronecker", "-s", 5, "-o", tmp_path / "graph")
    manifest = open_store(tmp_path / "graph").manifest
    assert not manifest.directed
    assert not [x for x in manifest.records[0].digests if "incoming" in x]
    assert here("info", tmp_path / "graph", "--json").values["directed"] is False


def test_other_families_can_be_directed(tmp_path):
    words = ("generate", "forest-fire", "-n", 90, "--directed", "-o", tmp_path / "g")
    report = here(*words, "--json").values
    source = ForestFire(90, 0.35, 0.914)
    assert (report["edges"], report["repeats"]) == (source.tuples, 0)
    figures = here("bfs", tmp_path / "g", "-s", 0, "-s", 89, "--json").values[
        "searches"
    ]
    assert figures[0]["reached"] == 1, "the first vertex links to none"
    assert figures[1]["reached"] > 1


def write_graph(path):
    """A path 0 -> 1 -> 2 with a way back, 2 -> 0, and a leaf 3 -> 0."""
    edges = [(0, 1), (1, 2), (2, 0), (3, 0)]
    if path.suffix == ".npy":
        np.save(path, np.array(edges))
    elif path.suffix == ".mtx":
        lines = ["%%MatrixMarket matrix coordinate pattern general", "4 4 4"]
        lines += [f"{u + 1} {v + 1}" for u, v in edges]
        path.write_text("".join(f"{line}\n" for line in lines))
    elif path.suffix == ".sg":
        into = [0, 2, 3, 4, 4], [2, 3, 0, 1]
        out = [0, 1, 2, 3, 4], [1, 2, 0, 0]
        lists = b"".join(
            np.array(offsets, "<i8").tobytes() + np.array(ids, "<i4").tobytes()
            for offsets, ids in (out, into)
        )
        path.write_bytes(b"\1" + np.array([4, 4], "<i8").tobytes() + lists)
    else:
        path.write_text("".join(f"{u} {v}\n" for u, v in edges))
    return path


@pytest.mark.parametrize("ending", ["txt", "npy", "mtx", "sg"])
def test_files_can_be_directed(ending, tmp_path):
    path = write_graph(tmp_path / f"graph.{ending}")
    for words, levels in [
        (("--directed",), [[0, 1, 2, -1], [1, 2, 3, 0]]),
        ((), [[0, 1, 1, 1], [1, 2, 2, 0]]),
    ]:
        store, out = tmp_path / "store", tmp_path / "out.h5"
        assert here("convert", path, "-o", store, "--force", *words).code == 0
        assert open_store(store).manifest.directed == bool(words)
        ends = ("-s", 1, "-s", 4) if ending == "mtx" else ("-s", 0, "-s", 3)
        assert here("bfs", store, *ends, "-o", out, "--force").code == 0
        assert results_of(out)[1].tolist() == levels


def test_relabelled_files_can_be_directed(tmp_path):
    path, out = tmp_path / "graph.csv", tmp_path / "out.h5"
    path.write_text("a,b\nb,c\n")
    store = tmp_path / "store"
    words = ("convert", path, "-o", store, "--relabel", "--directed")
    assert here(*words).code == 0
    report = here("bfs", store, "-s", "b", "-s", "c", "-o", out, "--json").values
    assert [x["reached"] for x in report["searches"]] == [2, 1]


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        (
            "graph.mtx",
            b"%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n",
            "edges of a symmetric matrix lead both ways; leave out --directed",
        ),
        ("graph.metis", b"2 1\n2\n1\n", "edges of a METIS graph lead both ways"),
        (
            "graph.sg",
            bytes(1)
            + np.array([2, 2, 0, 1, 2], "<i8").tobytes()
            + np.array([1, 0], "<i4").tobytes(),
            "edges of an undirected GAP graph lead both ways",
        ),
    ],
)
def test_files_of_undirected_graphs_are_no_directed_ones(name, content, text, tmp_path):
    path, store = tmp_path / name, tmp_path / "store"
    path.write_bytes(content)
    assert text in here("convert", path, "-o", store, "--directed").refusal
    assert list(tmp_path.iterdir()) == [path]
    assert here("convert", path, "-o", store).code == 0


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The same graph in four parts, with delegates."""
    folder = tmp_path_factory.mktemp("directed") / "parts"
    words = ("generate", "kronecker", "-s", 7, "--edge-factor", 2, "--directed")
    assert here(*words, "--parts", 4, "--threshold", 9, "-o", folder).code == 0
    return folder


def edges_of(store, folder):
    """The edges that ``export`` writes, in order."""
    path = folder / f"{store.name}.txt"
    assert here("export", store, "-o", path, "--force").code == 0
    return np.unique(np.loadtxt(path, dtype=int, ndmin=2), axis=0)


@pytest.mark.thorough
def test_stores_of_several_parts(store, parts, tmp_path):
    """They are verified, shown, exported and searched as the store of one part."""
    manifest = open_store(parts).manifest
    assert (manifest.directed, manifest.parts) == (True, 4)
    assert 0 < manifest.delegates < manifest.n
    assert 0 not in manifest.edges.values()
    assert "all is well; 4 parts" in here("verify", parts).out
    values, alone = (
        here("info", x, "--degrees", "--json").values for x in (parts, store)
    )
    for name in ("edges", "components", "degrees", "statistics", "directed"):
        assert values[name] == alone[name]
    assert np.array_equal(edges_of(parts, tmp_path), edges_of(store, tmp_path))
    matrix = matrix_of(GRAPH)
    for words in (
        (),
        ("--direction", "pull"),
        ("--engine", "reference"),
        ("--reverse",),
    ):
        every = []
        for graph in (store, parts):
            out = tmp_path / f"{graph.name}.h5"
            sources = [word for source in SOURCES for word in ("--source", source)]
            done = here("bfs", graph, *sources, "-o", out, "--force", "--json", *words)
            figures = [(x["reached"], x["nedge"]) for x in done.values["searches"]]
            every.append((results_of(out)[1].tolist(), figures))
        assert every[0] == every[1]
        arcs = matrix.T if words == ("--reverse",) else matrix
        values = shortest_path(arcs.tocsr(), unweighted=True, indices=list(SOURCES))
        assert np.where(np.isinf(values), -1, values).tolist() == every[0][0]


@pytest.mark.thorough
@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_partition_of_a_directed_store(parts, tmp_path, count):
    new = tmp_path / "new"
    words = ("partition", parts, "--parts", count, "--threshold", 4, "-o", new)
    report = here(*words, "--json").values
    before, after = (open_store(x).manifest for x in (parts, new))
    assert (after.parts, after.directed, after.m) == (count, True, before.m)
    for name in ("tuples", "loops", "repeats", "source"):
        assert getattr(after, name) == getattr(before, name)
    assert report["edges"] == before.m
    assert here("verify", new).code == 0
    assert np.array_equal(edges_of(new, tmp_path), edges_of(parts, tmp_path))


def test_convert_to_directed_parts(tmp_path):
    path, out = tmp_path / "graph.csv", tmp_path / "out.h5"
    path.write_text("a,b,3\nb,c,4\nc,a,5\nd,a,6\na,d,7\n")
    store, keep = tmp_path / "store", ("--keep", "weight=3")
    words = ("convert", path, "-o", store, "--relabel", "--directed", *keep)
    assert here(*words, "--parts", 3, "--threshold", 3).code == 0
    assert open_store(store).manifest.delegates == 1
    assert here("verify", store).code == 0
    for words, reached in (((), 4), (("--where", "weight < 6"), 3)):
        report = here("bfs", store, "-s", "b", "-o", out, "--force", "--json", *words)
        assert report.values["searches"][0]["reached"] == reached


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_make_and_search_directed_parts(store, tmp_path, ranks):
    """In any numbers; also those that another number of ranks has stored."""
    words = ("generate", "kronecker", "-s", 7, "--edge-factor", 2, "--directed")
    made = tmp_path / "made"
    assert on(ranks, *words, "--threshold", 9, "-o", made).code == 0
    assert on(ranks, "verify", made).code == 0
    assert np.array_equal(edges_of(made, tmp_path), edges_of(store, tmp_path))
    alone = here("bfs", store, "-s", 1, "-s", 70, "--json").values["searches"]
    for count in (1, 2, 3):
        done = on(count, "bfs", made, "-s", 1, "-s", 70, "--json")
        for one, other in zip(done.values["searches"], alone, strict=True):
            assert all(one[x] == other[x] for x in ("reached", "depth", "nedge"))


REFUSALS = [
    (("bfs", "-s", 0, "--engine", "pan"), "engine pan searches symmetric graphs"),
    (("serve", "--engine", "pan"), "is directed; allowed: xbfs, openmp"),
    (("graph500", "--directed", "--graph"), "--directed is settled by the store"),
    (("compare", "--engines", "pan"), "engine pan searches symmetric graphs"),
    (("plan", "--directed"), "--directed is settled by the store"),
]


@pytest.mark.parametrize(("words", "text"), REFUSALS)
def test_what_needs_a_symmetric_graph_says_so(
    store, words, text, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    place = len(words) if words[-1] == "--graph" else 1
    said = here(*words[:place], store, *words[place:]).refusal
    assert text in said
    assert not list(tmp_path.iterdir())


def test_a_plan_counts_edges_out_and_in(store):
    manifest = open_store(store).manifest
    (record,) = manifest.records
    plan = here("plan", store, "--devices", 1, "--json").values
    assert plan["exact"]
    assert plan["directed"]
    assert plan["edges"] == plan["stored_edges"] == manifest.m
    assert plan["total"]["stored"] == record.array_bytes
    assert plan["total"]["disk"] == record.file_bytes
    sizes = plan["device"]
    assert sizes["incoming_columns"] == sizes["nn_columns"] == 4 * manifest.m
    assert plan["xbfs"] is None
    assert plan["gpu_domain"] is None
    out = here("plan", store, "--verbose").out
    assert f"edges              {manifest.m}, directed\n" in out
    assert out.count("\nnote: ") == 1
    assert "directed graphs is not predicted for stores as they are" in out
    assert "\none GPU  " in out


def test_a_directed_graph_that_is_not_there_is_expected(tmp_path):
    words = ("generate", "kronecker", "-s", 12, "--directed", "-o", tmp_path / "g")
    assert here(*words).code == 0
    built = here("plan", tmp_path / "g", "--json").values
    plan = here("plan", "--scale", 12, "--directed", "--json").values
    assert not plan["exact"]
    assert plan["delegates"] == built["delegates"] == 0
    for name in ("edges", "stored_edges", "nn"):
        assert plan[name] == pytest.approx(built[name], rel=0.01)
    for name in ("stored", "search", "disk"):
        assert plan["total"][name] == pytest.approx(built["total"][name], rel=0.01)
    for name in ("graph", "search"):
        sizes = (x["gpu_search"][name] for x in (plan, built))
        assert next(sizes) == pytest.approx(next(sizes), rel=0.01)


@pytest.mark.parametrize(
    ("devices", "domain", "factor"), [(1, 1, 1.27), (2, 2, 1.27), (2, 1, 1.17)]
)
def test_the_time_of_arcs(devices, domain, factor):
    """It is that of the symmetric graph, times what was measured."""
    words = ("plan", "--scale", 28, "--devices", devices, "--domain", domain)
    symmetric, arcs = (
        here(*words, "--threshold", 64, *more, "--json").values
        for more in ((), ("--directed",))
    )
    times = [x["xbfs"]["seconds"] for x in (symmetric, arcs)]
    assert times[1] == pytest.approx(factor * times[0])
    assert arcs["xbfs"]["constants"]["arcs"]["value"] == factor
    assert "arcs" not in symmetric["xbfs"]["constants"]
    assert f"times {factor} as measured" in here(*words, "--directed").out


@pytest.mark.parametrize("scale", [14, 30])
def test_a_directed_graph_larger_than_a_gpu(scale, tmp_path):
    """Its rows, out and in, keep as many columns on the device as fit."""
    words = ("--scale", scale, "--directed")
    if scale < 20:
        made = ("generate", "kronecker", *words, "-o", tmp_path / "g")
        assert here(*made).code == 0
        words = (tmp_path / "g",)
    plan = here("plan", *words, "--json").values
    sizes, spare = plan["gpu_search"], (5 << 29) + 2 * plan["vertices"]
    half = 4 * plan["stored_edges"]  # the columns of edges one way
    have = sizes["total"] - half + spare
    split = here("plan", *words, "--device-memory", have, "--json").values
    tails = split["gpu_search_tails"]
    assert tails["fits"]
    assert 8 < tails["kept"] < plan["vertices"]
    assert half < tails["host"] < 1.2 * half
    assert tails["device"] <= have - spare
    assert split["xbfs"] is None
    assert (plan["xbfs"] is None) == (scale < 20)
    small = here("plan", *words, "--device-memory", spare + 1)
    assert small.code == 3
    assert "; one GPU needs " in small.err
    assert "more --devices" in small.err


@pytest.mark.parametrize(("count", "domain"), [(4, 1), (4, 2), (2, 2)])
def test_plans_of_directed_parts(tmp_path, count, domain):
    """Expected sizes are near those of stores of so many parts."""
    words = ("-s", 12, "--directed")
    given = ("generate", "kronecker", *words, "--parts", count, "--threshold", 60)
    assert here(*given, "-o", tmp_path / "g").code == 0
    made = open_store(tmp_path / "g")
    asked = ("--devices", count, "--domain", domain, "--threshold", 60, "--json")
    built = here("plan", tmp_path / "g", *asked).values
    plan = here("plan", "--scale", 12, "--directed", *asked).values
    assert (built["exact"], plan["exact"]) == (domain == 1, False)
    assert built["edges"] == made.manifest.m
    if domain == 1:
        records = made.manifest.records
        assert built["total"]["stored"] == sum(x.array_bytes for x in records)
        assert built["total"]["disk"] == sum(x.file_bytes for x in records)
    manifest = made.manifest
    for name, wanted in (
        ("nn", manifest.edges["nn"]),
        ("delegates", manifest.delegates),
        ("threshold", manifest.threshold),
    ):
        assert plan[name] == pytest.approx(wanted, rel=0.2)  # degrees of both ways
    for name in ("stored", "search", "disk"):
        assert plan["total"][name] == pytest.approx(built["total"][name], rel=0.1)
    for way in ("gpu_domain", "gpu_part"):
        assert plan[way]["total"] == pytest.approx(built[way]["total"], rel=0.1)
    half = 4 * made.manifest.m  # the columns of edges one way
    assert built["gpu_domain"]["graph"] * count > 2 * half
    split = here("plan", tmp_path / "g", *asked, "--device-memory", 3 << 30).values
    assert split["gpu_part"]["fits"] is split["gpu_domain_tails"]["fits"] is True


def test_a_directed_graph_of_too_many_vertices():
    told = here("plan", "--scale", 32, "--edge-factor", 1, "--directed")
    assert told.code == 0
    assert "engine xbfs searches directed graphs up to 2^31 vertices" in told.out
    assert "one GPU" not in told.out


def test_graph500_of_a_directed_graph(store):
    """A new one and a stored one; both are marked, and have roots with edges out."""
    u, v = GRAPH.tuples_at(np.arange(GRAPH.tuples))
    for words in (("-s", 7, "--edge-factor", 2, "--directed"), ("--graph", store)):
        done = here("graph500", *words, "--roots", 128)
        assert done.code == 0, done.err
        assert "# directed:                     edges lead one way: not" in done.out
        values = here("graph500", *words, "--roots", 128, "--json").values
        assert values["directed"] is True
        assert values["validated"] is True
        roots = {search["root"] for search in values["searches"]}
        assert roots == set(u[u != v].tolist())
    words = ("-s", 7, "--directed", "--threshold", 3, "--engine", "openmp")
    assert here("graph500", *words, "--json").values["validated"] is True
    assert here("graph500", "-s", 7, "--json").values["directed"] is False


def test_a_wrong_search_of_a_directed_graph(monkeypatch):
    def search(session, root, **options):
        found = whole(session, root, **options)
        level, _ = found.to_numpy()
        level[level == level.max()] -= 1
        return found

    whole = Session.search
    monkeypatch.setattr(Session, "search", search)
    done = here("graph500", "-s", 7, "--directed", "--roots", 1)
    assert (done.code, done.out) == (1, "")
    assert "rule 2: " in done.err


@needs_mpi
def test_graph500_of_a_directed_graph_on_ranks():
    words = ("graph500", "-s", 7, "--edge-factor", 2, "--directed", "--roots", 9)
    done, alone = (on(k, *words, "--json") for k in (2, 1))
    for key in ("root", "nedge"):
        rows = ([x[key] for x in y.values["searches"]] for y in (done, alone))
        assert next(rows) == next(rows)


def test_compare_of_a_directed_graph(store, tmp_path):
    """From vertices that reach half as many as any does; with other libraries."""
    words = ("compare", store, "--sources", 99, "--repeats", 1, "--peers", "scipy")
    plot = tmp_path / "bars.svg"
    values = here(*words, "--plot", plot, "--json").values
    matrix = matrix_of(GRAPH)
    assert (values["graph"]["directed"], values["graph"]["edges"]) == (True, matrix.nnz)
    assert f"{matrix.nnz} edges" in plot.read_text()
    reach = (np.isfinite(shortest_path(matrix, unweighted=True))).sum(axis=1)
    drawn = reach[values["sources"]]
    assert 2 * drawn.min() >= drawn.max()
    assert 2 * reach.min() < reach.max() == drawn.max()
    assert set(drawn) > {reach.max()}
    assert [x["engine"] for x in values["engines"]] == ["openmp", "reference", "scipy"]
    assert all(x["checks"] for x in values["engines"][:2])


@pytest.mark.parametrize("form", ["store", "file"])
def test_reversed_edges(tmp_path, form):
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n1 2\n3 2\n0 1\n")
    graph = (path, "--directed")
    if form == "store":
        assert here("convert", *graph, "-o", tmp_path / "g").code == 0
        graph = (tmp_path / "g",)
    done = here("bfs", *graph, "-s", 2, "--reverse", "--json")
    [search] = done.values["searches"]
    tuples = 3 if form == "store" else 4
    assert (search["reached"], search["depth"], search["nedge"]) == (4, 2, tuples)
    out = tmp_path / "out.h5"
    assert here("bfs", *graph, "-s", 2, "-o", out).code == 0
    said = here("bfs", *graph, "-s", 2, "--reverse", "-o", out).refusal
    assert "out.h5" in said, "results of the other direction are not gone on with"
    said = here("bfs", path, "-s", 2, "--reverse").refusal
    assert "edges lead both ways; reverse is for directed graphs" in said


@pytest.mark.parametrize("form", ["store", "parts"])
def test_many_searches_along_reversed_edges(store, parts, tmp_path, form):
    """Closeness by the distances from each vertex, not to it."""
    graph, out = (store if form == "store" else parts), tmp_path / "out.h5"
    arcs = nx.from_scipy_sparse_array(matrix_of(GRAPH), create_using=nx.DiGraph)
    wanted = nx.closeness_centrality(arcs.reverse())
    words = ("multisearch", "closeness", graph, "-o", out, "--divide", "parts")
    assert here(*words, "--reverse").code == 0
    with h5py.File(out) as file:
        np.testing.assert_allclose(file["value"][:], [*wanted.values()], rtol=1e-12)


@pytest.mark.thorough
def test_a_service_along_reversed_edges(store):
    ask = json.dumps({"id": 1, "op": "path", "source": 2, "target": 5})
    answers = []
    for words in ((), ("--reverse",)):
        done = subprocess.run(
            [*DISTBFS, "serve", store, *words],
            input=ask + "\n",
            capture_output=True,
            text=True,
            timeout=120,
            env=clean_environment(environment()),
            check=True,
        )
        answers.append(json.loads(done.stdout.splitlines()[1])["distance"])
    hops = shortest_path(matrix_of(GRAPH), unweighted=True)
    assert answers == [hops[2, 5], hops[5, 2]] == [2, 4]


@needs_mpi
def test_ranks_search_what_one_stores(store, tmp_path):
    done, alone = (on(k, "bfs", store, "-s", 0, "--json") for k in (2, 1))
    for key in ("reached", "depth", "nedge"):
        assert done.values["searches"][0][key] == alone.values["searches"][0][key]


def altered(store, folder, change):
    """A copy whose file of the part is changed; digests are left as they are."""
    copy = folder / "copy"
    shutil.copytree(store, copy)
    with h5py.File(copy / "part-00000.h5", "r+") as file:
        change(file)
    return copy


def test_altered_edges_in_are_found(store, tmp_path):
    def change(file):
        file["incoming/columns"][0] = (file["incoming/columns"][0] + 1) % 50

    said = here("bfs", altered(store, tmp_path, change), "-s", 0).refusal
    assert re.search("/incoming/columns is altered|bytes", said)


def test_missing_edges_in_are_found(store, tmp_path):
    def change(file):
        del file["incoming/columns"]

    assert "part-00000.h5" in here("bfs", altered(store, tmp_path, change), "-s", 0).err
