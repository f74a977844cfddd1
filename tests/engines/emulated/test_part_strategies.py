"""What searches of parts do at each level, as their records tell it."""

from itertools import pairwise

import pytest
from device_parts import check, device_parts, driver_of
from graphs import build, kronecker, some_roots, uniform

from distbfs.engines.cuda.pan import search as part
from distbfs.engines.reference import ReferenceEngine
from distbfs.exchange.host import HostExchange
from distbfs.options import Factors, SearchOptions
from distbfs.partition.layout import Placement
from distbfs.ranks.world import SoloWorld
from distbfs.search.direction import DirectionPolicy
from distbfs.search.runners.between import BetweenDomains

FACTORS = [
    {},
    {"dd": Factors(2.0, 0.5), "dn": Factors(0.05, 0.01), "nd": Factors(0.3, 0.2)},
    {"dd": Factors(0.05, 0.01), "dn": Factors(3.0, 2.0), "nd": Factors(1.0, 0.9)},
]
GRAPHS = {"kronecker": kronecker(9), "uniform": uniform(600, 4000)}
WARP = 32


@pytest.fixture(autouse=True)
def small(device, monkeypatch):
    """Few blocks: each of their threads is switched to by the CPU."""
    monkeypatch.setattr(part, "BLOCKS", dict.fromkeys(part.BLOCKS, 1))


def on_the_host(source, parts, **options):
    """The same search by the reference engine."""
    world = SoloWorld()
    options = SearchOptions.named(engine="reference", **options)
    placement, made = Placement(parts, 1), build(source, parts, threshold=6)[0]
    searches = [ReferenceEngine(options).domain(one, placement) for one in made]
    exchange = HostExchange(world, placement, made[0].delegate_count, options.exchange)
    return BetweenDomains(world, searches, exchange, options)


def turns(directions):
    """Subgraphs that were pulled and then pushed again."""
    names = ("dd", "dn", "nd")
    return {
        name
        for before, after in pairwise(directions)
        for name in names
        if (before[name], after[name]) == ("pull", "push")
    }


def test_pulls_and_pushes_are_those_of_the_reference():
    """Each subgraph by its own factors, to pull and back."""
    seen, back = set(), set()
    for factors in FACTORS:
        for source in GRAPHS.values():
            wanted = on_the_host(source, 2, **factors)
            found = driver_of(device_parts(source, 2, threshold=6), **factors)
            for root in some_roots(source, 3):
                logs = [
                    check(found, source, root, records=True).records,
                    wanted.search(root, records=True).records,
                ]
                told, should = ([r["directions"] for r in log] for log in logs)
                assert told == should
                seen |= {(k, v) for r in told for k, v in r.items()}
                back |= turns(told)
    assert len(seen) == 7  # nn always pushes
    assert back == {"dd", "dn", "nd"}


def test_the_device_counts_work_as_the_host_does(monkeypatch):
    """All counts from which directions follow, of all parts together."""
    told, decide = [], DirectionPolicy.choose

    def chosen(policy, work):
        told.append(work)
        return decide(policy, work)

    monkeypatch.setattr(DirectionPolicy, "choose", chosen)
    for source in GRAPHS.values():
        searches = driver_of(device_parts(source, 2, threshold=6))
        for root in some_roots(source, 2):
            works = []
            for one in (searches, on_the_host(source, 2)):
                told.clear()
                one.search(root, records=True)
                works.append(list(told))
            assert works[0] == works[1]
