"""Domains whose rows have tails in host memory, from budgets of the least to all."""

import gc

import numpy as np
import pytest
from device_graphs import hubs
from device_parts import joined
from fast_graphs import HUGE, path, shuffled, star
from graphs import check_search, complete, grid, kronecker, some_roots, uniform
from resident_parts import (
    NOTHING,
    budgets,
    look,
    resident_driver,
    resident_parts,
    row_ends,
)
from sessions import open_tuples
from test_split_rows import rows_of
from thread_peers import ThreadPeers
from worlds import on_ranks

from distbfs.build.cuda import chunks, rows
from distbfs.build.cuda import keys as device_keys
from distbfs.build.cuda import room as room_of_builds
from distbfs.build.cuda.room import EVERY, LEAST_KEPT, Fit, Room
from distbfs.engines.base import Until
from distbfs.engines.cuda.xbfs.engine import XbfsEngine
from distbfs.engines.cuda.xbfs.memory import FIXED
from distbfs.errors import OutOfMemory
from distbfs.options import SearchOptions
from distbfs.plan.memory import readable
from distbfs.ranks.world import SoloWorld
from distbfs.search import choose as choosing
from distbfs.search import device_opening, domain_group
from distbfs.search.choose import Request

pytestmark = pytest.mark.usefixtures("device")
SLACK = 16 << 10  # bytes of upper bounds, for a part
GRAPHS = {
    "kronecker": lambda: kronecker(9),
    "uniform": lambda: uniform(400, 7000),
    "star": lambda: shuffled(star(900)),
    "complete": lambda: complete(60),
    "hubs": lambda: hubs(3, 1800),
    "granules": lambda: uniform(5000, 30_000, hub=4000),
    "path": lambda: shuffled(path(30)),
    "grid": lambda: grid(14),
}
WAYS = (
    *({}, {"mark_edges": 0, "pull_edges": HUGE}, {"pull_edges": 0}),
    *({"mark_edges": HUGE, "pull_edges": HUGE}, {"pull_tails": 1}),
)


@pytest.mark.parametrize(
    ("name", "parts"), [(name, 2 + 2 * (k % 2)) for k, name in enumerate(GRAPHS)]
)
def test_from_the_least_to_all_on_the_devices(monkeypatch, name, parts):
    source = GRAPHS[name]()
    whole, _ = resident_parts(source, parts)
    least, every = budgets(source, parts, monkeypatch)
    kept = []
    for k, share in enumerate((0, 0.3 if parts == 2 else 0.9, 1)):
        room = Room(int(least + share * (every - least)), None, NOTHING)
        told = {"internal_ids": k % 2 == 0, "overrides": WAYS[(k + parts) % len(WAYS)]}
        driver = resident_driver(source, parts, room=room, **told)
        rows = [search.part for search in driver._parts]
        for part, wanted in zip(rows, whole, strict=True):
            assert part.m == wanted.m
            for row, same in zip(rows_of(part), rows_of(wanted), strict=True):
                np.testing.assert_array_equal(row, same)
        tails = {part.out.tails and part.out.tails.kept for part in rows}
        assert len(tails) == 1, "all devices keep as many columns of a row"
        kept += [x or EVERY for x in tails]
        look(driver, source, some_roots(source, 2)[k % 2], records=k % 2 == 1)
        driver.close()
    assert kept == sorted(kept)
    assert kept[0] >= LEAST_KEPT
    assert kept[-1] == EVERY
    if row_ends(source).max() > LEAST_KEPT and least < every:
        assert kept[0] < EVERY


def test_each_way_with_the_least_on_the_devices(monkeypatch):
    """Columns of tails are counted; searches that end early, and from sets."""
    for k, name in enumerate(("kronecker", "hubs", "uniform")):
        source, parts = GRAPHS[name](), 2 + k % 3
        room = Room(budgets(source, parts, monkeypatch)[0], None, NOTHING)
        root = int(source.degrees.argmax())
        level = source.distances(root)
        target = int(np.flatnonzero(level > 0)[-1])
        roots = np.unique([root, target, *some_roots(source, 3)])
        every = np.array([source.distances(x) for x in roots.tolist()])
        nearest = np.where(every < 0, source.n, every).min(axis=0)
        nearest[(every < 0).all(axis=0)] = -1
        for way in WAYS[k % 2 :: 2]:
            driver = resident_driver(source, parts, room=room, overrides=way)
            kept = driver._parts[0].part.out.tails.kept
            beyond = np.maximum(source.degrees - kept, 0)
            read = 0
            for depth, x in enumerate(look(driver, source, root, records=True).records):
                tails = x["tail_edges"]
                if x["direction"].startswith("push"):
                    assert tails == beyond[level == depth].sum()
                assert tails <= x["checks"]
                read += tails
            assert read
            for until in (Until(depth=1), Until(targets=np.array([target]))):
                look(driver, source, root, until=until)
            found = driver.search(roots)
            np.testing.assert_array_equal(joined(found.level, source.n), nearest)
            driver.close()


@pytest.mark.parametrize("buffer_bytes", [1, 5000])
def test_passes(monkeypatch, buffer_bytes):
    """Rows that come in ranges, some of them with tails and some without."""
    source = kronecker(8, 8)
    limit = budgets(source, 2, monkeypatch)[0] + 2000
    monkeypatch.setattr(device_keys, "SLACK", 100)
    monkeypatch.setattr(chunks, "CHUNK", 1777)
    whole, _ = resident_parts(source, 2)

    def rank(world):
        room = Room(limit + 1000 * world.rank, None, NOTHING)
        told = {"buffer_bytes": buffer_bytes, "room": room}
        return resident_parts(source, 2, world, **told)[0]

    made = rank(SoloWorld())
    for found in (made, [part for parts in on_ranks(2, rank) for part in parts]):
        assert len({part.out.tails.kept for part in found}) == 1
        for part, wanted in zip(found, whole, strict=True):
            assert part.held_back
            for row, same in zip(rows_of(part), rows_of(wanted), strict=True):
                np.testing.assert_array_equal(row, same)


def test_what_fits_in_neither_is_said_by_all_ranks(monkeypatch):
    source = GRAPHS["kronecker"]()
    least, every = budgets(source, 2, monkeypatch)

    def refusals(room):
        """Return what both of two ranks say; room: of each."""

        def rank(world):
            with pytest.raises(OutOfMemory) as caught:
                resident_parts(source, 2, world, room=room(world.rank))
            return str(caught.value)

        said = on_ranks(2, rank)
        assert said[0] == said[1]
        return said[0]

    said = refusals(lambda rank: Room((least - 2000, every)[rank], None, NOTHING))
    assert said.startswith("rank 0: part 0 of")
    assert "8 columns of a row there, and" in said
    some = resident_parts(source, 2, room=Room(least, None, NOTHING))[0]
    held = 4 * sum(part.held_back for part in some)
    said = refusals(lambda rank: Room(least, (held // 2, held)[rank], NOTHING))
    assert "tails of rows need" in said
    assert f"there are {readable(held // 2)}" in said

    def refuse(*_):
        raise OutOfMemory("tails of rows: 1 bytes of host memory cannot be pinned")

    monkeypatch.setattr(rows, "pinned", refuse)
    said = refusals(lambda _: Room(least, None, NOTHING))
    assert said == "tails of rows: 1 bytes of host memory cannot be pinned"


@pytest.mark.parametrize("ranks", [1, 2])
def test_sessions_say_what_is_held_back(device, monkeypatch, ranks):
    """Two devices of one process, and one rank per device; with what plans count."""
    source, lent = kronecker(10), [0] * (2 // ranks)
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: lent)
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    monkeypatch.setattr(device_opening, "PeerGroup", ThreadPeers)
    monkeypatch.setattr(domain_group, "PeerGroup", ThreadPeers)
    monkeypatch.setattr(room_of_builds, "memory_limit", lambda: None)
    device.one_rank = ranks > 1
    request = Request(domain=2)
    roots = some_roots(source, 2)

    def rank(world, **limits):
        session = open_tuples(
            source, world=world, request=request, engine="xbfs", **limits
        )
        found = [session.search(root).to_numpy() for root in roots]
        about = session.why, session.describe()["part"], session.paths.refusal
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
    assert "held_back" not in all_ranks()[0][2]
    said = all_ranks(device_memory=max(seen) + 4000, host_memory=1 << 20)
    held = sum(facts["held_back"] for _, _, facts, _ in said)
    share = held / source.matrix.nnz
    assert share > 0.1
    for _, why, facts, _ in said:
        assert f"{share:.3g} of the edges are in host memory" in why
        assert f"{readable(2 * held)} a device), beyond {facts['kept']} of a row" in why
    for k, root in enumerate(roots):
        pieces = [found[k] for found, *_ in said]
        level, parent = (np.concatenate(x) for x in zip(*pieces, strict=True))
        check_search(source, root, level, parent)
    for limits, words in (
        ({"device_memory": 1000}, "8 columns of a row there"),
        ({"device_memory": max(seen), "host_memory": 100}, "there are 100 B"),
    ):
        with pytest.raises(OutOfMemory, match=words):
            all_ranks(**limits)


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [1, 2])
def test_devices_keep_to_their_limit(device, monkeypatch, parts):
    """With nearly all that they may have in use."""
    source = uniform(6000, 200_000)
    engine = XbfsEngine(SearchOptions(engine="xbfs", direction="push"))

    def state(counts):
        return engine.search_bytes(counts) - FIXED

    def allocated():
        gc.collect()
        device.check("allocation")
        return device.arrays.bytes

    limit = sum(budgets(source, parts, monkeypatch, state)) // 2
    before = allocated()
    room = Room(limit, None, state)
    driver = resident_driver(source, parts, room=room, direction="push")
    used = allocated() - before
    assert driver._parts[0].part.held_back
    assert used <= parts * limit <= 1.25 * used + parts * SLACK
    look(driver, source, 0)
    driver.close()
