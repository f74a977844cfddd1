"""Plots from result files."""

import json
import sys

import pytest

from distbfs.errors import UsageError
from distbfs.report import plots

VALUES = {
    "graph": {"title": "kronecker 20", "n": 1 << 20, "m": 31_000_000},
    "baseline": "openmp",
    "engines": [
        {"engine": "openmp", "harmonic_mean_GTEPS": 2.0, "speedup": 1.0},
        {"engine": "reference", "harmonic_mean_GTEPS": 0.01, "speedup": 0.005},
    ],
}
HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("kind", plots.KINDS)
def test_bars_from_a_result_file(kind, tmp_path):
    pytest.importorskip("matplotlib")
    windows = "matplotlib.pyplot" in sys.modules  # other libraries may ask for it
    (tmp_path / "result.json").write_text(json.dumps(VALUES))
    path = tmp_path / f"bars{kind}"
    plots.check_target(path)
    plots.draw_comparison(json.loads((tmp_path / "result.json").read_text()), path)
    assert path.read_bytes().startswith(HEADS[kind])
    assert ("matplotlib.pyplot" in sys.modules) == windows


def test_a_file_that_cannot_be_written(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "bars.png").mkdir()
    with pytest.raises(UsageError, match=r"bars\.png is a folder; give the name"):
        plots.draw_comparison(VALUES, tmp_path / "bars.png")


def test_matplotlib_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"pip install 'distbfs\[plot\]'") as caught:
        plots.check_target(tmp_path / "x.png")
    assert caught.value.exit_code == 2
