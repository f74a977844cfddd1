"""The measurement of parts runs with engine pan, on devices that are the CPU."""

import importlib
import json
import sys
from pathlib import Path

import pytest
from graphs import kronecker

from distbfs.device import cuda
from distbfs.engines.cuda.pan import search as part
from distbfs.search import choose as choosing
from distbfs.search import opening

SCRIPTS = Path(__file__).parents[3] / "scripts"
SCALE = 7


@pytest.fixture
def bench(device, monkeypatch):
    """The script in this process, with two devices."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    module = importlib.import_module("bench_parts")
    monkeypatch.setattr(part, "BLOCKS", dict.fromkeys(part.BLOCKS, 1))
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0, 0])
    monkeypatch.setattr(module, "provenance", lambda *_, **__: {})
    monkeypatch.setattr(module, "Kronecker", lambda *_: kronecker(SCALE))
    about = {"device": "a CPU", "memory_bytes": 1 << 30, "driver": 13000, "cupy": "0"}
    monkeypatch.setattr(cuda, "describe", lambda: about)
    monkeypatch.setattr(cuda, "uuid", lambda: "GPU-0")
    yield module
    for name in ("bench_parts", "pan_runs", "pan_figures"):
        sys.modules.pop(name, None)


def test_variants_share_the_parts(bench, tmp_path, monkeypatch):
    built = []
    hold = opening.hold_device_parts
    monkeypatch.setattr(
        opening, "hold_device_parts", lambda *a: built.append(0) or hold(*a)
    )
    words = ["--scales", SCALE, "--thresholds", 4, 30, "--per-rank", 2, "--roots", 3]
    words += ["--variants", "default", "push", "U", "--records", 1, "--out", tmp_path]
    monkeypatch.setattr(sys, "argv", ["bench_parts.py", *map(str, words)])
    assert bench.work() == 0
    rows = json.loads((tmp_path / "parts_pan_1.json").read_text())["rows"]
    assert len(built) == 2, "once for each threshold"
    assert [row["threshold"] for row in rows] == [4] * 3 + [30] * 3
    for row in rows:
        assert (row["engine"], row["exchange"], row["parts"]) == ("pan", "solo", 2)
        assert (row["searches"], row["valid"]) == (3, 3)
        [search] = row["levels"]
        assert len(search["seconds"]) == len(search["records"]) + 2
        assert {x for y in search["seconds"] for x in y if y[x] > 0} >= {"nn", "queues"}
