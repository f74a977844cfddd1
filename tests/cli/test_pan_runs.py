"""The searches that bench_parts.py measures, and the figures drawn of them."""

import importlib
import json
import sys
from pathlib import Path

import pytest
from commands import environment, here
from graphs import random_tuples
from launching import needs_mpi, run, run_ranks

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
FIGURES = ["fig06", "fig08", "fig09", "fig10", "fig11", "table2", "factors"]
VARIANTS = ("default", "push", "IR", "L+U", "dd=0.1", "nd=1")


def bench(out, *words, ranks=1):
    """Run bench_parts.py and return how it ended."""
    command = [sys.executable, str(SCRIPTS / "bench_parts.py"), "--engine", "openmp"]
    command += ["--out", str(out), "--roots", "2", *map(str, words)]
    if ranks > 1:
        return run_ranks(ranks, command, 60, environment())
    return run(command, 60, environment())


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return a folder with the rows of one process and, with MPI, of two ranks."""
    out = tmp_path_factory.mktemp("measured")
    words = ("--variants", *VARIANTS, "--scales")
    for ranks, scales in ((1, (8, 9)), (2, (9,))):
        done = bench(out, "--thresholds", 8, "auto", *words, *scales, ranks=ranks)
        assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def draw(monkeypatch, tmp_path):
    """Return what runs a script on result files and returns its numbers."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    before = set(sys.modules)

    def call(name, *files):
        argv = [f"{name}.py", *map(str, files), "--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", argv)
        module = importlib.import_module(name)
        sys.modules["pan_figures"].main(module.main)
        return json.loads((tmp_path / f"{name}.json").read_text())

    yield call
    for name in set(sys.modules) - before:
        if name.startswith("pan_"):
            del sys.modules[name]


def rows_of(folder, ranks):
    return json.loads((folder / f"parts_openmp_{ranks}.json").read_text())["rows"]


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2])
def test_every_variant_of_a_graph_is_a_valid_row(measured, ranks):
    rows = rows_of(measured, ranks)
    assert [row["variant"] for row in rows[:6]] == list(VARIANTS)
    assert len(rows) == 6 * 2 * (2 if ranks == 1 else 1)
    for row in rows:
        assert row["valid"] == row["validated"] == row["searches"] == 2
        assert row["devices"] == row["parts"] == ranks
        assert row["exchange"] == ("host" if ranks > 1 else "solo")
        assert row["suggested"] == (row["threshold"] != 8)
    push = next(row for row in rows if row["variant"] == "push")
    assert push["options"]["direction"] == "push"
    factor = next(row for row in rows if row["variant"] == "dd=0.1")
    assert factor["options"]["dd"] == {"to_pull": 0.1, "to_push": 1e-7}


@needs_mpi
def test_the_parts_of_the_work_add_up(measured):
    for row in rows_of(measured, 2):
        assert 0 < sum(row["breakdown_ms"].values()) < 1000
        for search in row["levels"]:
            levels = len(search["records"])
            assert len(search["seconds"]) == levels + 2  # the start and the end
            assert search["seconds"][-1]["parents"] > 0
            assert sum(x["masks"] for x in search["seconds"]) > 0


@needs_mpi
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_of_the_rows(draw, measured, tmp_path, name):
    pytest.importorskip("matplotlib")
    files = [measured / f"parts_openmp_{ranks}.json" for ranks in (1, 2)]
    assert "commit" in draw(f"pan_{name}", *files)
    assert (tmp_path / f"pan_{name}.png").read_bytes()[:4] == b"\x89PNG"


@needs_mpi
def test_scaling_is_found_among_the_rows(draw, measured):
    files = [measured / f"parts_openmp_{ranks}.json" for ranks in (1, 2)]
    weak = draw("pan_fig09", *files)
    assert weak["device_scale"] == 8
    assert [x["scale"] for x in weak["lines"]["default"]] == [8, 9]
    strong = draw("pan_fig11", *files)
    assert strong["scale"] == 9
    assert [x["devices"] for x in strong["lines"]["push"]] == [1, 2]


def test_a_store_without_its_tuples(draw, tmp_path):
    tuples = random_tuples(300, 900, seed=4)
    lines = "".join(f"{u} {v}\n" for u, v in zip(tuples.u, tuples.v, strict=True))
    (tmp_path / "g.el").write_text(lines)
    assert here("convert", tmp_path / "g.el", "-o", tmp_path / "g").code == 0
    words = ("--graph", tmp_path / "g", "--variants", "default", "--name", "own")
    done = bench(tmp_path, "--thresholds", 0, 5, *words)
    assert done.returncode == 0, done.stderr
    line = draw("pan_fig13", tmp_path / "own.json")["lines"][0]
    assert list(line["rates"]) == ["0", "5"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "give either --scales or --graph"),
        (("--scales", 60), "scales go from 1 to 48"),
        (("--scales", 8, "--variants", "x"), "variant 'x' has 'x'; allowed: default"),
        (("--scales", 8, "--factors", "x"), "'x' is no number"),
        (("--scales", 8, "--variants", "nccl"), "is for parts on devices"),
    ],
)
def test_refused_in_one_line(tmp_path, words, text):
    done = bench(tmp_path, *words)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert text in done.stderr


def test_other_files_are_refused(draw, capsys):
    with pytest.raises(SystemExit) as leave:
        draw("pan_fig06", __file__)
    assert leave.value.code == 2
    assert "no results of bench_parts.py" in capsys.readouterr().err
