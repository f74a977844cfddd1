"""Searches of degree-separated parts on one device, in one process."""

from dataclasses import replace

import numpy as np
from graphs import build, check_search, some_roots

from distbfs.build.cuda.inner_domains import inner_domains
from distbfs.exchange.host import HostExchange
from distbfs.graph.csr import CSR
from distbfs.graph.device_graph import COLUMN_PAD
from distbfs.options import SearchOptions
from distbfs.partition.device_part import to_device
from distbfs.partition.layout import Domains, Placement
from distbfs.ranks.world import SoloWorld
from distbfs.registry import ENGINES, lookup
from distbfs.search.runners.between import BetweenDomains
from distbfs.types import SUBGRAPHS

LARGE = 1 << 30  # larger than every degree


def driver_of(parts, engine="pan", room=None, **options):
    """What searches parts that lie on the device.

    room: of the device, where rows may have tails in host memory
    """
    world, form = SoloWorld(), SearchOptions.named(engine=engine, **options)
    placement = Placement(len(parts), 1)
    made = lookup(ENGINES, "engine", form.engine)(form)
    if form.engine == "xbfs":
        searches = share_searches(made, parts, room)
    else:
        searches = [made.domain(part, placement) for part in parts]
    d = parts[0].delegate_count
    exchange = HostExchange(world, placement, d, form.exchange, on_device=True)
    return BetweenDomains(world, searches, exchange, form)


def share_searches(engine, parts, room=None):
    """The searches of xbfs of parts that are domains of one device; see driver_of."""
    world, domains = SoloWorld(), Domains((1,) * len(parts))
    made = inner_domains([[part] for part in parts], domains, world, world, room)
    return [engine.of_shares(shares, world)[0] for shares in made]


def part_to_device(part):
    """A part of host memory, copied."""
    graphs = {}
    for name in SUBGRAPHS:
        rows = getattr(part, name)
        columns = np.pad(rows.columns, (0, COLUMN_PAD))
        columns = to_device(columns)[: rows.edges]
        graphs[name] = CSR(to_device(rows.offsets), columns)
    copied = replace(
        part,
        **graphs,
        vertices=to_device(part.vertices),
        tuple_degrees=to_device(part.tuple_degrees.astype(np.uint32)),
        degrees=None,
        delegate_degrees=None,
    )
    copied.numbers = to_device(part.numbers)
    return copied


def device_parts(source, parts, **options):
    """The parts of a graph, built on the host and copied."""
    return [part_to_device(part) for part in build(source, parts, **options)[0]]


def joined(arrays, n):
    """An array by vertex id from those of the parts by local id."""
    if arrays[0] is None:
        return None
    out = np.empty(n, arrays[0].dtype)
    for k, array in enumerate(arrays):
        out[k :: len(arrays)] = array.get()
    return out


def check(driver, source, root, *, records=False):
    """Search and assert that the result is right; return it."""
    found = driver.search(root, records=records)
    level, parent = (joined(x, source.n) for x in (found.level, found.parent))
    wanted = check_search(source, root, level.astype(np.int32), parent)
    assert found.levels == wanted.max() + 1
    if records:
        counts = np.bincount(wanted[wanted >= 0])
        told = [r["normals"] + r["delegates"] for r in found.records]
        assert told == counts.tolist()
    return found


def check_result(found, source):
    """Assert that all that a result tells of a whole search is right; return levels."""
    level, parent = found.to_numpy()
    wanted = check_search(source, found.root, level, parent)
    assert (found.reached, found.depth) == ((wanted >= 0).sum(), wanted.max())
    assert found.nedge == source.ends[wanted >= 0].sum() // 2
    counts = np.bincount(wanted[wanted >= 0])
    np.testing.assert_array_equal(found.level_counts(), counts)
    ids = np.array([0, source.n - 1, source.n // 3, 0])
    some, above = found.at(ids)
    np.testing.assert_array_equal(some, level[ids])
    assert (above is None) == (parent is None) == (not found.has_parents)
    if parent is not None:
        np.testing.assert_array_equal(above, parent[ids])
    return wanted


def checked_searches(session, source):
    """Search from some vertices, yield what was found when all told of it is right."""
    for root in some_roots(source, 3):
        found = session.search(root).keep()
        session.search(0)
        wanted = check_result(found, source)
        whole, above = (joined(x, source.n) for x in zip(*found.shards, strict=True))
        assert whole.dtype.kind == "i"
        np.testing.assert_array_equal(whole, wanted)
        np.testing.assert_array_equal(above, found.to_numpy()[1])
        yield found
    ids = np.random.default_rng(0).permutation(source.n)
    connected = session.connected(ids)
    assert connected.dtype == bool
    np.testing.assert_array_equal(connected, source.degrees[ids] > 0)
