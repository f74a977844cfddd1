"""Cells of ``bench_devices.py`` by the command itself, on devices that are the CPU."""

import contextlib
import importlib
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from distbfs.benchmark import device_validation
from distbfs.cli import main
from distbfs.device import cuda
from distbfs.ranks.world import run_guarded
from distbfs.search import choose as choosing
from distbfs.validation.cuda import validate_on_devices

SCRIPTS = Path(__file__).parents[3] / "scripts"
SCALE = 7


@pytest.fixture
def bench(device, monkeypatch):
    """The script, whose commands run in this process with two devices."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    module = importlib.import_module("bench_devices")
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0, 0])
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    monkeypatch.setattr(cuda, "uuids", lambda devices: ["GPU-0"] * len(devices))
    told = {"device": "a CPU", "memory_bytes": 1 << 30, "driver": 13000, "cupy": "0"}
    monkeypatch.setattr(cuda, "describe", lambda: told)
    monkeypatch.setattr(module, "devices_here", lambda: {"count": 2, **told})
    monkeypatch.setattr(module, "execute", lambda words, _: in_process(module, words))
    yield module
    for name in ("bench_devices", "device_cells", "device_report", "figures"):
        sys.modules.pop(name, None)


def in_process(module, words):
    """What ``execute`` returns, of a command of one rank."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_guarded(None, lambda: main.run(words[len(module.DISTBFS) :]))
    return module.Ended(code, out.getvalue(), err.getvalue(), 1.0, late=False)


def test_ways_of_two_devices(bench, tmp_path):
    words = ["--weak", str(SCALE), "--strong", str(SCALE), "--top", "1"]
    words += ["--scales", str(SCALE), "--roots", "3", "--validate", "2"]
    words += ["--out", str(tmp_path)]
    args = bench.parse(words)
    grid, device = bench.grid_of(args)
    assert grid.devices == 2
    run = bench.Bench(args, grid, device)
    jobs = bench.chosen(bench.cells.plan(grid), ("scales",))
    ids = [cell for cell in jobs if cell.ranks == 1]
    assert [cell.internal for cell in ids] == [False, True]
    for cell in ids:
        row = run.cell(cell, (), validate=2)
        assert (row["state"], row["mode"]) == ("done", cell.method), row["said"]
        assert (row["roots"], row["validated"]) == (3, 2)
        kept = "internal" if cell.internal else "input"
        assert (row["result"], row["ids"]) == ("levels and parents", kept)
    # one process with both: its domains need no exchange between ranks
    domains = bench.cells.Cell(2, 1, SCALE, "host", ("domains",), domain=1)
    row = run.cell(domains, (), validate=2)
    assert (row["state"], row["mode"]) == ("done", "stepwise"), row["said"]
    assert (row["exchange"], row["validated"]) == ("host", 2)
    assert row["sent"]["levels"] > 2
    assert row["sent"]["us_a_level"]["work"] > 0
    run.write()
    report = json.loads((tmp_path / "bench_devices.json").read_text())
    assert [x["exchange"] for x in report["rows"]] == ["none", "none", "host"]
    assert run.wrong() == []


def test_a_wrong_result_is_told(bench, tmp_path, monkeypatch):
    def harmed(world, seats, *known, **options):
        level = seats[0].shards[0].level
        level[np.flatnonzero(level.get() == 2)[0]] = 9
        return validate_on_devices(world, seats, *known, **options)

    monkeypatch.setattr(device_validation, "validate_on_devices", harmed)
    args = bench.parse(["--weak", str(SCALE), "--roots", "2", "--out", str(tmp_path)])
    run = bench.Bench(args, bench.cells.Grid(2, SCALE, 9, 9, 2), {"count": 2})
    row = run.cell(run.grid.cell(2, SCALE + 1, "weak"), (), validate=1)
    assert row["state"] == "failed"
    said = "no results printed for invalid run: 1 of 2 searches are wrong"
    assert row["said"].startswith(said)
    assert run.wrong()[0].startswith(f"1x1x2, scale 8, resident: {said}")
