"""Rows and searches that are resident on devices, and what they must be."""

import numpy as np
import pytest
from device_parts import joined
from fast_graphs import cut
from graphs import check_search, levels_by

from distbfs.build.cuda.domain import construct_domain
from distbfs.build.cuda.room import LEAST_KEPT, Fit, Room
from distbfs.device import cuda
from distbfs.device.peers import access_problem
from distbfs.engines.base import WHOLE
from distbfs.engines.cuda.xbfs.domain import MemberSearch
from distbfs.exchange.peer_memory import PeerGroup
from distbfs.graph.device_graph import AT_LEAST, COLUMN_PAD, ISOLATED, degree_class
from distbfs.multisearch.domain_bits import DomainBitSearches
from distbfs.options import SearchOptions
from distbfs.partition.share import GRANULE, positions_of
from distbfs.ranks.world import SoloWorld
from distbfs.search.domain import DomainDriver

NOTHING = lambda *_: 0  # noqa: E731 - what searches take


def resident_parts(source, parts, world=None, **options):
    """Return (parts of this rank, summary)."""
    return construct_domain(source, world or SoloWorld(), parts, **options)


def device_searches(world, members, lanes=1, **options):
    """Return bit-parallel searches on devices, with the memory of rows of any width."""
    searches = DomainBitSearches(world, members, **options)
    searches.allocate(lanes)
    return searches


def parts_here():
    """The numbers of parts that the devices here can have, one each."""
    many = min(int(cuda.cupy().cuda.runtime.getDeviceCount()), 8)
    return [p for p in (1, 2, 3, 4, 8) if p <= many]


def by_parts(*counts):
    """Run a test for each number of parts, whose devices wait for each other."""
    waits = pytest.mark.alone
    cases = [pytest.param(p, marks=[waits] if p > 1 else []) for p in counts]
    return pytest.mark.parametrize("parts", cases)


def devices_of(parts):
    """The devices of so many parts, which see each other's memory."""
    if parts not in parts_here():
        pytest.skip(f"needs {parts} devices")
    devices = list(range(parts))
    problem = access_problem(devices)
    if problem:
        pytest.skip(problem)
    return devices


def budgets(source, parts, monkeypatch, state=NOTHING, **options):
    """Return the bytes of a device that keep the least there, and those that keep all.

    As a build itself counts them, of the device that needs most.

    state: what searches take, as in ``Room``
    """
    seen, most = [], Fit.most

    def watch(fit):
        heads = fit.at(LEAST_KEPT).device_bytes
        every = fit.total + COLUMN_PAD
        seen.append((fit.fixed + heads, fit.fixed + 4 * every))
        return most(fit)

    with monkeypatch.context() as patch:
        patch.setattr(Fit, "most", watch)
        resident_parts(source, parts, room=Room(None, None, state), **options)
    least, every = np.array(seen).max(axis=0).tolist()
    return least, max(least, every)


def row_ends(source):
    """Ends of tuples that are no loops at each vertex, repeats counted."""
    other = source.u != source.v
    ends = np.concatenate([source.u[other], source.v[other]])
    return np.bincount(ends, minlength=source.n)


def expected_positions(source, parts):
    """Position of each id, -1 where it has no edge, and the granules of a part."""
    degrees, positions = row_ends(source), np.full(source.n, -1, np.int64)
    most = 0
    for part in range(parts):
        own = degrees[part::parts]
        order = np.argsort(-degree_class(own), kind="stable")
        order = order[: int((own > 0).sum())]
        numbers = np.arange(len(order))
        at = (numbers // GRANULE * parts + part) * GRANULE + numbers % GRANULE
        positions[order * parts + part] = at
        most = max(most, len(order))
    return positions, max(-(-most // GRANULE), 1)


def check_resident(source, made, summary):
    """Assert that parts are the rows of a graph by position."""
    parts = made[0].layout.parts
    positions, granules = expected_positions(source, parts)
    matrix, degrees = source.matrix, row_ends(source)
    assert summary.m == matrix.nnz == made[0].domain.edges
    assert summary.loops == int((source.u == source.v).sum())
    for one in made:
        k = one.index
        own = positions[k::parts]
        active = int((own >= 0).sum())
        assert one.active == active
        assert (one.domain.granules, one.n) == (granules, len(own))
        assert one.domain.active == (positions >= 0).sum()
        some = np.flatnonzero(positions >= 0)
        ids = one.ids_at(cuda.cupy().asarray(positions[some]))
        np.testing.assert_array_equal(ids.get(), some)
        vertices = one.vertices.get().astype(np.int64)
        places = positions_of(np.arange(active), k, parts)
        np.testing.assert_array_equal(places, own[vertices])
        numbers = np.full(len(own), ISOLATED)
        numbers[vertices] = np.arange(active)
        every = np.arange(len(own))[::-1]
        np.testing.assert_array_equal(one.local_numbers(every), numbers[every])
        np.testing.assert_array_equal(one.device_numbers(every).get(), numbers[every])
        ends = np.zeros(len(own), np.int64)
        ends[one.ended.get()] = one.tuple_degrees.get()
        np.testing.assert_array_equal(ends, source.ends[k::parts])
        assert len(one.ended) == (source.ends[k::parts] > 0).sum()
        offsets, columns = one.out.offsets.get(), one.out.columns.get()
        assert one.m == offsets[-1] == len(columns) - COLUMN_PAD
        for number, local in enumerate(vertices.tolist()):
            v = local * parts + k
            row = matrix.indices[matrix.indptr[v] : matrix.indptr[v + 1]]
            got = columns[offsets[number] : offsets[number + 1]]
            np.testing.assert_array_equal(got, np.sort(positions[row]))
        for least in range(1, AT_LEAST):
            assert (degrees[k::parts] >= least).sum() <= one.at_least[least]


def resident_driver(
    source,
    parts,
    *,
    wide=False,
    overrides=None,
    devices=None,
    room=None,
    directed=False,
    **options,
):
    """The driver of searches resident on devices, of all parts in this process.

    wide: offsets of 64 bits; overrides: arguments of the kernels to set otherwise
    devices: of each part (default: the current one, where it is emulated)
    room, directed: see ``construct_domain``
    """
    world, options = SoloWorld(), SearchOptions.named(engine="xbfs", **options)
    form = {"devices": devices, "room": room, "directed": directed}
    made, _ = resident_parts(source, parts, **form)
    searches = []
    for part in made:
        with part.ids.device:
            if wide:
                widened = part.out.offsets.astype(np.uint64)
                object.__setattr__(part.out, "offsets", widened)
            searches.append(MemberSearch(part, options, overrides or {}))
    group = PeerGroup(world, [search.device for search in searches])
    return DomainDriver(world, searches, group)


def check_cut(source, root, level, parent, until):
    """Assert that a search ended where it had to; return the levels."""
    wanted = cut(source.distances(root), until)
    np.testing.assert_array_equal(level, wanted)
    if parent is None:
        return wanted
    assert (parent[wanted < 0] == -1).all()
    assert parent[root] == root
    child = np.flatnonzero(wanted > 0)
    above = parent[child]
    np.testing.assert_array_equal(wanted[above], wanted[child] - 1)
    assert not len(child) or source.matrix[above, child].all()
    return wanted


def look(driver, source, root, *, until=WHOLE, **options):
    """Search and assert that the result is right; return it."""
    found = driver.search(root, until=until, **options)
    level, parent = (joined(x, source.n) for x in (found.level, found.parent))
    if level is None:
        level = levels_by(parent)
    if until is WHOLE:
        wanted = check_search(source, root, level.astype(np.int32), parent)
    else:
        wanted = check_cut(source, root, level, parent, until)
    assert found.levels == wanted.max() + 1
    assert found.seconds > 0
    return found
