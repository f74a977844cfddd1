"""Devices that make their shares of the tuples and send them: what they build is the
same as where each makes all tuples."""

import sys
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from constructed_parts import check, on_devices
from covering import covered
from emulated_device import EmulatedDevice
from graphs import NAMED, Tuples, kronecker, random_tuples
from resident_parts import resident_parts
from test_told import Told
from worlds import on_ranks

from distbfs.build.cuda import keys as device_keys
from distbfs.build.cuda import making, shares
from distbfs.build.cuda import parts as construction
from distbfs.build.cuda.kernels import BLOCK, FOLDER, KEYS_TILE, Kernels
from distbfs.build.cuda.making import ALL, SHARE, chosen, pass_seconds
from distbfs.build.cuda.parts import construct_on_devices
from distbfs.device import cuda, programs
from distbfs.engines.cuda.xbfs.engine import XbfsEngine
from distbfs.errors import InputError, ResourceError
from distbfs.generate.cuda import id_type, id_word
from distbfs.generate.derived import Permuted
from distbfs.generate.kronecker import Kronecker
from distbfs.graph.csr import CSR
from distbfs.options import BuildOptions, SearchOptions
from distbfs.partition.layout import Placement
from distbfs.progress import Sum
from distbfs.ranks.world import SoloWorld
from distbfs.search import choose as choosing
from distbfs.search.device_holding import hold_domain
from distbfs.search.holding import Source
from distbfs.timing import Stopwatch

sys.path.append(str(Path(__file__).parents[2] / "cli"))

from commands import here

CHUNK = 60
GUARDED = EmulatedDevice.check


@pytest.fixture(autouse=True)
def little_at_once(device, monkeypatch):
    monkeypatch.setattr(EmulatedDevice, "check", lambda *_: None)
    monkeypatch.setattr(shares, "CHUNK", CHUNK)
    monkeypatch.setattr(device_keys, "SLACK", 50)


def plain(value):
    """All arrays of what a device has built, by name."""
    if isinstance(value, CSR):
        value = {"offsets": value.offsets, "columns": value.columns}
    named = value if isinstance(value, dict) else vars(value)
    out = {}
    for name, one in named.items():
        if isinstance(one, np.ndarray):
            out[name] = np.array(one)
        elif hasattr(one, "columns"):
            out |= {f"{name}.{key}": array for key, array in plain(one).items()}
    return out


def build(make, source, parts, ranks, devices, way, **options):
    """Return (arrays of each part by index, summaries of the ranks)."""

    def rank(world):
        dealt = [k % devices for k in range(parts // ranks)]
        made, summary = make(source, parts, world, devices=dealt, making=way, **options)
        return {one.index: plain(one) for one in made}, summary

    found = on_ranks(ranks, rank)
    return {k: x for made, _ in found for k, x in made.items()}, [s for _, s in found]


def same(some, others):
    assert sorted(some) == sorted(others)
    for part, arrays in some.items():
        assert len(arrays) > 5
        assert list(arrays) == list(others[part])
        for name, array in arrays.items():
            other = others[part][name]
            assert array.dtype == other.dtype
            np.testing.assert_array_equal(array, other, err_msg=f"{part} {name}")


@cache
def source_of(seed):
    return kronecker(6, 8) if not seed else random_tuples(301, 700, seed)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("ranks", "devices", "buffer_bytes", "make", "id_bits"),
    covered(
        *([1, 2, 3], [1, 2, 3], [None, 1000], [on_devices, resident_parts], [32, 64]),
        size=3,
    ),
    indirect=["id_bits"],
)
def test_both_ways(id_bits, make, ranks, devices, buffer_bytes):
    seed = 3 * ranks + devices
    source, parts = source_of(seed % 4), ranks * devices * (1 + seed % 2)
    options = {"buffer_bytes": buffer_bytes}
    all_made, every = build(make, source, parts, ranks, devices, ALL, **options)
    shared, told = build(make, source, parts, ranks, devices, SHARE, **options)
    same(shared, all_made)
    assert {one.making for one in every} == {ALL}
    assert {one.making for one in told} == {SHARE}
    assert all(one.m == every[0].m for one in told)
    assert all(one.loops == every[0].loops for one in told)
    assert told[0].passes == every[0].passes
    assert buffer_bytes is None or told[0].passes > 2 * parts // (ranks * devices)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [x for x in NAMED if NAMED[x].n <= 20])
def test_shares_without_tuples_and_parts_without_vertices(name):
    source = NAMED[name]
    for make in (on_devices, resident_parts):
        shared, _ = build(make, source, 6, 2, 3, SHARE)
        all_made, _ = build(make, source, 6, 2, 3, ALL)
        same(shared, all_made)


def test_what_the_host_builds():
    source = Permuted(Kronecker(7), 5)
    options = BuildOptions(threshold=20, permute_seed=9)

    def rank(world):
        return construct_on_devices(
            source, world, Placement(4, 2), options, devices=[0, 1], making=SHARE
        )

    made, summaries = zip(*on_ranks(2, rank), strict=True)
    u, v = (np.concatenate(x) for x in zip(*source.chunks(0, 1 << 11), strict=True))
    both = Permuted(Tuples(source.n, u, v, size=1 << 20), 9)
    check(both, made, summaries[0], 20)


def test_ranks_of_different_numbers_of_devices():
    source, owners = source_of(2), [(0, 0), (1,), (0,)]

    def rank(world, way):
        placement = Placement.of_domains(owners, 2)
        places = placement.parts_of(world.rank)
        made, _ = construct_on_devices(
            *(source, world, placement, BuildOptions(threshold=5)),
            devices=list(range(len(places))),
            making=way,
        )
        return {one.index: plain(one) for one in made}

    shared, all_made = (
        {
            k: x
            for made in on_ranks(2, lambda w, y=way: rank(w, y))
            for k, x in made.items()
        }
        for way in (SHARE, ALL)
    )
    assert sorted(shared) == [0, 1, 2, 3]
    same(shared, all_made)


class Counting(Tuples):
    """How many tuples were requested, by all devices."""

    def __init__(self, source):
        super().__init__(source.n, source.u, source.v, size=1 << 20)
        self.asked, self._lock = 0, threading.Lock()

    def chunks(self, start, stop):
        with self._lock:
            self.asked += stop - start
        return super().chunks(start, stop)


@pytest.mark.parametrize("make", [on_devices, resident_parts])
def test_tuples_that_fit_are_sent_once(make):
    source = Counting(source_of(1))
    _, summaries = build(make, source, 6, 3, 2, SHARE)
    assert source.asked == source.tuples
    assert summaries[0].passes == 2
    source = Counting(source_of(1))
    _, summaries = build(make, source, 6, 3, 2, SHARE, buffer_bytes=3000)
    assert source.asked >= summaries[0].passes * source.tuples
    assert source.asked % source.tuples == 0


def uneven():
    """Most ends are of one part of six, which has more of them than fit."""
    u = np.arange(600) % 20 * 6
    v = np.where(np.arange(600) % 9, np.arange(600) % 97 * 6, np.arange(600) % 500)
    return Counting(Tuples(600, u, v))


@pytest.mark.parametrize("make", [on_devices, resident_parts])
@pytest.mark.parametrize("buffer_bytes", [None, 2000])
def test_a_device_to_which_more_comes_than_fits(monkeypatch, make, buffer_bytes):
    """All send again, and those that are done take part in the passes of others."""
    monkeypatch.setattr(device_keys, "SLACK", 0)
    source = uneven()
    options = {"buffer_bytes": buffer_bytes}
    shared, summaries = build(make, source, 6, 2, 3, SHARE, **options)
    counted_first = make is resident_parts and buffer_bytes is None
    assert summaries[0].passes == 2 if counted_first else summaries[0].passes > 2
    assert source.asked >= summaries[0].passes * source.tuples
    all_made, _ = build(make, source, 6, 2, 3, ALL, **options)
    same(shared, all_made)


def test_one_device_without_room(monkeypatch):
    """The tuples stay nowhere, and nobody waits."""
    source, rooms = Counting(source_of(1)), iter([1 << 40] * 2 + [0] + [1 << 40] * 100)
    buffer_of = device_keys.KeyPasses._buffer
    first = threading.Lock()

    def buffer(self, need=0):
        with first:
            return min(buffer_of(self, need), next(rooms, 1 << 40))

    monkeypatch.setattr(device_keys.KeyPasses, "_buffer", buffer)
    shared, summaries = build(on_devices, source, 6, 2, 3, SHARE)
    assert source.asked == summaries[0].passes * source.tuples > source.tuples
    monkeypatch.setattr(device_keys.KeyPasses, "_buffer", buffer_of)
    same(shared, build(on_devices, source, 6, 2, 3, ALL)[0])


@pytest.mark.parametrize("make", [on_devices, resident_parts])
@pytest.mark.parametrize("buffer_bytes", [None, 3000])
@pytest.mark.parametrize("source", [source_of(1), uneven()], ids=["even", "uneven"])
def test_all_that_is_made_is_told(make, source, buffer_bytes):
    def rank(world):
        told = Told()
        make(
            *(source, 4, world),
            devices=[0, 1],
            making=SHARE,
            buffer_bytes=buffer_bytes,
            done=Sum(told),
        )
        return told.check()

    source.asked = 0
    counting = isinstance(source, Counting)
    counts = on_ranks(2, rank)
    assert sum(counts) % source.tuples == 0
    assert not counting or sum(counts) == source.asked


class Failing(Tuples):
    """Fails in a late slice, which one device makes."""

    def __init__(self, error):
        super().__init__(301, source_of(1).u, source_of(1).v)
        self.error = error

    def chunks(self, start, stop):
        if stop >= self.tuples - 5:
            raise self.error
        return super().chunks(start, stop)


@pytest.mark.parametrize(("ranks", "devices"), [(1, 3), (2, 1), (2, 2), (3, 2)])
def test_the_error_of_one_device_ends_all(ranks, devices):
    source = Failing(RuntimeError("a tuple is gone"))
    with pytest.raises(RuntimeError, match="a tuple is gone"):
        build(on_devices, source, ranks * devices, ranks, devices, SHARE)


def test_a_device_that_fails_while_others_wait(monkeypatch):
    """Its error is told, not that of those that waited for it."""
    sort, failing = device_keys.KeyPasses._sort, iter([False, True])

    def fail(self, keys, **options):
        if next(failing, False):
            raise MemoryError("Out of memory allocating 77 bytes")
        return sort(self, keys, **options)

    monkeypatch.setattr(device_keys.KeyPasses, "_sort", fail)
    with pytest.raises(ResourceError, match=r"building part \d: .* 77 bytes"):
        on_devices(source_of(1), 3, devices=[0, 1, 2], making=SHARE, buffer_bytes=3000)


def test_tuples_that_change():
    class Changing(Tuples):
        asked = 0

        def chunks(self, start, stop):
            self.asked += 1
            for u, v in super().chunks(start, stop):
                yield u, (v if self.asked <= 4 else u)

    source = Changing(50, np.arange(49), np.arange(1, 50))
    with pytest.raises(InputError, match="changed while"):
        on_devices(source, 2, devices=[0, 1], making=SHARE, buffer_bytes=1)


def test_no_room_for_a_share(monkeypatch):
    monkeypatch.setattr(cuda, "free_bytes", lambda: 1 << 20)
    with pytest.raises(ResourceError, match=r"a share of the edge tuples needs \d+"):
        on_devices(source_of(1), 2, devices=[0, 1], making=SHARE)


def test_clocks(monkeypatch):
    """Making is generation; sorting, waiting and sending are not."""
    watch = Stopwatch()
    monkeypatch.setattr(device_keys, "Stopwatch", lambda: watch)
    on_devices(source_of(1), 2, devices=[0, 1], making=SHARE)
    assert {"generation", "exchange", "keys"} <= set(watch.seconds)
    assert watch.get("exchange") > 0
    assert watch.get("generation") >= 0


@pytest.mark.parametrize("boxes", [1, 5, 2048, 2049, 4000])
@pytest.mark.parametrize("parts", [1, 3, 5000])
def test_boxes(monkeypatch, id_bits, boxes, parts):
    monkeypatch.setattr(EmulatedDevice, "check", GUARDED)
    rng = np.random.default_rng(boxes + parts)
    n, count = 1 << 14, 5000
    u, v = rng.integers(0, n, (2, count))
    v[::7] = u[::7]
    seats = rng.integers(0, boxes, parts)
    cp = cuda.cupy()
    module = programs.Module(FOLDER / "shares.cu", ID=id_word(n))
    kernels = Kernels(Stopwatch(), module)
    tuples = [cp.asarray(x.astype(id_type(n))) for x in (u, v)]
    owners = (np.uint32(parts), cp.asarray(seats.astype(np.uint32)), np.uint32(boxes))
    sizes = cp.zeros(boxes, np.uint32)
    arguments = (np.uint64(count), *tuples, *owners)
    kernels.launch("count_boxes", count, BLOCK, *arguments, sizes)
    ends = kernels.scan(sizes)
    starts = ends.get().astype(np.int64)
    out = [cp.zeros(2 * count, id_type(n)) for _ in "uv"]
    kernels.launch("fill_boxes", count, KEYS_TILE, *arguments, ends, *out)
    owner_u, owner_v = seats[u % parts], seats[v % parts]
    pairs = np.stack([u, v], axis=1)
    for box in range(boxes):
        got = np.stack([x.get()[starts[box] : starts[box + 1]] for x in out], axis=1)
        wanted = pairs[(owner_u == box) | (owner_v == box)]
        assert sorted(map(tuple, got.tolist())) == sorted(map(tuple, wanted.tolist()))


def test_what_is_chosen(monkeypatch):
    """By the counts; where the host makes tuples, several ranks share them."""
    monkeypatch.setattr(shares, "CHUNK", 1 << 23)
    large = Kronecker(34)
    for devices in (1, 2, 4, 8):
        assert chosen(large, devices, 1) == ALL
    assert chosen(large, 8, 8) == chosen(large, 16, 2) == ALL
    assert chosen(large, 8192, 1024) == SHARE
    assert chosen(Permuted(large, 3), 8192, 1024) == SHARE
    assert chosen(Kronecker(20), 8192, 1024) == ALL
    many = Tuples(1 << 30, [], [])
    many.tuples = 1 << 30
    assert chosen(many, 1, 1) == ALL
    assert chosen(many, 2, 1) == chosen(many, 2, 2) == chosen(many, 8, 8) == SHARE
    many.tuples = 1000
    assert chosen(many, 8, 8) == ALL
    lent = Tuples(1 << 30, [], [])
    lent.tuples, lent.lent = 1 << 30, True
    assert chosen(lent, 8, 1) == ALL


def test_seconds_of_a_pass():
    def seconds(devices, ranks, rounds=0):
        return pass_seconds(1 << 40, 8, devices, ranks, rounds, 1e-9)

    one, many = seconds(8, 8), seconds(8000, 8000)
    assert one[ALL] == many[ALL]
    assert 850 < one[SHARE] / many[SHARE] < 900  # (1 - 1/8) / 8 to 1 / 8000
    assert seconds(8, 1)[SHARE] < one[SHARE]  # nothing goes through the host
    longer = seconds(8, 8, 1000)[SHARE] - one[SHARE]
    assert longer == pytest.approx(1000 * (making.ROUND + 8 * making.BOX))


@pytest.mark.parametrize("way", [ALL, SHARE])
def test_the_choice_is_taken(monkeypatch, way):
    monkeypatch.setattr(construction, "chosen", lambda *_: way)
    assert on_devices(source_of(1), 2, SoloWorld(), devices=[0, 1])[1].making == way


@pytest.mark.parametrize("way", [ALL, SHARE])
def test_reports_say_who_made_the_tuples(monkeypatch, way):
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0, 1])
    monkeypatch.setattr(construction, "chosen", lambda *_: way)
    done = here("graph500", "--scale", 7, "--roots", 2, "--parts", 2)
    assert done.code == 0, done.err
    assert f"# tuples:                       {making.IN_WORDS[way]}" in done.out
    options = SearchOptions("xbfs")
    source = Source(1 << 7, 2, tuples=Kronecker(7))
    held = hold_domain(
        SoloWorld(), source, [0, 1], XbfsEngine(options), choosing.Request()
    )
    assert held.facts["part"]["making"] == way
