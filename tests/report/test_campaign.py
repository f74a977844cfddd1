"""The campaign: a minute of it passes, and it finds every kind of fault."""

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FAULTS = Path(__file__).with_name("campaign_faults")
REPEATED = ("edge", "count", "refusal")  # each by a launch with the fault and without
SEEDED = ("library", "refusals")  # where few trials come upon the fault
SEEDS = {"reached": "1000004", "refusal": "1000016"}
NO_CPP = not (shutil.which("g++") or shutil.which("c++"))
NO_MPI = importlib.util.find_spec("mpi4py") is None


def campaign(*words, fault=""):
    """Run the script; return how it ended."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    paths = [str(FAULTS), *paths] if fault else paths
    return subprocess.run(
        [*words] if words[0] == "mpiexec" else [sys.executable, *words],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(p for p in paths if p),
            "CAMPAIGN_FAULT": fault,
            "CUDA_VISIBLE_DEVICES": "-1",
            "OMP_NUM_THREADS": "2",
        },
        capture_output=True,
        text=True,
        timeout=250,
    )


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed", "trials"),
    [
        ("library", 2, 100),
        ("stores", 8, 12),
        ("stores", 16, 12),
        ("sessions", 1, 25),
        ("multisearch", 1, 35),
        ("networkx", 4, 30),
        ("networkx", 6, 30),
        ("refusals", 2, 10),
        ("refusals", 15, 10),
        ("turns", 3, 15),
        ("service", 1, 3),
        pytest.param(
            *("emulated", 1, 8), marks=pytest.mark.skipif(NO_CPP, reason="needs C++")
        ),
        pytest.param(
            *("damage", 1, 3), marks=pytest.mark.skipif(NO_CPP, reason="needs C++")
        ),
        pytest.param(
            *("ranks", 2, 1), marks=pytest.mark.skipif(NO_MPI, reason="needs mpi4py")
        ),
    ],
)
def test_a_minute_of_it(kind, seed, trials, tmp_path):
    words = ["--only", kind, "--seed", seed, "--trials", trials]
    words += ["--out", tmp_path / "out", "--json", tmp_path / "report"]
    done = campaign("scripts/campaign.py", *map(str, words))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    report = json.loads((tmp_path / "report").read_text())
    counts = report["kinds"][kind]
    assert (counts["trials"], counts["wrong"], report["failures"]) == (trials, 0, [])
    assert counts["checked"] > trials
    assert not (tmp_path / "out").exists()


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "kind", "rule"),
    [
        *(
            (rule, "library", rule)
            for rule in ("form", "level", "source", "reached", "step", "edge")
        ),
        *(("lost", "library", "level"), ("count", "stores", "count")),
        *(("limit", "sessions", "level"), ("target", "sessions", "level")),
        *(("kept", "sessions", "level"), ("turn", "turns", ANY)),
        *(("error", "library", "error"), ("crash", "library", "crash")),
        *(("time", "library", "time"), ("export", "stores", "export")),
        *(("order", "networkx", "value"), ("refusal", "refusals", "refusal")),
        ("betweenness", "multisearch", "betweenness"),
        pytest.param(
            *("digest", "damage", "damage"),
            marks=pytest.mark.skipif(NO_CPP, reason="needs C++"),
        ),
        pytest.param(
            *("count", "ranks", "count"),
            marks=pytest.mark.skipif(NO_MPI, reason="needs mpi4py"),
        ),
    ],
)
def test_a_fault_is_found_and_repeated(fault, kind, rule, tmp_path):
    """And what repeats it ends well where the fault is not."""
    words = ["--only", kind, "--out", tmp_path / "out", "--json", tmp_path / "report"]
    words += ["--stop", "--longest", "200" if fault != "time" else "20"]
    words += ["--trial", SEEDS.get(fault, "1000009")] if kind in SEEDED else []
    words += ["--trials", "60", "--seed", "4" if kind == "ranks" else "1"]  # two ranks
    done = campaign("scripts/campaign.py", *map(str, words), fault=fault)
    assert done.returncode == 1, done.stdout + done.stderr
    [failure] = json.loads((tmp_path / "report").read_text())["failures"]
    assert failure["rule"] == rule  # threads without turns may break any
    assert f"repeat: {failure['command']}" in done.stdout
    kept = tmp_path / "out" / f"{kind}-{failure['seed']}"
    assert failure["text"] in (kept / "failure.txt").read_text()
    head, *tuples = (kept / "graph.txt").read_text().splitlines()
    assert f"{len(tuples)} tuples" in head
    if fault in REPEATED:
        again = shlex.split(failure["command"].removeprefix("python "))
        again += ["--out", str(tmp_path / "again")]
        assert campaign(*again, fault=fault).returncode == 1
        assert campaign(*again).returncode == 0


@pytest.fixture
def checker(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield importlib.import_module("trials.checker")
    for name in [n for n in sys.modules if n.split(".")[0] == "trials"]:
        del sys.modules[name]


def test_rules_of_the_checker(checker):
    """A path 0-1-2-3 with the edge 0-4-3, a loop, a repeat, and vertex 5 alone."""
    pairs = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 3), (1, 1), (2, 1)]
    truth = checker.Truth(6, pairs)
    level = np.array([0, 1, 2, 2, 1, -1], dtype=np.int32)
    parent = np.array([0, 0, 1, 4, 0, -1])
    checker.check_search(truth, 0, level, parent)
    checker.check_counts(truth, 0, {"reached": 5, "depth": 2, "nedge": 7})
    cut = np.where(level > 1, -1, level)
    checker.check_search(truth, 0, cut, np.where(cut < 0, -1, parent), limit=1)
    checker.check_search(truth, 0, cut, None, parents=False, targets=[1, 4])

    def rule(level=level, parent=parent, **options):
        with pytest.raises(checker.Wrong) as wrong:
            checker.check_search(truth, 0, level, parent, **options)
        return wrong.value.rule

    def put(array, at, value):
        copy = array.copy()
        copy[at] = value
        return copy

    assert rule(level.astype(np.int64)) == rule(level[1:]) == "form"
    assert rule(parent=None) == rule(parent=parent.astype(np.int32)) == "form"
    assert rule(put(level, 3, 3)) == rule(put(level, 5, 0)) == rule(limit=1) == "level"
    assert rule(parent=put(parent, 0, 1)) == "source"
    assert (
        rule(parent=put(parent, 5, 0)) == rule(parent=put(parent, 3, -1)) == "reached"
    )
    assert (
        rule(parent=put(parent, 2, 6)) == rule(parent=put(parent, 2, -2)) == "reached"
    )
    assert rule(parent=put(parent, 3, 2)) == rule(parent=put(parent, 1, 1)) == "step"
    assert rule(parent=put(parent, 3, 1)) == rule(parent=put(parent, 2, 4)) == "edge"
    for counts in ({"reached": 6}, {"depth": 3}, {"nedge": 6}):
        with pytest.raises(checker.Wrong, match="count"):
            checker.check_counts(truth, 0, counts)
    one_way = checker.Truth(6, pairs, directed=True)
    assert one_way.levels(3).tolist() == [-1, -1, -1, 0, -1, -1]
    assert (one_way.nedge(3), one_way.nedge(1)) == (0, 4)
