"""Graphs larger than the device: rows in two pieces, from budgets of little to all."""

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from fast_graphs import fault, roots_of
from graphs import Tuples, check_search, complete, kronecker, some_roots, uniform

import distbfs
from distbfs.build.cuda import room as rooms
from distbfs.build.cuda.graph import build
from distbfs.build.cuda.room import Fit, Room
from distbfs.device import cuda
from distbfs.device.host_memory import pinned
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.errors import OutOfMemory, UsageError
from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld
from distbfs.search import device_holding
from distbfs.store.write import write_graph

sys.path.append(str(Path(__file__).parents[2] / "gpu"))
from device_graphs import HostGraph
from directed_hosts import Arcs, arcs_of

pytestmark = pytest.mark.usefixtures("device")
GRAPHS = {
    "kronecker": kronecker(9),
    "uniform": uniform(300, 5000),
    "star": Tuples(900, [0] * 899, range(1, 900)),
    "complete": complete(60),
}
NOTHING = lambda *_: 0  # noqa: E731 - what searches take


def least_and_all(source):
    """Bytes of the least that lies on the device, and of all; repeats are counted."""
    ends = np.concatenate([source.u, source.v])[np.tile(source.u != source.v, 2)]
    degrees = np.bincount(ends, minlength=source.n)
    fixed = 8 * source.n + 12 * (degrees > 0).sum() + 8 + 4 * 256
    heads, tailed = np.minimum(degrees, 8).sum(), (degrees >= 8).sum()
    return int(fixed + 4 * heads + 8 * (tailed + 1)), int(fixed + 4 * len(ends))


def rows_of(graph):
    """Columns of each row, both pieces."""
    offsets, columns = graph.out.offsets.get().astype(np.int64), graph.out.columns.get()
    heads = [columns[a:b] for a, b in pairwise(offsets)]
    if graph.out.tails is None:
        return heads
    starts = graph.out.tails.offsets.get().astype(np.int64)
    for k in range(graph.out.tails.tailed):
        tail = graph.out.tails.columns[starts[k] : starts[k + 1]]
        assert not len(tail) or len(heads[k]) == graph.out.tails.kept
        heads[k] = np.concatenate([heads[k], tail])
    return heads


@pytest.mark.parametrize("name", GRAPHS)
def test_rows_from_little_to_all_of_them_on_the_device(name):
    source = GRAPHS[name]
    whole = build(source)
    least, most = least_and_all(source)
    made, kept = HostGraph(source), []
    for share in (0, 0.4, 0.95, 1.2):
        limit = int(least + share * (most - least))
        room = Room(limit, None, NOTHING)
        graph = build(source, room=room, buffer_bytes=8000)
        assert graph.m == whole.m
        assert graph.held_back == (
            0 if share > 1 else graph.m - graph.out.offsets.get()[-1]
        )
        for row, wanted in zip(rows_of(graph), rows_of(whole), strict=True):
            np.testing.assert_array_equal(row, wanted)
        if graph.out.tails is None:
            continue
        assert graph.nbytes <= limit
        kept.append(graph.out.tails.kept)
        search = FastSearch(graph)
        for root in roots_of(made, 1):
            assert fault(made, root, search.search(root)) is None
    assert kept == sorted(kept)
    assert kept[0] >= 8


def test_what_fits_in_neither_is_said():
    source = GRAPHS["kronecker"]
    least, most = least_and_all(source)
    with pytest.raises(OutOfMemory, match="8 columns of a row there, and"):
        build(source, room=Room(least - 2000, None, NOTHING))
    with pytest.raises(OutOfMemory, match=r"tails of rows need .* of host memory"):
        build(source, room=Room((least + most) // 2, 100, NOTHING))
    searches = lambda *_: most  # noqa: E731
    with pytest.raises(OutOfMemory, match="columns of a row there"):
        build(source, room=Room(most, None, searches))


def test_host_memory_is_limited_by_control_groups(monkeypatch):
    source = GRAPHS["kronecker"]
    limit = sum(least_and_all(source)) // 2
    monkeypatch.setattr(rooms, "memory_limit", lambda: 1000)
    with pytest.raises(OutOfMemory, match="there are 980 B"):
        build(source, room=Room(limit, None, NOTHING))
    monkeypatch.setattr(rooms, "memory_limit", lambda: None)
    assert build(source, room=Room(limit, None, NOTHING)).held_back


def test_memory_that_cannot_be_pinned_is_one_line(monkeypatch):
    def refuse(*_):
        raise RuntimeError("cudaErrorMemoryAllocation")

    source = GRAPHS["kronecker"]
    limit = sum(least_and_all(source)) // 2
    runtime = cuda.cupy().cuda.runtime
    monkeypatch.setattr(runtime, "hostRegister", refuse)
    with pytest.raises(OutOfMemory, match="of host memory cannot be pinned: cuda"):
        build(source, room=Room(limit, None, NOTHING))


def test_pinned_memory_lives_as_long_as_arrays_of_it(monkeypatch):
    ended = []
    runtime = cuda.cupy().cuda.runtime
    monkeypatch.setattr(runtime, "hostUnregister", ended.append)
    whole = pinned(5_000_000, np.uint32, "a test")
    some = whole[4_000_000:]
    del whole
    some[:] = 7
    assert (some == 7).all()
    assert not ended
    del some
    assert len(ended) == 1
    assert pinned(0, np.uint32, "a test").size == 0


@pytest.mark.thorough
def test_sessions_say_what_is_held_back(monkeypatch, tmp_path):
    """By tuples, by a Graph and by a store; other engines refuse such a graph."""
    source = kronecker(10)
    state = device_holding.Room
    monkeypatch.setattr(device_holding, "Room", lambda a, b, _: state(a, b, NOTHING))
    least, most = least_and_all(source)
    limit = (2 * least + most) // 3
    graph = distbfs.Graph.from_edges(source.u, source.v, n=source.n)
    write_graph(SoloWorld(), source, tmp_path / "store", 1, BuildOptions())
    for which in (source, graph, tmp_path / "store"):
        with distbfs.open(which, engine="xbfs", device_memory=limit) as session:
            assert "of the edges are in host memory" in session.why
            assert session.describe()["graph"]["held_back"] > 0
            for root in some_roots(source, 3):
                level, parent = session.search(root).to_numpy()
                check_search(source, root, level, parent)
            with pytest.raises(UsageError, match="edges are in host memory"):
                session.paths.counts([], 0, "uint64")
            held = session.held
    with pytest.raises(UsageError, match="needs the whole graph on the device"):
        distbfs.search.choose.kind_of("bfs4k")(
            replace(session.options, engine="bfs4k")
        ).on_graph(held.shares[0])


@pytest.mark.thorough
def test_sessions_of_directed_graphs(tmp_path, monkeypatch):
    """Edges out and in; of tuples, of a store, and of a graph of Python's."""
    monkeypatch.setattr(Fit, "most", at_eight)
    source = arcs_of(GRAPHS["kronecker"])
    write_graph(SoloWorld(), source, tmp_path / "graph", 1, BuildOptions(directed=True))
    graph = distbfs.Graph.from_edges(source.u, source.v, source.n, directed=True)
    form = {"engine": "xbfs", "devices": 1, "device_memory": 1 << 30}
    for one in (source, tmp_path / "graph", graph):
        directed = {"directed": True} if one is source else {}
        with distbfs.open(one, **form, **directed) as session:
            assert "of the edges are in host memory" in session.why
            held = session.describe()["graph"]["held_back"]
            assert 0 < held < 2 * session.edges
            for root in some_roots(source, 3):
                found = session.search(root)
                level = found.to_numpy()[0]
                np.testing.assert_array_equal(level, source.distances(root))
                reached = level >= 0
                if one is source:
                    assert (
                        found.nedge == np.isin(source.u, np.flatnonzero(reached)).sum()
                    )
            sees = np.arange(source.n) % 3 > 0
            session.see(session.view(vertices=sees))
            left = sees[source.u] & sees[source.v]
            other = Arcs(source.n, source.u[left], source.v[left], size=1 << 20)
            for root in np.flatnonzero(sees)[:3].tolist():
                level = session.search(root).to_numpy()[0]
                np.testing.assert_array_equal(level, other.distances(root))


def at_eight(fit):
    """Instead of ``Fit.most``: as if eight columns of a row fitted."""
    assert len(fit.sides) == 2
    return 8


def test_options_of_memory_are_of_engine_xbfs():
    source = kronecker(6)
    for options in (
        {"engine": "openmp", "device_memory": 1 << 30},
        {"engine": "bfs4k", "host_memory": 1},
    ):
        with pytest.raises(UsageError, match="_memory is not an option"):
            distbfs.open(source, **options)
    with pytest.raises(UsageError, match="device_memory is -1"):
        distbfs.open(source, engine="xbfs", device_memory=-1)
