"""The script that counts searches beside the model of TH, which needs no device."""

import importlib
import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return what runs the script on a small graph and returns its numbers."""
    monkeypatch.syspath_prepend(str(SCRIPTS))

    def call(*words):
        argv = ["threshold_counts.py", "--small", "--out", tmp_path, *words]
        monkeypatch.setattr(sys, "argv", [str(word) for word in argv])
        module = importlib.import_module("threshold_counts")
        module.figures.main(module.main, device=False)
        return json.loads((tmp_path / "threshold_counts.json").read_text())

    yield call
    for name in ("threshold_counts", "figures"):
        sys.modules.pop(name, None)


@pytest.mark.thorough
def test_it_is_drawn_beside_its_numbers(run, tmp_path):
    pytest.importorskip("matplotlib")
    assert "commit" in run()
    assert (tmp_path / "threshold_counts.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--scales", 30], "scales go from 1 to 22"),
        (["--parts", 1], "parts go from 2, roots from 1"),
        (["--families", "none"], "unknown family 'none'"),
    ],
)
def test_refused_in_one_line(run, capsys, words, text):
    with pytest.raises(SystemExit) as leave:
        run(*words)
    assert leave.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("threshold_counts.py: ")
    assert said.count("\n") == 1
    assert text in said
