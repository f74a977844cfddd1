"""Sessions on devices that see a part of the graph, against NetworkX on that."""

from dataclasses import replace

import numpy as np
import pytest
from masked import check, masked, seen_set
from test_sessions import devices, hosts, opened  # noqa: F401
from thread_peers import ThreadPeers
from worlds import on_ranks

import distbfs
from distbfs import Graph, bfs
from distbfs.engines.cuda.xbfs.engine import XbfsEngine
from distbfs.errors import InputError, OutOfMemory, UsageError
from distbfs.formats.attributes import Values
from distbfs.options import BuildOptions, SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.search import shared_tuples
from distbfs.search.choose import Request
from distbfs.search.graph_input import HeldTuples
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.store.hdf5 import open_store
from distbfs.store.write import write_graph

WAYS = ({}, {"direction": "push"}, {"direction": "pull"}, {"internal_ids": True})


def look_through(session, seed, rounds=1, *, directed=False):
    """Search a session of a graph of ``masked`` with a mask, from one and a set."""
    _, _, n, vertices, edges, source, kept = masked(seed, directed)
    if vertices is None and edges is None:
        return
    all_of_it = session.search(source).at(np.arange(n))[0]
    for _ in range(rounds):
        session.see(session.view(vertices, edges))
        for root in (source, seen_set(kept, source)):
            one = session.search(root)
            level, parent = one.at(np.arange(n))
            check(level, parent, one.nedge, root, kept)
        near, far = session.search(root, depth_limit=1), int(level.argmax())
        assert np.array_equal(near.at(np.arange(n))[0], np.where(level > 1, -1, level))
        until = session.search(root, targets=[far]).at(np.arange(n))[0]
        assert np.array_equal(until, level)
        hidden = None if vertices is None else np.flatnonzero(~vertices)[:1]
        if hidden is not None and len(hidden):
            with pytest.raises(UsageError, match="vertex that is not seen"):
                session.search(int(hidden[0]))
        session.see(None)
        assert np.array_equal(session.search(source).at(np.arange(n))[0], all_of_it)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("k", range(len(WAYS)))
def test_one_device(devices, k, directed):  # noqa: F811
    for seed in range(1 + k, 24, 7):
        u, v, n, *_ = masked(seed, directed)
        form = {"engine": "xbfs", "directed": directed, **WAYS[k]}
        with distbfs.open(HeldTuples(u, v, n), **form) as session:
            look_through(session, seed, directed=directed)


def test_graphs_and_what_auto_takes(devices):  # noqa: F811
    for seed in (5, 7):
        for directed in (False, True):
            u, v, n, vertices, edges, source, kept = masked(seed, directed)
            graph = Graph.from_edges(u, v, n, directed=directed)
            for direction in ("auto", "push"):
                form = {"direction": direction}
                whole = bfs(graph, source, **form)
                one = bfs(graph, source, vertices=vertices, edges=edges, **form)
                assert one.engine == "xbfs"
                found = one.to_numpy()
                check(*found, one.nedge, source, kept)
                again = bfs(graph, source, **form)
                assert again.nedge == whole.nedge
    with pytest.raises(UsageError, match=r"allowed: engines .*xbfs"):
        bfs(graph, source, "bfs4k", edges=edges)
    graph = Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(InputError, match="edges has 1 flags"):
        bfs(graph, 0, "xbfs", edges=[True])
    with pytest.raises(UsageError, match="'w' was not kept"):
        bfs(graph, 0, "xbfs", where="w < 2")


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("k", range(4))
def test_one_domain(devices, k, count):  # noqa: F811
    devices[:] = [0] * count
    way = WAYS[k]
    for seed in range(1 + k, 24, 13):
        u, v, n, *_ = masked(seed, directed=False)
        form = {"engine": "xbfs", "domain": count, **way}
        with distbfs.open(HeldTuples(u, v, n), **form) as session:
            assert session.layout.parts == count
            look_through(session, seed)


@pytest.mark.thorough
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize(("count", "size"), [(3, 1), (4, 2), (3, 2)])
@pytest.mark.parametrize("seed", [1, 7, 11])
def test_between_domains(device, devices, count, size, direction, seed):  # noqa: F811
    device.one_rank = size > 1
    devices[:] = [0] * count
    u, v, n, *_ = masked(seed, directed=False)
    form = {"domain": size, "threshold": {1: 0, 7: 4, 11: 1 << 20}[seed]}
    form |= {"engine": "xbfs", "direction": direction}
    with distbfs.open(HeldTuples(u, v, n), **form) as session:
        assert session.layout.parts == count
        look_through(session, seed)


RANKS = pytest.mark.parametrize(
    ("names", "counts", "size"),
    [("aa", (1, 1), 2), ("aab", (1, 1, 1), None), ("ab", (2, 1), None)],
)


@pytest.mark.thorough
@RANKS
def test_ranks(hosts, monkeypatch, tmp_path, names, counts, size):  # noqa: F811
    """One rank a device, or several devices; of tuples, and of a store of two parts."""
    monkeypatch.setattr(shared_tuples, "PeerGroup", ThreadPeers)
    u, v, n, vertices, edges, source, kept = masked(5, directed=False)
    tuples = HeldTuples(u, v, n)
    weight = np.random.default_rng(5).integers(0, 9, len(u))
    tuples.attributes = {"weight": Values(weight)}
    write_graph(SoloWorld(), tuples, tmp_path / "s", 2, BuildOptions(threshold=4))
    graph = Graph.from_edges(u, v, n)
    whole = bfs(graph, source, "openmp").level
    with distbfs.open(tmp_path / "s", engine="openmp") as session:
        session.see(session.view(where="weight < 5"))
        light = session.search(source).at(np.arange(n))[0]

    def rank(world):
        hosts(world, names, counts)
        request = Request(domain=size, masked=True)
        levels = []
        for k in range(2):
            store = open_store(tmp_path / "s") if k else None
            made = Source(n, 2, store=store, tuples=None if k else tuples)
            options = SearchOptions.named(engine="xbfs")
            with open_source(world, made, options, request) as session:
                assert session.layout.parts == sum(counts)
                session.see(session.view(vertices, edges))
                one = session.search(source)
                check(*one.at(np.arange(n)), one.nedge, source, kept)
                if k:
                    session.see(session.view(where="weight < 5"))
                    levels.append(session.search(source).at(np.arange(n))[0])
                session.see(None)
                assert np.array_equal(session.search(source).at(np.arange(n))[0], whole)
        return levels

    for levels in on_ranks(len(names), rank):
        assert np.array_equal(levels[0], light)


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [1, 3])
def test_stores(devices, tmp_path, parts):  # noqa: F811
    for seed in (2, 4):
        u, v, n, *_ = masked(seed, directed=False)
        source = HeldTuples(u, v, n)
        weight = np.random.default_rng(seed).integers(0, 9, len(u))
        source.attributes = {"weight": Values(weight)}
        options = BuildOptions(permute_seed=seed if parts > 1 else None, threshold=4)
        folder = tmp_path / f"{seed}"
        write_graph(SoloWorld(), source, folder, parts, options)
        levels = []
        for engine in ("xbfs", "openmp"):
            with distbfs.open(folder, engine=engine) as session:
                if engine == "xbfs":
                    look_through(session, seed)
                session.see(session.view(where="weight < 5"))
                one = session.search(int(u[0]))
                levels.append([*one.at(np.arange(n))[0], one.nedge])
        assert levels[0] == levels[1]


@pytest.mark.thorough
def test_room_for_bits(devices, monkeypatch):  # noqa: F811
    """Where rows are split, more of them is held back if searches will be masked."""
    monkeypatch.setattr(XbfsEngine, "search_bytes", lambda *_, **__: 0)
    n, (u, v) = 300, np.random.default_rng(1).integers(0, 300, (2, 6000))
    source = HeldTuples(u, v, n)
    options = SearchOptions.named(engine="xbfs", device_memory=40_000)
    kept, levels = [], []
    edges = np.arange(len(Graph.from_edges(u, v, n).edges())) % 2 == 0
    for masked_ in (False, True):
        whole = Source(n, 1, tuples=source)
        request = Request(masked=masked_)
        with open_source(SoloWorld(), whole, options, request) as session:
            kept.append(session.describe()["graph"]["kept"])
            session.see(session.view(edges=edges))
            levels.append(session.search(3).at(np.arange(n))[0].tolist())
    assert kept[0] > kept[1]
    wanted = bfs(Graph.from_edges(u, v, n), 3, "openmp", edges=edges).level.tolist()
    assert levels == [wanted, wanted]


def test_what_is_refused_before_there_is_a_graph(devices):  # noqa: F811
    devices[:] = [0, 0]
    source = HeldTuples(*np.zeros((2, 1), np.int64), 1)
    for options, request, text in (
        ({"engine": "bfs4k"}, Request(), "engine bfs4k cannot be limited"),
        ({"engine": "pan"}, Request(2, "parts"), "engine pan cannot be limited"),
    ):
        asked = replace(request, masked=True)
        with pytest.raises(UsageError, match=text):
            opened(source, request=asked, **options)


def test_bits_that_do_not_fit(devices, monkeypatch):  # noqa: F811
    graph = Graph.from_edges([0, 1], [1, 2])
    assert bfs(graph, 0, "xbfs").reached == 3
    monkeypatch.setattr(distbfs.device.cuda, "free_bytes", lambda: 50)
    with pytest.raises(OutOfMemory, match="a masked search of 4 directed edges needs"):
        bfs(graph, 0, "xbfs", edges=[True, False])
    monkeypatch.undo()


@pytest.mark.parametrize("form", [{"domain": 2}, {"parts": 2, "threshold": 4}])
def test_bits_that_do_not_fit_several_devices(devices, monkeypatch, form):  # noqa: F811
    devices[:] = [0, 0]
    source = HeldTuples(np.array([0, 1]), np.array([1, 2]), 3)
    with distbfs.open(source, engine="xbfs", **form) as session:
        view = session.view(edges=[True, False])
        with monkeypatch.context() as patch:
            patch.setattr(distbfs.device.cuda, "free_bytes", lambda: 1000)
            with pytest.raises(OutOfMemory, match=r"a masked search of \d directed"):
                session.see(view)
        assert session.search(0).reached == 3
        session.see(view)
        assert session.search(0).reached == 2
