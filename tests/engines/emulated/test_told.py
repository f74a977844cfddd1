"""Building on devices, searching and validating say how far they are."""

import re
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from constructed_parts import on_devices
from emulated_device import EmulatedDevice
from graphs import kronecker, random_tuples
from resident_parts import resident_parts
from worlds import on_ranks

from distbfs.build.cuda import chunks
from distbfs.build.cuda import graph as device_build
from distbfs.build.cuda import keys as device_keys
from distbfs.cli import comparison
from distbfs.cli import graphs as storing
from distbfs.cli import shared as common
from distbfs.device.rates import Rates
from distbfs.engines.cuda.pan import search as part
from distbfs.generate.kronecker import Kronecker
from distbfs.options import BuildOptions, SearchOptions
from distbfs.progress import Sum
from distbfs.ranks.world import SoloWorld
from distbfs.search import choose as choosing
from distbfs.search.choose import Request
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.store.hdf5 import open_store
from distbfs.store.write import write_graph

sys.path.append(str(Path(__file__).parents[2] / "cli"))

from commands import here

HELD, MADE = kronecker(8), Kronecker(8)  # tuples of the host, and of a kernel
CHUNK = 500


class Told:
    """What one piece of work told: what was done, and of how much."""

    def __init__(self, total=0):
        self.done, self.total = [0], total

    def __call__(self, done, total=None):
        assert done >= self.done[-1]
        self.done.append(done)
        self.total = self.total if total is None else total

    def check(self):
        """All was done in the end, and never much at once; return how much."""
        assert self.done[-1] == self.total
        assert np.diff(self.done, prepend=0).max() <= CHUNK
        return self.total


class Labels(dict):
    """What was told by label, in the place of a terminal."""

    @contextmanager
    def __call__(self, label, total):
        self[label] = Told(total)
        yield self[label]


@pytest.fixture(autouse=True)
def few_at_once(device, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", CHUNK)
    monkeypatch.setattr(device_keys, "SLACK", 0)
    monkeypatch.setattr(part, "BLOCKS", dict.fromkeys(part.BLOCKS, 1))


@pytest.mark.parametrize("directed", [False, True])
def test_all_passes_over_tuples(directed):
    """One where they are kept; else one to count them, and one for each range."""

    def passes(source, **options):
        told = Told()
        device_build.build(source, directed=directed, done=Sum(told), **options)
        count, rest = divmod(told.check(), source.tuples)
        assert not rest
        return count

    assert passes(HELD) == passes(HELD, buffer_bytes=1 << 13) == passes(MADE) == 1
    assert passes(MADE, buffer_bytes=1 << 13) > 10


@pytest.mark.parametrize("buffer_bytes", [None, 1, 5000])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("make", [on_devices, resident_parts])
def test_all_passes_of_all_parts(make, parts, buffer_bytes):
    told = Told()
    _, summary = make(MADE, parts, buffer_bytes=buffer_bytes, done=Sum(told))
    assert told.check() == summary.passes * MADE.tuples


@pytest.mark.parametrize("make", [on_devices, resident_parts])
def test_every_rank_counts_its_own_passes(monkeypatch, make):
    monkeypatch.setattr(EmulatedDevice, "check", lambda *_: None)

    def rank(world):
        told = Told()
        _, summary = make(MADE, 4, world, done=Sum(told))
        return told.check(), summary.passes

    counts, (passes, others) = zip(*on_ranks(2, rank), strict=True)
    assert passes == others == max(counts) // MADE.tuples
    assert all(count and count % MADE.tuples == 0 for count in counts)


@pytest.mark.parametrize("threshold", [0, 1 << 40])
@pytest.mark.parametrize("count", [0, 700])
def test_parts_without_rows_and_with_more_than_their_share(threshold, count):
    u = np.arange(count) * 2 % 97
    source = random_tuples(97, count, 1)
    source.u, source.v = u - u % 2, (u * 7) % 97 // 2 * 2
    told = Told()
    on_devices(source, 2, threshold=threshold, buffer_bytes=5000, done=Sum(told))
    told.check()


PLACES = {
    "device": ([0], {}, Request()),
    "domain": ([0, 0, 0], {}, Request(domain=3)),
    "separated": ([0], {"threshold": 4}, Request(3, "--parts")),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("stored", [False, True])
def test_graphs_on_their_way_to_devices(tmp_path, monkeypatch, place, stored):
    """Wherever they are searched, and whatever they are made of."""
    devices, options, request = PLACES[place]
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: devices)
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    build, labels = BuildOptions(**options), Labels()
    if stored:
        write_graph(SoloWorld(), HELD, tmp_path / "graph", 3, BuildOptions(threshold=4))
        store = open_store(tmp_path / "graph")
        request = Request(domain=request.domain)
        source = Source(HELD.n, 3, store=store, progress=labels)
    else:
        count = request.parts or 1
        source = Source(HELD.n, count, tuples=MADE, build=build, progress=labels)
    engine = "pan" if place == "separated" else "xbfs"
    open_source(SoloWorld(), source, SearchOptions(engine=engine), request).close()
    told = ["loading"] if stored else ["building"]
    told += ["building"] if stored and place == "domain" else []
    assert list(labels) == told
    if "building" in told:
        labels["building"].check()
    if "loading" in told:
        assert labels["loading"].done[-1] == labels["loading"].total


@pytest.mark.parametrize("words", [("--parts", 3, "--threshold", 16), ()])
def test_commands_that_build_on_devices(tmp_path, monkeypatch, words):
    monkeypatch.setattr(storing, "take_devices", lambda *_, **__: [0])
    monkeypatch.setattr(common, "LINE_SECONDS", 0)
    monkeypatch.setattr(device_keys, "SLACK", 1 << 20)  # one pass a round
    edges, graph = tmp_path / "edges.npy", tmp_path / "graph"
    np.save(edges, np.stack([HELD.u, HELD.v], axis=1))
    for line in (
        ("generate", "kronecker", "-s", 8, "-o", graph),
        ("convert", edges, "-o", tmp_path / "converted"),
        ("partition", graph, "-o", tmp_path / "other"),
    ):
        done = here(*line, "--on-devices", *words)
        assert done.code == 0, done.err
        percent = [int(x) for x in re.findall(r"building: (\d+) %", done.err)]
        assert len(percent) >= 8
        assert percent == sorted(percent)
        assert percent[-1] == 100
        assert ("loading: " in done.err) == (line[0] == "partition")
        for index in range(3 if words else 1):
            assert f"writing part {index}: 100 %" in done.err


def test_knobs_are_compared(monkeypatch, tmp_path):
    """Which are best, one beside the other, on one graph."""
    made = Rates("cuda", 1e9, 64, 1e9)
    monkeypatch.setattr(comparison, "device_rates", lambda bits, link: made)
    entries = ("bfs4k", "bfs4k:k1=8", "bfs4k:k1=8,ext=no")
    store = tmp_path / "graph"
    assert here("generate", "kronecker", "-s", 6, "-o", store).code == 0
    words = (store, "--sources", 1, "--engines", ",".join(entries))
    done = here("compare", *words, "--json")
    assert done.code == 0, done.err
    engines = done.values["engines"]
    assert [x["engine"] for x in engines] == [*entries]
    knobs = [x["search"]["knobs"] for x in engines]
    assert knobs == ["auto", {"k1": 8}, {"k1": 8, "ext": False}]


def test_searches_and_validations_are_told_one_by_one(monkeypatch):
    monkeypatch.setattr(common, "LINE_SECONDS", 0)
    done = here("graph500", "--scale", 8, "--roots", 5, "--validate", 3)
    assert done.code == 0, done.err
    percent = re.findall(r"searching: (\d+) %", done.err)
    assert percent == ["12", "25", "37", "50", "62", "75", "87", "100"]
    assert "building: 100 %" in done.err
