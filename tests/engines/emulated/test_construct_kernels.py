"""Parts built with the kernels run on the CPU, against those that the host builds."""

import numpy as np
import pytest
from constructed_parts import LARGE, THRESHOLDS, check, check_construct, on_devices
from device_parts import part_to_device
from emulated_device import EmulatedDevice
from graphs import (
    NAMED,
    NO_VERTEX,
    Tuples,
    build,
    complete,
    kronecker,
    random_tuples,
    uniform,
)
from worlds import on_ranks

from distbfs.build.cuda import chunks, separate
from distbfs.build.cuda import graph as device_build
from distbfs.build.cuda import keys as device_keys
from distbfs.build.cuda.domain import construct_domain
from distbfs.build.cuda.parts import construct_on_devices
from distbfs.build.cuda.places import number_columns
from distbfs.build.cuda.ranges import KEY_BYTES
from distbfs.build.cuda.room import MOST_RANGES, Budget
from distbfs.device import cuda
from distbfs.errors import InputError, ResourceError, UsageError
from distbfs.generate import cuda as device_tuples
from distbfs.generate.derived import Permuted
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.uniform import Uniform
from distbfs.graph.csr import index_dtype, row_offsets
from distbfs.options import BuildOptions
from distbfs.partition.layout import Layout, Placement
from distbfs.progress import Sum
from distbfs.ranks.world import SoloWorld
from distbfs.store.hdf5 import open_store
from distbfs.store.write import write_graph
from distbfs.timing import Stopwatch
from distbfs.types import SUBGRAPHS


def held(source):
    u, v = source.tuples_at(np.arange(source.tuples))
    return Tuples(source.n, u, v, size=1 << 20)


GRAPHS = {
    "kronecker-8": kronecker(8),
    "kronecker-10": kronecker(10),
    "uniform": held(Uniform(700, 3000)),
    "hub": uniform(1000, 500, hub=900),
    "random": random_tuples(301, 900, 5),
}


SPARSE = kronecker(8, 8)


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("parts", [1, 2, 3, 4])
@pytest.mark.parametrize("name", GRAPHS)
def test_parts(device, id_bits, name, parts, threshold):
    summary = check_construct(GRAPHS[name], parts, threshold)
    assert summary.passes == 2 * parts


@pytest.mark.thorough
@pytest.mark.parametrize("buffer_bytes", [1, 5000, 60_000])
@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_ranges(device, id_bits, monkeypatch, parts, buffer_bytes):
    monkeypatch.setattr(device_keys, "SLACK", 100)
    monkeypatch.setattr(chunks, "CHUNK", 1777)
    for threshold in (0, 12, None, LARGE)[parts % 2 :: 2]:
        summary = check_construct(SPARSE, parts, threshold, buffer_bytes=buffer_bytes)
        if buffer_bytes < 32 * SPARSE.tuples // parts:
            assert summary.passes >= 6 * parts
        else:
            assert 2 * parts <= summary.passes <= 6 * parts


@pytest.mark.parametrize("parts", [2, 4])
def test_a_part_with_more_than_its_share(device, id_bits, monkeypatch, parts):
    """The one pass that is tried overflows, and the rows are counted after all."""
    monkeypatch.setattr(device_keys, "SLACK", 0)
    u = np.arange(900) * parts % 997
    source = Tuples(1000, u - u % parts, (u * 7) % 1000 // parts * parts, size=100)
    for threshold in (0, 3, LARGE):
        summary = check_construct(source, parts, threshold)
        others = 1 if threshold == LARGE else 2  # where they have no rows at all
        assert summary.passes == others * (parts - 1) + 6


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("name", NAMED)
def test_small_graphs(device, id_bits, name, parts):
    thresholds = [0, 2, None]
    del thresholds[list(NAMED).index(name) % 3]  # seen with others
    for threshold in thresholds:
        check_construct(NAMED[name], parts, threshold)


def test_offsets_of_many_edges(device):
    """64 bits from 2^32 edges on."""
    for counted, rows in ((0, 3), (1, 1), (1023, 1024), (1024, 1024), (2050, 5000)):
        lengths = np.random.default_rng(counted).integers(0, 1 << 28, counted)
        wanted = np.cumsum(np.pad(lengths, (1, rows - counted)))
        values = cuda.cupy().asarray(lengths.astype(np.uint32))
        total = int(wanted[-1])
        found = row_offsets(values, index_dtype(total), rows)
        wide = total >= 1 << 32
        assert found.dtype == (np.uint64 if wide else np.uint32)
        assert wide == (counted > 1000)
        np.testing.assert_array_equal(found, wanted)


def test_no_vertices(device):
    for parts in (1, 2):
        check_construct(NO_VERTEX, parts, None)


@pytest.mark.parametrize("n", [95, 96, 97, 191, 192, 193, 1024, 1025])
def test_sizes_at_the_borders_of_blocks(device, id_bits, n):
    source, turn = random_tuples(n, 3 * n, n), (n + id_bits // 32) % 2
    for parts, threshold in ((1, 5), (2, 6), (1, LARGE), (3, 0))[turn::2]:
        check_construct(source, parts, threshold)


def test_rows_with_many_repeats(device):
    u, v = complete(9).u, complete(9).v
    source = Tuples(70, np.tile(u, 150), np.tile(v * 7, 150), size=1 << 20)
    for parts in (1, 2, 3):
        check_construct(source, parts, 8)


@pytest.mark.parametrize(("parts", "ranks"), [(2, 2), (4, 2), (6, 3)])
def test_ranks(device, id_bits, monkeypatch, parts, ranks):
    monkeypatch.setattr(EmulatedDevice, "check", lambda *_: None)
    source, turn = GRAPHS["kronecker-8"], (parts + id_bits // 16) // 2 % 2
    for threshold in THRESHOLDS[turn::2]:

        def work(world, threshold=threshold):
            return on_devices(source, parts, world, threshold=threshold)

        found = on_ranks(ranks, work)
        for _, summary in found:
            check(source, [made for made, _ in found], summary, threshold)


@pytest.mark.thorough
@pytest.mark.parametrize(("parts", "ranks"), [(1, 1), (3, 1), (4, 2)])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_store_of_parts_from_devices(
    device, monkeypatch, tmp_path, parts, ranks, threshold
):
    """It gives the devices back what they built, and the host a sound part."""
    monkeypatch.setattr(EmulatedDevice, "check", lambda *_: None)
    source, options = GRAPHS["uniform"], BuildOptions(threshold=threshold)
    folder = tmp_path / "store"

    def work(world):
        return write_graph(world, source, folder, parts, options, devices=[0])

    summaries = on_ranks(ranks, work)
    store = open_store(folder)
    assert store.manifest.order_block == 1
    loaded = [store.load_part(index) for index in range(parts)]
    wanted, told = build(source, parts, threshold=threshold)
    for part, other in zip(loaded, wanted, strict=True):
        part.check()
        for name in ("degrees", "tuple_degrees"):
            by_id = getattr(part, name)[part.numbers]
            assert by_id.dtype == np.int64
            np.testing.assert_array_equal(by_id, getattr(other, name)[other.numbers])
        np.testing.assert_array_equal(part.delegate_degrees, other.delegate_degrees)
    assert store.manifest.m == told.m
    lent = [part_to_device(part) for part in loaded]
    made = [lent[rank::ranks] for rank in range(ranks)]
    check(source, made, summaries[0], threshold)


def test_several_devices_of_a_rank(device, monkeypatch):
    """Each is made current by what works for it."""
    monkeypatch.setattr(EmulatedDevice, "check", lambda *_: None)
    seen = []

    class Device(type(cuda.cupy().cuda.Device())):
        def __init__(self, index=0):
            super().__init__()
            seen.append(index)

    monkeypatch.setattr(cuda.cupy().cuda, "Device", Device)
    clock = Stopwatch()
    monkeypatch.setattr(device_keys, "Stopwatch", lambda: clock)
    check_construct(GRAPHS["kronecker-8"], 4, 9, devices=[3, 1, 3, 2])
    assert set(seen) >= {1, 2, 3}
    assert {"generation", "keys", "sort", "rows"} <= set(clock.seconds)


def test_devices_that_do_not_fit_the_parts(device):
    with pytest.raises(UsageError, match="1 devices are given for 2 parts"):
        on_devices(GRAPHS["hub"], 2, devices=[0])


@pytest.mark.parametrize("parts", [1, 3])
def test_permuted_vertices(device, parts):
    source, options = GRAPHS["hub"], BuildOptions(threshold=12, permute_seed=5)
    made, summary = construct_on_devices(
        source, SoloWorld(), Placement(parts, 1), options
    )
    check(Permuted(source, 5), [made], summary, 12)


def test_what_cannot_be_built(device):
    n = (1 << 42) + 1
    with pytest.raises(UsageError, match=f"{n} vertices do not fit devices"):
        on_devices(Tuples(n, [], []), 1025)
    n = (1 << 35) + 8
    with pytest.raises(UsageError, match=f"{n} vertices need at least 9 parts"):
        construct_domain(Tuples(n, [], []), SoloWorld(), 8)


class Changing(Tuples):
    """Other tuples at each pass."""

    def chunks(self, start, stop):
        self.v = np.roll(self.v, 1)
        yield self.u[start:stop], self.v[start:stop]


@pytest.mark.parametrize("buffer_bytes", [1, 1 << 12])
def test_tuples_that_change(device, monkeypatch, buffer_bytes):
    monkeypatch.setattr(device_keys, "HOLD_SHARE", 1 << 40)
    source = Changing(12, [0, 0, 1, 2, 5, 6, 7], [0, 1, 2, 5, 9, 9, 9])
    with pytest.raises(InputError, match="changed while"):
        on_devices(source, 2, threshold=2, buffer_bytes=buffer_bytes)


@pytest.mark.parametrize(
    "free", [1000, (1 << 30) // 4 + 20_000, (1 << 30) // 4 + 40_000]
)
def test_graphs_that_do_not_fit(device, monkeypatch, free):
    monkeypatch.setattr(cuda, "free_bytes", lambda: free)
    wanted = rf"needs \d+ bytes of device memory; {free} are free"
    with pytest.raises(ResourceError, match=wanted):
        on_devices(GRAPHS["kronecker-10"], 1)


@pytest.mark.parametrize("free", [84_900_000_000, 40_000_000_000])
def test_a_graph_of_one_device_is_refused_before_it_is_generated(
    device, monkeypatch, free
):
    monkeypatch.setattr(cuda, "free_bytes", lambda: free)
    wanted = rf"needs \d+ bytes of device memory; {free} are free"
    with pytest.raises(ResourceError, match=wanted):
        device_build.build(Kronecker(29))


@pytest.mark.parametrize(
    ("scale", "free", "buffer_bytes"),
    [(28, 84_900_000_000, None), (29, 140_000_000_000, None), (16, 1 << 29, 1)],
)
def test_graphs_that_one_device_holds(monkeypatch, scale, free, buffer_bytes):
    monkeypatch.setattr(cuda, "free_bytes", lambda: free)
    n, count = 1 << scale, 16 << scale
    found = Budget(n, 2 * count, count, buffer_bytes, cheap=True)
    wide = KEY_BYTES * 2 * count / MOST_RANGES
    assert found.buffer == 1 if buffer_bytes else found.buffer >= wide


def test_memory_that_runs_out(device, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("Out of memory allocating 77 bytes")

    monkeypatch.setattr(device_keys.KeyPasses, "_sort", fail)
    with pytest.raises(ResourceError, match=r"building part 1: .* 77 bytes; \d+ bytes"):
        on_ranks_of_two(GRAPHS["hub"])


def on_ranks_of_two(source):
    class Second(SoloWorld):
        def __init__(self):
            super().__init__()
            self.rank, self.size = 1, 2

    on_devices(source, 2, Second())


@pytest.mark.parametrize("parts", [2, 3])
def test_keys_that_tell_few_rows_apart(device, monkeypatch, parts):
    """As of ids of many bits: ranges have as many rows as what is left can number."""
    monkeypatch.setattr(device_tuples, "NARROW", 1)
    made = separate.CommonSizes.__init__

    def many_bits(self, layout):
        made(self, layout)
        self.bits = 59

    monkeypatch.setattr(separate.CommonSizes, "__init__", many_bits)
    for threshold in (0, 5, LARGE):
        summary = check_construct(GRAPHS["random"], parts, threshold)
        assert summary.passes > 4 * parts


class SomeParts:
    """A placement of which this process has some parts alone."""

    def __init__(self, parts, mine):
        self.parts, self._mine = parts, mine

    def parts_of(self, rank):
        assert rank == 0
        return self._mine


@pytest.mark.parametrize(
    ("exponent", "threshold"),
    [(32, 0), (33, LARGE), (34, 6), pytest.param(42, 6, marks=pytest.mark.thorough)],
)
def test_ids_near_the_limits(device, exponent, threshold):
    """Two parts of many, whose vertices have ids up to 2^42: as of a small graph."""
    small, parts = random_tuples(400, 1500, 8), 1 << min(exponent - 16, 20)
    mine, apart = [parts // 3, parts - 1], (1 << exponent) // parts // 200

    def far(ids):  # the order stays, and parts 0 and 1 become those
        return ids // 2 * apart * parts + np.array(mine)[ids % 2]

    large = Tuples(1 << exponent, far(small.u), far(small.v), size=100)
    assert large.u.max() > (1 << exponent) - (1 << exponent - 6)
    made = [
        separated_parts(source, placement, threshold)
        for source, placement in (
            (small, SomeParts(2, [0, 1])),
            (large, SomeParts(parts, mine)),
        )
    ]
    for k, (one, other) in enumerate(zip(*made, strict=True)):
        assert other.index == mine[k]
        np.testing.assert_array_equal(other.delegates, far(one.delegates))
        for name in SUBGRAPHS:
            rows, others = getattr(one, name), getattr(other, name)
            length = min(len(rows.offsets), len(others.offsets))
            np.testing.assert_array_equal(
                rows.offsets[:length], others.offsets[:length]
            )
            columns = rows.columns
            if name == "nn":
                there = np.array(mine, np.uint64)[columns >> np.uint64(32)]
                columns = there << np.uint64(32) | columns & np.uint64(0xFFFFFFFF)
            np.testing.assert_array_equal(others.columns, columns)


def separated_parts(source, placement, threshold):
    """The parts that a placement has here; no vertex of other parts has edges."""
    layout, mine = Layout(source.n, placement.parts), placement.parts_of(0)
    shape = separate.CommonSizes(layout)
    builder = separate.Builder(source, shape, None, Sum())
    world = SoloWorld()
    parts = [separate.SeparatedPart(builder, part) for part in mine]
    for part in parts:
        part.number(threshold)
    d = sum(len(part.ids) for part in parts)
    if not shape.wide:
        placement = Placement(placement.parts, 1)
    shared = separate.Shared(world, placement, parts, d, wide=shape.wide)
    made = [part.separate(shared) for part in parts]
    if shape.wide:
        number_columns(made, placement, world)
    return made
