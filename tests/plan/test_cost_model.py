"""The cost model: terms of the paper, and constants that are found again."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.errors import UsageError
from distbfs.plan.cost_model import (
    Constants,
    Counts,
    Record,
    Run,
    fit,
    nonnegative,
    predict,
    usual_habits,
)
from distbfs.types import SUBGRAPHS

SEPARATED, WHOLE = usual_habits("separated"), usual_habits("whole")
EDGES = {"nn": 4e6, "nd": 1e7, "dn": 1e7, "dd": 4e7}


def counts_of(devices=16, ranks=16, **others):
    fields = {
        "n": 1 << 24,
        "tuples": 16 << 24,
        "active": 8e6,
        "delegates": 8e5,
        "edges": EDGES,
        "devices": devices,
        "ranks": ranks,
    }
    return Counts(**(fields | others))


def test_terms_are_those_of_section_v():
    counts, constants = counts_of(), Constants(1e9, 1e10, 1e-5, 1e-12)
    prediction = predict(counts, constants)
    g, d = 1 / 1e10, counts.delegates
    needed = sum(habit.masks for habit in SEPARATED)
    assert needed == len(SEPARATED) / 2  # S' is about half of S
    assert prediction.levels[0].mask_bytes == 2 * d * 16 / 8
    assert prediction.total("masks") == pytest.approx(
        d * math.log2(16) / 4 * g * needed
    )
    assert prediction.total("normal_bytes") == pytest.approx(4 * EDGES["nn"] * 15 / 16)
    assert prediction.total("normals") == pytest.approx(
        4 * EDGES["nn"] / 16 * g, rel=1 / 15 + 1e-9
    )
    assert prediction.total("latency") == pytest.approx(1e-5 * len(SEPARATED))
    assert prediction.finish == pytest.approx(1e-12 * counts.n / 16)
    assert prediction.total("work") == pytest.approx(prediction.total("visits") / 1e9)
    parts = [prediction.total(x) for x in ("work", "masks", "normals", "latency")]
    assert prediction.seconds == pytest.approx(sum(parts) + prediction.finish)
    assert prediction.teps == pytest.approx(counts.tuples / prediction.seconds)
    visits = 16 * prediction.total("visits")
    # every nn edge, every vertex, every delegate on each device, and some of the rest
    least = 0.99 * (EDGES["nn"] + counts.active + 16 * d)
    assert least < visits < least + 0.5 * sum(EDGES.values())


def test_what_is_expected_to_be_sent_goes_before_every_edge():
    few = predict(counts_of(16, 16, sent=3e6), Constants())
    assert few.total("normal_bytes") == pytest.approx(3e6)
    apart = predict(counts_of(16, 4, sent=3e6), Constants())
    assert apart.total("normal_bytes") == pytest.approx(3e6 * (3 / 4) / (15 / 16))
    every = predict(counts_of(), Constants())
    assert few.total("normals") < every.total("normals")
    assert few.total("work") == every.total("work")


def test_one_device_sends_nothing():
    for delegates, habits in ((0, WHOLE), (1000, SEPARATED)):
        prediction = predict(counts_of(1, 1, delegates=delegates), Constants())
        assert prediction.total("masks") == prediction.total("normals") == 0
        assert prediction.total("mask_bytes") == prediction.total("normal_bytes") == 0
        assert len(prediction.levels) == len(habits)


def test_devices_of_a_rank_reduce_together():
    apart, together = counts_of(16, 16), counts_of(16, 4)
    a, b = predict(apart, Constants()), predict(together, Constants())
    assert b.total("masks") == pytest.approx(a.total("masks") / 2)
    assert b.total("mask_bytes") == pytest.approx(a.total("mask_bytes") / 4)
    assert b.total("work") == a.total("work")


def test_json_values_add_up():
    values = predict(counts_of(), Constants()).as_dict()
    assert values["seconds"] == pytest.approx(sum(values["seconds_by_part"].values()))
    assert values["constants"]["rate"] == {"value": 5e10, "origin": "assumed"}
    assert len(values["levels"]) == len(SEPARATED)
    assert values["GTEPS"] == pytest.approx((16 << 24) / values["seconds"] / 1e9)


def records_of(counts, constants, roots=6, noise=0.0, seed=1):
    """Return level records as a machine with these constants would write them."""
    rng = np.random.default_rng(seed)
    made = []
    for root in range(roots):
        for index, habit in enumerate(SEPARATED):
            size = rng.uniform(0.5, 1.5)
            checks = {k: int(size * habit.checks[k] * EDGES[k]) for k in SUBGRAPHS}
            normals = int(size * habit.normals * counts.active)
            delegates = int(habit.delegates * counts.delegates)
            mask = int(counts.delegates / 8) if habit.masks else 0
            normal = int(size * habit.checks["nn"] * 4 * EDGES["nn"] / counts.ranks)
            visits = sum(checks.values()) + normals + delegates * counts.devices
            spent = visits / counts.devices / constants.rate + constants.latency
            spent += (2 * mask * math.log2(counts.ranks)) / constants.bandwidth
            spent += normal / constants.bandwidth
            values = {
                "root": root,
                "level": index + 1,
                "directions": {},
                "normals": normals,
                "delegates": delegates,
                "checks": checks,
                "bytes_sent": {"masks": mask, "normals": normal},
                "seconds": {"visit": spent * rng.normal(1, noise), "wait": 0.0},
            }
            made.append(Record.parse(values))
    return made


def test_inner_checks_are_spread_over_subgraphs():
    counts = counts_of(4, 4)
    values = {"level": 1, "root": 0, "normals": 5, "delegates": 1, "seconds": 1}
    record = Record.parse({**values, "checks": {"outer": 3e6, "inner": 6.1e7}})
    checks = record.by_subgraph(counts)
    assert sum(checks.values()) == pytest.approx(
        6.4e7
    )  # once each, if all are looked at
    assert checks == pytest.approx(EDGES)
    with pytest.raises(ValueError, match="not a level record"):
        Record.parse({**values, "checks": {"outer": 3e6}})


@pytest.mark.parametrize(("noise", "close"), [(0.0, 1e-6), (0.05, 0.15)])
def test_constants_are_found_again(noise, close):
    true = Constants(3e9, 7e9, 4e-5)
    runs = [
        Run(counts, records_of(counts, true, noise=noise))
        for counts in (counts_of(4, 4), counts_of(16, 16))
    ]
    fitted = fit(runs)
    for name in ("rate", "bandwidth", "latency"):
        assert getattr(fitted, name) == pytest.approx(getattr(true, name), rel=close)
        assert fitted.origin[name] == "fitted"
    assert fitted.origin["finish"] == "assumed"
    model = predict(counts_of(), fitted, runs[1].habits())
    levels = sum(x.seconds for x in runs[1].records) / runs[1].searches
    assert model.seconds - model.finish == pytest.approx(levels, rel=0.1)


def test_time_after_the_levels_is_fitted_to_the_whole_search():
    counts = counts_of()
    records = records_of(counts, Constants())
    levels = sum(x.seconds for x in records) / 6
    fitted = fit([Run(counts, records, levels + 1e-3)])
    assert fitted.finish * counts.n / counts.devices == pytest.approx(1e-3)
    assert fitted.origin["finish"] == "fitted"
    assert fit([Run(counts, records, levels / 2)]).finish == 0


def test_what_records_do_not_tell_stays_as_it_was():
    counts = counts_of(16, 1)  # parts of one rank: nothing was sent
    records = [
        Record(x.root, x.level, x.checks, x.normals, x.delegates, 0, 0, x.seconds)
        for x in records_of(counts, Constants())
    ]
    fitted = fit(
        [Run(counts, records)], Constants().with_values("given", bandwidth=3.0)
    )
    assert (fitted.bandwidth, fitted.origin["bandwidth"]) == (3.0, "given")
    assert fitted.origin["rate"] == "fitted"
    with pytest.raises(UsageError, match="2 level records cannot be fitted"):
        fit([Run(counts, records[:2])])


def test_habits_are_means_over_the_roots():
    counts = counts_of()
    base = {"normals": 0, "delegates": 0, "checks": dict.fromkeys(SUBGRAPHS, 0)}
    rows = [
        base | {"root": 1, "level": 1, "seconds": 1.0},
        base | {"root": 1, "level": 2, "seconds": 1.0, "delegates": 800},
        base | {"source": 2, "level": 1, "seconds": 1, "normals": 80},
    ]
    rows[0]["checks"] = rows[0]["checks"] | {"nn": 40}
    run = Run(counts, [Record.parse(x) for x in rows])
    one, two = run.habits()
    assert (one.present, two.present) == (1, 0.5)
    assert (one.masks, two.masks) == (0.5, 0)
    assert one.checks["nn"] == pytest.approx(20 / EDGES["nn"])
    assert one.normals == pytest.approx(40 / counts.active)
    assert two.delegates == pytest.approx(400 / counts.delegates)
    assert one.sent is two.sent is None


def test_bytes_that_were_sent_go_before_those_of_the_paper():
    counts = counts_of()
    rows = [
        GOOD | {"level": 1, "bytes_sent": {"masks": 8, "normals": 100}},
        GOOD | {"level": 2, "delegates": 5, "bytes_sent": {"masks": 0, "normals": 300}},
    ]
    one, two = Run(counts, [Record.parse(x) for x in rows]).habits()
    assert (one.masks, two.masks) == (1, 0)
    prediction = predict(counts, Constants(), [one, two])
    sent = [level.normal_bytes for level in prediction.levels]
    assert sent == pytest.approx([100 * 16, 300 * 16])


def test_numbers_of_a_record_are_of_any_kind():
    """Records of before messages were counted know masks and normals alone."""
    sent = {"masks": 8, "normals": 100}
    assert Record.parse(GOOD | {"bytes_sent": sent}).normal_bytes == 100
    sent |= {"questions": 30, "answers": 4, "parents": 1000}
    more = {"messages_sent": dict.fromkeys(sent, 1), "domains": []}
    record = Record.parse(GOOD | {"bytes_sent": sent} | more)
    assert (record.mask_bytes, record.normal_bytes) == (8, 134)


GOOD = {
    "root": 1,
    "level": 1,
    "normals": 1,
    "delegates": 0,
    "checks": dict.fromkeys(SUBGRAPHS, 0),
    "seconds": {"a": 1e-3, "b": 2e-3},
}


def test_seconds_of_a_record():
    assert Record.parse(GOOD).seconds == pytest.approx(3e-3)
    record = GOOD | {"seconds": GOOD["seconds"] | {"total": 2.5e-3}}
    assert Record.parse(record).seconds == 2.5e-3
    assert Record.parse(GOOD | {"seconds": 4}).seconds == 4


@pytest.mark.parametrize(
    "wrong",
    [
        *({"level": x} for x in (0, None, "a", math.inf)),
        *({"checks": x} for x in ({}, 7, {"nn": 0}, dict.fromkeys(SUBGRAPHS, -1))),
        *({"seconds": x} for x in (-1, math.nan, math.inf, {"a": "b"}, [])),
        {"bytes_sent": {"masks": -1}},
        {"bytes_sent": 5},
        {"normals": -1},
    ],
)
def test_other_lines_are_no_records(wrong):
    for values in (GOOD | wrong, [GOOD], None):
        with pytest.raises(
            ValueError, match=r"not a level record|could not convert|invalid literal"
        ):
            Record.parse(values)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_constants_are_above_zero(value):
    with pytest.raises(UsageError, match="allowed: numbers above 0"):
        Constants().with_values("given", rate=value)
    assert Constants().with_values("given", latency=0.0).latency == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 3), st.integers(3, 12))
def test_least_squares_without_negatives(seed, columns, rows):
    """No subset of the columns does better, and no small step does."""
    rng = np.random.default_rng(seed)
    terms, values = rng.uniform(0, 1, (rows, columns)), rng.normal(0.3, 1, rows)
    x = nonnegative(terms, values)
    assert (x >= 0).all()
    rest = terms @ x - values
    slope = terms.T @ rest
    assert (slope >= -1e-7).all()
    assert float(slope @ x) == pytest.approx(0, abs=1e-7)


def test_columns_of_any_size_are_weighed_alike():
    terms = np.array([[1e12, 1e-9, 1], [2e12, 0, 1], [0, 3e-9, 1], [5e11, 5e-9, 1]])
    true = np.array([2e-12, 3e9, 0.5])
    assert nonnegative(terms, terms @ true) == pytest.approx(true, rel=1e-6)
    for some in combinations(range(3), 2):
        part = true.copy()
        part[list(set(range(3)) - set(some))] = 0
        assert nonnegative(terms, terms @ part) == pytest.approx(part, rel=1e-6)
