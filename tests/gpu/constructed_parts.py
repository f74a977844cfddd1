"""What parts built on devices must be: the host's, in the order of the devices."""

from functools import lru_cache

import numpy as np
from graphs import build

from distbfs.build.cuda.parts import construct_on_devices
from distbfs.graph.device_graph import COLUMN_PAD
from distbfs.options import BuildOptions
from distbfs.partition.layout import Placement
from distbfs.ranks.world import SoloWorld
from distbfs.types import SUBGRAPHS

LARGE = 1 << 40  # larger than every degree
THRESHOLDS = [0, 4, None, LARGE]
NARROW = ("vertices", "numbers", "tuple_degrees")
SAME = ("n", "m", "tuples", "loops", "repeats", "parts", "threshold", "delegates")


def on_devices(source, parts, world=None, **options):
    """Return (parts of this rank, summary)."""
    threshold = options.pop("threshold", None)
    world = world or SoloWorld()
    told = BuildOptions(threshold=threshold)
    placement = Placement(parts, world.size)
    return construct_on_devices(source, world, placement, told, **options)


def host_order(part):
    """The vertices of a host part as the device numbers them."""
    active = np.sort(part.vertices[: part.active])
    return np.concatenate([active, np.sort(part.vertices[part.active :])])


def expected_rows(part, name, numbers):
    """(offsets, columns) of a subgraph, renumbered.

    numbers: of each part, host number -> device number
    """
    graph = getattr(part, name)
    row, column = graph.sources(), graph.columns.astype(np.int64)
    if name[0] == "n":
        row = numbers[part.index][row]
    if name == "nn":
        owner = column >> 32
        for k, mine in enumerate(numbers):
            here = owner == k
            column[here] = k << 32 | mine[column[here] & 0xFFFFFFFF]
    elif name == "dn":
        column = numbers[part.index][column]
    order = np.lexsort((column, row))
    lengths = np.bincount(row, minlength=graph.rows)
    return np.concatenate([[0], np.cumsum(lengths)]), column[order]


def check_part(found, wanted, numbers):
    """Assert that a device's part is a host's part."""
    same = ("index", "threshold", "active", "local_count", "delegate_count", "layout")
    for name in same:
        assert getattr(found, name) == getattr(wanted, name), name
    assert isinstance(found.delegates, np.ndarray)
    assert found.delegates.dtype == np.int64
    np.testing.assert_array_equal(found.delegates, wanted.delegates)
    for name in NARROW:
        assert getattr(found, name).dtype == np.uint32, name
    order = host_order(wanted)
    np.testing.assert_array_equal(found.vertices.get(), order)
    np.testing.assert_array_equal(found.numbers.get()[order], np.arange(len(order)))
    ends = np.empty(len(order), np.int64)
    ends[numbers[wanted.index]] = wanted.tuple_degrees
    np.testing.assert_array_equal(found.tuple_degrees.get(), ends)
    for name in SUBGRAPHS:
        rows = getattr(found, name)
        wide = name == "nn" and wanted.layout.parts > 1
        assert rows.columns.dtype == (np.uint64 if wide else np.uint32)
        assert rows.offsets.dtype == np.uint32
        offsets, columns = expected_rows(wanted, name, numbers)
        np.testing.assert_array_equal(rows.offsets.get(), offsets, err_msg=name)
        assert rows.edges == len(columns)
        np.testing.assert_array_equal(rows.columns.get(), columns, err_msg=name)
        behind = rows.columns.base[len(columns) :].get()[:COLUMN_PAD]
        np.testing.assert_array_equal(behind, np.zeros(COLUMN_PAD))


def check_summary(found, wanted):
    for name in SAME:
        assert getattr(found, name) == getattr(wanted, name), name
    assert found.edges == wanted.edges
    for name in ("degrees", "counts"):
        got = getattr(found.histogram, name)
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, getattr(wanted.histogram, name))
    assert found.generation_seconds >= 0
    assert found.construction_seconds > 0


@lru_cache(64)
def built(source, parts, threshold):
    """What the host builds of a graph that tests keep."""
    return build(source, parts, threshold=threshold)


def check(source, made, summary, threshold, ranks=1):
    """Assert that parts are those of the host.

    made: the parts of each rank
    """
    count = sum(map(len, made))
    wanted, told = built(source, count, threshold)
    check_summary(summary, told)
    numbers = []
    for part in wanted:
        place = np.empty(part.local_count, np.int64)
        place[host_order(part)] = np.arange(part.local_count)
        numbers.append(place[part.vertices])
    for rank, parts in enumerate(made):
        assert [part.index for part in parts] == list(range(rank, count, len(made)))
        for part in parts:
            check_part(part, wanted[part.index], numbers)


def check_construct(source, parts, threshold, **options):
    """Build on devices and compare; return the summary."""
    made, summary = on_devices(source, parts, threshold=threshold, **options)
    check(source, [made], summary, threshold)
    return summary
