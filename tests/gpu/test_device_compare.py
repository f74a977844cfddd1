"""``distbfs compare`` with engines of a device, measured rates, and the scripts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from launching import clean_environment

from distbfs.cli import main
from distbfs.device.rates import device_rates
from distbfs.ranks.world import run_guarded

ROOT = Path(__file__).resolve().parents[2]
ENGINES = (
    "xbfs,xbfs-paper,xbfs-paper:frontier=scan-free,balance=static,async=no,"
    "openmp,reference"
)
SCRIPTS = [ROOT / "scripts" / name for name in ("bench_engines.py", "bench_gpu.py")]
PAPERS = ("bfs4k", "cs406", "mclaughlin", "xbfs", "pan")


def distbfs(capsys, *words):
    """Run a command in this process; return what it printed."""
    code = run_guarded(None, lambda: main.run([str(word) for word in words]))
    out, err = capsys.readouterr()
    assert code == 0, err
    return out


@pytest.mark.parametrize(
    "graph", [("kronecker", "-s", 12), ("uniform", "-s", 11), ("road", "-n", 3000)]
)
def test_graphs_of_families(capsys, tmp_path, graph):
    store = tmp_path / "graph"
    distbfs(capsys, "generate", *graph, "-o", store)
    words = ("compare", store, "--engines", ENGINES, "--sources", 5, "--json")
    values = json.loads(distbfs(capsys, *words))
    engines = values["engines"]
    assert len(engines) == 5
    assert values["device"]["driver"]
    assert set(values["rates"]) == {"cuda", "cpu"}
    for engine in engines:
        assert engine["checks"] > 0
        assert engine["over_limit"] > 1
    assert engines[0]["search"]["method"] == "fast"
    assert engines[2]["search"]["strategies"] == {
        "frontier": "scan-free",
        "balance": "static",
        "asynchronous": False,
    }


def test_a_store_of_several_parts(capsys, tmp_path):
    store = tmp_path / "store"
    words = ("generate", "kronecker", "-s", 11, "--parts", 2, "-t", 20, "-o", store)
    distbfs(capsys, *words)
    words = ("compare", store, "--engines", "openmp,xbfs,xbfs-paper", "--baseline")
    table = distbfs(capsys, *words, "xbfs-paper", "--sources", 4)
    assert [line.split()[0] for line in table.splitlines()[1:]] == [
        "openmp",
        "xbfs",
        "xbfs-paper",
    ]


@pytest.mark.solitary
def test_rates():
    small, large = device_rates(1 << 16), device_rates(1 << 31)
    assert small.tests > large.tests > 1e9
    assert 1e11 < large.copy < 1e14
    assert small.link is None
    assert 1e9 < device_rates(1 << 16, link=True).link < large.copy


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_scripts(script, tmp_path):
    words = ["--small", "--roots", "3"]
    if script.stem == "bench_gpu":
        words += ["--directed", "--pairs", "4"]
    done = subprocess.run(
        [sys.executable, script, *words, "--out", tmp_path],
        capture_output=True,
        text=True,
        env=clean_environment(),
        timeout=280,  # of many tests at once on one device
    )
    assert done.returncode == 0, done.stderr
    [path] = tmp_path.glob("*.json")
    values = json.loads(path.read_text())
    assert values["rows"]
    assert values["device"]["device"]
    assert values["command"]


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_papers(paper, tmp_path):
    """Every entry, on small graphs."""
    run = ROOT / "scripts" / "papers" / "run.py"
    words = [paper, "--small", "--roots", "3", "--sources", "32", "--out", tmp_path]
    done = subprocess.run(
        [sys.executable, run, *words],
        capture_output=True,
        text=True,
        env=clean_environment(),
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    values = json.loads((tmp_path / f"paper_{paper}.json").read_text())
    assert values["device"]["device"]
    for entry in values["entries"].values():
        assert entry["verdict"]["reason"]
