"""Scripts of many searches with the kernels run on the CPU: families and tables."""

import importlib
import json
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from device_graphs import HostGraph
from graphs import Tuples

from distbfs.device import cuda

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
NAMES = ("figures", "multi_figures", "multi_tables")


def held(source):
    """A source's tuples on the host."""
    if getattr(source, "lent", False):
        return Tuples(source.n, source.u.get(), source.v.get())
    chunks = list(source.chunks(0, source.tuples))
    return Tuples(source.n, *(np.concatenate(x) for x in zip(*chunks, strict=True)))


@pytest.fixture
def multi(device, monkeypatch):
    """The module of the families, with graphs built on the host."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    figures = importlib.import_module("figures")
    monkeypatch.setattr(figures, "built", lambda s: HostGraph(held(s)).graph)
    monkeypatch.setattr(figures, "provenance", lambda *_, **__: {})
    monkeypatch.setattr(figures, "SMALLER", 13)
    monkeypatch.setattr(cuda, "uuid", lambda: "GPU-none")
    yield importlib.import_module("multi_figures")
    for name in NAMES:
        sys.modules.pop(name, None)


def graph_of(source):
    return nx.Graph(zip(source.u.tolist(), source.v.tolist(), strict=True))


def test_stencils(multi):
    cross = graph_of(multi.Stencil((5, 4, 1), multi.CROSS))
    assert nx.is_isomorphic(cross, nx.grid_2d_graph(5, 4))
    cube = multi.Stencil((3, 4, 5), multi.CUBE)
    assert cube.n == 60
    assert max(dict(graph_of(cube).degree).values()) == 14
    whole = multi.Stencil((9, 9, 1), multi.window(3))
    graph = graph_of(whole)
    assert len(graph.edges) == whole.tuples
    assert sorted(graph[4 * 9 + 4]) == [
        9 * y + x for y in range(1, 8) for x in range(1, 8) if (x, y) != (4, 4)
    ]
    part = multi.Stencil((60, 60, 1), multi.window(2), kept=0.58)
    share = part.tuples / multi.Stencil((60, 60, 1), multi.window(2)).tuples
    assert share == pytest.approx(0.58, abs=0.02)


def test_families_have_the_sizes_of_the_paper(multi):
    """Formulas alone; those that are drawn are counted where they are made."""
    for name, sides, offsets, n, edges in (
        ("333SP", 1927**2, 3, 3_712_815, 22_217_266),
        ("adaptive", 2611**2, 2, 6_815_744, 27_248_640),
        ("auto", 77**3, 7, 448_695, 6_629_222),
        ("delaunay_n21", 1448**2, 3, 2_097_152, 12_582_816),
        ("ecology1", 1000**2, 2, 1_000_000, 3_996_000),
        ("ldoor", 976**2, 24, 952_203, 45_570_272),
        ("thermal2", 1108**2, 3, 1_227_087, 7_352_268),
    ):
        assert name in multi.FAMILIES
        assert sides == pytest.approx(n, rel=0.02), name
        assert 2 * offsets * sides == pytest.approx(edges, rel=0.06), name


def test_traversed_edges(multi):
    source = Tuples(8, [0, 1, 2, 4, 4, 5], [1, 2, 0, 5, 5, 6])
    graph = HostGraph(source).graph
    assert multi.traversed(graph, [0, 4, 6, 2]) == (6 + 4 + 4 + 6, 2)


def test_tables(multi, tmp_path, monkeypatch, capsys):
    tables = importlib.import_module("multi_tables")
    words = ["--small", "--roots", "4", "--seconds", "0.001", "--families", "auto"]
    monkeypatch.setattr(sys, "argv", ["multi_tables", "--out", str(tmp_path), *words])
    tables.main()
    told = json.loads((tmp_path / "multi_tables.json").read_text())
    (row,) = told["rows"]
    times = {name: way["seconds"] for name, way in row["methods"].items()}
    assert set(times) == {*multi.METHODS, "hybrid, T auto"}
    oracle = min(times["edge-parallel"], times["work-efficient"])
    assert row["saved_seconds"] == pytest.approx(1 - times["hybrid"] / oracle)
    assert "saved_joules" not in row, "there is no NVML"
    assert row["methods"]["warp"]["threshold"] == 0
    assert "saved over oracle" in capsys.readouterr().out
