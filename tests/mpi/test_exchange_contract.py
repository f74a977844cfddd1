"""What every exchange does, over the registry, compared with plain NumPy.

All ranks draw the same random levels from a common seed and so know what each part
must receive.  Exchanges of device arrays are given CuPy's where there is a device, each
rank one of its own as far as they go, else those of ``device_stand_in``.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import device_stand_in
import numpy as np
import pytest

from distbfs.device import cuda
from distbfs.distinct import distinct
from distbfs.errors import DeviceMissing, LaunchError, ResourceError, UsageError
from distbfs.exchange import nccl
from distbfs.exchange.bins import NUMBER_AT, Bins
from distbfs.exchange.relay import RelayExchange
from distbfs.exchange.traffic import KINDS, by_kind
from distbfs.options import ExchangeOptions
from distbfs.partition.layout import Placement, in_turn
from distbfs.registry import EXCHANGES, lookup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.ranks.world import Ranks

LONGEST = (1 << 31) - 1
DELEGATES = 200
Level = tuple[list[np.ndarray], list[list[np.ndarray]]]


NAMES = [
    kind
    for name in EXCHANGES
    for kind in (name, f"{name}-device")
    if kind != name or not lookup(EXCHANGES, "exchange", name).needs_devices
]


def bins_of(row: list[np.ndarray], put: Any = np.asarray) -> Bins:
    """The numbers of a part by destination, gaps between, as an engine has them."""
    gap = np.full(2, 77, row[0].dtype)
    items = put(np.concatenate([piece for array in row for piece in (gap, array)]))
    sizes = np.array([array.size for array in row])
    ends = np.cumsum(sizes + gap.size)
    return Bins(items, lambda: (ends - sizes, ends))


class Given:
    """An exchange that is given NumPy arrays, put on the device where it needs them."""

    def __init__(self, exchange: Any, put: Any) -> None:
        self.exchange, self.put = exchange, put
        self.masks, self.bins = [], []  # as they were given last
        self.traffic = exchange.traffic
        self.finish_masks, self.close = exchange.finish_masks, exchange.close
        self.finish_normals = exchange.finish_normals

    def start_masks(self, masks: Any) -> None:
        self.masks = [self.put(mask) for mask in masks]
        self.exchange.start_masks(self.masks)

    def start_normals(self, bins: Any) -> None:
        self.bins = [bins_of(row, self.put) for row in bins]
        self.exchange.start_normals(self.bins)


def host(array: Any) -> np.ndarray:
    """An array of either kind as NumPy's."""
    return array if isinstance(array, np.ndarray) else array.get()


def use_device(world: Ranks, name: str, patch: pytest.MonkeyPatch) -> Any:
    """Return CuPy, or put the stand-in in its place."""
    try:
        cp = cuda.cupy()
    except DeviceMissing:
        comm = world.comm.Dup() if world.size > 1 else None
        cp = device_stand_in.install(patch, comm, uuid=world.rank)
        if name == "cuda_aware":
            device_stand_in.trust_mpi(patch)
    else:
        cp.cuda.Device(world.local_rank % cp.cuda.runtime.getDeviceCount()).use()
    return cp


@contextmanager
def exchange_of(
    kind: str,
    world: Ranks,
    per_rank: int,
    delegates: int = DELEGATES,
    placement: Placement | None = None,
    **options: Any,
) -> Iterator[Any]:
    """An exchange from the registry; skips where it does not serve this world."""
    placement = placement or Placement(per_rank * world.size, world.size)
    name, _, on_device = kind.partition("-")
    factory = lookup(EXCHANGES, "exchange", name)
    with pytest.MonkeyPatch.context() as patch:
        put = use_device(world, name, patch).asarray if on_device else np.asarray
        try:
            exchange = factory(
                world,
                placement,
                delegates,
                ExchangeOptions(**options),
                on_device=bool(on_device),
            )
        except (UsageError, ResourceError, LaunchError) as error:
            if not factory.needs_devices:
                raise
            pytest.skip(str(error))
        assert exchange.on_device is bool(on_device)
        try:
            yield Given(exchange, put)
        finally:
            exchange.close()


def sent_by(exchange: Any) -> dict[str, tuple[int, int]]:
    """Bytes and messages that a rank has sent, by kind."""
    size, messages = by_kind(exchange.traffic.sent.sum(axis=0)).values()
    return {kind: (size[kind], messages[kind]) for kind in KINDS}


def random_items(generator: np.random.Generator, count: int) -> np.ndarray:
    """Items of few numbers, each with a parent of any kind."""
    numbers, parents = generator.integers(0, (40, 1 << 32), (count, 2), np.uint64).T
    return numbers << np.uint64(NUMBER_AT) | parents


def random_level(parts: int, seed: int, delegates: int = DELEGATES) -> Level:
    """Masks [parts] and bins [source][destination]; a third of the bins is empty."""
    generator = np.random.default_rng([parts, seed])
    words = (delegates + 63) // 64
    masks = [
        generator.integers(0, 1 << 63, words, dtype=np.uint64) for _ in range(parts)
    ]
    bins = []
    for _ in range(parts):
        counts = generator.integers(0, 8, parts) * generator.integers(0, 2, parts)
        bins.append([random_items(generator, n) for n in counts])
    return masks, bins


def expected_normals(
    world: Ranks, bins: list[list[np.ndarray]]
) -> list[list[tuple[int, np.ndarray]]]:
    """What each part of this rank receives, by source rank."""
    parts = len(bins)
    received = []
    for part in range(world.rank, parts, world.size):
        sources = []
        for rank in range(world.size):
            arrays = [bins[source][part] for source in range(rank, parts, world.size)]
            array = np.concatenate(arrays)
            if array.size:
                sources.append((rank, array))
        received.append(sources)
    return received


def same_normals(found: Any, expected: Any, *, unique: bool = False) -> None:
    """Compare what was received; one item a number where repeats may be removed."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert [rank for rank, _ in one] == [rank for rank, _ in other]
        for (_, received), (_, wanted) in zip(one, other, strict=True):
            array = host(received)
            assert array.dtype == wanted.dtype
            if not unique:
                np.testing.assert_array_equal(array, wanted)
                continue
            shift = np.uint64(NUMBER_AT)
            numbers, all_numbers = array >> shift, wanted >> shift
            assert np.isin(array, wanted).all()
            np.testing.assert_array_equal(distinct(numbers), distinct(all_numbers))


def mine(world: Ranks, items: list[Any]) -> list[Any]:
    """The items of this rank's parts in device order."""
    return items[world.rank :: world.size]


def run_level(exchange: Any, world: Ranks, level: Level) -> tuple[Any, Any]:
    """One level with masks and normals under way together."""
    masks, bins = level
    exchange.start_masks(mine(world, masks))
    exchange.start_normals(mine(world, bins))
    mask = exchange.finish_masks()
    return mask, exchange.finish_normals()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("per_rank", [1, 2, 3])
@pytest.mark.parametrize("chunk", [1, 3, LONGEST])
@pytest.mark.parametrize("local_all2all", [False, True], ids=["-", "L"])
@pytest.mark.parametrize("uniquify", [False, True], ids=["-", "U"])
@pytest.mark.parametrize("reduce", ["blocking", "nonblocking"])
def test_levels_in_a_row(
    world: Ranks,
    name: str,
    per_rank: int,
    chunk: int,
    local_all2all: bool,
    uniquify: bool,
    reduce: str,
) -> None:
    options = {
        "chunk_elements": chunk,
        "local_all2all": local_all2all,
        "uniquify": uniquify,
        "mask_reduce": reduce,
    }
    with exchange_of(name, world, per_rank, **options) as exchange:
        for seed in range(4):
            level = random_level(per_rank * world.size, seed)
            mask, received = run_level(exchange, world, level)
            np.testing.assert_array_equal(host(mask), np.bitwise_or.reduce(level[0]))
            assert mask.dtype == np.uint64
            same_normals(received, expected_normals(world, level[1]), unique=uniquify)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("per_rank", [1, 3])
def test_levels_in_two_hops(world: Ranks, name: str, per_rank: int) -> None:
    placement = Placement(per_rank * world.size, world.size)
    with exchange_of(name, world, per_rank) as exchange:
        exchange.exchange = RelayExchange(exchange.exchange, placement, world.rank)
        exchange.finish_normals = exchange.exchange.finish_normals
        for seed in range(4):
            level = random_level(placement.parts, seed)
            mask, received = run_level(exchange, world, level)
            np.testing.assert_array_equal(host(mask), np.bitwise_or.reduce(level[0]))
            same_normals(received, expected_normals(world, level[1]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("local_all2all", [False, True], ids=["-", "L"])
@pytest.mark.parametrize("uniquify", [False, True], ids=["-", "U"])
def test_ranks_have_parts_of_any_number(
    world: Ranks, name: str, local_all2all: bool, uniquify: bool
) -> None:
    """The first has three, the second one, as devices of hosts of unequal size."""
    counts = [3 if rank == 0 else rank for rank in range(world.size)]
    owners = [(rank,) for rank, _ in in_turn(counts)]
    placement = Placement.of_domains(owners, world.size)
    own = placement.parts_of(world.rank)
    options = {"local_all2all": local_all2all, "uniquify": uniquify}
    with exchange_of(name, world, 1, placement=placement, **options) as exchange:
        for seed in range(4):
            masks, bins = random_level(placement.parts, seed)
            exchange.start_masks([masks[part] for part in own])
            exchange.start_normals([bins[part] for part in own])
            np.testing.assert_array_equal(
                host(exchange.finish_masks()), np.bitwise_or.reduce(masks)
            )
            wanted: list[list[tuple[int, np.ndarray]]] = [[] for _ in own]
            for rank in range(world.size):
                sources = placement.parts_of(rank)
                for arrived, part in zip(wanted, own, strict=True):
                    array = np.concatenate([bins[source][part] for source in sources])
                    if array.size:
                        arrived.append((rank, array))
            same_normals(exchange.finish_normals(), wanted, unique=uniquify)
        assert exchange.traffic.sent.shape[0] == len(own) + 1


class Noting:
    """Notes which calls of a communicator are made."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.calls = comm, set()

    def __getattr__(self, name: str) -> Any:
        self.calls.add(name)
        return getattr(self.comm, name)


@pytest.mark.parametrize("reduce", ["blocking", "nonblocking"])
def test_masks_are_reduced_as_asked_for(world: Ranks, reduce: str) -> None:
    with exchange_of("host", world, 2, mask_reduce=reduce) as exchange:
        if world.size == 1:
            pytest.skip("one rank has nothing to reduce")
        inside = exchange.exchange
        noting = inside._comm = Noting(inside._comm)
        level = random_level(2 * world.size, 7)
        mask, _ = run_level(exchange, world, level)
        np.testing.assert_array_equal(mask, np.bitwise_or.reduce(level[0]))
        wanted = {"blocking": "Allreduce", "nonblocking": "Iallreduce"}[reduce]
        assert noting.calls & {"Allreduce", "Iallreduce"} == {wanted}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reduce", ["blocking", "nonblocking"])
def test_orders_of_start_and_finish(world: Ranks, name: str, reduce: str) -> None:
    masks, bins = random_level(2 * world.size, 9)
    wanted_mask = np.bitwise_or.reduce(masks)
    wanted = expected_normals(world, bins)
    with exchange_of(name, world, 2, mask_reduce=reduce) as exchange:
        for _ in range(2):
            exchange.start_normals(mine(world, bins))
            exchange.start_masks(mine(world, masks))
            same_normals(exchange.finish_normals(), wanted)
            np.testing.assert_array_equal(host(exchange.finish_masks()), wanted_mask)
            exchange.start_masks(mine(world, masks))
            exchange.start_normals(mine(world, bins))
            same_normals(exchange.finish_normals(), wanted)
            np.testing.assert_array_equal(host(exchange.finish_masks()), wanted_mask)
        # levels without any delegate found send only normals, and the reverse
        exchange.start_normals(mine(world, bins))
        same_normals(exchange.finish_normals(), wanted)
        exchange.start_masks(mine(world, masks))
        np.testing.assert_array_equal(host(exchange.finish_masks()), wanted_mask)


@pytest.mark.parametrize("name", NAMES)
def test_results_outlive_the_next_level(world: Ranks, name: str) -> None:
    levels = [random_level(2 * world.size, seed) for seed in range(3)]
    with exchange_of(name, world, 2) as exchange:
        before = run_level(exchange, world, levels[0])
        for level, last in zip(levels[1:], levels[:-1], strict=True):
            now = run_level(exchange, world, level)
            np.testing.assert_array_equal(
                host(before[0]), np.bitwise_or.reduce(last[0])
            )
            same_normals(before[1], expected_normals(world, last[1]))
            before = now


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_left_alone(world: Ranks, name: str) -> None:
    masks, bins = random_level(2 * world.size, 5)
    with exchange_of(name, world, 2, local_all2all=True, uniquify=True) as exchange:
        run_level(exchange, world, (masks, bins))
        for given, wanted in zip(exchange.masks, mine(world, masks), strict=True):
            np.testing.assert_array_equal(host(given), wanted)
        for given, wanted in zip(exchange.bins, mine(world, bins), strict=True):
            np.testing.assert_array_equal(host(given.items), bins_of(wanted).items)


@pytest.mark.parametrize("name", NAMES)
def test_without_delegates_and_without_normals(world: Ranks, name: str) -> None:
    parts = 2 * world.size
    nothing = [[np.empty(0, np.uint64)] * parts] * parts
    no_masks = [np.empty(0, np.uint64)] * parts
    with exchange_of(name, world, 2, delegates=0) as exchange:
        mask, received = run_level(exchange, world, (no_masks, nothing))
        assert mask.size == 0
        assert received == [[], []]
        assert sent_by(exchange)["normals"] == (0, 0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reduce", ["blocking", "nonblocking"])
def test_ranks_at_different_speeds(world: Ranks, name: str, reduce: str) -> None:
    """A rank that is a level ahead must not take messages of the level before."""
    generator = np.random.default_rng(world.rank)
    with exchange_of(name, world, 1, mask_reduce=reduce) as exchange:
        for seed in range(30):
            level = random_level(world.size, seed)
            busy = np.ones(int(generator.integers(1, 20000)))
            assert float(np.sort(busy).sum()) == busy.size
            mask, received = run_level(exchange, world, level)
            np.testing.assert_array_equal(host(mask), np.bitwise_or.reduce(level[0]))
            same_normals(received, expected_normals(world, level[1]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("local_all2all", [False, True], ids=["-", "L"])
def test_traffic(world: Ranks, name: str, local_all2all: bool) -> None:
    per_rank, size = 3, world.size
    masks, bins = random_level(per_rank * size, 3)
    with exchange_of(name, world, per_rank, local_all2all=local_all2all) as exchange:
        run_level(exchange, world, (masks, bins))
        sent = sent_by(exchange)
        by_part = exchange.traffic.sent[:-1, 1, KINDS.index("normals")]
    remote = [
        array.size
        for row in mine(world, bins)
        for part, array in enumerate(row)
        if part % size != world.rank
    ]
    pairs = {
        (part if local_all2all else (here, part))
        for here, row in enumerate(mine(world, bins))
        for part, array in enumerate(row)
        if part % size != world.rank and array.size
    }
    assert sent["normals"] == (8 * sum(remote), len(pairs))
    assert sent["masks"] == ((masks[0].nbytes, 1) if size > 1 else (0, 0))
    if not local_all2all:
        here = np.array([here for here, _ in pairs], int)
        np.testing.assert_array_equal(by_part, np.bincount(here, minlength=per_rank))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("local_all2all", [False, True], ids=["-", "L"])
def test_who_has_nothing_to_send_sends_nothing(
    world: Ranks, name: str, local_all2all: bool
) -> None:
    """Only the first part has something, for the last; the level after it nobody."""
    parts = 2 * world.size
    nothing = np.zeros(0, np.uint64)
    bins = [[nothing] * parts for _ in range(parts)]
    bins[0][-1] = np.array([5, 7], np.uint64)
    sent = int(world.rank == 0 and world.size > 1)
    with exchange_of(name, world, 2, local_all2all=local_all2all) as exchange:
        for some in (bins, [[nothing] * parts] * parts, bins):
            exchange.start_normals(mine(world, some))
            same_normals(exchange.finish_normals(), expected_normals(world, some))
        assert sent_by(exchange)["normals"] == (2 * 8 * 2 * sent, 2 * sent)


@pytest.mark.parametrize("name", NAMES)
def test_traffic_by_kind(world: Ranks, name: str) -> None:
    """Numbers are of the kind that the caller says; what all send is of no part."""
    masks, bins = random_level(2 * world.size, 3)
    with exchange_of(name, world, 2) as exchange:
        for kind in ("questions", "answers"):
            with exchange.traffic.of(kind):
                run_level(exchange, world, (masks, bins))
        sent, whole = sent_by(exchange), exchange.traffic.sent
    assert sent["questions"] == sent["answers"]
    assert sent["normals"] == (0, 0)
    assert sent["parents"] == (0, 0)
    together = KINDS.index("masks")
    assert not whole[:-1, :, together].any()
    assert not whole[-1, :, [k for k in range(len(KINDS)) if k != together]].any()


@pytest.mark.parametrize("delegates", [1, 64, 65, 200, 1000])
def test_nccl_masks_by_slices(
    world: Ranks, delegates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices of any length, also fewer words than ranks."""
    monkeypatch.setattr(nccl, "sliced", lambda words, ranks: True)
    with exchange_of("nccl-device", world, 2, delegates=delegates) as exchange:
        for seed in range(4):
            level = random_level(2 * world.size, seed, delegates)
            mask, received = run_level(exchange, world, level)
            np.testing.assert_array_equal(host(mask), np.bitwise_or.reduce(level[0]))
            same_normals(received, expected_normals(world, level[1]))


def test_nccl_slices_only_what_is_long() -> None:
    assert not nccl.sliced(1 << 40, 1)
    assert not nccl.sliced(1 << 40, 2)
    assert not nccl.sliced(1 << 18, 4)
    assert nccl.sliced(1 << 19, 4)
    assert nccl.sliced(1 << 19, 8)
    assert nccl.sliced(1 << 13, 128)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", NAMES)
def test_uniquify_sends_each_vertex_once(world: Ranks, name: str) -> None:
    """Of items with one number and several parents one arrives."""
    parts = 2 * world.size
    sent = np.uint64(7 << NUMBER_AT) + np.arange(5, dtype=np.uint64)
    bins = [[sent + np.uint64(5 * source)] * parts for source in range(parts)]
    masks = [np.zeros(1, np.uint64)] * parts
    for both, count in ((False, 2), (True, 1)):
        options: dict[str, Any] = {"uniquify": True, "local_all2all": both}
        with exchange_of(name, world, 2, 1, **options) as exchange:
            _, received = run_level(exchange, world, (masks, bins))
            for sources in received:
                for rank, array in sources:
                    assert array.size == (10 if rank == world.rank else count)
                    given = np.concatenate([own[0] for own in bins[rank :: world.size]])
                    assert np.isin(host(array), given).all()


def test_placement_for_other_ranks_is_refused(world: Ranks) -> None:
    factory = lookup(EXCHANGES, "exchange", "host")
    other = world.size + 1
    with pytest.raises(LaunchError, match=f"placed on {other} ranks"):
        factory(world, Placement(other, other), 1, ExchangeOptions())


@pytest.mark.parametrize("name", NAMES)
def test_close_with_something_under_way_does_not_wait(world: Ranks, name: str) -> None:
    masks, bins = random_level(world.size, 1)
    with exchange_of(name, world, 1, mask_reduce="nonblocking") as exchange:
        exchange.start_masks(mine(world, masks))
        exchange.start_normals(mine(world, bins))
    exchange.close()
    world.barrier()
