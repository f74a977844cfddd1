"""The time of engine xbfs: counts against graphs, terms, and runs never fitted to."""

import json
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from graphs import kronecker, random_tuples
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.cli.plan_input import of_kronecker, search_time
from distbfs.errors import UsageError
from distbfs.graph.degrees import DegreeHistogram
from distbfs.plan import search_work
from distbfs.plan.memory import expected_degrees
from distbfs.plan.search_time import (
    BETWEEN,
    FITTED,
    HOP,
    NETWORK,
    PARTNER,
    SIGNALS,
    STREAMED_PARTNER,
    TERMS,
    PlannedLayout,
    device_of,
    exchange_of,
    load_constants,
    predict_search,
)
from distbfs.plan.search_work import expected_work

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import fit_model

DEGREES = expected_degrees(26, 16)


def predicted(layout, exchange=None, scale=26, **options):
    degrees = expected_degrees(scale, 16)
    device = device_of("H200")
    return predict_search(degrees, 16 << scale, layout, device, exchange, **options)


def pulls(source, root):
    """Return the looks of a search that pulls all levels, rows with hubs first."""
    matrix = source.matrix.tocsr()
    degrees = np.diff(matrix.indptr)
    order = np.argsort(-degrees, kind="stable")
    rows = matrix[order][:, order].tocsr()
    rows.sort_indices()
    degrees, levels = np.diff(rows.indptr), source.distances(root)[order]
    looks = 0
    for level in range(1, levels.max() + 1):
        visited = (levels >= 0) & (levels <= level)
        for vertex in np.flatnonzero(~visited & (degrees > 0)):
            row = visited[rows.indices[rows.indptr[vertex] : rows.indptr[vertex + 1]]]
            looks += int(row.argmax()) + 1 if row.any() else len(row)
    return looks


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("source", "close"),
    [(random_tuples(4000, 32_000, seed=3), 0.05), (kronecker(12), 0.4)],
    ids=["random", "kronecker"],
)
def test_pulls_are_about_those_of_a_graph(monkeypatch, source, close):
    """A random graph is what the counts assume; a Kronecker graph joins its hubs."""
    ends = np.flatnonzero(source.degrees > 0)
    roots = np.random.default_rng(1).choice(ends, 16, replace=False)
    looks = np.mean([pulls(source, int(root)) for root in roots])
    degrees = np.diff(source.matrix.tocsr().indptr)
    histogram = DegreeHistogram(*np.unique(degrees, return_counts=True))
    either = expected_work(histogram, 1, 0)
    monkeypatch.setattr(search_work, "PUSH", np.inf)
    pulled = expected_work(histogram, 1, 0)
    assert pulled.near == pytest.approx(looks, rel=close)
    monkeypatch.setattr(search_work, "PUSH", 0)
    pushed = expected_work(histogram, 1, 0)
    assert 0.9 * histogram.m < pushed.near < 1.01 * histogram.m
    assert either.near < min(pulled.near, pushed.near) / 2


def test_work_between_domains():
    whole = expected_work(DEGREES, 1, 0)
    parts = expected_work(DEGREES, 4, 1 << 40)  # no delegates
    assert parts.vertices == pytest.approx(whole.vertices / 4)
    assert parts.levels == whole.levels
    assert 0 < parts.partners <= 3 * parts.levels
    assert whole.partners == 0
    hubs = expected_work(DEGREES, 4, 100)
    delegates = DEGREES.above(100)
    normals = DEGREES.above(0) - delegates
    assert hubs.vertices == pytest.approx(normals / 4 + delegates)
    empty = expected_work(replace(DEGREES, degrees=DEGREES.degrees * 0), 1, 0)
    assert empty.levels == empty.near == empty.vertices == 0


def test_looks_beyond_the_cache_grow_with_the_graph():
    small, large = (expected_work(expected_degrees(x, 16), 1, 0) for x in (20, 31))
    assert small.far == 0
    assert 0 < large.far < large.near


def test_terms_add_up():
    for layout, exchange in (
        (PlannedLayout(1, 1, 0), None),
        (PlannedLayout(1, 4, 0), None),
        (PlannedLayout(8, 8, 300), exchange_of("nccl", "H200", hosts=True)),
        (
            PlannedLayout(64, 8, 900, streamed=False),
            exchange_of("nccl", "H200", hosts=True),
        ),
    ):
        time = predicted(layout, exchange)
        values = time.as_dict()
        names = TERMS if exchange is None else (*TERMS, *BETWEEN)
        assert tuple(time.terms) == names
        assert min(time.terms.values()) >= 0
        assert values["seconds"] == pytest.approx(sum(time.terms.values()))
        assert values["GTEPS"] * 1e9 == pytest.approx((16 << 26) / time.seconds)
        used = values["constants"]
        assert ("shared" in used) == (layout.devices > 1)
        assert ("hop" in used) == ("vertex" in used) == (exchange is not None)
    with pytest.raises(ValueError, match="need an exchange"):
        predicted(PlannedLayout(2, 1, 100))


def test_two_hops():
    """Few partners a level; all but masks crosses the wire twice."""
    exchange = exchange_of("nccl", "H200", hosts=True, streamed=False)
    one = predicted(PlannedLayout(512, 8, 900, streamed=False), exchange, scale=38)
    form = {"streamed": False, "relayed": True}
    two = predicted(PlannedLayout(512, 8, 900, **form), exchange, scale=38)
    most = two.work.levels * 2 * 63 * PARTNER["nccl"]
    assert two.terms["partners"] == pytest.approx(most)
    assert two.terms["partners"] < one.terms["partners"] / 10
    twice = 2 * sum(two.bytes.values()) - two.bytes["masks"]
    assert two.terms["wire"] == pytest.approx(twice / exchange.bandwidth)
    more = two.work.levels * HOP
    assert two.terms["hops"] == pytest.approx(one.terms["hops"] + more)


def test_each_term_is_its_constant_times_its_count():
    layout, exchange = PlannedLayout(4, 2, 200), exchange_of("nccl", "H200", hosts=True)
    time, device = predicted(layout, exchange), device_of("H200")
    work, terms = time.work, time.terms
    assert terms["levels"] == pytest.approx(
        work.levels * (device.level + device.shared)
    )
    assert terms["meetings"] == pytest.approx(work.levels * exchange.level)
    assert terms["results"] == pytest.approx(device.finish * (1 << 26) / 8)
    assert terms["counting"] == pytest.approx(device.vertex * work.vertices / 2)
    assert terms["wire"] == pytest.approx(sum(time.bytes.values()) / NETWORK)
    assert terms["hops"] == pytest.approx(work.levels * SIGNALS * HOP)
    others = 6
    partners = work.levels * (others - 1) * STREAMED_PARTNER["nccl"]
    assert terms["partners"] == pytest.approx(partners)
    masks = DEGREES.above(200) / 8
    assert masks < time.bytes["masks"] < work.levels * masks * 3 / 2
    assert predicted(layout, exchange, internal=True).terms["results"] == 0
    wide = predicted(PlannedLayout(1, 8, 0), scale=32).terms["results"]
    assert wide == pytest.approx(1.5 * device.finish * (1 << 32) / 8)


def test_what_makes_a_search_faster_or_slower():
    layout = PlannedLayout(64, 8, 1000)
    fast = predicted(layout, exchange_of("nccl", "H200", bandwidth=100e9))
    slow = predicted(layout, exchange_of("nccl", "H200", bandwidth=10e9))
    assert slow.terms["wire"] == pytest.approx(10 * fast.terms["wire"])
    assert fast.terms["meetings"] == slow.terms["meetings"]
    inside, between = (exchange_of("nvshmem", "H200", hosts=x) for x in (False, True))
    one = PlannedLayout(8, 1, 100)
    assert predicted(one, inside).seconds < predicted(one, between).seconds
    by_hosts = exchange_of("nccl", "H200", streamed=False)
    assert (
        by_hosts.level
        == exchange_of("host", "H200").level
        > exchange_of("nccl", "H200").level
    )
    assert exchange_of("nccl", "H200").level > exchange_of("nvshmem", "H200").level
    times = [predicted(PlannedLayout(1, 1, 0), scale=x).seconds for x in range(16, 32)]
    assert times == sorted(times)
    rates = [predicted(PlannedLayout(1, d, 0), scale=29).teps for d in (1, 2, 4, 8)]
    assert rates == sorted(rates)
    h100 = predict_search(DEGREES, 1, PlannedLayout(1, 1, 0), device_of("H100"))
    assert h100.terms["results"] > predicted(PlannedLayout(1, 1, 0)).terms["results"]
    more = [
        predicted(
            PlannedLayout(p, 8, 1000, streamed=False), exchange_of("nccl", "H200")
        ).terms
        for p in (16, 64, 256)
    ]
    assert more[0]["partners"] < more[1]["partners"] < more[2]["partners"]


def test_unknown_names():
    with pytest.raises(UsageError, match=r"GPU is 'B9'; allowed: H100, H200"):
        device_of("B9")
    with pytest.raises(UsageError, match="exchange is 'x'; allowed: host, nccl"):
        exchange_of("x", "H200")


def test_searches_are_laid_out_as_they_are_made():
    def layout(scale, devices, domain, exchange="nccl", **options):
        graph = of_kronecker(scale, 16, devices, None, domain)
        time = search_time(graph, "H200", exchange, **options)
        return time.layout, time.exchange and time.exchange.name

    assert layout(22, 4, 4) == (
        PlannedLayout(1, 1, layout(22, 4, 4)[0].threshold),
        None,
    )
    assert layout(26, 4, 4)[0].devices == 4
    for devices, domain, exchange, taken, streamed in (
        (64, 1, "nvshmem", "nvshmem", True),
        (64, 8, "nvshmem", "nccl", True),
        (128, 1, "nvshmem", "nccl", False),
        (128, 8, "nccl", "nccl", False),
        (2, 1, "host", "host", False),
    ):
        form, name = layout(30, devices, domain, exchange)
        assert (form.streamed, name) == (streamed, taken)
        assert (form.domains, form.devices) == (devices // domain, domain)


@pytest.fixture(scope="module")
def runs():
    return fit_model.runs()


@pytest.mark.thorough
def test_runs_that_were_not_fitted_to_are_predicted(runs):
    """Within 25 % each, and half of them within 10 %."""
    pairs = fit_model.errors(runs, load_constants())
    errors = {run.name: time / run.seconds - 1 for run, time in pairs if run.held}
    assert set(errors) == fit_model.HELD | fit_model.LATER | fit_model.TAILS
    assert max(abs(errors[name]) for name in fit_model.TAILS) < 0.25
    for names in (fit_model.HELD, fit_model.LATER):
        some = np.abs([errors[name] for name in names])
        assert some.max() < 0.25, errors
        assert np.median(some) < 0.1
    others = [time / run.seconds - 1 for run, time in pairs if not run.held]
    assert max(map(abs, others)) < 0.2
    assert len(others) > 15


@pytest.mark.thorough
def test_each_run_is_predicted_by_all_others(runs):
    errors = np.abs(list(fit_model.left_out(runs).values()))
    assert np.median(errors) < 0.1
    assert (errors < 0.25).mean() > 0.9
    assert errors.max() < 0.31


def test_constants_are_those_that_the_fit_finds(runs):
    fitted = fit_model.fit(runs)
    stored = json.loads(FITTED.read_text(encoding="utf-8"))
    assert {k: set(x) for k, x in fitted.items()} == {
        k: set(x) for k, x in stored.items()
    }
    held = fit_model.HELD | fit_model.LATER | fit_model.TAILS
    for kind, table in fitted.items():
        for name, values in table.items():
            for key, constant in values.items():
                other = stored[kind][name][key]
                assert other["value"] == pytest.approx(constant["value"], rel=0.01)
                assert other["origin"] == constant["origin"]
                names = constant["origin"].removeprefix("fitted: ").split(", ")
                assert not held & set(names)


def test_the_middle_of_searches():
    assert fit_model.middle([9, 1, 2, 3]) == 2.5
    assert fit_model.middle([5]) == 5


def test_outputs_are_collected(tmp_path):
    file = json.loads((fit_model.RESULTS / "model_h100.json").read_text())
    run = next(x for x in file["runs"] if x["name"] == "nvshmem_24")
    report = {k: x for k, x in run.items() if k in fit_model.KEPT}
    report |= {k: file[k] for k in ("versions", "machine")}
    report["searches"] = [x | {"root": 1} for x in run["searches"]]
    (tmp_path / "a.json").write_text(json.dumps(report))
    records = [{"root": 1, "bytes_sent": {"masks": 8}}, {"root": 1}, {"root": 2}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    (tmp_path / "level_nccl.json").write_text("not JSON")
    (tmp_path / "log.txt").write_text("a rc 0 from 0 to 3 s: distbfs graph500\n")
    fit_model.collect(tmp_path, tmp_path / "all.json")
    (made,) = json.loads((tmp_path / "all.json").read_text())["runs"]
    assert made["command"] == "distbfs graph500"
    assert (made["levels"], made["bytes_sent"]) == (1.5, {"masks": 4})
    one, other = (fit_model.of_report("a", x) for x in (made, run))
    assert one == other
    assert (one.domains, one.exchange, one.device) == (2, "nvshmem", "H100")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 3), st.integers(3, 12))
def test_least_squares_without_negatives(seed, columns, rows):
    """No subset of the columns does better, and no small step does."""
    rng = np.random.default_rng(seed)
    terms, values = rng.uniform(0, 1, (rows, columns)), rng.normal(0.3, 1, rows)
    x = fit_model.nonnegative(terms, values)
    assert (x >= 0).all()
    rest = terms @ x - values
    slope = terms.T @ rest
    assert (slope >= -1e-7).all()
    assert float(slope @ x) == pytest.approx(0, abs=1e-7)


def test_columns_of_any_size_are_weighed_alike():
    terms = np.array([[1e12, 1e-9, 1], [2e12, 0, 1], [0, 3e-9, 1], [5e11, 5e-9, 1]])
    true = np.array([2e-12, 3e9, 0.5])
    assert fit_model.nonnegative(terms, terms @ true) == pytest.approx(true, rel=1e-6)
    for some in combinations(range(3), 2):
        part = true.copy()
        part[list(set(range(3)) - set(some))] = 0
        assert fit_model.nonnegative(terms, terms @ part) == pytest.approx(
            part, rel=1e-6
        )
