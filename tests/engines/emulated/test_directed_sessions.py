"""Sessions of directed graphs in one domain: of tuples, of stores, on ranks, masked."""

from types import SimpleNamespace

import numpy as np
import pytest
from directed_graphs import check, matrix_of
from graphs import Tuples, kronecker, random_tuples, some_roots
from masked import masked
from test_masked_sessions import look_through
from thread_peers import ThreadPeers
from worlds import on_ranks

import distbfs
from distbfs.benchmark.graph500 import validation_of
from distbfs.build.cuda import room as room_of_builds
from distbfs.build.cuda.room import LEAST_KEPT, Fit
from distbfs.errors import LaunchError, OutOfMemory, UsageError
from distbfs.multisearch.domain_bits import DomainBitSearches
from distbfs.multisearch.searchers import searches_of
from distbfs.options import BuildOptions, SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.search import choose as choosing
from distbfs.search import device_opening, domain_group, shared_tuples
from distbfs.search.choose import Request
from distbfs.search.graph_input import HeldTuples
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.store.hdf5 import open_store
from distbfs.store.write import write_graph

GRAPHS = {"random": random_tuples(300, 900, seed=6), "kronecker": kronecker(8)}


@pytest.fixture(autouse=True)
def devices(device, monkeypatch):
    """Two devices a rank, which are one and see each other, unless ``devices`` says."""
    lent = [0, 0]
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: list(lent))
    monkeypatch.setattr(choosing, "ONE_DEVICE_BELOW", 1)
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    for module in (device_opening, domain_group, shared_tuples):
        monkeypatch.setattr(module, "PeerGroup", ThreadPeers)
    monkeypatch.setattr(room_of_builds, "memory_limit", lambda: None)
    return lent


def look(session, source, *, turned=False):
    """Search from some vertices and compare with SciPy, and what is counted."""
    u, v = (source.v, source.u) if turned else (source.u, source.v)
    matrix = matrix_of(source.n, u, v)
    assert session.edges == matrix.nnz
    for root in some_roots(source, 3):
        found = session.search(root)
        level, parent = found.to_numpy()
        check(matrix, root, SimpleNamespace(level=level, parent=parent))
        reached = np.flatnonzero(level >= 0)
        yield found, reached, matrix


def stored(folder, source, seed, parts=1, threshold=None):
    """The store of a directed graph, whose ids may be permuted."""
    options = BuildOptions(directed=True, permute_seed=seed, threshold=threshold)
    path = folder / "graph"
    write_graph(SoloWorld(), source, path, parts, options, overwrite=True)
    return open_store(path)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_tuples(name, reverse):
    source = GRAPHS[name]
    with distbfs.open(source, directed=True, reverse=reverse) as session:
        assert "2 devices map each other's memory" in session.why
        for found, reached, _ in look(session, source, turned=reverse):
            ends = source.v if reverse else source.u
            assert found.nedge == np.isin(ends, reached).sum()
        assert isinstance(searches_of(session), DomainBitSearches)
        assert "not on several devices" in session.paths.refusal


@pytest.mark.parametrize(("seed", "parts"), [(None, 1), (5, 1), (None, 3), (5, 2)])
@pytest.mark.parametrize("reverse", [False, True])
def test_stores(tmp_path, seed, parts, reverse):
    """Reversed, each stored edge counts once."""
    source = GRAPHS["kronecker"]
    store = stored(tmp_path, source, seed, parts, None if parts == 1 else 6)
    with distbfs.open(store, reverse=reverse) as session:
        assert session.held.shares
        for found, reached, matrix in look(session, source, turned=reverse):
            counted = np.isin(source.u, reached).sum()
            if reverse:
                counted = np.diff(matrix.indptr)[reached].sum()
            assert found.nedge == counted


@pytest.mark.parametrize("form", ["tuples", "store"])
def test_ranks_of_a_host(device, devices, tmp_path, form):
    """A device each, or two; on several hosts CPUs search."""
    source = GRAPHS["random"]
    matrix = matrix_of(source.n, source.u, source.v)
    store = stored(tmp_path, source, None) if form == "store" else None
    roots = some_roots(source, 2)

    def rank(world, engine="auto"):
        graph = Source(source.n, 1, True, store=store)
        if store is None:
            graph = Source(source.n, world.size, True, tuples=source)
        options = SearchOptions.named(engine=engine)
        session = open_source(world, graph, options, Request())
        found = [session.search(root).to_numpy() for root in roots]
        about = session.describe()["engine"]
        session.close()
        return found, about

    for count in (1, 2):
        devices[:], device.one_rank = [0] * count, count > 1
        said = on_ranks(2, rank)
        assert {about for _, about in said} == {"xbfs"}
        for k, root in enumerate(roots):
            pieces = [found[k] for found, _ in said]
            level, parent = (np.concatenate(x) for x in zip(*pieces, strict=True))
            check(matrix, root, SimpleNamespace(level=level, parent=parent))


def test_domains_that_cannot_be_one(monkeypatch):
    """Devices without access to each other's memory are searched between."""
    source = GRAPHS["random"]
    monkeypatch.setattr(
        "distbfs.exchange.peer_memory.peer_problem", lambda *_: "no peer access"
    )
    for engine in ("xbfs", "auto"):
        with distbfs.open(source, directed=True, engine=engine) as session:
            assert "domains of one device: no peer access" in session.why
            assert session.describe()["engine"] == "xbfs"
            for _ in look(session, source):
                pass
    words = "internal ids need one domain of all devices: no peer access"
    with pytest.raises(LaunchError, match=words):
        distbfs.open(source, directed=True, engine="xbfs", internal_ids=True)
    with pytest.raises(UsageError, match="engine pan searches symmetric graphs"):
        distbfs.open(source, directed=True, engine="pan")


@pytest.mark.thorough
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_between_domains(device, devices, name, reverse):
    """Domains of one device, and of two; delegates by sum of degrees."""
    source = GRAPHS[name]
    devices[:], device.one_rank = [0] * 4, True
    for domain, threshold in ((1, None), (2, 4), (1, 0), (1, 1 << 30)):
        build = BuildOptions(directed=True, threshold=threshold)
        graph = Source(source.n, 1, True, tuples=source, build=build)
        graph = graph.reversed() if reverse else graph
        options, request = SearchOptions(engine="xbfs"), Request(domain=domain)
        with open_source(SoloWorld(), graph, options, request) as session:
            for found, reached, _ in look(session, source, turned=reverse):
                ends = source.v if reverse else source.u
                assert found.nedge == np.isin(ends, reached).sum()
            assert (session.held.threshold is None) == (threshold == 1 << 30)
            assert isinstance(searches_of(session), DomainBitSearches)
            assert "not on several devices" in session.paths.refusal


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("reverse", [False, True])
def test_stores_between_domains(device, devices, tmp_path, seed, reverse):
    """Of any number of parts, on any number of domains."""
    source = GRAPHS["kronecker"]
    devices[:], device.one_rank = [0] * 3, True
    cases = ((1, 2), (2, 1), (4, 2)) if seed else ((1, 1), (2, 2), (3, 1))
    for parts, domain in cases:
        store = stored(tmp_path, source, seed, parts, None if parts == 1 else 5 * seed)
        with distbfs.open(store, reverse=reverse, domain=domain) as session:
            assert session.separated is not None
            for found, reached, matrix in look(session, source, turned=reverse):
                counted = np.isin(source.u, reached).sum()
                if reverse:
                    counted = np.diff(matrix.indptr)[reached].sum()
                assert found.nedge == counted


@pytest.mark.parametrize("k", [0, 1])
def test_masks(k):
    """Of vertices and of edges, against NetworkX."""
    for seed in range(1 + 4 * k, 5 + 4 * k):
        u, v, n, *_ = masked(seed, directed=True)
        form = {"engine": "xbfs", "directed": True, "internal_ids": bool(seed % 2)}
        with distbfs.open(HeldTuples(u, v, n), **form) as session:
            assert session.held.shares
            look_through(session, seed, directed=True)


@pytest.mark.thorough
@pytest.mark.parametrize("k", [0, 1])
def test_masks_between_domains(k):
    for seed in range(1 + 4 * k, 5 + 4 * k):
        u, v, n, *_ = masked(seed, directed=True)
        form = {"engine": "xbfs", "directed": True, "domain": 1}
        with distbfs.open(HeldTuples(u, v, n), **form) as session:
            assert session.separated is not None
            look_through(session, seed, directed=True)


def test_validation_between_domains(device, devices):
    """Of right searches, and of one in which an arc is turned round."""
    source = GRAPHS["random"]
    devices[:], device.one_rank = [0] * 3, True
    for domain in (1, 2):
        form = {"engine": "xbfs", "directed": True, "domain": domain}
        with distbfs.open(source, **form) as session:
            validated = validation_of(session, source, directed=True)
            for root in some_roots(source, 3):
                found = session.search(root)
                told = validated(found)
                assert told.valid, told.errors
                assert told.nedge == found.nedge
            level, parent = found.to_numpy()
            needed = (level[source.v] > 0) & (parent[source.v] == source.u)
            arc = np.flatnonzero(needed)[0]
            turned = (source.u == source.u[arc]) & (source.v == source.v[arc])
            ends = source.u, source.v
            other = Tuples(
                source.n, *(np.where(turned, *x) for x in (ends[::-1], ends))
            )
            told = validation_of(session, other, directed=True)(found)
            assert [error[:6] for error in told.errors] == ["rule 5"]


def check_rows_in_host_memory(session, source):
    """A share of the edges that is told; searches are right, also of a view."""
    share = session.describe()["part"]["held_back"] / (2 * session.edges)
    assert share > 0.1
    assert f"{share:.3g} of the edges are in host memory" in session.why
    for _ in look(session, source):
        pass
    sees = np.arange(source.n) % 5 > 0
    session.see(session.view(sees))
    left = sees[source.u] & sees[source.v]
    matrix = matrix_of(source.n, source.u[left], source.v[left])
    for root in np.flatnonzero(sees)[:3].tolist():
        level, parent = session.search(root).to_numpy()
        check(matrix, root, SimpleNamespace(level=level, parent=parent))


def test_rows_in_host_memory(monkeypatch):
    """What is held back is told."""
    source, seen, most = GRAPHS["kronecker"], [], Fit.most

    def watch(fit):
        seen.append(fit.fixed + fit.at(LEAST_KEPT).device_bytes)
        return most(fit)

    monkeypatch.setattr(Fit, "most", watch)
    form = {"directed": True, "engine": "xbfs", "host_memory": 1 << 20}
    with distbfs.open(source, **form) as session:
        assert "held_back" not in session.describe()["part"]
    with distbfs.open(source, device_memory=max(seen) + 2000, **form) as session:
        check_rows_in_host_memory(session, source)
    with pytest.raises(OutOfMemory, match="8 columns of a row there"):
        distbfs.open(source, device_memory=1000, **form)


def test_rows_in_host_memory_between_domains(monkeypatch):
    """Each row keeps eight columns; what is held back is told."""
    monkeypatch.setattr(Fit, "most", lambda _: LEAST_KEPT)
    source = GRAPHS["kronecker"]
    form = {"directed": True, "engine": "xbfs", "domain": 1, "host_memory": 1 << 20}
    with distbfs.open(source, **form) as session:
        held = session.describe()["part"]["held_back"]
        shares = session.separated.shares
        tails = [rows.tails for x in shares for rows in (x.out, x.into)]
        assert held == sum(len(x.columns) for x in tails)
        check_rows_in_host_memory(session, source)
