"""The figure scripts that need no device: what they count, predict and refuse."""

import importlib
import json
import sys
from pathlib import Path

import pytest
from commands import here
from graphs import build, kronecker, random_tuples

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
FIGURES = [
    *("pan_fig05", "pan_fig07", "pan_fig12", "pan_model", "pan_table1"),
    "threshold_counts",
]
SPLITS = [(1, None), (1, 9), (2, 20), (3, 0), (4, None)]


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return what runs a script on a small graph and returns its numbers."""
    monkeypatch.syspath_prepend(str(SCRIPTS))

    def call(name, *words):
        argv = [f"{name}.py", "--small", "--out", str(tmp_path), *map(str, words)]
        monkeypatch.setattr(sys, "argv", argv)
        module = importlib.import_module(name)
        sys.modules["pan_figures"].main(module.main)
        return json.loads((tmp_path / f"{name}.json").read_text())

    yield call
    for name in [*FIGURES, "pan_figures"]:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_beside_its_numbers(run, name, tmp_path):
    pytest.importorskip("matplotlib")
    assert "commit" in run(name)
    assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(("parts", "threshold"), SPLITS)
@pytest.mark.parametrize("source", [kronecker(11), random_tuples(700, 2000, seed=3)])
def test_edges_are_counted_by_their_ends(monkeypatch, source, parts, threshold):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    pan = importlib.import_module("pan_figures")
    made, _ = build(source, parts, threshold=threshold)
    ends = pan.count_ends(lambda: made)
    assert ends.low.sum() == ends.high.sum() == source.matrix.nnz
    for other in (0, 3, 20, 1 << 30):
        _, summary = build(source, 2, threshold=other)
        edges, m = summary.edges, summary.m
        assert ends.shares(other) == pytest.approx(
            {
                "delegates": summary.delegates / summary.n,
                "nn": edges["nn"] / m,
                "nd_dn": (edges["nd"] + edges["dn"]) / m,
                "dd": edges["dd"] / m,
            }
        )
    del sys.modules["pan_figures"]


def test_what_is_expected_is_near_what_is_counted(run):
    results = run("pan_fig05")
    assert max(results["largest_difference"].values()) < 0.02
    assert results["expected"]["scale"] == 30
    assert results["expected"]["largest_threshold_with_nn_of_10_percent"] > 512


def test_suggested_thresholds(run):
    results = run("pan_fig07")
    growth = results["growth_of_TH_a_scale"]["wide"]
    assert 1.2 < growth < 1.8  # the paper: about 1.41
    wide = {row["scale"]: row for row in results["expected"]["wide"]}
    assert all(row["delegates"] <= row["limit"] for row in wide.values())
    assert wide[33]["nn"] == pytest.approx(0.063, abs=0.01)
    assert wide[33]["delegates"] < 0.0175
    for row, real in zip(results["expected"]["low"], results["counted"], strict=True):
        assert row["threshold"] == pytest.approx(real["threshold"], rel=0.1)
        assert row["nn"] == pytest.approx(real["nn"], rel=0.25)


def test_a_store_of_your_own(run, tmp_path):
    here("generate", "uniform", "--vertices", 500, "-o", tmp_path / "g", "--parts", 3)
    stored = run("pan_fig12", tmp_path / "g")["stored"]
    assert stored["share"]["nn"] == pytest.approx(stored["nn"])
    assert stored["share"]["delegates"] == pytest.approx(stored["delegates"])


def test_table_1_is_the_stored_bytes_but_for_closing_offsets(run):
    for row in run("pan_table1")["rows"]:
        assert row["subgraphs"] - row["formula"] == 4 * 4 * row["parts"]
        assert sum(row["formula_by_term"].values()) == row["formula"]
        assert row["every_array"] > row["subgraphs"]


def test_measured_points_stand_on_the_model(run, tmp_path):
    words = ("--scale", 10, "--parts", 2, "--roots", 2, "--threads", 1)
    records = tmp_path / "levels.jsonl"
    report = here("graph500", *words, "--records", records, "--json").values
    (tmp_path / "one.json").write_text(json.dumps(report))
    row = {"devices": 4, "scale": 28, "GTEPS": 900, "more": 1}
    (tmp_path / "two.json").write_text(json.dumps({"rows": [row]}))
    fitted = ("--records", records, "--report", tmp_path / "one.json")
    points = ("--measured", tmp_path / "one.json", tmp_path / "two.json")
    results = run("pan_model", *points, *fitted, "--bandwidth", 1e9, 2e9)
    assert [x["devices"] for x in results["measured"]] == [2, 4]
    slow, fast = results["lines"]
    assert slow["constants"]["rate"]["origin"] == "fitted"
    for a, b in zip(slow["rows"][1:], fast["rows"][1:], strict=True):
        assert a["GTEPS"] < b["GTEPS"]
        assert b["scale"] == 26 + b["devices"].bit_length() - 1


@pytest.mark.parametrize(
    ("name", "words", "text"),
    [
        ("pan_fig05", ["--expected-scale", 60], "scales go from 1 to 22"),
        ("pan_fig07", ["--last", 60], "the last scale goes from 28 to 42"),
        ("pan_fig12", ["none"], "none"),
        ("threshold_counts", ["--scales", 30], "scales go from 1 to 22"),
        ("threshold_counts", ["--parts", 1], "parts go from 2, roots from 1"),
        ("threshold_counts", ["--families", "none"], "unknown family 'none'"),
        ("pan_model", ["--per-rank", 3], "--per-rank is a power of 2"),
        ("pan_model", ["--rate", -1], "rate is -1.0"),
        ("pan_model", ["--records", "x"], "every file of --records needs"),
        ("pan_model", ["--measured", "none"], "none: No such file"),
        ("pan_model", ["--measured", __file__], "no rows with devices"),
    ],
)
def test_refused_in_one_line(run, capsys, name, words, text):
    with pytest.raises(SystemExit) as leave:
        run(name, *words)
    assert leave.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{name}.py: ")
    assert said.count("\n") == 1
    assert text in said
