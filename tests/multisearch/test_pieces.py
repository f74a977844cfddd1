"""Jobs in pieces: what is kept and resumed, progress, estimates, samples and bounds."""

import math
import os
import signal
import time
from contextlib import nullcontext

import h5py
import networkx as nx
import numpy as np
import pytest
from graphs import random_tuples
from wholes import all_levels, by_networkx, whole

import distbfs
from distbfs.errors import InputError, SearchStopped, UsageError
from distbfs.multisearch import pieces as in_pieces
from distbfs.multisearch.application import Task
from distbfs.multisearch.apps.closeness import SAMPLED, reaching
from distbfs.multisearch.apps.distances import PROBLEM
from distbfs.multisearch.apps.sampling import Estimate, deviation, draw
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.pieces import Pieces, readable_time
from distbfs.progress import no_progress
from distbfs.ranks.signals import INTERRUPT_SECONDS, Interrupts
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import choose_searcher
from distbfs.search.result_file import PartialFile

SOURCE = random_tuples(90, 110, seed=6)
BATCH = 16


class Killed(BaseException):
    """What ends a run as a kill does: nothing is written after it."""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(in_pieces, "PIECE_SECONDS", 0.0)
    monkeypatch.setattr(in_pieces, "SAVING_SHARE", 1e9)


def graph_of(source, directed=False):
    return distbfs.Graph.from_edges(source.u, source.v, n=source.n, directed=directed)


def run(graph, app, resume=None, progress=None, **options):
    ways = {"engine": "openmp", "batch": BATCH, **options}
    return distbfs.search_many(
        graph, app, ways.pop("sources", None), resume=resume, progress=progress, **ways
    )


def kill_after(count):
    def progress(done, total):
        assert total == SOURCE.n
        if done >= count:
            raise Killed

    return progress


def killed(path, count, app="closeness", **options):
    """Leave the file of a run that was killed after some pieces."""
    with pytest.raises(Killed):
        run(graph_of(SOURCE), app, path, kill_after(count), **options)
    assert path.exists()


@pytest.mark.parametrize("app", ["closeness", "harmonic", "eccentricity"])
@pytest.mark.parametrize("directed", [False, True])
def test_killed_and_resumed(tmp_path, app, directed):
    graph, path, calls = graph_of(SOURCE, directed), tmp_path / "job", []
    wanted = run(graph, app)
    for count in (16, 64):
        with pytest.raises(Killed):
            run(graph, app, path, kill_after(count))
    results = run(graph, app, path, lambda *x: calls.append(x), engine="reference")
    assert calls[0] == (80, 90), "those of before are not searched again"
    assert results.facts["resumed"] == 64
    np.testing.assert_allclose(results["value"], wanted["value"], rtol=1e-12)
    assert not path.exists()
    for name in ("connected", "diameter", "vertices"):
        assert results.facts.get(name) == wanted.facts.get(name)


@pytest.mark.parametrize("directed", [False, True])
def test_all_three_of_one_traversal(tmp_path, directed):
    graph, path = graph_of(SOURCE, directed), tmp_path / "job"
    with pytest.raises(Killed):
        run(graph, "centralities", path, kill_after(32))
    results = run(graph, "centralities", path)
    assert results.facts["resumed"] == 32
    assert results.facts["connected"] is False
    for name in ("closeness", "harmonic", "eccentricity"):
        np.testing.assert_array_equal(results[name], run(graph, name)["value"])


SUMMED = [
    ("betweenness", {}),
    ("betweenness", {"endpoints": True, "samples": 70}),
    ("betweenness", {"error": 0.15}),
    ("closeness", {"samples": 60}),
    ("harmonic", {"error": 0.12, "confidence": 0.9}),
]


@pytest.mark.parametrize(("app", "options"), SUMMED)
@pytest.mark.parametrize("moment", ["write_totals", "mark", "after"])
def test_sums_that_are_killed_and_resumed(tmp_path, monkeypatch, app, options, moment):
    """Killed before the totals of a piece are written, or its flags, or after both."""
    graph, path, calls = graph_of(SOURCE), tmp_path / "job", []
    wanted = run(graph, app, **options)

    def progress(done, total):
        if done >= 32 and moment == "after":
            raise Killed

    with monkeypatch.context() as patch:
        if moment != "after":
            kept = getattr(PartialFile, moment)

            def some(file, *values):
                calls.append(values)
                if len(calls) > 2:
                    raise Killed
                kept(file, *values)

            patch.setattr(PartialFile, moment, some)
        with pytest.raises(Killed):
            run(graph, app, path, progress, **options)
    results = run(graph, app, path, **options)
    assert results.facts["resumed"] == 32
    for name, value in wanted.values.items():
        np.testing.assert_array_equal(results[name], value)
    assert not path.exists()


def test_totals_are_stored_twice(tmp_path):
    """A kill while totals are written leaves those of the piece before."""
    graph, path = graph_of(SOURCE), tmp_path / "job"
    wanted = run(graph, "betweenness")
    killed(path, 48, "betweenness")
    with h5py.File(path, "r+") as file:
        assert file["summed"][:].tolist() == [48, 32]
        file["value"][1] = np.nan  # the older of both, half written
    np.testing.assert_array_equal(
        run(graph, "betweenness", path)["value"], wanted["value"]
    )
    killed(path, 48, "betweenness")
    with h5py.File(path, "r+") as file:
        file["value"][0] = np.nan  # half written, and not counted
        file["summed"][0] = 16
    results = run(graph, "betweenness", path)
    assert results.facts["resumed"] == 32
    np.testing.assert_array_equal(results["value"], wanted["value"])


def test_totals_are_written_less_often(monkeypatch, tmp_path):
    """Where that takes more than a share of the time; the last ones always are."""
    monkeypatch.setattr(in_pieces, "SAVING_SHARE", 1e-9)
    path = tmp_path / "job"
    killed(path, 64, "betweenness")
    with h5py.File(path) as file:
        assert file["summed"][:].tolist() == [16, 0]
    killed(path, 90, "betweenness")
    with h5py.File(path) as file:
        assert file["summed"][:].max() == 90


def test_all_were_finished(tmp_path):
    path, calls = tmp_path / "job", []
    killed(path, 90)
    results = run(graph_of(SOURCE), "closeness", path, lambda *x: calls.append(x))
    assert not calls
    close = nx.closeness_centrality(by_networkx(SOURCE))
    np.testing.assert_allclose(results["value"], list(close.values()), rtol=1e-12)


def test_a_file_of_another_run(tmp_path):
    path, graph = tmp_path / "job", graph_of(SOURCE)
    killed(path, 16)
    held = path.read_bytes()
    other = random_tuples(90, 110, seed=7)
    for call in (
        lambda: run(graph_of(other), "closeness", path),
        lambda: run(graph_of(SOURCE, directed=True), "closeness", path),
        lambda: run(graph, "harmonic", path),
        lambda: run(graph, "closeness", path, normalized=False),
        lambda: run(graph, "closeness", path, depth=2),
        lambda: run(graph, "closeness", path, sources=range(89)),
    ):
        with pytest.raises(InputError, match=r"another run: .* delete it to begin"):
            call()
        assert path.read_bytes() == held
    path.write_bytes(b"text")
    with pytest.raises(InputError, match="is not an HDF5 file, or is damaged"):
        run(graph, "closeness", path)


def test_what_cannot_be_resumed(tmp_path):
    graph, levels = graph_of(SOURCE), distbfs.State("level", "int8", "pair")
    with pytest.raises(UsageError, match="khop cannot be resumed"):
        run(graph, "khop", tmp_path / "job")
    with pytest.raises(UsageError, match="resume and progress are for applications"):
        run(graph, distbfs.Problem("p", (levels,)), tmp_path / "job")


def searcher(**options):
    kind, _ = choose_searcher("openmp")
    return kind(SoloWorld(), whole(SOURCE), RunOptions(**options))


def test_the_second_piece_estimates_the_time_of_all(monkeypatch):
    """The first may have compiled kernels."""
    times = iter([0.0, 100.0, 200.0, 201.0, 300.0, 301.0] * 2)
    monkeypatch.setattr(in_pieces, "clock", lambda: next(times))
    monkeypatch.setattr(in_pieces, "PIECE_SECONDS", 0.0)
    said = []
    pieces = Pieces(searcher(batch=32), "closeness", no_progress, said.append)
    pieces.run(PROBLEM, np.arange(90))
    assert said == ["closeness of 90 vertices: about 2.8 s"]
    pieces = Pieces(searcher(batch=16), "closeness", no_progress, said.append)
    pieces.run(SAMPLED, np.arange(40))
    assert said[1:] == ["closeness of 90 vertices from 40 samples: about 2.5 s"]


def test_pieces_that_need_no_estimate_and_stops():
    said, asked = [], []
    pieces = Pieces(searcher(), "closeness", no_progress, said.append)
    pieces.run(PROBLEM, np.arange(90))
    assert said == [], "one piece is all"
    stop = lambda: asked.append(1) or len(asked) > 40  # noqa: E731
    pieces = Pieces(searcher(batch=1, stop=stop), "closeness", no_progress, said.append)
    with pytest.raises(SearchStopped, match=r"stopped after [1-9]\d* of 90 sources$"):
        pieces.run(PROBLEM, np.arange(90))


@pytest.mark.parametrize("program", [False, True])
def test_ctrl_c_waits_while_results_are_written(monkeypatch, tmp_path, program):
    """In a program even where that takes longer than Ctrl-C may wait elsewhere."""
    path, graph = tmp_path / "job", graph_of(SOURCE)
    write = PartialFile.write_rows

    def interrupted(file, rows, values):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(2 * INTERRUPT_SECONDS if program else 0)
        write(file, rows, values)

    # in the background of a shell, Ctrl-C is ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with monkeypatch.context() as patch, Interrupts() if program else nullcontext():
        patch.setattr(PartialFile, "write_rows", interrupted)
        with pytest.raises(KeyboardInterrupt, match=r"after 16 of 90 sources; "):
            run(graph, "closeness", path)
    signal.signal(signal.SIGINT, before)
    results = run(graph, "closeness", path)
    assert results.facts["resumed"] == 16
    np.testing.assert_array_equal(results["value"], run(graph, "closeness")["value"])


def test_times_are_readable():
    times = {0.02: "0.02 s", 3.21: "3.2 s", 55: "55 s", 600: "10 min", 40_000: "11.1 h"}
    assert {seconds: readable_time(seconds) for seconds in times} == times


@pytest.mark.thorough
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("edges", [60, 140, 600])
def test_bounds_of_samples_hold(edges, directed):
    for seed in range(3):
        source = random_tuples(200, edges, seed=seed)
        plain = by_networkx(source, directed)
        exact = {
            "harmonic": {"": nx.harmonic_centrality(plain)},
            "closeness": {
                normal: nx.closeness_centrality(plain, wf_improved=normal)
                for normal in (True, False)
            },
        }
        for app, ways in exact.items():
            for normal, values in ways.items():
                wanted = np.array([values[v] for v in range(source.n)])
                more = {} if normal == "" else {"normalized": normal}
                check_bounds(graph_of(source, directed), app, wanted, seed, **more)


@pytest.mark.parametrize("edges", [150, 300, 900])
def test_bounds_of_distances_to_vertices(edges):
    """No vertex that reaches another is farther, and their number is right."""
    source = random_tuples(150, edges, seed=edges)
    levels = all_levels(source, directed=True)
    kind, part = choose_searcher("openmp")[0], whole(source, directed=True)
    on = kind(SoloWorld(), part, RunOptions())
    for pivot in range(0, source.n, 9):
        fewest, most, spans = reaching(on, pivot)
        assert (spans >= levels.max(axis=0)).all()
        counts = (levels > 0).sum(axis=0)
        assert ((fewest <= counts) & (counts <= most)).all()
        inside = (levels[pivot] >= 0) & (levels[:, pivot] >= 0)
        both = levels[pivot] + levels[:, pivot].max()
        np.testing.assert_array_equal(spans[inside], np.maximum(both, 1)[inside])
        np.testing.assert_array_equal(fewest[inside], most[inside])
        apart = levels[pivot] < 0
        assert (spans[apart] == max(apart.sum() - 1, 1)).all()


def check_bounds(graph, app, wanted, seed, *, of_itself=True, **more):
    """Bounds hold, narrow as samples are added, and close where all are taken."""
    widths = []
    for samples in (20, 120, 200):
        near = run(graph, app, samples=samples, seed=seed, **more)
        value, low, high = (near[name] for name in ("value", "low", "high"))
        assert (low <= wanted + 1e-9).all()
        assert (wanted <= high + 1e-9).all()
        assert ((low <= value + 1e-9) & (value <= high + 1e-9)).all()
        widths.append((high - low).mean())
        assert near["sources"].shape == (samples,)
        assert near.facts["samples"] == samples
        assert near.facts["widest_bounds"] == (high - low).max()
        if not graph.directed and of_itself:
            np.testing.assert_allclose(low[near["sources"]], wanted[near["sources"]])
            np.testing.assert_allclose(high[near["sources"]], wanted[near["sources"]])
    assert widths[0] > widths[1] > widths[2]
    if of_itself or not graph.directed:
        np.testing.assert_allclose(near["value"], wanted, rtol=1e-12)


def test_samples_that_are_refused():
    chain = distbfs.Graph.from_edges([0, 1], [1, 2], directed=True)
    with pytest.raises(UsageError, match="all vertices: give no sources"):
        run(chain, "harmonic", samples=2, sources=[1])
    with pytest.raises(UsageError, match="all distances: give no depth"):
        run(chain, "harmonic", samples=2, depth=1)
    for more, message in (
        ({"samples": 1}, "samples is 1; allowed: 2 or more"),
        ({"samples": 2, "error": 0.1}, "both set the number of sources"),
        ({"confidence": 0.9}, "give samples or error"),
        ({"error": 0.0}, r"error is 0.0; allowed: above 0 and below 1"),
        ({"error": 1.0}, r"error is 1.0; allowed: above 0 and below 1"),
        ({"samples": 2, "confidence": 1.0}, "confidence is 1.0; allowed: above 0"),
    ):
        with pytest.raises(UsageError, match=message):
            run(chain, "betweenness", **more)
    none = distbfs.Graph.from_edges([], [])
    for app in ("closeness", "harmonic", "betweenness"):
        for more in ({"samples": 2}, {"error": 0.1}):
            assert run(none, app, **more)["low"].shape == (0,)


def exact_values(source, app, directed, **options):
    find = {
        "betweenness": nx.betweenness_centrality,
        "harmonic": nx.harmonic_centrality,
        "closeness": nx.closeness_centrality,
    }[app]
    values = find(by_networkx(source, directed), **options)
    return np.array([values[v] for v in range(source.n)])


@pytest.mark.thorough
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("app", "options"),
    [
        ("harmonic", {}),
        ("betweenness", {}),
        ("betweenness", {"endpoints": True}),
        ("betweenness", {"normalized": False}),
    ],
)
@pytest.mark.parametrize("confidence", [None, 0.5])
def test_an_error_is_kept(app, options, directed, confidence):
    """Values are as near as asked, from fewer searches than all vertices."""
    n, error = 400, 0.15
    largest = {"harmonic": n - 1, "betweenness": 1}[app]
    if options.get("normalized") is False:
        largest = (n - 1) * (n - 2) / (1 if directed else 2)
    counts = []
    for seed, edges in enumerate((300, 700, 2000)):
        source = random_tuples(n, edges, seed=seed)
        wanted = exact_values(source, app, directed, **options)
        near = run(
            *(graph_of(source, directed), app),
            error=error,
            confidence=confidence,
            seed=seed,
            **options,
        )
        value, low, high = (near[name] for name in ("value", "low", "high"))
        assert np.abs(value - wanted).max() <= error * largest
        slack = 1e-9 * largest
        assert (low <= wanted + slack).all()
        assert (wanted <= high + slack).all()
        assert near.facts["error"] == error
        assert near.facts["confidence"] == (confidence or 0.95)
        assert near.facts["widest_bounds"] <= 2 * error * largest
        assert len(near["sources"]) == near.facts["samples"]
        counts.append(near.facts["samples"])
    assert len(set(counts)) == 1, "the number of samples depends on n alone"
    assert 20 < counts[0] < n / 2
    twice = run(graph_of(source, directed), app, error=2 * error, **options)
    assert twice.facts["samples"] < counts[0] / 2


def test_samples_of_an_error_by_hand():
    """Serfling's bound, solved for the number of samples of a population."""
    failure = 0.05 / 1000
    for error in (0.3, 0.1, 0.02):
        count = Estimate(None, error, 0.95).count(999, failure) - 1
        bound = [
            2 * math.exp(-2 * k * error**2 / (1 - (k - 1) / 999))
            for k in (count, count - 1)
        ]
        assert bound[0] <= failure < bound[1]
        assert deviation(np.array([count]), 999, failure) <= error
    assert Estimate(None, 1e-9, 0.95).count(999, failure) >= 999


@pytest.mark.thorough
@pytest.mark.parametrize("edges", [500, 2000])
def test_an_error_of_closeness_is_kept(edges):
    """Mean distances are off by a share of the diameter in the largest component."""
    n, error = 600, 0.2
    source = random_tuples(n, edges, seed=edges)
    plain = by_networkx(source)
    inside = sorted(max(nx.connected_components(plain), key=len))
    assert len(inside) > 100
    wanted = exact_values(source, "closeness", False, wf_improved=False)
    near = run(
        graph_of(source), "closeness", error=error, normalized=False, confidence=0.9
    )
    samples = np.isin(near["sources"], inside)
    needed = Estimate(None, error, 0.9).count(len(inside) - 1, 0.1 / (2 * n))
    assert samples.sum() == needed < len(inside)
    off = np.abs(1 / near["value"][inside] - 1 / wanted[inside])
    assert off.max() <= error * (nx.diameter(plain.subgraph(inside)) - 1)
    assert (near["low"] <= wanted + 1e-12).all()
    assert (wanted <= near["high"] + 1e-12).all()


def test_an_error_of_closeness_is_kept_in_a_directed_graph():
    """By samples of which the largest strong component has as many on average."""
    n, error, needed = 600, 0.2, Estimate(None, 0.2, 0.9).count(599, 0.1 / 1200)
    source = random_tuples(n, 1500, seed=4)
    plain = by_networkx(source, directed=True)
    inside = sorted(max(nx.strongly_connected_components(plain), key=len))
    assert 300 < len(inside) < 550
    wanted = exact_values(source, "closeness", True, wf_improved=False)
    near = run(
        *(graph_of(source, directed=True), "closeness"),
        error=error,
        normalized=False,
        confidence=0.9,
    )
    assert len(near["sources"]) == math.ceil(needed * n / len(inside)) < n
    off = np.abs(1 / near["value"][inside] - 1 / wanted[inside])
    farthest = all_levels(source, directed=True)[:, inside].max(axis=0)
    assert (off <= error * (farthest - 1)).all()
    assert (near["low"] <= wanted + 1e-12).all()
    assert (wanted <= near["high"] + 1e-12).all()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("options", [{}, {"endpoints": True}, {"normalized": False}])
def test_bounds_of_betweenness_hold(directed, options):
    for seed in range(3):
        source = random_tuples(200, 300, seed=seed)
        wanted = exact_values(source, "betweenness", directed, **options)
        check_bounds(
            *(graph_of(source, directed), "betweenness", wanted, seed),
            of_itself=False,
            **options,
        )


def test_what_is_said_of_an_error():
    said = []
    run = Task(searcher(), np.arange(90), say=said.append, label="harmonic")
    estimate = Estimate(None, 0.25, 0.9)
    count = estimate.count(89, estimate.failure(90))
    drawn = draw(run, estimate, count)
    assert len(drawn) == count < 90
    [line] = said
    assert line == (
        f"harmonic: {count} samples for an error of 0.25 with a probability of 0.9"
    )
