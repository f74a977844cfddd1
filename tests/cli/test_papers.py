"""The runner of the papers' tables: files, resumption, refusals, host entries."""

import importlib
import json
import sys
from pathlib import Path

import pytest
import warm
from commands import environment
from graphs import build, kronecker, random_tuples
from launching import needs_mpi, run_ranks

from distbfs.errors import UsageError

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
RUN = SCRIPTS / "papers" / "run.py"
TINY = ("--vertices", "256", "--each", "0.001", "--roots", "2", "--engine", "reference")


@pytest.fixture
def papers(monkeypatch, tmp_path):
    """Return what calls run.py in this process, as a clean tree, and its module."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(SCRIPTS))
    run = importlib.import_module("papers.run")
    monkeypatch.setattr(run, "commit", lambda: "abc")

    def call(*words):
        argv = ["run.py", *TINY, "--out", tmp_path, *words]
        monkeypatch.setattr(sys, "argv", [str(word) for word in argv])
        return run.work()

    call.run = run
    yield call
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or "/"
        if Path(file).is_relative_to(SCRIPTS):
            del sys.modules[name]


def values_of(folder, paper="pan"):
    return json.loads((folder / f"paper_{paper}.json").read_text())


def rows_of(folder, entry, paper="pan"):
    return values_of(folder, paper)["entries"][entry]["rows"]


def test_a_run_goes_on_where_it_stopped(papers, tmp_path, capsys):
    words = ("pan", "--table", "1", "--figure", "5", "12")
    assert papers(*words, "--seconds", "0") == 0
    assert "5 of 5 rows are left" in capsys.readouterr().out
    assert not (tmp_path / "paper_pan.json").exists()
    assert papers(*words, "--graphs", "8", "128") == 0
    first = rows_of(tmp_path, "table i")
    assert [row["graph"] for row in first] == ["8", "128"]
    capsys.readouterr()
    assert papers(*words) == 0
    out = capsys.readouterr().out
    assert "table i auto" in out
    assert "table i 8" not in out
    assert [r["graph"] for r in rows_of(tmp_path, "table i")] == ["auto", "8", "128"]
    assert rows_of(tmp_path, "table i")[1:] == first
    values = values_of(tmp_path)
    assert values["settings"]["vertices"] == 256
    assert values["versions"]["distbfs"]
    told = values["entries"]["table i"]
    assert told["verdict"]["word"] == "not comparable"
    assert "graphs up to 256 vertices" in told["verdict"]["reason"]
    assert told["says"]
    assert papers(*words, "--again", "--graphs", "8") == 0
    again = rows_of(tmp_path, "table i")[1]
    assert again["measured_seconds"] != first[0]["measured_seconds"]


def test_changed_trees_leave_clean_rows_alone(papers, tmp_path, monkeypatch):
    words = ("pan", "--table", "1", "--graphs", "8")
    monkeypatch.setattr(papers.run, "commit", lambda: "abc-changed")
    assert papers(*words) == 0, "there is nothing to lose"
    monkeypatch.setattr(papers.run, "commit", lambda: "abd")
    assert papers(*words) == 0
    assert [row["commit"] for row in rows_of(tmp_path, "table i")] == ["abd"]
    for name in ("abe-changed", None):
        monkeypatch.setattr(papers.run, "commit", lambda name=name: name)
        with pytest.raises(UsageError, match="is of a clean tree and this one has"):
            papers(*words)
    monkeypatch.setattr(papers.run, "commit", lambda: "abf")
    assert papers(*words, "--keep") == 0
    assert [row["commit"] for row in rows_of(tmp_path, "table i")] == ["abd"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "name papers of bfs4k, cs406"),
        (("none",), "name papers of bfs4k, cs406"),
        (("pan", "--figure", "99"), "pan has no figure 99; allowed: table i"),
        (("pan", "--graph", "x=none"), "--graph x=none: give NAME=FILE"),
        (("pan", "--roots", "0"), "above 0"),
        (("pan", "--table", "1", "--seed", "2"), "was measured with"),
    ],
)
def test_refused(papers, words, text):
    if "--seed" in words:
        papers("pan", "--table", "1", "--graphs", "8")
    with pytest.raises(UsageError, match=text):
        papers(*words)


def test_a_failure_is_told_and_the_rest_goes_on(papers, tmp_path, monkeypatch, capsys):
    shares = importlib.import_module("papers.shares")

    def fails(*_):
        raise UsageError("not today")

    monkeypatch.setattr(shares, "weigh", fails)
    assert papers("pan", "--table", "1", "--figure", "5", "--graphs", "8", "") == 1
    assert "pan, table i 8: not today" in capsys.readouterr().err
    assert rows_of(tmp_path, "figure 5")


def test_every_entry_is_complete(papers, capsys):
    assert papers("--list") == 0
    out = capsys.readouterr().out
    for key in papers.run.NAMES:
        paper = papers.run.paper_of(key)
        names = [entry.name for entry in paper.entries]
        assert len(names) == len(set(names))
        for entry in paper.entries:
            assert entry.name in out
            if entry.cannot:
                assert entry.measure is None
                continue
            assert entry.says
            assert entry.judge
            assert entry.sources
            assert set(entry.rows_of) < set(names)


@pytest.mark.thorough
@needs_mpi
def test_rows_of_one_and_two_ranks_stand_together(papers, tmp_path):
    pytest.importorskip("matplotlib")
    words = ["pan", "--figure", "8", "9", "10"]
    assert papers(*words) == 0
    command = [
        warm.folder() / "python",
        RUN,
        *TINY,
        "--out",
        tmp_path,
        "--keep",
        *words,
    ]
    done = run_ranks(2, [str(x) for x in command], 60, environment())
    assert done.returncode == 0, done.stderr
    for name in ("figure 8", "figure 9"):
        assert [row["devices"] for row in rows_of(tmp_path, name)] == [1, 2]
    row = rows_of(tmp_path, "figure 8")[1]
    assert row["variants"]["host+IR"]["exchange"] == "host"
    assert sum(row["variants"]["host+BR"]["breakdown_ms"].values()) > 0
    plots = tmp_path / "plots"
    assert papers(*words, "--keep", "--plots", plots) == 0
    drawn = {path.name for path in plots.iterdir()}
    assert drawn >= {f"pan_figure_{k}.png" for k in (8, 9, 10)}


SPLITS = [(1, None), (1, 9), (2, 20), (3, 0), (4, None)]


@pytest.mark.parametrize(("parts", "threshold"), SPLITS)
@pytest.mark.parametrize("source", [kronecker(11), random_tuples(700, 2000, seed=3)])
def test_edges_are_counted_by_their_ends(papers, source, parts, threshold):
    shares = importlib.import_module("papers.shares")
    made, _ = build(source, parts, threshold=threshold)
    ends = shares.count_ends(lambda: made)
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
