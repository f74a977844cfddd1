"""The session of searches that are resident on devices, which are the CPU."""

import ctypes
import json
import subprocess
import sys

import numpy as np
import pytest
from device_parts import checked_searches, joined
from distbfs.search.alone import AloneSession
from distbfs.search.device_parts import DevicePartsSession
from distbfs.search.device_resident import ResidentSession, resident_reason
from distbfs.search.device_session import DeviceSession
from graphs import check_search, kronecker, some_roots
from resident_parts import resident_parts
from worlds import on_ranks

from distbfs.cli import loading
from distbfs.device import cuda
from distbfs.engines.cuda.results import host_levels
from distbfs.engines.cuda.xbfs import XbfsEngine
from distbfs.errors import DistbfsError, LaunchError, SearchStopped, UsageError
from distbfs.exchange.world import SoloWorld
from distbfs.generate.kronecker import Kronecker
from distbfs.options import BuildOptions, Factors, SearchOptions
from distbfs.search import device_resident, device_session, shared_tuples
from distbfs.store.hdf5 import open_store

SOURCE = kronecker(8)


class Terminal:
    """What building says."""

    def __init__(self):
        self.world = SoloWorld()
        self.said = []

    def say(self, line):
        self.said.append(line)


def session_of(parts=3, **options):
    options = SearchOptions(engine="xbfs", **options)
    made, _ = resident_parts(SOURCE, parts)
    return ResidentSession(SoloWorld(), XbfsEngine(options), made, options)


def test_small_graphs_are_searched_by_one_device_alone(device, peers, monkeypatch):
    """Whatever the ranks; each has its block of the results, and all else."""
    monkeypatch.setattr(device_session, "_module", lambda *_: None)

    def tally(session, outcome):
        level = host_levels(outcome.level[0])
        of = SOURCE.ends
        if session.options.internal_ids:
            of = of[session.graph.vertices]
        ends = int(of[level >= 0].sum())
        return int((level >= 0).sum()), outcome.levels, ends

    monkeypatch.setattr(DeviceSession, "_tally", tally)
    for internal in (False, True):
        options = SearchOptions(engine="xbfs", internal_ids=internal)

        def rank(world, options=options):
            session = session_on(world, options)
            root = int(SOURCE.degrees.argmax())
            found = session.keep(session.search(root, records=True))
            level, parent = session.block(found)
            reached = session.reached(found), session.traversed(found)
            ids = np.arange(SOURCE.n)
            connected = session.connected(ids)
            some = session.at(found, ids[:9]) if not options.internal_ids else None
            rows = session.vertices()
            assert session.room(1 << 20) == 1 << 20
            counts = session.level_counts(found)
            assert len(found.records) == found.levels - 1
            assert session.describe()["exchange"].startswith("none")
            session.close()
            return level, parent, reached, connected, some, rows, counts

        every = on_ranks(3, rank)
        level, parent = (np.concatenate([x[k] for x in every]) for k in (0, 1))
        root = int(SOURCE.degrees.argmax())
        wanted = SOURCE.distances(root)
        for one in every:
            assert one[2][0] == ((wanted >= 0).sum(), wanted.max())
            assert one[2][1] == SOURCE.ends[wanted >= 0].sum() // 2
            np.testing.assert_array_equal(one[3], SOURCE.degrees > 0)
            np.testing.assert_array_equal(one[6], np.bincount(wanted[wanted >= 0]))
            if internal:
                np.testing.assert_array_equal(level, wanted[one[5]])
            else:
                np.testing.assert_array_equal(one[4][0], wanted[:9])
                np.testing.assert_array_equal(one[4][1], parent[:9])
        if not internal:
            check_search(SOURCE, root, level, parent)


def session_on(world, options):
    """A session as graph500 makes it on some ranks."""
    terminal = Terminal()
    terminal.world = world
    choice = loading.Choice(options, XbfsEngine(options), parts=True, devices=(0,))
    made = loading.build_session(
        terminal, Kronecker(8, 16, 1), world.size, BuildOptions(), choice
    )
    assert type(made.session) is AloneSession
    assert terminal.said[0].startswith("one device searches alone, as 256 vertices")
    return made.session


def built(parts=2, threshold=None, **options):
    """A session as graph500 makes it, and what was said."""
    terminal = Terminal()
    options = SearchOptions(engine="xbfs", **options)
    choice = loading.Choice(options, XbfsEngine(options), parts=True, devices=(0,))
    made = loading.build_session(
        terminal,
        Kronecker(8, 16, 1),
        parts,
        BuildOptions(threshold=threshold),
        choice,
    )
    return made.session, terminal.said


@pytest.fixture
def peers(monkeypatch):
    """Let all devices see each other's memory, though they are one."""
    monkeypatch.setattr(device_resident, "peer_problem", lambda *_: "")
    monkeypatch.setattr(device_resident, "uuids_of", lambda devices: ["x"])
    monkeypatch.setattr(cuda, "describe", lambda: {"device": "a CPU"})
    monkeypatch.setattr(DeviceSession, "notes", lambda _: {"device": "a CPU"})


@pytest.mark.parametrize("internal", [False, True])
def test_results(device, internal):
    session = session_of(3, internal_ids=internal)
    for found in checked_searches(session, SOURCE):
        assert found.seconds > 0
        assert found.wall > 0
    session.close()


def test_records_levels_only_and_a_stop(device):
    session = session_of(2, parents=False)
    found = session.search(1, records=True)
    json.dumps(found.records)
    assert session.block(found)[1] is None
    assert [x["level"] for x in found.records] == [*range(1, found.levels)]
    assert sum(x["checks"] for x in found.records) > 0
    with pytest.raises(SearchStopped):
        session.search(1, stop=lambda: True)
    with pytest.raises(UsageError, match="source 256 is not a vertex"):
        session.search(256)


def test_graph500_takes_it_where_devices_see_each_other(device, peers, monkeypatch):
    monkeypatch.setattr(loading, "ALONE_BELOW", 0)
    session, said = built()
    assert (session.mode, said) == ("resident", [])
    told = session.describe()
    assert (told["method"], told["exchange"]) == ("resident", "none")
    root = int(SOURCE.degrees.argmax())
    found = session.search(root)
    level = joined(found.level, SOURCE.n)
    assert level.dtype == np.int8
    check_search(SOURCE, root, level.astype(np.int32), None)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"threshold": 8}, "--threshold is for parts with delegates"),
        ({"stepwise": True}, "levels by the host are asked for"),
        ({"exchange": "solo"}, "exchange solo is asked for"),
        ({"dd": Factors(1, 1)}, "dd is for parts with delegates"),
        ({"parts": 9}, "9 parts; resident searches are for up to 8"),
    ],
)
def test_what_else_is_asked_for(device, peers, told, why):
    session, said = built(**told)
    assert type(session) is DevicePartsSession
    assert said == [f"levels by the parts, not resident: {why}"]


def test_internal_ids_are_refused_where_levels_go_between_parts(device, peers):
    with pytest.raises(LaunchError, match="--internal-ids needs resident searches: 9"):
        built(parts=9, internal_ids=True)


def test_by_size(device, peers, monkeypatch):
    session, said = built()
    assert type(session) is AloneSession
    assert len(said) == 1
    monkeypatch.setattr(loading, "ALONE_BELOW", 1)
    session, said = built()
    assert type(session) is ResidentSession
    assert said == []
    session, said = built(exchange="host")
    assert type(session) is DevicePartsSession
    assert said == ["levels by the parts, not resident: exchange host is asked for"]


def test_results_of_a_search_are_gone_with_the_next(device):
    session = session_of(2)
    found = session.search(1)
    session.search(2)
    with pytest.raises(DistbfsError, match="results are gone"):
        list(found.level)
    session.close()


def at_address(address, count, dtype):
    """Memory of the emulated device, by its address."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)


@pytest.mark.parametrize("form", ["generate", "convert"])
def test_a_store_of_parts(device, peers, tmp_path, form, monkeypatch):
    """Searched by the device of each part, in input ids, with the input's counts."""
    monkeypatch.setattr(shared_tuples, "foreign_array", at_address)
    folder, edges = tmp_path / "graph", tmp_path / "edges.npy"
    words = ["generate", "kronecker", "--scale", "8"]
    if form == "convert":  # permutes vertices
        np.save(edges, np.stack([SOURCE.u, SOURCE.v], axis=1))
        words = ["convert", str(edges), "--vertices", str(SOURCE.n)]
    words += ["-o", str(folder), "--parts", "3", "--threshold", "6"]
    command = [sys.executable, "-m", "distbfs", *words]
    subprocess.run(command, check=True, capture_output=True)
    for below, kind, lines, stepwise in (
        (0, ResidentSession, 0, False),
        (1 << 20, AloneSession, 1, False),
        (0, DevicePartsSession, 1, True),
    ):
        monkeypatch.setattr(loading, "ALONE_BELOW", below)
        options = SearchOptions(engine="xbfs", stepwise=stepwise)
        choice = loading.Choice(options, XbfsEngine(options), parts=True, devices=(0,))
        terminal = Terminal()
        store = open_store(folder)
        session = loading.load_session(terminal, store, choice)
        assert type(session) is kind
        assert len(terminal.said) == lines
        for root in some_roots(SOURCE, 3):
            found = session.search(root)
            level, parent = session.block(found)
            if kind is not DevicePartsSession:  # blocks go by input id
                wanted = check_search(SOURCE, root, level, parent)
                counted = SOURCE.ends[wanted >= 0].sum() // 2
                assert session.traversed(found) == counted
            assert session.reached(found)[0] == (level >= 0).sum()
        session.close()


def test_why_it_is_not(device, monkeypatch):
    why = "several parts are on one device"
    monkeypatch.setattr(device_resident, "peer_problem", lambda *_: why)
    options = SearchOptions(engine="xbfs")
    ask = (SoloWorld(), options)
    assert resident_reason(*ask, 1 << 32, 2, [0, 1]).startswith("4294967296 vertices")
    assert resident_reason(*ask, 256, 2, [0, 0]) == why
    assert resident_reason(*ask, 256, 1, [0]) == ""


@pytest.mark.parametrize("method", ["resident", "captured", "auto"])
def test_no_method_says_where_searches_run(device, method):
    options = SearchOptions(engine="xbfs", method=method)
    for whole in (False, True):
        with pytest.raises(UsageError, match=f"'{method}'; allowed: fast, paper"):
            XbfsEngine.check(options, whole=whole)
