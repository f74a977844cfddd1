"""Bit-parallel searches between domains of devices, which are the CPU, against SciPy."""

from functools import cache

import numpy as np
import pytest
from covering import covered
from device_parts import LARGE, device_parts
from fast_graphs import path, shuffled
from graphs import NAMED, Tuples, kronecker, random_tuples, sources, uniform
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from part_graphs import GRAPHS as SHAPES
from test_between_kernels import StreamedThreads
from thread_peers import ThreadPeers
from worlds import ThreadExchange, on_ranks

from distbfs.build.cuda import inner
from distbfs.errors import OutOfMemory, SearchStopped
from distbfs.exchange.world import SoloWorld
from distbfs.multisearch import domain_bits
from distbfs.multisearch.domain_bits import DomainBitSearches, Member
from distbfs.multisearch.part_messages import PartMessages
from distbfs.options import ExchangeOptions
from distbfs.partition.layout import Placement
from distbfs.search.domains import split_by_domain

SUMS = ("reached_from", "distance_from", "harmonic_from")
ALWAYS_PULL, NEVER_PULL = 1, 1 << 62
GRAPHS = {
    **SHAPES,
    **{name: NAMED[name] for name in ("two-hubs", "isolated", "loops", "one-vertex")},
}
# the rank of each device of each domain
PLACEMENTS = {
    "one": ((0,),),
    "two of one rank": ((0,), (0,)),
    "two ranks": ((0,), (1,)),
    "three ranks": ((0,), (1,), (2,)),
    "four of two ranks": ((0,), (1,), (0,), (1,)),
    "pairs of a rank": ((0, 0), (1, 1)),
    "pairs of ranks": ((0, 1), (2, 3)),
    "two and one": ((0, 0), (1,)),
    "three and two of a rank": ((0, 0, 0), (0, 0)),
}


@cache
def levels_of(source):
    return np.stack([source.distances(root) for root in range(source.n)])


def searching(source, owners, threshold, kind, work, **options):
    """Return work(world, searches, members) of each rank; kind: of exchange."""
    placement = Placement.of_domains(owners, 1 + max(x for own in owners for x in own))
    placed = device_parts(source, placement.parts, threshold=threshold)

    def rank(world):
        domain, own = split_by_domain(world, placement), placement.parts_of(world.rank)
        every = list(placement.places_of(world.rank).values())
        groups = [[placed[own[place]] for place in places] for places in every]
        made = inner.inner_domains(groups, placement.domains, domain, world, None)
        shares = {}
        for places, some in zip(every, made, strict=True):
            shares.update(zip(places, some, strict=True))
        members = [Member.of_share(shares[place]) for place in sorted(shares)]
        messages = None
        if len(owners) > 1:
            d = len(placed[0].delegates)
            facts = {"item": np.uint64, "on_device": True}
            exchange = kind(world, placement, d, ExchangeOptions(), **facts)
            messages = PartMessages(world, placement, [0] * len(own), exchange)
        searches = DomainBitSearches(
            world, members, placement=placement, messages=messages, **options
        )
        result = work(world, searches, members)
        searches.close()
        return result

    return on_ranks(placement.ranks, rank)


def found_by(roots, n, **options):
    """Return a function for ``searching`` of levels [k, n], counts and sums."""

    def work(world, searches, members):
        searches.run(roots[::-1], levels=True)
        searches.run(roots, levels=True, sums=SUMS, **options)

        def by_id(arrays):
            out = np.zeros(n, dtype=arrays[0].dtype)
            for member, values in zip(members, arrays, strict=True):
                ids = member.layout.global_of(member.part, np.arange(len(values)))
                out[ids] = values
            return world.allreduce(out)

        levels = [by_id(searches.levels(k)) for k in range(len(roots))]
        sums = {name: by_id(searches.sums(name)) for name in SUMS}
        return np.array(levels).reshape(-1, n), searches.counts(), sums

    return work


def check(results, level):
    """Compare what one rank has with levels of SciPy, [k, n]."""
    levels, counts, sums = results
    np.testing.assert_array_equal(levels, level)
    deepest = level.max(initial=0)
    wanted = [(level == depth).sum(axis=1) for depth in range(deepest + 1)]
    np.testing.assert_array_equal(counts, np.array(wanted).T)
    reached = level >= 0
    np.testing.assert_array_equal(sums["reached_from"], reached.sum(axis=0))
    distances = np.where(reached, level, 0).sum(axis=0)
    np.testing.assert_array_equal(sums["distance_from"], distances)
    near = np.divide(1, level, out=np.zeros(level.shape), where=level > 0).sum(axis=0)
    np.testing.assert_allclose(sums["harmonic_from"], near, rtol=1e-12)


@pytest.fixture(autouse=True)
def peers(device, monkeypatch):
    monkeypatch.setattr(domain_bits, "PeerGroup", ThreadPeers)


@pytest.mark.parametrize(
    ("name", "owners", "threshold", "pull_edges", "kind"),
    covered(
        *(list(GRAPHS), list(PLACEMENTS), [0, 4, 20, LARGE]),
        *([None, ALWAYS_PULL, NEVER_PULL, 200], [ThreadExchange, StreamedThreads]),
    ),
)
def test_domains_of_all_kinds(name, owners, threshold, pull_edges, kind):
    """Some sources twice; what a run leaves does not change the next."""
    source = GRAPHS[name]
    roots = np.random.default_rng(1).integers(0, source.n, 65)
    for results in searching(
        *(source, PLACEMENTS[owners], threshold, kind, found_by(roots, source.n)),
        pull_edges=pull_edges,
    ):
        check(results, levels_of(source)[roots])
