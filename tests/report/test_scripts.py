"""Figure scripts without a device: what they make of searches, and what they draw."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from distbfs.device import cuda
from distbfs.errors import DeviceMissing

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
OVER_GRAPHS = ["09", "10", "11", "12", "13", "14", "15"]


def has_device():
    try:
        cuda.cupy()
    except DeviceMissing:
        return False
    return True


class FakeSearch:
    """Three levels: a push, a pull that finds half of the next level, a push."""

    def __init__(self, graph, **chosen):
        self.asynchronous = chosen.get("asynchronous", True)
        self.slow = chosen.get("balance") == "static"

    def search(self, number, records=False):
        work = np.zeros((32, 2), dtype=np.int64)
        work[3] = (4, 10)
        early = 50 if self.asynchronous else 0
        rows = [
            ("push-scan-free", 10, 5, 0, 1e-5),
            ("pull", 400 - early, 100, early, 4e-5),
            ("push-no-queue", 80, 100 - early, 0, 2e-5),
        ]
        names = ("direction", "checks", "found", "found_early", "seconds")
        log = [dict(zip(names, row, strict=True)) for row in rows]
        seconds = 2e-4 if self.slow else 1e-4
        return SimpleNamespace(
            seconds=seconds, work=work, records=log if records else []
        )


@pytest.fixture
def scripts(monkeypatch):
    """The folder of scripts on the import path, a graph without a device."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    figures = importlib.import_module("figures")
    graph = SimpleNamespace(n=9, active=8, m=30, source={})
    monkeypatch.setattr(figures, "graphs", lambda args: [("A", graph), ("B", graph)])
    monkeypatch.setattr(figures, "roots_of", lambda *_: ([3, 4], 0))
    monkeypatch.setattr(figures, "numbers_of", lambda *_: [0, 1])
    monkeypatch.setattr(figures, "provenance", lambda *_, **__: {"commit": "x"})
    yield figures
    for name in [n for n in sys.modules if n == "figures" or n.startswith("xbfs_fig")]:
        del sys.modules[name]


def run(figure, folder, monkeypatch):
    """Run the script of a figure on the fake searches; return its rows."""
    module = importlib.import_module(f"xbfs_fig{figure}")
    monkeypatch.setattr(module, "PaperSearch", FakeSearch)
    monkeypatch.setattr(sys, "argv", [f"xbfs_fig{figure}.py", "--out", str(folder)])
    module.main()
    values = json.loads((folder / f"xbfs_fig{figure}.json").read_text())
    assert values["commit"] == "x"
    assert [row["graph"] for row in values["rows"]] == ["A", "B"]
    return values["rows"][0]


@pytest.mark.parametrize("figure", OVER_GRAPHS)
def test_a_figure_is_drawn_beside_its_numbers(scripts, figure, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    run(figure, tmp_path, monkeypatch)
    head = (tmp_path / f"xbfs_fig{figure}.png").read_bytes()[:4]
    assert head == b"\x89PNG"


def test_what_the_figures_say(scripts, tmp_path, monkeypatch):
    row = run("09", tmp_path, monkeypatch)
    assert (row["degree"], row["mean_checks"]) == ([8], [2.5])
    assert run("10", tmp_path, monkeypatch)["share"] == 0.5
    assert run("11", tmp_path, monkeypatch)["speedup"]["Ad+WB+Async"] == 2
    row = run("12", tmp_path, monkeypatch)
    assert row["pull_share"]["baseline"] == pytest.approx(4 / 7)
    row = run("13", tmp_path, monkeypatch)
    assert row["share"] == pytest.approx(
        {
            "push-scan-free": 1 / 7,
            "push-single-scan": 0,
            "push-no-queue": 2 / 7,
            "pull": 4 / 7,
        }
    )
    assert run("14", tmp_path, monkeypatch)["speedup"]["donation"] == 2
    row = run("15", tmp_path, monkeypatch)
    assert row["reduction"] == pytest.approx(1 / 8)
    assert row["all_checks"] == {"synchronous": 490, "asynchronous": 440}


@pytest.mark.skipif(has_device(), reason="there is a CUDA device")
@pytest.mark.parametrize(
    "script",
    [
        *("xbfs_fig05.py", "xbfs_table2.py", "bench_gpu.py", "bench_devices.py"),
        *("bench_multisearch_gpu.py", "multi_fig01.py", "multi_tables.py"),
    ],
)
def test_without_a_device(script, tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPTS / script, "--out", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{script}: no CUDA")
    assert not list(tmp_path.iterdir())


def test_networkx_benchmark_counts_what_it_says():
    done = subprocess.run(
        [sys.executable, SCRIPTS / "bench_networkx.py", "--edges", "300", "--json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    rows = json.loads(done.stdout)
    assert {row["edges"] for row in rows} == {300}
    assert "bfs_edges" in {row["function"] for row in rows}
    for row in rows:
        ratio = row["networkx_seconds"] / row["cached_seconds"]
        assert row["speedup_cached"] == pytest.approx(ratio)


def test_multisearch_benchmark_counts_what_it_says():
    words = [
        "--scale",
        "8",
        "--sources",
        "20",
        "--edges",
        "300",
        "--repeats",
        "1",
        "--json",
    ]
    done = subprocess.run(
        [sys.executable, SCRIPTS / "bench_multisearch.py", *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    report = json.loads(done.stdout)
    levels, between = report["levels"], report["betweenness"]
    ratio = levels["single_seconds"] / levels["bits_int8_seconds"]
    assert levels["speedup_int8"] == pytest.approx(ratio)
    ratio = between["networkx_seconds_of_all"] / between["seconds"]
    assert between["speedup"] == pytest.approx(ratio)
    assert between["networkx_sources"] == 10
