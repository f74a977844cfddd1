"""The scripts that compare engines, from end to end with kernels run on the CPU."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from device_graphs import HostGraph
from device_parts import LARGE, check, driver_of, joined, part_to_device
from graphs import Tuples, build, kronecker, random_tuples, some_roots
from part_graphs import GRAPHS

from distbfs.benchmark.limit import need_of
from distbfs.device.rates import Rates
from distbfs.errors import ValidationError

SCRIPTS = Path(__file__).parents[3] / "scripts"
NAMES = ("figures", "engine_runs", "bench_engines", "bench_gpu")
WAYS = (
    *("xbfs/fast", "xbfs/fast/push", "xbfs-paper", "bfs4k/auto", "bfs4k/auto/push"),
    *("bfs4k/claim/push", "bfs4k/hash/push"),
    *("layer/hybrid", "layer/push", "frontier/hybrid", "frontier/push", "auto"),
)


@pytest.fixture
def scripts(device, monkeypatch):
    """The scripts on the import path, one small graph in the place of all."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    figures = importlib.import_module("figures")
    runs = importlib.import_module("engine_runs")
    made = HostGraph(kronecker(7))
    valid = SimpleNamespace(valid=True, nedge=900, errors=[])
    monkeypatch.setattr(figures, "built", lambda source: made.graph)
    monkeypatch.setattr(figures, "provenance", lambda *_, **__: {"commit": "x"})
    ids = [int(made.vertices[0]), int(made.vertices[-1])]
    monkeypatch.setattr(figures, "roots_of", lambda *_: (ids, 0))
    monkeypatch.setattr(runs, "made_once", lambda source: source)
    monkeypatch.setattr(runs, "validate_on_device", lambda *_: valid)
    yield SimpleNamespace(valid=valid, made=made, runs=runs)
    for name in NAMES:
        sys.modules.pop(name, None)


def run(name, folder, monkeypatch, *words):
    module = importlib.import_module(name)
    line = [f"{name}.py", "--out", str(folder), "--small", "--seconds", "0", *words]
    monkeypatch.setattr(sys, "argv", line)
    module.main()
    return json.loads((folder / f"{name}.json").read_text()), module


def test_bench_engines(scripts, tmp_path, monkeypatch, capsys):
    words = ("--graphs", "kron20", "--ways", *WAYS)
    values, module = run("bench_engines", tmp_path, monkeypatch, *words)
    [row] = values["rows"]
    assert set(row["engines"]) == set(module.WAYS) == set(WAYS)
    assert all(x["median_seconds"] > 0 for x in row["engines"].values())
    near = row["reach"]
    assert near["bfs4k_over_push"] > 0
    assert near["auto_over_best"] > 0
    assert near["best"] in module.BEST
    counts = row["repeats"]
    assert counts["bfs4k/claim"]["in_frontier"] == 0
    assert counts["bfs4k/claim"]["frontier"] > 100
    queued = counts["bfs4k/hash"]
    assert near["repeats_in_frontier"] == queued["in_frontier"] / queued["frontier"]
    assert 0 < queued["in_frontier"] <= queued["repeats_missed"]
    assert "bfs4k / push" in capsys.readouterr().out


def test_what_misses_a_goal_is_named(scripts):
    module = importlib.import_module("bench_engines")
    times = {
        "xbfs/fast": 1.0,
        "xbfs/fast/push": 2.0,
        "bfs4k/auto": 3.2,
        "bfs4k/auto/push": 3.5,
        "layer/push": 3.0,
        "auto": 1.2,
    }
    told = {name: {"median_seconds": x} for name, x in times.items()}
    counted = {"bfs4k/hash": {"in_frontier_share": 0.01}}
    near = module.reach(told, counted)
    assert near["bfs4k_over_push"] == 1.75
    assert near["auto_over_best"] == 1.2
    missed = module.verdict(
        [{"graph": "a", "reach": near}, {"graph": "b", "reach": {}}]
    )
    assert all(graphs == ["a"] for graphs in missed.values())


def test_wrong_searches_end_the_script(scripts, tmp_path, monkeypatch):
    scripts.valid.valid, scripts.valid.errors = False, ["rule 3"]
    words = ("--graphs", "kron20", "--ways", "xbfs/fast")
    with pytest.raises(ValidationError, match=r"xbfs/fast, root \d+: rule 3"):
        run("bench_engines", tmp_path, monkeypatch, *words)
    assert not list(tmp_path.iterdir())


def test_limits_of_pruned_searches(scripts, monkeypatch):
    """By bench_gpu: of engine xbfs without the vertices of trees, else with them."""
    bench = importlib.import_module("bench_gpu")
    monkeypatch.setattr(bench, "device_tuples", lambda *_: None)
    made = HostGraph(random_tuples(4000, 6000, 5))
    root = int(made.vertices[0])
    reached = made.source.distances(root) >= 0
    hung = int((reached & ~made.searched()).sum())
    assert hung > 300
    row = object.__new__(bench.Row)
    row.graph, row.roots = made.graph, [root]
    row.rates = Rates("cuda", copy=1e9, bits=4000, tests=1e6)
    row.reached = {(False, root): int(reached.sum())}
    kinds = (bench.FAST, bench.IDS), (bench.PAPER, bench.IDS)
    row.variants = [bench.prepared(made.graph, *kind) for kind in kinds]
    row.count()
    checks = min(variant.checks[0] for variant in row.variants)
    for variant, pruned, width in zip(row.variants, (hung, 0), (5, 8), strict=True):
        need = need_of(
            m=made.m,
            checks=checks,
            reached=int(reached.sum()),
            result_bytes=width * 4000,
            pruned=pruned,
        )
        limit = row.limit(variant)
        assert variant.pruned == [pruned]
        assert (limit["bytes"], limit["tests"]) == (need.bytes, need.tests)


def test_roots_that_reach_far_along_arcs(scripts, monkeypatch):
    """By bench_gpu --directed, whose ratio is of searches of many vertices."""
    bench = importlib.import_module("bench_gpu")
    u = [*range(9), 20, 21]
    arcs = Tuples(30, u, [*range(1, 10), 21, 22])
    graph = bench.build(arcs, directed=True)
    variant = bench.prepared(graph, bench.ARCS, bench.IDS)
    assert bench.far_reaching(variant, [0, 4, 5, 6, 20]) == [0, 4, 5]


def test_pairs_from_both_ends(scripts, monkeypatch):
    """By bench_gpu --pairs, which refuses a level that differs."""
    bench = importlib.import_module("bench_gpu")
    made = HostGraph(random_tuples(400, 900, 5))
    root = int(made.vertices[0])
    variant = bench.prepared(made.graph, bench.FAST, bench.IDS)
    measured = bench.of_pairs(variant, root, 5, 1)
    assert measured["pairs"] == 5
    assert measured["path_us"] > 0
    find = variant.search.path
    assert find is not None
    variant.search.path = lambda *_: SimpleNamespace(vertices=[])
    with pytest.raises(ValidationError, match="the path is not shortest"):
        bench.of_pairs(variant, root, 5, 1)
    variant.search.path = find
    start = bench.MeetingSearches.start

    def deeper(*args):
        begun = start(*args)
        taken, levels = begun.finish()
        return SimpleNamespace(finish=lambda: (taken, levels + 1))

    monkeypatch.setattr(bench.MeetingSearches, "start", deeper)
    monkeypatch.setattr(bench.MeetingSearches, "levels_at", lambda *_: None)
    with pytest.raises(ValidationError, match="another level from both ends"):
        bench.of_pairs(variant, root, 5, 1)


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("threshold", [5, LARGE])
@pytest.mark.parametrize("name", ["kronecker", "hub", "random", "grid"])
def test_what_is_sent_is_what_the_model_of_th_counts(
    device, monkeypatch, name, threshold, parts
):
    """Numbers, questions with as many answers, and those for parents, to the last."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    outer = importlib.import_module("threshold_counts").Outer
    for module in ("threshold_counts", "figures"):
        monkeypatch.delitem(sys.modules, module)
    source = GRAPHS[name]
    made, _ = build(source, parts, threshold=threshold)
    driver = driver_of([part_to_device(part) for part in made], engine="xbfs")
    exchange, sent = driver.exchange, []
    start = exchange.start_normals

    def counted(bins):
        pieces = [piece for own in bins for _, piece in own.pieces()]
        a_word = {"questions": 2, "answers": 64}.get(exchange.traffic.numbers)
        if a_word:
            counts = [int(piece[0]) & 0xFFFFFFFF for piece in pieces]
            assert [len(x) for x in pieces] == [1 - (-k // a_word) for k in counts]
            sent.append(sum(counts) / 2)
        else:
            sent.append(sum(map(len, pieces)) - len(pieces))
        start(bins)

    monkeypatch.setattr(exchange, "start_normals", counted)
    for root in some_roots(source, 3):
        sent.clear()
        found = check(driver, source, root)
        levels = joined(found.level, source.n).astype(np.int32)
        _, *counts = outer(made).search(levels)
        assert sum(sent) == sum(counts)
