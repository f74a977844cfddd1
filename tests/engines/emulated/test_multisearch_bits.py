"""Bit-parallel searches with the kernels run on the CPU, against SciPy's distances."""

import numpy as np
import pytest
from allocations import allocated
from bit_searches import BitSearches
from covering import covered
from device_graphs import HostGraph, hubs, small
from fast_graphs import path, shuffled
from graphs import NAMED, NO_VERTEX, Tuples, complete, kronecker, uniform

from distbfs.device import cuda
from distbfs.errors import OutOfMemory, UsageError
from distbfs.multisearch import cuda_bits, domain_share
from distbfs.multisearch.base import SUMS, level_dtype
from distbfs.multisearch.cuda_bits import bytes_needed
from distbfs.ranks.world import SoloWorld

GRAPHS = {**NAMED, **small(), "hubs": hubs(3, 700), "kronecker": kronecker(9)}
GRAPHS["wide-star"] = Tuples(1003, [7] * 1003, range(1003))
ALWAYS_PULL, NEVER_PULL = 1, 1 << 62
WIDTHS, PULLS = [128, 256, 512], [None, ALWAYS_PULL, NEVER_PULL]
KEPT = [0, 3, 8, 40]


def distances(source, roots):
    if not len(roots):
        return None
    some, at = np.unique(np.asarray(roots), return_inverse=True)
    return np.stack([source.distances(root) for root in some])[at]


def signed(levels):
    """Levels as int64, -1 where unreached."""
    return np.asarray(levels.get()).astype(np.int64)


def some_sources(source, count, seed=3):
    rng = np.random.default_rng(seed)
    found = rng.integers(0, source.n, count)
    found[0] = source.degrees.argmax()
    found[-1] = source.degrees.argmin()
    return found


@pytest.mark.pairs
@pytest.mark.full_blocks(width=256)
@pytest.mark.parametrize("pull_edges", PULLS)
@pytest.mark.parametrize("width", WIDTHS)
def test_levels_and_counts(device, monkeypatch, width, pull_edges):
    """A third of the graphs each: all of each width, and in each way."""
    monkeypatch.setattr(domain_share, "HUB_DEGREE", 300)
    turn = (WIDTHS.index(width) + PULLS.index(pull_edges)) % 3
    for k, (name, source) in [*enumerate(GRAPHS.items())][turn::3]:
        made = HostGraph(source, wide=k % 3 == 1)
        roots = some_sources(source, [3, 40, width, 17][k % 4])
        ways = {"width": width, "pull_edges": pull_edges}
        searches = BitSearches(made.graph, counts=True, sums=SUMS, **ways)
        batch = searches.search(roots)
        wanted = distances(source, roots)
        assert batch.deepest == max(wanted.max(), 0), name
        np.testing.assert_array_equal(signed(batch.levels_by_id()), wanted, name)
        counts = np.stack(
            [np.bincount(row[row >= 0], minlength=batch.deepest + 1) for row in wanted]
        )
        np.testing.assert_array_equal(batch.counts(), counts, name)
        check_sums(sums_of(searches), wanted)
        searches.search(roots[:2])
        check_sums(sums_of(searches), np.concatenate([wanted, wanted[:2]]))


def sums_of(searches):
    """Return the sums of all searches so far by name."""
    return {name: searches.sum_by_id(name) for name in SUMS}


def check_sums(sums, wanted):
    """Sums by vertex must agree with levels [k, n] of all searches so far."""
    reached = wanted >= 0
    np.testing.assert_array_equal(sums["reached_from"], reached.sum(axis=0))
    total = np.where(reached, wanted, 0).sum(axis=0)
    np.testing.assert_array_equal(sums["distance_from"], total)
    near = np.where(wanted > 0, 1 / np.where(wanted > 0, wanted, 1), 0)
    np.testing.assert_allclose(sums["harmonic_from"], near.sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("pull_edges", [ALWAYS_PULL, 300, 2000, NEVER_PULL])
def test_levels_of_many_edges_are_pulled(device, pull_edges):
    """Of all vertices that are in the frontier of any search."""
    for name in ("kronecker", "random", "grid"):
        source = GRAPHS[name]
        roots = some_sources(source, 5)
        searches = BitSearches(HostGraph(source).graph, pull_edges=pull_edges)
        batch, wanted = searches.search(roots), distances(source, roots)
        edges = [
            (source.degrees + 1)[(wanted == level).any(axis=0)].sum()
            for level in range(batch.deepest + 1)
        ]
        assert batch.launched.pulls == sum(count >= pull_edges for count in edges)
        assert batch.launched.pushes == len(edges) - batch.launched.pulls


def test_levels_beyond_a_byte_and_again(device):
    """Planes and counts grow; the second batch finds them there."""
    source = shuffled(path(700))
    made = HostGraph(source)
    searches = BitSearches(made.graph, counts=True)
    for roots in ([5, 9, 600], [699, 0], [77]):
        batch = searches.search(roots)
        levels = batch.levels_by_id()
        assert batch.levels(0)[0].dtype == level_dtype(batch.deepest)
        np.testing.assert_array_equal(signed(levels), distances(source, roots))
        assert (batch.counts().sum(axis=1) == 700).all()


def split_after(source, kept):
    """A graph with so many columns of a row on the device."""
    made = HostGraph(source)
    return made.split(kept) if made.active else made.graph


@pytest.mark.parametrize(
    ("kept", "width", "pull_edges"),
    covered(KEPT, WIDTHS, PULLS),
)
def test_tails_in_host_memory(device, monkeypatch, kept, width, pull_edges):
    """From no column on the device to nearly all; what is read is counted.

    A third of the graphs each: all of each width, and with as many columns kept.
    """
    monkeypatch.setattr(domain_share, "HUB_DEGREE", 300)
    monkeypatch.setattr(domain_share, "WIDE_DEGREE", 12)
    turn = (KEPT.index(kept) + WIDTHS.index(width)) % 3
    for k, (name, source) in [*enumerate(GRAPHS.items())][turn::3]:
        graph = split_after(source, kept)
        roots = some_sources(source, [3, 40, width, 17][k % 4])
        ways = {"width": width, "pull_edges": pull_edges}
        searches = BitSearches(graph, counts=True, sums=SUMS, **ways)
        batch, wanted = searches.search(roots), distances(source, roots)
        np.testing.assert_array_equal(signed(batch.levels_by_id()), wanted, name)
        counts = np.stack(
            [np.bincount(row[row >= 0], minlength=batch.deepest + 1) for row in wanted]
        )
        np.testing.assert_array_equal(batch.counts(), counts, name)
        check_sums(sums_of(searches), wanted)
        if graph.out.tails is None:
            assert batch.tail_counts() == {}
            continue
        beyond = np.maximum(source.degrees - kept, 0)
        levels = range(batch.deepest + 1)
        pushed = sum(beyond[(wanted == level).any(axis=0)].sum() for level in levels)
        read = batch.tail_counts()["tail_edges"]
        if pull_edges == NEVER_PULL:
            assert read == pushed
        assert read <= (batch.deepest + 1) * graph.held_back
        assert 128 * -(-read // 32) <= batch.tail_counts()["tail_bytes"] <= 128 * read
        before, again = batch.tail_counts(), searches.search(roots).tail_counts()
        assert again == before or pull_edges != NEVER_PULL, "counted anew"


@pytest.mark.parametrize("width", [128, 512])
def test_pulls_read_no_tail_without_need(device, width):
    """Neither where kept columns have all, nor for searches that have ended."""

    def read(source, roots):
        ways = {"width": width, "pull_edges": ALWAYS_PULL}
        batch = BitSearches(split_after(source, 8), **ways).search(roots)
        np.testing.assert_array_equal(
            signed(batch.levels_by_id()), distances(source, roots)
        )
        return batch.deepest + 1, batch.tail_counts()["tail_edges"]

    assert read(complete(60), [0, 1]) == (2, 0)
    # a hub with 198 leaves and a path of ten vertices; two vertices apart
    leaves, rest = [*range(1, 199)], [*range(200, 210)]
    source = Tuples(300, [0] * 198 + [0, *rest[:-1]] + [250], [*leaves, *rest, 251])
    # the search that ends has a frontier in two levels, while it misses the hub
    assert read(source, [0, 250]) == (11, 2 * (199 - 8))


@pytest.mark.parametrize("most", [0, 1, 3, 16, 1000])
def test_levels_up_to(device, most):
    source = GRAPHS["grid"]
    made = HostGraph(source)
    wanted = distances(source, [0, 7])
    wanted[wanted > most] = -1
    batch = BitSearches(made.graph).search([0, 7], most)
    assert batch.deepest == min(most, wanted.max())
    np.testing.assert_array_equal(signed(batch.levels_by_id()), wanted)


@pytest.mark.parametrize("name", ["isolated", "two-components", "kronecker"])
def test_all_sources_in_batches(device, name):
    source = GRAPHS[name]
    made = HostGraph(source)
    roots = np.arange(source.n)[:300]
    wanted, searches = distances(source, roots), BitSearches(made.graph, width=128)
    for first, last, batch in searches.batches(roots):
        np.testing.assert_array_equal(signed(batch.levels_by_id()), wanted[first:last])


def test_the_second_batch_is_deeper(device):
    source = Tuples(600, [*range(499), 500], [*range(1, 500), 501])
    made = HostGraph(source)
    roots = [500] * 128 + [0, 510]
    wanted, searches = distances(source, roots), BitSearches(made.graph, width=128)
    for first, last, batch in searches.batches(roots):
        levels = batch.levels_by_id()
        assert batch.levels(0)[0].dtype == (np.int16 if first else np.int8)
        np.testing.assert_array_equal(signed(levels), wanted[first:last])


def test_no_source_and_no_vertex(device):
    made = HostGraph(GRAPHS["grid"])
    batch = BitSearches(made.graph).search([])
    assert (batch.deepest, batch.levels_by_id().shape) == (0, (0, made.source.n))
    assert BitSearches(HostGraph(NO_VERTEX).graph).search([]).deepest == 0


def test_reached(device):
    source = GRAPHS["two-components"]
    made = HostGraph(source)
    roots = np.array([0, 15, 3])
    batch = BitSearches(made.graph, levels=False).search(roots)
    rows, targets = np.divmod(np.arange(3 * source.n), source.n)
    wanted = distances(source, roots) >= 0
    found = batch.levels_at(rows, targets) >= 0
    np.testing.assert_array_equal(found, wanted.ravel())
    assert not len(batch.levels_at(rows[:0], targets[:0]))
    alone = HostGraph(NAMED["no-edges"])
    batch = BitSearches(alone.graph).search([4, 5])
    found = batch.levels_at(np.array([0, 0, 1]), np.array([4, 5, 5]))
    assert found.tolist() == [0, -1, 0]


def test_refusals(device):
    made = HostGraph(GRAPHS["grid"])
    searches = BitSearches(made.graph, levels=False)
    with pytest.raises(
        UsageError, match="source 289 is not a vertex; allowed: 0 to 288"
    ):
        searches.search([3, 289])
    with pytest.raises(UsageError, match="600 searches at once; allowed: 512"):
        searches.search([0] * 600)
    batch = searches.search([0, 288])
    assert not batch.levels_by_id().get().any(), "0 where a vertex was reached"
    assert batch.levels_at(np.array([1]), np.array([0])).tolist() == [0]
    with pytest.raises(ValueError, match="not requested"):
        searches.search([0]).counts()


@pytest.mark.parametrize("width", [128, 512])
def test_memory_is_what_was_counted(device, width):
    made = HostGraph(uniform(500, 2000))
    searches = BitSearches(made.graph, sums=SUMS, width=width)
    for levels in (False, True):
        searches.search([0], 1 if levels else 0)  # of which one adds planes once
        share = searches.launched
        kept = [share.params.held[name] for name in ("queue", *SUMS)]
        held = allocated([share._shared, kept, share._planes], [])
        lanes = width // 128
        need = bytes_needed(share.member, lanes, levels=levels, sums=len(SUMS))
        spare = 4 * 16 * lanes * made.active  # planes of deeper levels
        by_id = 4 * (made.source.n + 1)  # of a graph without all numbers by id
        assert held == need - levels * (spare + by_id)


def test_narrower_rows_where_memory_is_short(device, monkeypatch):
    made = HostGraph(uniform(5000, 20_000))
    member = made.graph
    need = bytes_needed(member, 1, levels=True, sums=len(SUMS)) + cuda_bits.RESERVE
    monkeypatch.setattr(cuda, "free_bytes", lambda: need + 100)
    fits = cuda_bits.lanes_that_fit
    assert fits(SoloWorld(), [member], levels=True) == 1
    monkeypatch.setattr(cuda, "free_bytes", lambda: need - 100)
    with pytest.raises(OutOfMemory, match=r"need \d+ bytes of device"):
        fits(SoloWorld(), [member], levels=True)
