"""The tables of the papers: every entry at a tiny size, with kernels run on the CPU."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from device_graphs import HostGraph
from graphs import Tuples

from distbfs.device import cuda
from distbfs.engines.cuda.pan import search as part
from distbfs.generate.formula import Complete
from distbfs.generate.small_world import SmallWorld
from distbfs.generate.stencil import Stencil

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
TINY = ("--vertices", "150", "--each", "0.0001", "--roots", "2", "--sources", "4")
PAPERS = ("bfs4k", "cs406", "mclaughlin", "xbfs", "pan")
PARTLY = ("pan", "mclaughlin", "cs406")  # one device; no joules


def held(source):
    """A source's tuples on the host."""
    chunks = [[x.copy() for x in pair] for pair in source.chunks(0, source.tuples)]
    return Tuples(source.n, *(np.concatenate(x) for x in zip(*chunks, strict=True)))


@pytest.fixture
def papers(device, monkeypatch):
    """run.py in this process; graphs are built on the host."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(SCRIPTS))
    run = importlib.import_module("papers.run")
    figures, runs = (importlib.import_module(x) for x in ("figures", "engine_runs"))
    monkeypatch.setattr(figures, "built", lambda s: HostGraph(held(s)).graph)
    valid = SimpleNamespace(valid=True, nedge=900, errors=[])
    monkeypatch.setattr(runs, "made_once", lambda source: source)
    monkeypatch.setattr(runs, "validate_on_device", lambda *_: valid)
    monkeypatch.setattr(run, "commit", lambda: "abc")
    monkeypatch.setattr(run, "provenance", lambda *_, **__: {"commit": "abc"})
    monkeypatch.setattr(part, "BLOCKS", dict.fromkeys(part.BLOCKS, 1))
    monkeypatch.setattr(cuda, "uuids", lambda _=None: ["GPU-none"])

    def once(ways, way):  # without CUDA graphs
        ways.tail[...] = 0
        ways.launch(way)
        return 1e-6 * (1 + (way == "scan"))

    queues = importlib.import_module("papers.queues")
    monkeypatch.setattr(queues.Ways, "seconds", once)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["run.py", *map(str, words)])
        return run.work()

    yield SimpleNamespace(call=call, run=run, runs=runs, valid=valid)
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(
            SCRIPTS
        ):
            del sys.modules[name]


def results(folder, paper):
    return json.loads((folder / f"paper_{paper}.json").read_text())["entries"]


def first_graphs(paper, count):
    """The paper with as many graphs in each of its entries."""
    entries = [replace(entry, graphs=entry.graphs[:count]) for entry in paper.entries]
    return replace(paper, entries=tuple(entries))


PNG = b"\x89PNG"


def render_one(monkeypatch, paper):
    """Of one paper a figure becomes pixels, which takes longer than all searches."""
    figure = pytest.importorskip("matplotlib.figure").Figure
    ways = iter([figure.savefig] if paper == "xbfs" else [])

    def savefig(self, path):
        next(ways, lambda _, path: path.write_bytes(PNG))(self, path)

    monkeypatch.setattr(figure, "savefig", savefig)


@pytest.mark.thorough
@pytest.mark.parametrize("paper", PAPERS)
def test_every_entry_is_made_or_says_why_not(papers, paper, tmp_path, monkeypatch):
    render_one(monkeypatch, paper)
    few = first_graphs(
        papers.run.paper_of(paper), 1 + (paper in ("xbfs", "mclaughlin"))
    )
    monkeypatch.setattr(papers.run, "paper_of", lambda _: few)
    plots = tmp_path / "plots"
    words = (paper, *TINY, "--threads", 1, 2, "--out", tmp_path, "--plots", plots)
    assert papers.call(*words) == 0
    table = papers.run.paper_of(paper)
    for name, entry in results(tmp_path, paper).items():
        declared = table.entry(name)
        assert entry["verdict"]["reason"]
        if declared.measure:
            assert [row["graph"] for row in entry["rows"]] == list(declared.graphs)
        elif not declared.cannot:
            assert entry["verdict"]["word"] != "not measured" or paper in PARTLY
        if declared.draw is not None and entry["verdict"]["word"] != "not measured":
            image = plots / f"{paper}_{name.replace(' ', '_')}.png"
            assert image.read_bytes()[:4] == PNG


def test_wrong_searches_are_told(papers, tmp_path, capsys):
    papers.valid.valid, papers.valid.errors = False, ["rule 3"]
    words = ("cs406", "--table", 2, "--graphs", "wiki", *TINY, "--out", tmp_path)
    assert papers.call(*words) == 1
    assert "rule 3" in capsys.readouterr().err
    assert not (tmp_path / "paper_cs406.json").exists()


def test_the_graphs_of_the_papers_can_be_made(papers):
    graphs = importlib.import_module("papers.graphs")
    for table in graphs.BY_PAPER.values():
        for name, known in table.items():
            source = held(known.source(300))
            assert 20 <= source.n <= 310, name
            mean = len(source.u) * 2 / source.n
            wanted = min(known.m / known.n, 60)
            assert wanted / 3 < mean < 3 * wanted + 40, name


def test_the_clustering_that_is_estimated(papers):
    graphs = importlib.import_module("papers.graphs")
    for source in (SmallWorld(300, 8, 0.1), Stencil(400, 6, 2), Complete(20)):
        tuples = held(source)
        made = nx.Graph(zip(tuples.u.tolist(), tuples.v.tolist(), strict=True))
        made.remove_edges_from(nx.selfloop_edges(made))
        wanted = nx.average_clustering(made)
        graph = HostGraph(tuples).graph
        assert graphs.clustering(graph, sample=4000) == pytest.approx(wanted, abs=0.03)
        known = graphs.properties(graph, 0)
        assert known["mean_degree"] == pytest.approx(2 * len(made.edges) / len(made))
        degrees = [d for _, d in made.degree]
        assert known["highest"] == max(degrees)
        assert known["deviation"] == pytest.approx(np.std(degrees), abs=1e-6)
        assert known["diameter_at_least"] <= nx.diameter(made)


def test_the_oracle_is_never_extrapolated(papers):
    table = importlib.import_module("papers.mclaughlin")

    def row(work, edge, levels, hybrid=1.0):
        ways = {"work-efficient": work, "edge-parallel": edge, "hybrid": hybrid}
        methods = {k: {"seconds": x, "levels": None} for k, x in ways.items()}
        methods["edge-parallel"]["levels"] = levels
        return {"methods": methods}

    assert table.oracle(row(4.0, 2.0, None), "seconds") == 2.0
    assert table.saved(row(4.0, 2.0, None), "seconds", "hybrid") == 0.5
    assert table.oracle(row(4.0, 5.0, 3), "seconds") == 4.0, "it took longer already"
    assert table.oracle(row(4.0, 3.0, 3), "seconds") is None, "nobody knows"
    assert table.saved(row(4.0, 3.0, 3), "seconds", "hybrid") is None


@pytest.mark.thorough
def test_no_step_of_figure_14_is_like_another(papers):
    """Knobs differ, and writes in turns happen from their step on."""
    table = importlib.import_module("papers.bfs4k")
    knobs, seen = {"table": False}, []
    for more in table.STEPS.values():
        knobs = knobs | more
        assert knobs not in seen
        seen.append(knobs)
    bench = importlib.import_module("papers.bench").Bench(each=1e-4, roots=1, most=8000)
    turns = table.figure_14(bench, "kron_g500-logn20")["written_in_turns"]
    before, after = turns["+ one block"], turns["+ coalesced writes"]
    assert before == 0 < after
