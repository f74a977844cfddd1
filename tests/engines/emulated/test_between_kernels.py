"""Searches of parts by engine xbfs between domains, with the kernels run on the CPU."""

from contextlib import nullcontext
from itertools import pairwise, product

import numpy as np
import pytest
from covering import covered
from device_parts import (
    LARGE,
    check,
    device_parts,
    driver_of,
    joined,
    share_searches,
)
from emulated_device import Stream
from fast_graphs import HUGE, binary_tree, bipartite, star
from graphs import build, grid, kronecker, some_roots, uniform
from part_graphs import GRAPHS, SMALL
from thread_peers import ThreadPeers
from worlds import ThreadExchange, on_ranks

from distbfs.build.cuda import inner, inner_domains
from distbfs.build.cuda.seen import target_ids
from distbfs.device import cuda
from distbfs.device.array_table import total_bytes
from distbfs.engines import streamed as streams
from distbfs.engines.base import Until
from distbfs.engines.cuda.xbfs import arrays, between_params
from distbfs.errors import UsageError
from distbfs.exchange.host import HostExchange
from distbfs.exchange.relay import RelayExchange
from distbfs.exchange.traffic import KINDS
from distbfs.graph.csr import CSR
from distbfs.options import ExchangeOptions, SearchOptions
from distbfs.partition.layout import Domains, Placement
from distbfs.partition.share import Share
from distbfs.ranks.world import SoloWorld
from distbfs.registry import ENGINES, lookup
from distbfs.search.domains import split_by_domain
from distbfs.search.runners import seat
from distbfs.search.runners import streamed as ahead
from distbfs.search.runners.between import BetweenDomains
from distbfs.types import SUBGRAPHS


def each_pair(names, *values):
    """Mark a test with combinations of bits of ids and other values: any two meet."""
    names = f"id_bits, {names}"
    indirect = ["id_bits", *["short_boxes"] * ("short_boxes" in names)]
    return pytest.mark.parametrize(names, covered((32, 64), *values), indirect=indirect)


@each_pair("parts, threshold, name", [1, 2, 3], [0, 4, LARGE], list(GRAPHS))
def test_levels_and_parents(device, id_bits, name, parts, threshold):
    source = GRAPHS[name]
    placed = device_parts(source, parts, threshold=threshold)
    driver = driver_of(placed, engine="xbfs")
    for root in some_roots(source, 2):
        check(driver, source, root)


@pytest.mark.full_blocks(name="kronecker", direction="push")
@each_pair(
    "threshold, direction, name",
    *((5, LARGE), ("push", "pull"), ("kronecker", "hub", "random", "grid")),
)
def test_directions(device, id_bits, threshold, direction, name):
    source = GRAPHS[name]
    placed = device_parts(source, 3, threshold=threshold)
    driver = driver_of(placed, engine="xbfs", direction=direction)
    for root in some_roots(source, 2):
        check(driver, source, root)


@pytest.mark.pairs
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("name", ["tree", "grid"])
@pytest.mark.parametrize("threshold", [0, LARGE])
def test_vertices_that_have_outer_edges_alone(device, name, direction, threshold):
    """Many frontiers, some of vertices that no push of the inner graph can take."""
    source = {"tree": binary_tree(500), "grid": grid(9)}[name]
    placed = device_parts(source, 4, threshold=threshold)
    driver = driver_of(placed, engine="xbfs", direction=direction)
    for root in some_roots(source, 2):
        check(driver, source, root)


@pytest.mark.parametrize(
    ("sizes", "threshold"),
    [((1, 1), 6), ((1, 1), LARGE), ((1, 1, 1), LARGE), ((2, 1), 6), ((1,) * 9, 6)],
)
def test_outer_edges_are_made_in_passes(device, monkeypatch, sizes, threshold):
    """For some shares at a time, and some rows; they lead where those of nn lead.

    Offsets of subgraphs have 32 or 64 bits, each for itself.
    """
    source, world = kronecker(7), SoloWorld()
    domains = one_each(sizes).domains

    def made(wide=()):
        placed = device_parts(source, sum(sizes), threshold=threshold)
        for part, name in product(placed, wide):
            rows = getattr(part, name)
            assert rows.offsets.dtype == np.uint32
            widened = CSR(rows.offsets.astype(np.uint64), rows.columns)
            setattr(part, name, widened)
        shares = [domains.shares_of(k) for k in range(len(sizes))]
        groups = [[placed[share] for share in own] for own in shares]
        every = inner_domains.inner_domains(groups, domains, world, world, None)
        return placed, [share for own in every for share in own]

    placed, whole = made()
    for count, wide in ((1, ()), (10, ("nn", "dd")), (100, SUBGRAPHS)):
        monkeypatch.setattr(inner, "SLICE", count)
        for one, wanted in zip(made(wide)[1], whole, strict=True):
            sides = one.out, wanted.out
            lists = [(*x.outer.arrays, x.offsets, x.columns) for x in sides]
            for array, same in zip(*lists, strict=True):
                np.testing.assert_array_equal(array.get(), same.get())
            np.testing.assert_array_equal(one.out.outer.starts, wanted.out.outer.starts)
            np.testing.assert_array_equal(one.out.outer.edges, wanted.out.outer.edges)
    for share in whole:
        ids = target_ids(share, share.out.outer).get()
        assert len(np.unique(ids)) == len(ids)
        columns = placed[share.index].nn.columns[: placed[share.index].nn.edges].get()
        to, numbers = (columns >> np.uint64(32)).astype(int), columns.astype(np.uint32)
        far = np.zeros(len(columns), np.int64)
        for part in placed:
            local = part.vertices.get()[numbers[to == part.index]].astype(np.int64)
            far[to == part.index] = part.layout.global_of(part.index, local)
        apart = np.isin(to, domains.apart_from(share.index))
        leads = ids[share.out.outer.columns.get()]
        np.testing.assert_array_equal(np.sort(leads), np.sort(far[apart]))
        owners = share.layout.part_of(leads.astype(np.int64))
        edges = np.bincount(owners, minlength=sum(sizes))
        np.testing.assert_array_equal(share.out.outer.edges, edges)
    most = max(len(share.out.outer.targets) for share in whole)
    monkeypatch.setattr(inner, "MOST_TARGETS", most)
    made()
    monkeypatch.setattr(inner, "MOST_TARGETS", most - 1)
    with pytest.raises(UsageError, match=r"more than \d+ vertices of other domains"):
        made()


@pytest.fixture(params=[1, 3, 12])
def short_boxes(request, monkeypatch):
    """Let boxes have room for few words, so that levels are sent in rounds."""
    for module in (between_params, streams):
        monkeypatch.setattr(module, "MOST_STREAMED", 1)
    monkeypatch.setattr(between_params, "MOST_BOXED", request.param)
    for name in ("FIRST", "LEAST_FIRST"):
        monkeypatch.setattr(streams, name, request.param)
    return request.param


@pytest.mark.pairs
@each_pair(
    "short_boxes, threshold, direction, name",
    *((1, 3, 12), (0, 5, LARGE), ("auto", "push", "pull")),
    ("kronecker", "hub", "random", "grid"),
)
def test_levels_in_rounds(device, id_bits, short_boxes, threshold, direction, name):
    """Boxes have less room than levels need, and are never fuller than that."""
    source = SMALL[name]
    placed = device_parts(source, 3, threshold=threshold)
    driver = driver_of(placed, engine="xbfs", direction=direction)
    exchange, sent = driver.exchange, []
    start = exchange.start_normals

    def watched(bins):
        pieces = [piece for own in bins for _, piece in own.pieces()]
        sent.append(max([len(piece) - 1 for piece in pieces], default=0))
        start(bins)

    exchange.start_normals = watched
    levels, rounds = 0, 0
    for root in some_roots(source, 2):
        sent.clear()
        levels += check(driver, source, root).levels
        rounds += len(sent)
        assert max(sent, default=0) <= short_boxes
        for search in driver._searches:
            room = np.diff(search.box_at) - 1
            assert room.max() <= short_boxes
    if short_boxes == 1 and name != "grid" and threshold == LARGE:
        assert rounds > 2 * levels


def kinds_of_records(records, *, pulls):
    """Numbers are normals, or questions and answers; returns the messages of each."""
    total = dict.fromkeys(KINDS, 0)
    for record in records:
        for kind, count in record["messages_sent"].items():
            assert (count > 0) == (record["bytes_sent"][kind] > 0)
            total[kind] += count
    assert bool(total["questions"]) == pulls
    assert bool(total["answers"]) == pulls
    assert bool(total["normals"]) != pulls


class CountingExchange(HostExchange):
    """Counts what parts of one rank have for each other as if it left."""

    def start_normals(self, bins):
        super().start_normals(bins)
        for place, own in enumerate(bins):
            for _, array in own.pieces():
                self.traffic.count(array.nbytes, part=place)


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_records_tell_kinds_and_domains(device, direction):
    source, parts = GRAPHS["kronecker"], 3
    runner = driver_of(
        device_parts(source, parts, threshold=LARGE),
        engine="xbfs",
        direction=direction,
    )
    runner.exchange = CountingExchange(
        SoloWorld(),
        Placement(parts, 1),
        0,
        ExchangeOptions(),
        on_device=True,
    )
    found = runner.search(some_roots(source, 1)[0], records=True)
    kinds_of_records(found.records, pulls=direction == "pull")
    for record in found.records:
        assert [own["part"] for own in record["domains"]] == list(range(parts))
        for what in ("bytes_sent", "messages_sent"):
            for kind, count in record[what].items():
                assert count == sum(own[what][kind] for own in record["domains"])


class ThreadStreams:
    """What moves arrays between parts; as ``NcclStreams``."""

    captures = False

    def __init__(self, exchange, devices):
        self.world, self.traffic = exchange.world, exchange.traffic
        self.parts = exchange.placement.parts_of(self.world.rank)
        assert len(devices) == len(self.parts)
        self.exchange, self.streams = exchange, [Stream() for _ in devices]
        self.partners, self.link = None, self

    def connect(self, partners):
        self.partners = [set(own) for own in partners]

    def here(self, place):
        assert place < len(self.parts)
        return nullcontext()

    def follow(self):
        pass

    def wait(self, event):
        pass

    def finish(self):
        pass

    def cross(self, gathers, leaving=(), coming=()):
        if gathers:
            assert [place for place, _, _ in gathers] == list(range(len(self.parts)))
            mine = np.concatenate([np.asarray(array) for _, array, _ in gathers])
            every = np.concatenate(self.world.allgather(mine))
            for _, _, whole in gathers:
                whole[...] = every.reshape(whole.shape)
        for place, part, _ in (*leaving, *coming):
            assert part in self.partners[place]
        sent = [(self.parts[k], part, np.array(x)) for k, part, x in leaving]
        of_ranks = [sent]
        if self.world.size > 1:
            of_ranks = self.world._share("cross", sent)
        every = [x for rank in of_ranks for x in rank]
        arrived = {}
        for source, part, array in every:
            if part in self.parts:
                arrived.setdefault((source, part), []).append(array)
        for place, part, where in coming:
            array = arrived[part, self.parts[place]].pop(0)
            assert where.shape == array.shape
            where[...] = array
        assert not any(arrived.values())

    def room(self, place, count):
        self.exchange.rooms += count > 0
        return cuda.cupy().zeros(count, np.uint64)


class StreamedThreads(ThreadExchange):
    """An exchange with streams, between ranks that are threads."""

    streamed, rooms = True, 0

    def __init__(self, world, placement, *more, **options):
        super().__init__(world, placement, *more, **options)
        self.world, self.placement = world, placement

    def streams(self, devices):
        return ThreadStreams(self, devices)


def one_each(sizes):
    """The placement of domains of so many devices, each of a rank of its own."""
    bounds = np.cumsum([0, *sizes])
    return Placement.of_domains([range(*x) for x in pairwise(bounds)], bounds[-1])


def streamed(source, sizes, aims=((None, None),), records=False, **options):
    """Search by ranks that are threads, and check what they find.

    sizes: of the domains; owners: their ranks, instead, each with one or more devices;
    room: of each device, where rows may have tails in host memory
    make: makes the parts of a source; device_parts by default
    count: roots; before(runner, world): called before searches, of the tuples ``left``
    seen: list, takes what is found; exchange: its class
    Returns how often rank 0 got more than the first items.
    """
    before, left = options.pop("before", None), options.pop("left", source)
    room, kind = options.pop("room", None), options.pop("exchange", StreamedThreads)
    placement = one_each(sizes) if sizes else options.pop("owners")
    parts = placement.parts
    make = options.pop("make", device_parts)
    placed = make(source, parts, threshold=options.pop("threshold"))
    overrides, seen = options.pop("overrides", {}), options.pop("seen", [])
    roots = options.pop("roots", None) or some_roots(left, options.pop("count", 2))
    options = SearchOptions.named(engine="xbfs", **options)

    def work(world):
        engine = lookup(ENGINES, "engine", "xbfs")(options)
        own, domain = placement.parts_of(world.rank), split_by_domain(world, placement)
        searches, every = {}, list(placement.places_of(world.rank).values())
        groups = [[placed[own[place]] for place in places] for places in every]
        made = inner_domains.inner_domains(
            groups, placement.domains, domain, world, room
        )
        for places, shares in zip(every, made, strict=True):
            group = ThreadPeers(domain, places)
            made = engine.of_shares(shares, domain, group)
            searches.update(zip(places, made, strict=True))
        searches = [searches[place] for place in range(len(own))]
        for search in searches:
            for name, value in overrides.items():
                setattr(search.own, name, value)
        facts = {"on_device": True}
        d, form = searches[0].part.delegate_count, ExchangeOptions()
        exchange = kind(world, placement, d, form, **facts)
        runner = BetweenDomains(world, searches, exchange, options, placement)
        ahead = exchange.streamed and not searches[0].in_rounds
        ahead = ahead and runner.mode == "stepwise"
        assert runner.captures == ahead
        if before is not None:
            before(runner, world)
        results = []
        for root in roots:
            for depth, targets in aims:
                until = Until(depth, targets)
                found = runner.search(root, until=until, records=records)
                arrays = [[x.get() for x in y] for y in (found.level, found.parent)]
                results.append((root, until, found, *arrays))
        return results, getattr(exchange, "rooms", 0)

    ranks, noted, source = on_ranks(placement.ranks, work), [], left
    places = [(placement.rank_of(k), placement.device_of(k)) for k in range(parts)]
    for pieces in zip(*(results for results, _ in ranks), strict=True):
        root, until, found = pieces[0][:3]
        seen.append(found)
        whole = [
            joined([DeviceLike(pieces[rank][k][at]) for rank, at in places], source.n)
            for k in (3, 4)
        ]
        wanted = source.distances(root)
        last = wanted.max() if until.depth is None else min(until.depth, wanted.max())
        if until.targets is not None and (wanted[until.targets] >= 0).all():
            last = min(last, wanted[until.targets].max())
        near = np.where(wanted <= last, wanted, -1)
        np.testing.assert_array_equal(whole[0], near)
        assert found.levels == last + 1
        check_parents(source, root, near, whole[1])
        if records:
            counts = np.bincount(wanted[wanted >= 0]).tolist()
            assert [r["normals"] + r["delegates"] for r in found.records] == counts
            noted += [r for _, _, other, *_ in pieces for r in other.records]
    if records and parts <= between_params.MOST_STREAMED:
        kinds_of_records(noted, pulls=options.direction == "pull")
    return ranks[0][1]


class DeviceLike:
    """An array that is on the host already."""

    def __init__(self, array):
        self.array, self.dtype = array, array.dtype

    def get(self):
        return self.array


def check_parents(source, root, level, parent):
    reached = np.flatnonzero(level > 0)
    np.testing.assert_array_equal(parent[root], root)
    assert (parent[level < 0] == -1).all()
    assert (level[parent[reached]] == level[reached] - 1).all()
    assert source.has_edges(parent[reached], reached).all()


@each_pair(
    "direction, threshold, sizes, name",
    *(("auto", "push", "pull"), (5, LARGE), ((1, 1), (1, 1, 1))),
    ("kronecker", "hub", "random", "tree"),
)
def test_levels_on_the_stream_of_an_exchange(
    device, id_bits, name, sizes, threshold, direction
):
    streamed(GRAPHS[name], sizes, threshold=threshold, direction=direction)


@each_pair(
    "direction, sizes, name",
    *(("auto", "push", "pull"), ((1, 1), (1, 1, 1), (2, 1))),
    ("kronecker", "random", "tree", "grid"),
)
def test_boxes_with_more_than_their_first_items(
    device, id_bits, monkeypatch, sizes, direction, name
):
    """What is left of them follows, of some ranks and levels."""
    limit = {"kronecker": 3, "tree": 2}.get(name, 1)
    monkeypatch.setattr(streams, "FIRST", limit)
    monkeypatch.setattr(streams, "LEAST_FIRST", limit)
    source = GRAPHS[name]
    assert streamed(source, sizes, threshold=LARGE, direction=direction) > 0


def test_boxes_with_one_question_more_than_their_first_words(device, monkeypatch):
    """Two a word; a question that is not sent is asked a level too late."""
    monkeypatch.setattr(streams, "FIRST", 1)
    monkeypatch.setattr(streams, "LEAST_FIRST", 1)
    for n in range(4, 9):
        streamed(star(n), (1, 1), threshold=LARGE, direction="pull", count=n)


def relayed(world, placement, *form, **facts):
    return RelayExchange(
        StreamedThreads(world, placement, *form, **facts), placement, world.rank
    )


@pytest.mark.thorough
@each_pair(
    "short_boxes, threshold, direction, sizes, name",
    *((3, 12), (0, 5, LARGE), ("auto", "push", "pull"), ((1,) * 5, (2, 1, 1))),
    ("kronecker", "random", "grid"),
)
def test_rounds_in_two_hops(
    device, id_bits, short_boxes, threshold, direction, sizes, name
):
    form = {"threshold": threshold, "direction": direction, "exchange": relayed}
    streamed(GRAPHS[name], sizes, **form)


def test_ends_and_records_on_the_stream(device):
    source = GRAPHS["hub"]
    far = np.array([int(source.distances(some_roots(source, 1)[0]).argmax())])
    lone = np.flatnonzero(source.degrees == 0)[:1]
    aims = ((1, None), (None, far), (None, lone), (2, far))
    streamed(source, (1, 1), aims, threshold=4)
    for direction in ("push", "pull"):
        options = {"threshold": LARGE, "records": True, "direction": direction}
        streamed(GRAPHS["kronecker"], (1, 1), **options)


@pytest.mark.pairs
@each_pair(
    "domains, name",
    [((2, 2), 4), ((3,), LARGE), ((2, 1), 4), ((1, 3), 0), ((3, 2, 1), 6)],
    ["kronecker", "hub", "path", "random", "one-edge"],
)
def test_domains_of_several_devices(device, id_bits, name, domains):
    sizes, threshold = domains
    streamed(GRAPHS[name], sizes, threshold=threshold)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (6, 1)])
def test_hubs_of_all_lanes_are_hubs(device, monkeypatch, sizes):
    """Long rows are cut for many warps, wherever a lane has them."""
    monkeypatch.setattr(arrays, "HUB_DEGREE", 64)
    source, domains = bipartite(40, 700), Domains(sizes)
    placed = device_parts(source, domains.shares, threshold=50)
    engine = lookup(ENGINES, "engine", "xbfs")(SearchOptions(engine="xbfs"))
    world, shares = SoloWorld(), range(len(sizes))
    groups = [[placed[k] for k in domains.shares_of(index)] for index in shares]
    made = inner_domains.inner_domains(groups, domains, world, world, None)
    (search,) = engine.of_shares(made[1], world)
    lengths = np.diff(search.part.out.offsets.get())
    assert search.part.domain.devices == 1
    assert search.part.domain.lanes == sizes[0]
    long = np.flatnonzero(lengths >= 64)
    assert len(long) == 40
    assert search.own.hubs == long[-1] + 1


@pytest.mark.parametrize(
    ("sizes", "name", "threshold"),
    [((2, 2), "grid", 0), ((2, 1), "kronecker", 6), ((3, 2), "kronecker", 6)],
)
def test_rows_of_delegates_come_in_pieces(device, monkeypatch, sizes, name, threshold):
    """Where keys take more memory than there is: no piece has all rows of a lane."""
    monkeypatch.setattr(inner, "KEYS", 300)
    streamed(GRAPHS[name], sizes, threshold=threshold)


def test_counts_of_more_parts_than_a_warp_has_lanes(device):
    """The sums of what all have counted, and of some the largest."""
    parts, words = 40, len(between_params.COUNTED)
    (part,) = device_parts(star(4), 1, threshold=LARGE)
    engine = lookup(ENGINES, "engine", "xbfs")(SearchOptions(engine="xbfs"))
    (search,) = share_searches(engine, [part])
    cp, p = cuda.cupy(), search.params
    counts = np.random.default_rng(1).integers(1, 1 << 40, (parts, words))
    gathered, sizes = cp.asarray(counts.astype(np.uint64)), cp.zeros(80, np.uint64)
    report = np.zeros(2 * (2 * words + 2 * parts), np.uint64)
    search.follow(gathered, report, None, 4)
    p.shares, p.sizes = parts, sizes.data.ptr
    search.choose()
    wanted = counts.sum(axis=0)
    at = between_params.COUNTED.index("unknown")
    wanted[at] = counts[:, at].max()
    np.testing.assert_array_equal(report[:words], wanted)


SEVERAL_A_RANK = {
    "one rank": [(0,), (0,), (0,)],
    "one rank, pairs": [(0, 0), (0, 0)],
    "two a rank": [(0,), (0,), (1,), (1,)],
    "pairs": [(0, 0), (1, 1)],
    "uneven": [(0, 0), (1,)],
    "a rank in both": [(0, 0, 0), (0, 0), (1,)],
}


@pytest.mark.thorough
@each_pair(
    "how, name, threshold, limit",
    *(list(SEVERAL_A_RANK), ("kronecker", "random"), (0, 6, LARGE), (1, 1 << 14)),
)
def test_ranks_of_several_devices(
    device, id_bits, monkeypatch, how, name, threshold, limit
):
    """Each device has a stream; boxes of some have more than their first words."""
    owners = SEVERAL_A_RANK[how]
    placement = Placement.of_domains(owners, 1 + owners[-1][-1])
    device.one_rank = True
    monkeypatch.setattr(streams, "FIRST", limit)
    monkeypatch.setattr(streams, "LEAST_FIRST", limit)
    streamed(GRAPHS[name], (), owners=placement, threshold=threshold)


EACH_WAY = {
    "mark": {"mark_edges": 0, "pull_edges": HUGE},
    "mark-early": {"mark_edges": 50, "pull_edges": HUGE, "tile": 8},
    "pull": {"pull_edges": 0},
    "push": {"mark_edges": HUGE, "pull_edges": HUGE},
    "few-hub-bits": {"hub_words": 4, "mark_edges": 30, "tile": 8},
}


GRANULES = uniform(9000, 25_000, hub=4000)


@pytest.mark.full_blocks(domains=("kronecker", (2, 1), 40), way="few-hub-bits")
@each_pair(
    "domains, way",
    (
        ("granules", (2, 2), 12),
        ("granules", (1, 2), 0),
        ("kronecker", (2, 1), 40),
    ),
    list(EACH_WAY),
)
def test_several_devices_search_each_way(device, id_bits, domains, way):
    """Also where a domain has lanes of several granules on a device."""
    name, sizes, threshold = domains
    source = GRANULES if name == "granules" else GRAPHS[name]
    streamed(source, sizes, threshold=threshold, overrides=EACH_WAY[way])


@pytest.mark.thorough
@pytest.mark.parametrize("direction", ["push", "pull"])
@pytest.mark.parametrize(
    ("name", "sizes", "threshold"),
    [("grid", (3, 3), 0), ("random", (1, 3), 5), ("complete", (3, 2, 1), LARGE)],
)
def test_directions_of_several_devices(device, direction, name, sizes, threshold):
    source = SMALL.get(name, GRAPHS[name])
    streamed(source, sizes, threshold=threshold, direction=direction)


@each_pair("sizes, name", ((2, 2), (1, 1, 1), (3, 1)), ("tree", "grid"))
def test_parents_of_delegates_are_asked_for(device, id_bits, sizes, name):
    """Of vertices that all are delegates, search after search."""
    streamed(GRAPHS[name], sizes, threshold=0)


@each_pair("sizes, name", ((1, 1), (2, 1), (1, 1, 1)), ("tree", "grid"))
def test_more_parents_are_unknown_than_there_is_room_at_first(
    device, id_bits, monkeypatch, sizes, name
):
    monkeypatch.setattr(ahead, "LEAST_UNKNOWN", 1)
    streamed(GRAPHS[name], sizes, threshold=0)


@pytest.mark.parametrize("sizes", [(2, 2), (2, 1), (1, 3)])
def test_ends_and_records_of_several_devices(device, sizes):
    source = GRAPHS["hub"]
    root = int(source.degrees.argmax())
    far = np.array([int(source.distances(root).argmax())])
    lone = np.flatnonzero(source.degrees == 0)[:1]
    aims = ((1, None), (None, far), (None, lone), (2, far))
    streamed(source, sizes, aims, threshold=4, roots=[root])
    for direction, threshold in (("push", 40), ("pull", LARGE)):
        form = {"threshold": threshold, "direction": direction, "records": True}
        streamed(GRAPHS["kronecker"], sizes, **form)


@pytest.mark.thorough
@each_pair(
    "short_boxes, sizes, direction, threshold, records, name",
    *((1, 3, 12), ((2, 1), (1, 1, 1), (2, 2)), ("auto", "push", "pull")),
    *((6, LARGE), (True, False), ("kronecker", "hub", "random")),
)
def test_rounds_of_several_ranks_and_devices(
    device, id_bits, short_boxes, sizes, direction, threshold, records, name
):
    """With records, or ends at a level and at targets; ranks go as many rounds."""
    source = SMALL[name]
    root = int(source.degrees.argmax())
    far = np.array([int(source.distances(root).argmax())])
    aims = ((None, None), (2, None), (None, far))
    form = {"threshold": threshold, "direction": direction, "records": records}
    streamed(source, sizes, aims[: 1 if records else 3], roots=[root], **form)


@pytest.mark.parametrize("parts", [2, 3])
def test_the_plan_knows_what_streams_take(device, monkeypatch, parts):
    """At least what there is after searches whose boxes were full."""
    monkeypatch.setattr(streams, "FIRST", 4)
    monkeypatch.setattr(streams, "LEAST_FIRST", 4)
    monkeypatch.setattr(seat, "LEAST_UNKNOWN", 4)
    monkeypatch.setattr(ahead, "LEAST_UNKNOWN", 4)
    source = GRAPHS["kronecker"]
    made, _ = build(source, parts, threshold=6)
    planned, took = 0, []
    for one in made:
        owned = int((one.layout.part_of(one.delegates) == one.index).sum())
        table = seat.streams_table(parts, owned, len(one.delegates))
        planned = max(planned, total_bytes(table))
        masks = total_bytes({"masks": table["masks"]})
    space = seat.Seat.space

    def noted(self, *words):
        found = space(self, *words)
        spaces = sum(x.nbytes for x in self._spaces.values())
        took.append(spaces + self.masks.nbytes)
        assert self.masks.nbytes == masks
        sizes = {x.nbytes for x in table["spaces"]}
        assert {x.nbytes for x in self._spaces.values()} <= sizes
        return found

    monkeypatch.setattr(seat.Seat, "space", noted)
    aims = [(None, None)] * 3
    streamed(source, [1] * parts, aims, threshold=6)
    assert planned / 16 < max(took) <= planned


def test_more_delegates_than_a_message_can_name(device, monkeypatch):
    monkeypatch.setattr(Share, "id_bits", 62)
    placed = device_parts(GRAPHS["kronecker"], 2, threshold=2)
    with pytest.raises(UsageError, match=r"part 0 owns .* delegates; allowed: 4; use"):
        driver_of(placed, engine="xbfs")
