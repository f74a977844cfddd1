"""Items that go along a row and a column of a grid of ranks arrive as in one hop."""

import numpy as np
import pytest
from worlds import ThreadExchange, on_ranks

from distbfs.errors import UsageError
from distbfs.exchange.bins import Bins
from distbfs.exchange.relay import Grid, RelayExchange
from distbfs.exchange.traffic import Traffic
from distbfs.options import ExchangeOptions
from distbfs.partition.layout import Placement

SOME = (1, 2, 3, 4, 5, 7, 9, 12, 16, 31, 64)


@pytest.mark.parametrize("ranks", [*SOME, 100, 1000])
def test_carriers(ranks):
    """A carrier is in the row or the column of both ends."""
    grid = Grid(ranks)
    for here in range(0, ranks, 1 + ranks // 60):
        carriers = [grid.carrier(here, there) for there in range(ranks)]
        assert max(carriers) < ranks
        assert carriers[here] == here
        assert len(set(carriers)) <= 2 * grid.width
        for there, carrier in enumerate(carriers):
            for end in (here, there):
                rows, columns = zip(
                    *(divmod(x, grid.width) for x in (end, carrier)), strict=True
                )
                assert rows[0] == rows[1] or columns[0] == columns[1]


def bins_of(sent, parts):
    """Bins of {part: items}."""
    sizes = np.array([len(sent.get(part, ())) for part in range(parts)])
    ends = np.cumsum(sizes)
    items = [sent[part] for part in sorted(sent)]
    whole = np.concatenate([np.zeros(0, np.uint64), *items])
    return Bins(whole, lambda: (ends - sizes, ends))


def drawn(parts, most, seed):
    """For each part, the items for some of the others, and itself."""
    rng = np.random.default_rng([parts, seed])
    every = []
    for _ in range(parts):
        there = rng.choice(parts, rng.integers(0, min(most, parts) + 1), replace=False)
        sizes = rng.integers(1, 6, len(there))
        every.append(
            {
                int(part): rng.integers(0, 1 << 63, size, np.uint64)
                for part, size in zip(there, sizes, strict=True)
            }
        )
    return every


def wanted(sent, placement, rank):
    """What the parts of a rank receive in one hop."""
    every = []
    for part in placement.parts_of(rank):
        arrived = []
        for source in range(placement.ranks):
            items = [
                sent[own][part]
                for own in placement.parts_of(source)
                if part in sent[own]
            ]
            if items:
                arrived.append((source, np.concatenate(items)))
        every.append(arrived)
    return every


def same(received, expected):
    assert len(received) == len(expected)
    for one, other in zip(received, expected, strict=True):
        assert [rank for rank, _ in one] == [rank for rank, _ in other]
        for (_, items), (_, right) in zip(one, other, strict=True):
            np.testing.assert_array_equal(items, right)


@pytest.mark.parametrize("per_rank", [1, 3])
@pytest.mark.parametrize("ranks", SOME)
def test_relayed_levels(ranks, per_rank):
    placement = Placement(ranks * per_rank, ranks)
    levels = [drawn(placement.parts, most, seed=most) for most in (0, 2, 40)]

    def work(world):
        form = ExchangeOptions()
        inner = ThreadExchange(world, placement, 10, form, on_device=False)
        exchange = RelayExchange(inner, placement, world.rank)
        own = placement.parts_of(world.rank)
        for sent in levels:
            bins = [bins_of(sent[part], placement.parts) for part in own]
            exchange.start_normals(bins)
            received = exchange.finish_normals()
            for one in bins:
                one.items[:] = 0  # what has come is not what was sent
            same(received, wanted(sent, placement, world.rank))

    on_ranks(ranks, work)


class Network:
    """Messages of all ranks of a world, hop by hop; sent: how many of each rank."""

    def __init__(self, placement):
        self.placement, self.messages, self.sent = placement, {}, {}

    def exchange(self, rank):
        return Wire(self, rank)


class Wire:
    """The end of one rank; what has not been sent yet does not come."""

    name, on_device, needs_devices, xp = "wire", False, False, np
    start_masks = finish_masks = close = None

    def __init__(self, network, rank):
        self.network, self.rank, self.hop, self.traffic = network, rank, 0, Traffic(1)

    def start_normals(self, bins):
        pieces = bins[0].pieces()
        self.network.sent[self.hop, self.rank] = len(pieces)
        for part, items in pieces:
            there = self.network.placement.rank_of(part)
            box = self.network.messages.setdefault((self.hop, there), {})
            box[self.rank] = items

    def finish_normals(self):
        came = self.network.messages.get((self.hop, self.rank), {})
        self.hop += 1
        return [sorted(came.items())]


@pytest.mark.parametrize(
    "ranks", [1024, pytest.param(8192, marks=pytest.mark.thorough)]
)
def test_messages_of_large_worlds(ranks):
    """Few, where a rank has items for hundreds of others; ranks run one by one."""
    placement, busy = Placement(ranks, ranks), range(0, ranks, 37)
    sent = [{} for _ in range(ranks)]
    for part in busy:
        rng = np.random.default_rng(part)
        there = rng.choice(ranks, 300, replace=False).tolist()
        sent[part] = {x: np.array([part << 32 | x], np.uint64) for x in there}
    network = Network(placement)
    for _ in range(2):  # in the second round what others send on is there
        wires = [network.exchange(rank) for rank in range(ranks)]
        every = [RelayExchange(x, placement, rank) for rank, x in enumerate(wires)]
        for rank, exchange in enumerate(every):
            exchange.start_normals([bins_of(sent[rank], ranks)])
        received = [exchange.finish_normals() for exchange in every]
    senders = [[] for _ in range(ranks)]
    for part in busy:
        for there in sent[part]:
            senders[there].append(part)
    for rank, (came,) in enumerate(received):
        assert [source for source, _ in came] == senders[rank]
        assert [int(x[0]) for _, x in came] == [y << 32 | rank for y in senders[rank]]
    assert max(network.sent.values()) <= 2 * np.sqrt(ranks)


def test_options_of_one_hop():
    for name in ("uniquify", "local_all2all"):
        with pytest.raises(UsageError, match=f"{name} is for messages of one hop"):
            ExchangeOptions(relay_from=4, **{name: True})
