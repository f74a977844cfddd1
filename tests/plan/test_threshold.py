"""The model of TH: near what is counted, and its least is what is suggested."""

import importlib
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from graphs import kronecker
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from distbfs.generate.families import maker
from distbfs.graph.degrees import DegreeHistogram
from distbfs.plan import threshold as model
from distbfs.plan.memory import expected_degrees
from distbfs.plan.threshold import (
    BANDWIDTH,
    DELEGATES_PER_PART,
    LATENCY,
    RATE,
    expected_nn,
    suggest_host_threshold,
    suggest_threshold,
    weigh_thresholds,
)

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
EXPECTED = cache(expected_degrees)
HUBS = st.lists(st.integers(0, 30), min_size=5, max_size=60)
SOURCE = kronecker(14)


def histogram(degrees):
    values, counts = np.unique(np.asarray(degrees, np.int64), return_counts=True)
    return DegreeHistogram(values, counts.astype(np.int64))


def every(counts, parts):
    """Return the cost of every threshold, one at a time."""
    return [weigh_thresholds(counts, parts, [t])[0] for t in range(counts.largest + 1)]


@settings(max_examples=25, deadline=None)
@given(HUBS, st.integers(40, 90), st.integers(2, 64))
def test_the_suggestion_is_the_least_of_all(degrees, hub, parts):
    counts = histogram([*degrees, hub])
    spread = counts.summary()
    assume(spread["deviation"] ** 2 > model.SPREAD * spread["mean"])
    few = [x for x in every(counts, parts) if x.delegates <= 4 * counts.n / parts]
    best = suggest_threshold(counts, parts)
    assert best in [x.threshold for x in few]
    totals = {x.threshold: x.total for x in few}
    assert totals[best] == pytest.approx(min(totals.values()), rel=1e-9)


@cache
def many_degrees():
    return histogram(kronecker(16).degrees)


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [2, 8, 64])
def test_classes_of_degrees_hide_no_better_threshold(parts):
    counts = many_degrees()
    assert len(counts.degrees) > model.FEW_DEGREES
    limit = 4 * counts.n / parts
    costs = weigh_thresholds(counts, parts, counts.degrees.tolist())
    least = min(x.total for x in costs if x.delegates <= limit)
    (best,) = weigh_thresholds(counts, parts, [suggest_threshold(counts, parts)])
    assert best.delegates <= limit
    constant = best.seconds["latency"]
    assert best.total - constant < 1.02 * (least - constant)


@pytest.mark.parametrize("scale", [12, 20, 30])
@pytest.mark.parametrize("parts", [2, 64, 4096])
def test_delegates_fall_and_outer_edges_rise(scale, parts):
    costs = weigh_thresholds(EXPECTED(scale, 16), parts, [2**k for k in range(18)])
    for low, high in pairwise(costs):
        assert low.delegates >= high.delegates
        assert low.outer_edges <= high.outer_edges
        assert low.bytes["masks"] >= high.bytes["masks"]
        assert low.levels == high.levels


def test_terms_are_those_of_the_header():
    counts = histogram([0, 0, 1, 1, 2, 2, 5, 5])
    assert expected_nn(counts, 2) == pytest.approx(6 * 6 / 16)
    (cost,) = weigh_thresholds(counts, 4, [2])
    assert (cost.threshold, cost.delegates) == (2, 2)
    assert cost.outer_edges == pytest.approx(6 * 6 / 16 * 3 / 4)
    sent = 8 * cost.items + (4 + 1 / 8) * cost.questions
    assert cost.bytes == pytest.approx(
        {
            "masks": cost.mask_levels * 2 / 8 * 2 * 3 / 4,
            "parents": 8 * cost.parents / 4,
            "normals": sent / 4,
        }
    )
    looked = cost.pushed_edges + 3 * cost.questions + cost.items
    seconds = {name: size / BANDWIDTH for name, size in cost.bytes.items()}
    seconds |= {"work": (2 + looked / 4) / RATE, "latency": cost.levels * LATENCY}
    assert cost.seconds == pytest.approx(seconds)
    assert cost.total == pytest.approx(sum(seconds.values()))


@pytest.mark.parametrize("degrees", [[], [0], [0, 0, 0], [3, 1, 1, 1]])
def test_one_part_has_no_delegates(degrees):
    assert suggest_threshold(histogram(degrees), 1) == max(degrees, default=0)


@pytest.mark.parametrize("parts", [2, 5, 4096])
@pytest.mark.parametrize("degrees", [[], [0], [0, 0, 0]])
def test_without_edges_there_are_no_delegates(degrees, parts):
    assert suggest_threshold(histogram(degrees), parts) == 0
    (cost,) = weigh_thresholds(histogram(degrees), parts, [0])
    assert (cost.delegates, cost.outer_edges, cost.total) == (0, 0, 0)


@pytest.mark.parametrize("parts", [2, 8, 4096])
@pytest.mark.parametrize(
    "degrees",
    [
        [3] * 100,
        [2] * 98 + [1, 1],
        [99] * 100,
        np.random.default_rng(1).poisson(3, 10000),
        np.random.default_rng(1).poisson(32, 10000),
    ],
)
def test_without_hubs_there_are_no_delegates(degrees, parts):
    counts = histogram(degrees)
    assert suggest_threshold(counts, parts) == counts.largest
    assert np.isfinite([x.total for x in every(counts, parts)]).all()


@pytest.mark.parametrize("parts", [2, 8, 64, 1024])
def test_the_hub_of_a_star_is_a_delegate(parts):
    counts = histogram([*[1] * 100_000, 100_000])
    assert suggest_threshold(counts, parts) == 1


def test_a_part_for_every_vertex():
    counts = histogram(kronecker(12).degrees)
    for parts in (1024, 4096):
        best = suggest_threshold(counts, parts)
        assert counts.above(best) <= 4 * 4096 / parts


@pytest.mark.parametrize("distinct", [1000, 100_000])
def test_many_degrees_are_compared_by_classes(distinct, monkeypatch):
    degrees = np.arange(1, distinct + 1)
    counts = DegreeHistogram(degrees, (1e7 / degrees**1.5 + 1).astype(np.int64))
    weigh, sizes = model.weigh_thresholds, []

    def counted(histogram, parts, thresholds):
        classes = len(model.degree_classes(histogram, np.array(thresholds))[0])
        sizes.append((len(thresholds), classes))
        return weigh(histogram, parts, thresholds)

    monkeypatch.setattr(model, "weigh_thresholds", counted)
    assert suggest_threshold(counts, 64) > 0
    assert len(sizes) == 1
    assert 100 < max(*sizes[0]) < 1000, sizes


@pytest.mark.parametrize("first", [1, 2, 4])
def test_weak_scaling_follows_the_paper(first):
    """Section VI-B, Fig. 7: TH grows by about the square root of 2 per scale."""
    thresholds = []
    for step, scale in enumerate(range(26, 34)):
        parts = first << step
        if parts == 1:
            continue
        thresholds.append(suggest_threshold(EXPECTED(scale, 16), parts))
    assert thresholds == sorted(thresholds)
    growth = (thresholds[-1] / thresholds[0]) ** (1 / (len(thresholds) - 1))
    assert 1.2 < growth < 1.9


def test_bytes_of_two_devices():
    """Kronecker 27 on two H200: 16 and 24 MB of normals a part were sent at TH 256
    and 512, 8 bytes for each number or question, and masks of 0.3 MB on 8 levels."""
    low, high = weigh_thresholds(EXPECTED(27, 16), 2, [256, 512])
    sent = [8 * (cost.items + cost.questions) / 2 for cost in (low, high)]
    assert sent == pytest.approx([16.4e6, 24.4e6], rel=0.25)
    assert low.bytes["masks"] / low.mask_levels == pytest.approx(0.3e6, rel=0.15)
    assert low.levels == 8
    assert 64 <= suggest_threshold(EXPECTED(27, 16), 2) <= 256


@pytest.fixture
def counts_of(monkeypatch):
    """Return what counts searches of a graph, beside the model."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    module = importlib.import_module("threshold_counts")
    yield module.count
    for name in ("threshold_counts", "figures"):
        sys.modules.pop(name, None)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("parts", "threshold"),
    [(2, 16), (64, 16), (8, 64), (64, 256), (8, 256), (2, 1 << 20), (64, 1 << 20)],
)
def test_kronecker_graphs_are_near_the_model(counts_of, parts, threshold):
    counted, modelled = counts_of(SOURCE, parts, threshold, 16)
    assert modelled.delegates == counted.delegates
    assert 0.99 < modelled.outer_edges / counted.outer_edges < 1.6
    assert modelled.levels == pytest.approx(counted.levels, abs=1)
    sent, wanted = (x.items + x.questions for x in (modelled, counted))
    assert wanted / 2 < sent < 2.2 * wanted
    assert modelled.bytes["masks"] == pytest.approx(counted.bytes["masks"], rel=0.2)
    assert counted.parents <= modelled.parents
    assert (counted.parents > 0) == (counted.delegates > 0)


@pytest.mark.parametrize("parts", [2, 8, 64])
@pytest.mark.parametrize("threshold", [32, 1 << 20])
def test_random_edges_are_near_the_model(counts_of, parts, threshold):
    counted, modelled = counts_of(
        maker("uniform")(vertices=1 << 12), parts, threshold, 8
    )
    assert modelled.outer_edges == pytest.approx(counted.outer_edges, rel=0.05)
    sent, wanted = (x.items + x.questions for x in (modelled, counted))
    assert wanted / 1.2 < sent < 1.2 * wanted


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [2, 8, 64])
def test_the_suggestion_is_good_where_it_is_counted(counts_of, parts):
    best = suggest_threshold(histogram(SOURCE.degrees), parts)
    times = {}
    for threshold in {best, *(2**k for k in range(5, 11))}:
        counted, _ = counts_of(SOURCE, parts, threshold, 16)
        times[threshold] = counted.total - counted.seconds["latency"]
    assert times[best] < 1.2 * min(times.values())


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [2, 8, 64])
@pytest.mark.parametrize("family", ["road", "geometric"])
def test_long_graphs_are_best_without_delegates(counts_of, family, parts):
    source = maker(family)(vertices=1 << 12)
    times = []
    for threshold in (1, 2, 4, 8, 1 << 20):
        counted, _ = counts_of(source, parts, threshold, 4)
        times.append(counted.total - counted.seconds["latency"])
    assert times[-1] < 1.5 * min(times)


@pytest.mark.parametrize("parts", [1, 2, 8, 64])
def test_in_host_memory_the_fewest_bytes_are_taken(parts):
    for degrees in ([0], [3], [1, 1, 2, 7, 7, 40], SOURCE.degrees, [1] * 60 + [60]):
        counts = histogram(np.array(degrees))
        best = suggest_host_threshold(counts, parts)
        if parts == 1:
            assert best == counts.largest
            continue
        stored = {
            t: 8 * counts.above(t) * parts + 4 * expected_nn(counts, t)
            for t in {0, *counts.degrees.tolist()}
            if counts.above(t) <= DELEGATES_PER_PART * counts.n / parts
        }
        assert stored[best] == pytest.approx(min(stored.values()))
