"""``distbfs compare`` on CPUs: figures, turns, refusals, and engines that disagree."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from commands import alone, here, on

from distbfs.benchmark.libraries.scipy import ScipyLibrary
from distbfs.cli import compare
from distbfs.cli import comparison as comparing
from distbfs.device import cuda
from distbfs.errors import DeviceMissing, UsageError
from distbfs.report import plots
from distbfs.search.result import Result

ENGINES = "openmp,openmp/push,reference"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small graph, and options of searches."""
    path = tmp_path_factory.mktemp("compare") / "small"
    assert here("generate", "kronecker", "-s", 8, "-o", path).code == 0
    return path, "--sources", 3, "--repeats", 2


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("compare") / "graph"
    assert here("generate", "kronecker", "-s", 9, "-o", path).code == 0
    return path


def has_device():
    try:
        cuda.cupy()
    except DeviceMissing:
        return False
    return True


def test_figures_of_a_store(store):
    words = ("compare", store, "--engines", ENGINES, "--sources", 4, "--repeats", 3)
    values = here(*words, "--baseline", "reference", "--json").values
    assert values["graph"]["vertices"] == 512
    assert values["graph"]["source"]["family"] == "kronecker"
    assert values["baseline"] == "reference"
    assert len(set(values["sources"])) == len(values["nedge"]) == 4
    assert len(set(values["nedge"])) == 1, "all sources are in one component"
    assert values["rates"]["cpu"]["copy"] > 0
    assert values["command"].startswith("distbfs")
    assert values["versions"]["distbfs"]
    by_name = {engine["engine"]: engine for engine in values["engines"]}
    assert list(by_name) == ENGINES.split(",")
    assert by_name["reference"]["speedup"] == 1
    for engine in by_name.values():
        seconds = np.array(engine["seconds"])
        assert seconds.shape == (4, 3)
        assert engine["median_seconds"] == np.median(seconds)
        low, high = engine["quartile_seconds"]
        assert seconds.min() <= low <= engine["median_seconds"] <= high
        rates = np.array(values["nedge"]) / np.median(seconds, axis=1)
        mean = len(rates) / (1 / rates).sum() / 1e9
        assert engine["harmonic_mean_GTEPS"] == pytest.approx(mean)
        assert engine["over_limit"] > 0
        assert engine["result_bytes"] == 512 * 8
    push = by_name["openmp/push"]
    assert push["checks"] == values["graph"]["stored_edges"], (
        "a push looks at every edge once"
    )
    assert by_name["openmp"]["checks"] <= push["checks"]
    least = min(engine["checks"] for engine in by_name.values())
    moved = 4 * least + 512 * 8
    limit = moved / values["rates"]["cpu"]["copy"]
    assert limit < push["limit_seconds"] < 100 * limit


def test_limits_of_trees_that_are_not_searched(tmp_path):
    """Two joined triangles with three leaves and a path of two, from every vertex.

    Engine openmp prunes the five, a push searches them.  Of 24 stored edges 14 are
    inside the triangles; a push from these also looks at 4 that lead to trees.
    """
    triangles = "0 1\n1 2\n2 0\n3 4\n4 5\n5 3\n0 3\n"
    (tmp_path / "edges.txt").write_text(triangles + "1 6\n1 7\n4 8\n5 9\n9 10\n")
    assert here("convert", tmp_path / "edges.txt", "-o", tmp_path / "graph").code == 0
    words = ("compare", tmp_path / "graph", "--engines", "openmp,openmp/push")
    values = here(*words, "--sources", 11, "--json").values
    fast, push = values["engines"]
    counted = values["sources"][: values["counted_sources"]]
    hung = [5 - (source > 5) for source in counted]
    assert (fast["pruned"], push["pruned"]) == (np.mean(hung), 0)
    assert push["checks"] == values["graph"]["stored_edges"] == 24
    assert fast["checks"] == 14 + 4
    rates, results = values["rates"]["cpu"], 8 * 11

    def seconds(tests, others):
        return (4 * tests + others + results) / rates["copy"] + tests / rates["tests"]

    core = [seconds(24 - 2 * trees, 2 * 1 + 5 * trees) for trees in hung]
    assert fast["limit_seconds"] == pytest.approx(np.mean(core))
    assert push["limit_seconds"] == pytest.approx(seconds(18, 2 * 2))


def test_the_table(store):
    done = here("compare", store, "--engines", ENGINES, "--sources", 2)
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines] == ["engine", *ENGINES.split(",")]
    assert "speed-up" in lines[0]
    assert "over limit" in lines[0]


def test_options_of_an_engine(small):
    words = (
        "openmp/push:threads=1,direction=push,parents=no,reference,openmp:stepwise=yes"
    )
    values = here("compare", *small, "--engines", words, "--json").values
    first, second, third = values["engines"]
    assert first["engine"] == "openmp/push:threads=1,direction=push,parents=no"
    assert first["search"]["threads"] == 1
    assert first["result_bytes"] == 4 * 256
    assert first["checks"] == values["graph"]["stored_edges"]
    assert second["engine"] == "reference"
    assert third["search"]["mode"] == "stepwise"


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("openmp", ["openmp"]),
        ("a/b:x=1,y=2,c", ["a/b:x=1,y=2", "c"]),
        ("a:x=1,b:y=2,z=3", ["a:x=1", "b:y=2,z=3"]),
        ("a,x=1", ["a", "x=1"]),
    ],
)
def test_the_list_of_engines(text, split):
    assert compare.split_entries(text) == split


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engines", "gpu"), "unknown engine 'gpu'; allowed: "),
        (("--engines", "opnmp"), "; did you mean 'openmp'?"),
        (("--engines", "openmp/slow"), "method is 'slow'; allowed: fast"),
        (("--engines", "openmp:speed=9"), "'speed=9' of engine .*; allowed: frontier"),
        (("--engines", "openmp:async"), "'async' of engine 'openmp:async'; allowed: "),
        (("--engines", "openmp:parents=maybe"), "'maybe'; allowed: yes, no"),
        (("--engines", "openmp:threads=many"), "'threads=many' .* is not a number"),
        (
            ("--engines", "openmp:frontier=auto,balance=static"),
            "not an option of engine openmp; it belongs to xbfs-paper",
        ),
        (("--engines", "openmp,openmp"), "engine 'openmp' is given twice"),
        (("--baseline", "fast"), "baseline 'fast' is not an engine; allowed: openmp"),
        (
            ("--engines", "openmp:k1=4"),
            "not an option of engine openmp; it belongs to bfs4k",
        ),
        (("--engines", "bfs4k:k1=5"), "k1 is '5'; allowed: 1, 2, 4, 8, 16, 32"),
        (("--threads", "1,x"), "threads is 'x'; allowed: 0 to 4096"),
        (("--threads", "1,2", "--baseline", "openmp"), "allowed: openmp:threads=1, "),
        (("--peers", "boost"), "unknown peer 'boost'; allowed: cugraph"),
        (("--plot", "x.txt"), "a plot ends in '.txt'; allowed: .png"),
        (("--plot", "/none/x.png"), "there is no folder /none"),
    ],
)
def test_refusals(words, said, tmp_path, monkeypatch, small):
    monkeypatch.chdir(tmp_path)
    refusal = here("compare", *small, *words).refusal
    with pytest.raises(UsageError, match=said):
        raise UsageError(refusal)


def test_no_graph_and_no_store(tmp_path):
    assert "Missing argument" in here("compare").refusal
    assert str(tmp_path) in here("compare", tmp_path / "none").refusal


def test_one_line_where_matplotlib_is_missing(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    missing = "distbfs: a plot needs matplotlib; pip install '.[plot]'\n"
    for words in (("compare", store), ("info", store, "--degrees")):
        done = here(*words, "--plot", tmp_path / "x.png")
        assert (done.code, done.err) == (3, missing)


def test_a_library_that_is_missing(store, monkeypatch):
    monkeypatch.setattr(ScipyLibrary, "module", "nothing_here")
    done = here("compare", store, "--engines", "openmp", "--peers", "scipy")
    assert done.code == 3
    assert "peer scipy needs nothing_here, which is not installed" in done.err


@pytest.mark.skipif(has_device(), reason="there is a CUDA device")
def test_no_device(small):
    done = here("compare", *small, "--engines", "openmp,xbfs")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("distbfs: no CUDA")
    assert done.err.count("\n") == 1


def test_a_plot(store, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "bars.png"
    done = here("compare", store, "--sources", 1, "--plot", path)
    assert done.code == 0, done.err
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert f"wrote {path}" in done.err


def test_engines_that_disagree(monkeypatch, small):
    real = Result.to_numpy

    def wrong(found):
        level, parent = real(found)
        if found.engine == "reference":
            level = level.copy()
            level[found.root] += 1
        return level, parent

    monkeypatch.setattr(Result, "to_numpy", wrong)
    done = here("compare", *small)
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1
    assert "levels from source" in done.err
    assert "has 0 by openmp, 1 by reference" in done.err


def test_engines_take_turns(monkeypatch, small):
    order = []
    real = comparing.Session.search

    def noted(session, root, *, records=False):
        order.append((session.options.engine, root, records))
        return real(session, root, records=records)

    monkeypatch.setattr(comparing.Session, "search", noted)
    values = here("compare", *small, "--json").values
    timed = [(name, root) for name, root, records in order if not records]
    rounds = np.array(timed, dtype=object)[len(timed) - 12 :].reshape(6, 2, 2)
    pair = ["openmp", "reference"]
    assert [{*names} for names in rounds[:, :, 0]] == [{*pair}] * 6
    assert {names[0] for names in rounds[:, :, 0]} == {*pair}, "both begin"
    assert rounds[:, 0, 1].tolist() == [x for x in values["sources"] for _ in "12"]
    counted = [root for _, root, records in order if records]
    assert counted == [x for x in values["sources"] for _ in pair]


def test_a_graph_without_edges(tmp_path):
    (tmp_path / "loops.txt").write_text("0 0\n1 1\n")
    done = here("convert", tmp_path / "loops.txt", "-o", tmp_path / "graph")
    assert done.code == 0, done.err
    done = here("compare", tmp_path / "graph")
    assert done.code == 1
    assert "no vertex has a neighbour" in done.err


def test_sources_are_in_the_largest_component(tmp_path):
    pairs = [f"{k} {k + 1}" for k in range(0, 40, 2)]
    pairs += [f"{k} {k + 1}" for k in range(100, 160)]
    (tmp_path / "edges.txt").write_text("\n".join(pairs) + "\n")
    assert here("convert", tmp_path / "edges.txt", "-o", tmp_path / "graph").code == 0
    words = ("compare", tmp_path / "graph", "--sources", 20, "--json")
    values = here(*words).values
    assert set(values["nedge"]) == {60}


def test_ranks(store, tmp_path, small):
    values = on(2, "compare", *small, "--json").values
    assert values["ranks"] == 2
    assert values["rates"] == {}
    assert values["engines"][0]["over_limit"] is None
    alone_values = here("compare", *small, "--json").values
    for name in ("sources", "nedge", "reached"):
        assert values[name] == alone_values[name]
    assert values["graph"]["stored_edges"] == alone_values["graph"]["stored_edges"]
    assert alone("compare", "--help").code == 0


def test_a_plot_is_checked_before_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(plots, "new_figure", lambda *_: SimpleNamespace())
    plots.check_target(tmp_path / "x.svg")
    with pytest.raises(UsageError, match="ends in ''"):
        plots.check_target(tmp_path / "x")


def test_several_graphs_threads_and_peers(store, tmp_path):
    road = tmp_path / "road"
    assert here("generate", "road", "-n", 300, "-o", road).code == 0
    words = ("compare", store, road)
    words += ("--threads", "1,2", "--peers", "scipy", "--sources", 2, "--repeats", 2)
    words += ("--engines", "openmp/push,openmp:direction=push,reference:threads=1")
    values = here(*words, "--json").values
    assert len(values["comparisons"]) == 2
    for one in values["comparisons"]:
        engines = {engine["engine"]: engine for engine in one["engines"]}
        assert list(engines) == [
            *("openmp/push:threads=1", "openmp/push:threads=2"),
            *("openmp:direction=push,threads=1", "openmp:direction=push,threads=2"),
            *("reference:threads=1", "scipy"),
        ]
        base, other = list(engines.values())[:2]
        assert one["baseline"] == base["engine"]
        assert (base["speedup"], base["efficiency"]) == (1, 1)
        ratio = base["median_seconds"] / other["median_seconds"]
        assert other["efficiency"] == pytest.approx(ratio / 2)
        assert other["search"]["threads"] == 2
        assert engines["reference:threads=1"]["efficiency"] is None
        peer = engines["scipy"]
        assert peer["search"]["method"].startswith("breadth_first_order, SciPy ")
        assert (peer["checks"], peer["over_limit"], peer["repeats"]) == (None,) * 3
        assert np.array(peer["seconds"]).shape == (2, 2)
    titles = [one["graph"]["title"] for one in values["comparisons"]]
    assert titles == [str(store), str(road)]
    out = here(*words).out.splitlines()
    assert sum(line.startswith("engine") and "efficiency" in line for line in out) == 2
    assert any(line.startswith(f"{road}: ") for line in out)


def test_peers_that_disagree(monkeypatch, small):
    monkeypatch.setattr(
        "distbfs.benchmark.libraries.scipy.ScipyLibrary.levels",
        lambda self, found, root: np.zeros(256, np.int32),
    )
    done = here("compare", *small, "--peers", "scipy", "--engines", "reference")
    assert done.code == 1
    assert "by scipy" in done.err


def test_every_peer_that_is_installed(small):
    words = ("compare", *small, "--peers", "all", "--engines", "openmp", "--json")
    names = [engine["engine"] for engine in here(*words).values["engines"]]
    assert {"openmp", "scipy", "networkx"} <= set(names)


def test_panels(store, tmp_path):
    pytest.importorskip("matplotlib")
    path, file = tmp_path / "panels.png", tmp_path / "told.json"
    words = ("compare", store, store, "--sources", 1, "--repeats", 1)
    done = here(*words, "--json", "--threads", "1,2", "--plot", path)
    assert path.read_bytes()[:4] == b"\x89PNG"
    file.write_text(done.out)
    for kind in ("time", "speedup", "efficiency", "rate"):
        path.unlink()
        done = here("plot", "compare", file, "-o", path, "--kind", kind)
        assert (done.code, done.out) == (0, "")
        assert path.read_bytes()[:4] == b"\x89PNG"
    done = here("compare", store, store, "--sources", 1, "--json")
    file.write_text(done.out)
    words = ("plot", "compare", file, "-o", path)
    assert here(*words).code == 0
    refusal = here(*words, "--kind", "efficiency").refusal
    assert refusal.endswith("the comparison has no values of efficiency")
    for text in ("{}", "[1]", "x", '{"comparisons": 3}'):
        file.write_text(text)
        assert "no result of 'distbfs compare --json'" in here(*words).refusal
    assert "No such file" in here("plot", "compare", "none.json", "-o", path).refusal
