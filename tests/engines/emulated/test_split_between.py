"""Searches between domains whose rows have tails in host memory."""

import gc
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from device_parts import LARGE, device_parts
from fast_graphs import HUGE, beside, path, shuffled, star
from graphs import check_search, complete, kronecker, some_roots, uniform
from masked_graphs import random_way, see_between
from resident_parts import NOTHING
from sessions import open_tuples
from test_between_kernels import StreamedThreads, one_each, streamed
from test_split_rows import rows_of
from thread_peers import ThreadPeers
from worlds import on_ranks

import distbfs
from distbfs.build.cuda import chunks, inner, inner_domains
from distbfs.build.cuda import keys as device_keys
from distbfs.build.cuda import room as room_of_builds
from distbfs.build.cuda.parts import construct_on_devices
from distbfs.build.cuda.room import EVERY, LEAST_KEPT, Fit, Room
from distbfs.engines.cuda.xbfs.engine import XbfsEngine
from distbfs.engines.cuda.xbfs.memory import FIXED, part_bytes
from distbfs.errors import OutOfMemory
from distbfs.generate import cuda as device_tuples
from distbfs.graph.device_graph import COLUMN_PAD
from distbfs.options import BuildOptions, SearchOptions
from distbfs.partition.layout import Placement
from distbfs.plan.memory import PartShape, readable
from distbfs.ranks.world import SoloWorld
from distbfs.registry import EXCHANGES
from distbfs.search import choose as choosing
from distbfs.search import device_opening, domain_group
from distbfs.search.choose import Request
from distbfs.types import SUBGRAPHS

sys.path.append(str(Path(__file__).parents[2] / "cli"))

from commands import here

pytestmark = pytest.mark.usefixtures("device")
GRAPHS = {
    "kronecker": kronecker(8),
    "uniform": uniform(300, 5400),
    "star": shuffled(star(500)),
    "blobs": shuffled(beside(complete(60), uniform(300, 2000))),
    "path": shuffled(path(16)),
}
SLACK = 16 << 10  # bytes of upper bounds, for a part
SIZES = ((1, 1), (2, 1), (1, 1, 1), (2, 2))
DIRECTIONS = ("auto", "push", "pull", "auto", "push")
WAYS = (
    *({}, {"mark_edges": 0, "pull_edges": HUGE}, {"pull_edges": 0}),
    *({"mark_edges": HUGE, "pull_edges": HUGE}, {"pull_tails": 1}),
)


def shares_of(placed, sizes, room=None):
    """The shares of all devices, by one rank."""
    every = one_each(sizes).domains
    own = [every.shares_of(domain) for domain in range(len(sizes))]
    groups = [[placed[share] for share in shares] for shares in own]
    world = SoloWorld()
    made = inner_domains.inner_domains(groups, every, world, world, room)
    return [share for shares in made for share in shares]


def budgets(placed, sizes, monkeypatch, state=NOTHING):
    """The bytes that keep the least of a share on its device, and those that keep all.

    Then those that keep the least, or all where that takes less. As a build itself
    counts them, of the share that needs most.
    """
    seen, most = [], Fit.most

    def watch(fit):
        every = fit.total + COLUMN_PAD
        heads = fit.at(LEAST_KEPT).device_bytes
        seen.append((fit.fixed + heads, fit.fixed + 4 * every))
        return most(fit)

    with monkeypatch.context() as patch:
        patch.setattr(Fit, "most", watch)
        shares_of(placed, sizes, Room(None, None, state))
    least, every = np.array(seen).max(axis=0).tolist()
    return least, max(least, every), int(np.array(seen).min(axis=1).max())


@pytest.mark.parametrize(
    ("name", "thresholds"),
    [
        ("kronecker", (12, LARGE)),
        ("star", (0, 12)),
        ("blobs", (0, LARGE)),
        ("path", (0,)),
    ],
)
def test_from_the_least_to_all_on_the_devices(monkeypatch, name, thresholds):
    """Rows are those of whole ones; what is found is right, whatever is where."""
    monkeypatch.setattr(inner, "KEYS", 700)  # of a range of rows
    source = GRAPHS[name]
    turn = list(GRAPHS).index(name)
    for k, threshold in enumerate(thresholds):
        sizes = SIZES[(turn + k) % len(SIZES)]
        placed = device_parts(source, sum(sizes), threshold=threshold)
        whole = shares_of(placed, sizes)
        least, every, _ = budgets(placed, sizes, monkeypatch)
        kept = []
        for share in (0, 0.4, 1)[k == 1 :]:
            limit = int(least + share * (every - least))
            room = Room(limit, None, NOTHING)
            all_of_one = Room(limit * len(placed), None, NOTHING)
            made = shares_of(placed, sizes, all_of_one)
            for one, wanted in zip(made, whole, strict=True):
                assert one.m == wanted.m
                for row, same in zip(rows_of(one), rows_of(wanted), strict=True):
                    np.testing.assert_array_equal(row, same)
            columns = {x.out.tails.kept if x.out.tails else EVERY for x in made}
            assert len(columns) == 1, "all devices keep as many columns of a row"
            kept += columns
            if share < 1:
                way = {"overrides": WAYS[(turn + len(kept)) % len(WAYS)], "count": 1}
                streamed(source, sizes, threshold=threshold, room=room, **way)
        assert kept == sorted(kept)
        assert kept[0] >= LEAST_KEPT
        assert kept[-1] == EVERY


@pytest.fixture
def split(monkeypatch):
    """What lets rows keep the least on their device, whatever that has."""
    monkeypatch.setattr(Fit, "most", lambda _: LEAST_KEPT)
    return Room(None, None, NOTHING)


@pytest.mark.parametrize("sizes", SIZES)
def test_each_way_with_the_least_on_the_devices(monkeypatch, split, sizes):
    """Columns of tails are counted; searches that end early."""
    if sum(sizes) == 3:
        monkeypatch.setattr(device_tuples, "NARROW", 1)  # ids of 64 bits
    turn = SIZES.index(sizes)
    for k, (name, threshold) in enumerate((("kronecker", 30), ("blobs", LARGE))):
        source, read = GRAPHS[name], 0
        root = int(source.degrees.argmax())
        far = np.array([int(source.distances(root).argmax())])
        forms = list(zip(WAYS, DIRECTIONS, strict=True))
        for way, direction in forms[(turn + k) % 2 :: 2]:
            seen, form = [], {"threshold": threshold, "room": split, "roots": [root]}
            form |= {"overrides": way, "seen": seen, "records": direction != "auto"}
            streamed(source, sizes, direction=direction, **form)
            for record in (x for found in seen for x in found.records):
                tails, brought = record["tail_edges"], record["tail_bytes"]
                assert tails <= record["checks"]["inner"]
                assert 4 * tails <= brought <= 128 * tails
                assert brought % 128 == 0
                read += tails
            if not form.pop("records"):
                streamed(source, sizes, ((1, None), (None, far)), **form)
        assert read


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", SIZES[::3])
def test_views_of_split_rows(split, sizes):
    for name, way in (("kronecker", {}), ("blobs", WAYS[1]), ("kronecker", WAYS[2])):
        source = GRAPHS[name]
        make, left = random_way(source, 1, 0.7)

        def before(runner, world, make=make, left=left):
            see_between(runner, make, left, world)

        form = {"threshold": 30, "room": split, "overrides": way}
        streamed(source, sizes, before=before, left=left, **form)


@pytest.mark.thorough
@pytest.mark.parametrize(("ranks", "size"), [(1, 1), (3, 1), (2, 2)])
def test_sessions_say_what_is_held_back(device, monkeypatch, ranks, size):
    """Domains of devices of one process, and of ranks; and what is refused."""
    source, lent = kronecker(9), [0] * (1 if ranks > 1 and size == 1 else 2)
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: lent)
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    monkeypatch.setattr(device_opening, "PeerGroup", ThreadPeers)
    monkeypatch.setattr(domain_group, "PeerGroup", ThreadPeers)
    monkeypatch.setattr(room_of_builds, "memory_limit", lambda: None)
    exchange = f"{StreamedThreads.__module__}:{StreamedThreads.__name__}"
    monkeypatch.setitem(EXCHANGES, "host", exchange)
    device.one_rank = ranks > 1 or size > 1
    device.of_rank.devices = len(lent)
    roots = some_roots(source, 2)

    def rank(world, **limits):
        session = open_tuples(
            source,
            world=world,
            request=Request(domain=size),
            engine="xbfs",
            exchange="host",
            threshold=40 if size == 1 else LARGE,
            **limits,
        )
        found = [session.search(root).to_numpy() for root in roots]
        records = session.search(roots[0], records=True).records
        about = session.why, session.describe()["part"], records
        session.close()
        return found, *about

    def all_ranks(**limits):
        if ranks == 1:
            return [rank(SoloWorld(), **limits)]
        return on_ranks(ranks, lambda world: rank(world, **limits))

    seen, most = [], Fit.most

    def watch(fit):
        seen.append(fit.fixed + fit.at(LEAST_KEPT).device_bytes)
        return most(fit)

    monkeypatch.setattr(Fit, "most", watch)
    _, _, facts, records = all_ranks()[0]
    assert "held_back" not in facts
    keys = {"extra", "tail_edges", "tail_bytes"}
    assert not any(keys & set(record) for record in records)
    least = len(lent) * max(seen)  # they share a device
    said = all_ranks(device_memory=least + 4000, host_memory=1 << 20)
    held = sum(facts["held_back"] for _, _, facts, _ in said)
    share = held / source.matrix.nnz
    assert share > 0.05
    for _, why, facts, records in said:
        assert f"{share:.3g} of the edges are in host memory" in why
        assert f"beyond {facts['kept']} of a row" in why
        assert all(x["tail_edges"] <= x["checks"]["inner"] for x in records)
        assert all("extra" not in x for x in records)
    for k, root in enumerate(roots):
        pieces = [found[k] for found, *_ in said]
        level, parent = (np.concatenate([x[i] for x in pieces]) for i in (0, 1))
        check_search(source, root, level, parent)
    for limits, words in (
        ({"device_memory": least // 2}, "8 columns of a row there, and"),
        ({"device_memory": least, "host_memory": held}, f"are {readable(held)}"),
        ({"device_memory": 1000, "host_memory": 100}, "directed edges need .* hosts"),
    ):
        with pytest.raises(OutOfMemory, match=words):
            all_ranks(**limits)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("id_bits", "sizes"), [(32, (2, 1)), (64, (1, 1, 1))], indirect=["id_bits"]
)
def test_subgraphs_in_host_memory(monkeypatch, id_bits, split, sizes):
    """Where a device has no room for them; then rows are made of what is there."""
    monkeypatch.setattr(device_keys, "SLACK", 100)
    monkeypatch.setattr(chunks, "CHUNK", 1777)
    source, placement = GRAPHS["kronecker"], Placement(sum(sizes), 1)
    little = Room(1, None, NOTHING)

    def parts(room, buffer_bytes=5000):
        form = {"buffer_bytes": buffer_bytes, "room": room}
        build = BuildOptions(threshold=30)
        made, _ = construct_on_devices(source, SoloWorld(), placement, build, **form)
        for part in made:
            part.kept = False
        return made

    def on_host(made):
        return {part.host_bytes > 0 for part in made}

    near, far = parts(None), parts(little)
    assert (on_host(near), on_host(far)) == ({False}, {True})
    assert on_host(parts(little, None)) == {False}, "all keys fit at once"
    assert on_host(parts(Room(1, 1, NOTHING))) == {False}, "nor has the host room"
    for part, wanted in zip(far, near, strict=True):
        for name in SUBGRAPHS:
            rows, same = getattr(part, name), getattr(wanted, name)
            assert rows.edges == same.edges
            for field in ("offsets", "columns"):
                values = getattr(rows, field).get()
                np.testing.assert_array_equal(values, getattr(same, field).get())
    with pytest.raises(OutOfMemory, match="and the subgraphs of parts need"):
        shares_of(far, sizes, Room(None, 4 * source.matrix.nnz, NOTHING))
    every = zip(shares_of(far, sizes, split), shares_of(near, sizes), strict=True)
    for one, wanted in every:
        assert one.held_back
        for row, same in zip(rows_of(one), rows_of(wanted), strict=True):
            np.testing.assert_array_equal(row, same)


@pytest.mark.parametrize(
    ("id_bits", "sizes"),
    list(zip((32, 64, 32, 64), SIZES, strict=True)),
    indirect=["id_bits"],
)
def test_outer_edges_in_host_memory(monkeypatch, id_bits, sizes):
    """Where a device has no room for them; searches, of views, too, are right."""
    source = GRAPHS["uniform"]
    placed = device_parts(source, sum(sizes), threshold=45)
    whole = shares_of(placed, sizes)
    largest = max(share.out.outer.device_bytes for share in whole)
    few = budgets(placed, sizes, monkeypatch)[2]
    few -= min(len(share.out.outer.columns) for share in whole)
    room = Room(few * len(placed), None, NOTHING)
    made = shares_of(placed, sizes, room)
    assert any(share.out.outer.on_host for share in made)
    for share, wanted in zip(made, whole, strict=True):
        assert share.out.outer.host_bytes == share.out.outer.on_host * 4 * len(
            wanted.out.outer.columns
        )
        assert share.out.outer.device_bytes + share.out.outer.host_bytes <= largest
        for array, same in zip(
            share.out.outer.arrays, wanted.out.outer.arrays, strict=True
        ):
            np.testing.assert_array_equal(array.get(), same.get())
    direction = ("auto", "push", "pull", "auto")[SIZES.index(sizes)]
    form = {"threshold": 45, "room": room, "direction": direction}
    streamed(source, sizes, records=direction != "auto", **form)
    make, left = random_way(source, 1, 0.7)

    def before(runner, world):
        see_between(runner, make, left, world)

    streamed(source, sizes, before=before, left=left, threshold=45, room=room)
    none = Room(few * len(placed), 100, NOTHING)
    with pytest.raises(OutOfMemory, match="outer edges and the subgraphs of parts"):
        shares_of(placed, sizes, none)
    with pytest.raises(OutOfMemory, match="8 columns of a row there"):
        shares_of(placed, sizes, Room(few, None, NOTHING))


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(1, 1), (2, 1)])
def test_devices_keep_to_their_limit(device, monkeypatch, sizes):
    """With nearly all that they may have in use."""
    source, engine = uniform(6000, 200_000), XbfsEngine(SearchOptions(engine="xbfs"))

    def state(counts):
        return engine.search_bytes(counts) - FIXED

    def placed():
        made = device_parts(source, sum(sizes), threshold=60)
        for part in made:
            part.kept = False
        return made

    def allocated():
        gc.collect()
        device.check("allocation")
        return device.arrays.bytes

    least, every, _ = budgets(placed(), sizes, monkeypatch, state)
    limit, before = (least + every) // 2, allocated()
    parts = placed()
    made = shares_of(parts, sizes, Room(limit * len(parts), None, state))
    searches, start = [], 0
    for size in sizes:
        group, world = ThreadPeers(SoloWorld(), range(size)), SoloWorld()
        shares = made[start : start + size]
        searches += engine.of_shares(shares, world, group if size > 1 else None)
        start += size
    assert all(share.held_back for share in made)
    used = allocated() - before
    assert used <= limit * len(parts) <= 1.25 * used + len(parts) * SLACK


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(2, 2), (2, 2, 2)])
@pytest.mark.parametrize("threshold", [12, 60, LARGE])
def test_the_plan_knows_domains_of_several_devices(device, id_bits, sizes, threshold):
    """At least what is allocated, and not much more."""
    source, parts = kronecker(13), sum(sizes)
    engine, outer = XbfsEngine(SearchOptions(engine="xbfs")), 0
    placed = device_parts(source, parts, threshold=threshold)

    def allocated():
        gc.collect()
        device.check("allocation")
        return device.arrays.bytes

    before, planned = allocated(), 0
    made, world, searches = shares_of(placed, sizes), SoloWorld(), []
    for start in range(0, parts, 2):
        group = ThreadPeers(world, range(2))
        searches += engine.of_shares(made[start : start + 2], world, group)
    used = allocated() - before
    for part in placed:
        owned = int((part.layout.part_of(part.delegates) == part.index).sum())
        edges = {name: getattr(part, name).edges for name in SUBGRAPHS}
        counts = part.delegate_count, part.local_count, part.active, owned
        shape = PartShape(source.n, parts, *counts, edges, 0, domain=2)
        sizes_of = part_bytes(shape, multiprocessors=2)
        kinds = ("inner", "search", "messages")
        planned += sum(sizes_of[kind] for kind in kinds) - FIXED
        outer += sizes_of["outer"]
    assert used <= planned
    assert planned <= 1.3 * used + parts * SLACK
    real = sum(4 * len(share.out.outer.columns) for share in made)
    assert outer == pytest.approx(real, rel=0.1)
    assert len(searches) == parts


def test_commands_and_python(device, monkeypatch, tmp_path):
    """Of tuples and of a store with as many parts; what fits nowhere ends alike."""
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0, 0])
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    monkeypatch.setattr(device_opening, "PeerGroup", ThreadPeers)
    monkeypatch.setattr(domain_group, "PeerGroup", ThreadPeers)
    store, log = tmp_path / "graph", tmp_path / "levels.jsonl"
    limits = ("--domain", 1, "--engine", "xbfs", "--device-memory")
    here("generate", "kronecker", "--scale", 9, "--parts", 2, "-o", store)
    with monkeypatch.context() as patch:
        patch.setattr(Fit, "most", lambda _: LEAST_KEPT)
        form = (*limits, "40MiB", "--roots", 2, "--records", log)
        told = here("graph500", "--scale", 9, *form)
        assert "validated together:           2 of 2" in told.out
        assert "of the edges are in host memory" in told.out
        assert sum(json.loads(x)["tail_bytes"] for x in log.open()) > 0
        told = here("bfs", store, "--source", 1, *limits, "40MiB")
        assert told.code == 0
        assert "beyond 8 of a row" in told.err
        for size in (1 << 30, 10_000):  # as it is, and as tuples
            with distbfs.open(store, domain=1, device_memory=size) as one:
                check_search(kronecker(9), 1, *one.search(1).to_numpy())
                about = one.describe()["part"]
                assert about["kept"] == LEAST_KEPT
                assert ("making" in about) == (size < 1 << 30)
    few = ("1KiB", "--host-memory", "1KiB")
    for size, words in ((few, "edges need"), (("1MiB",), "8 columns of a row there")):
        told = here("bfs", store, "--source", 1, *limits, *size)
        assert told.code == 3
        assert words in told.err
        assert told.err.count("\n") == 1
