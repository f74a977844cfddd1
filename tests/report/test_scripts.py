"""Scripts without a device: what they refuse, and what they count."""

import json
import subprocess
from pathlib import Path

import pytest
import warm
from launching import clean_environment

from distbfs.device import cuda
from distbfs.errors import DeviceMissing

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"


def has_device():
    try:
        cuda.cupy()
    except DeviceMissing:
        return False
    return True


@pytest.mark.skipif(has_device(), reason="there is a CUDA device")
@pytest.mark.parametrize(
    "script",
    [
        *("bench_engines.py", "bench_gpu.py", "bench_devices.py"),
        *("bench_multisearch_gpu.py", "bench_searches_devices.py"),
    ],
)
def test_without_a_device(script, tmp_path):
    done = subprocess.run(
        [warm.folder() / "python", SCRIPTS / script, "--out", tmp_path],
        capture_output=True,
        text=True,
        env=clean_environment(),
        timeout=120,
    )
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{script}: no CUDA")
    assert not list(tmp_path.iterdir())


def test_networkx_benchmark_counts_what_it_says():
    words = ("--edges", "300", "--json")
    done = subprocess.run(
        [warm.folder() / "python", SCRIPTS / "bench_networkx.py", *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=clean_environment(),
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
        [warm.folder() / "python", SCRIPTS / "bench_multisearch.py", *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=clean_environment(),
    )
    report = json.loads(done.stdout)
    levels, between = report["levels"], report["betweenness"]
    ratio = levels["single_seconds"] / levels["bits_int8_seconds"]
    assert levels["speedup_int8"] == pytest.approx(ratio)
    ratio = between["networkx_seconds_of_all"] / between["seconds"]
    assert between["speedup"] == pytest.approx(ratio)
    assert between["networkx_sources"] == 10
