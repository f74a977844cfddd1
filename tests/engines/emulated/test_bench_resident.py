"""The measurement of resident searches runs, on a device that is the CPU."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from graphs import kronecker

from distbfs.device import cuda
from distbfs.engines.cuda.pan import search as part
from distbfs.errors import UsageError
from distbfs.search import choose as choosing

sys.path.append(str(Path(__file__).parents[3] / "scripts"))

import bench_resident


@pytest.fixture(autouse=True)
def two_devices(device, monkeypatch):
    """Say that there are two devices that see each other."""
    monkeypatch.setattr(part, "BLOCKS", dict.fromkeys(part.BLOCKS, 1))
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0, 0])
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    told = {"device": "a CPU", "memory_bytes": 1 << 30, "driver": 13000, "cupy": "0"}
    monkeypatch.setattr(cuda, "describe", lambda: told)
    monkeypatch.setattr(bench_resident, "provenance", lambda *_, **__: {})
    runtime = cuda.cupy().cuda.runtime
    monkeypatch.setattr(runtime, "getDeviceCount", lambda: 2, raising=False)
    held = kronecker(8)
    monkeypatch.setattr(bench_resident, "Kronecker", lambda *_: held)


def test_rows_of_all_modes(tmp_path, capsys):
    out = tmp_path / "rows.json"
    words = ["--cells", "2:8:1", "1:8", "4:8", "--roots", "4", "--validate", "1"]
    assert bench_resident.main([*words, "--out", str(out)]) == 0
    told = json.loads(out.read_text())
    assert told["skipped"] == ["4:8"]
    assert [(x["devices"], x["mode"]) for x in told["rows"]] == [
        *((2, x) for x in bench_resident.MODES[:2]),
        *((1, x) for x in bench_resident.MODES[2:]),
        *((1, x) for x in bench_resident.MODES[2:]),
    ]
    assert all(x["validated"] == 1 and x["gteps"] > 0 for x in told["rows"])
    assert "skipped: 4:8" in capsys.readouterr().out


def test_levels_and_counts(capsys, monkeypatch):
    words = ["--cells", "1:8", "--roots", "2", "--validate", "2"]
    words += ["--modes", "fast", bench_resident.COUNTS]
    assert bench_resident.main(words) == 0
    assert "8: levels and counts at " in capsys.readouterr().out
    wrong = bench_resident.host_session

    class Wrong:
        def __init__(self, cell):
            self.session = wrong(cell)

        def search(self, root):
            return self.session.search(root, depth_limit=1)

    monkeypatch.setattr(bench_resident, "host_session", Wrong)
    assert bench_resident.main(words) == 1
    assert "counts differ" in capsys.readouterr().err


@pytest.mark.thorough
def test_half_of_the_columns(capsys, monkeypatch):
    monkeypatch.setattr(cuda, "free_bytes", lambda: 1 << 32)
    words = ["--cells", "1:uniform-8", "--roots", "2", "--validate", "2"]
    words += ["--modes", "fast", bench_resident.HALF]
    assert bench_resident.main(words) == 0
    assert "half of the columns held back at " in capsys.readouterr().out
    with pytest.raises(UsageError, match="graph is 'mesh'; allowed: SCALE, road"):
        bench_resident.main(["--cells", "1:mesh"])


def test_half_of_the_edges(capsys, monkeypatch):
    words = ["--cells", "1:8", "--roots", "2", "--validate", "2"]
    words += ["--modes", "fast", bench_resident.MASKED, bench_resident.THIN]
    assert bench_resident.main(words) == 0
    said = capsys.readouterr().out
    assert "8: half of the edges at " in said
    assert "of a graph with as many tuples" in said
    monkeypatch.setattr(bench_resident.Cell, "mask", other_masks)
    assert bench_resident.main(words) == 1
    assert "levels differ" in capsys.readouterr().err


def other_masks(cell, sessions, seed):
    """Let each session see other edges."""
    for k, session in enumerate(sessions):
        edges = np.arange(session.edges // 2) % 2 == k
        session.see(session.view(edges=edges))
