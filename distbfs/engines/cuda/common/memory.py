"""Estimate the device memory of a search by engine xbfs, before it exists.

Sizes are those of the tables that allocate; upper bounds where they depend on more than
n, active and m.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from distbfs.build.cuda.domain import GRANULE, LEAST_LEAVES, member_table
from distbfs.build.cuda.room import LEAST_KEPT
from distbfs.device.array_table import total_bytes
from distbfs.engines.cuda.xbfs.cluster import cluster_table
from distbfs.engines.cuda.xbfs.search_table import (
    LISTS,
    QUEUE_SHARE,
    SearchShape,
    expected_shape,
    most_cuts,
)
from distbfs.engines.cuda.xbfs.shared import ALONE, MOST_PARTS, RANGES, shared_table
from distbfs.generate.cuda import id_word
from distbfs.graph.degrees import DegreeHistogram
from distbfs.graph.device_graph import WIDE
from distbfs.types import Floats, Ids

MULTIPROCESSORS = 132  # of an H200, the default
SPARSE_DEGREE = 4  # mean degree up to which one cluster may search
FIXED = 16 << 20  # counters, control, code of kernels, what the pool rounds up


def search_bytes(
    n: int,
    active: int,
    m: int,
    *,
    multiprocessors: int = MULTIPROCESSORS,
    **form: Any,
) -> int:
    """Return the bytes that engine xbfs keeps between searches besides the graph.

    n, active, m: as in DeviceGraph; form: as of ``expected_shape``
    """
    sparse = m <= SPARSE_DEGREE * active
    shape = expected_shape(n, active, m, multiprocessors, wide=sparse, **form)
    return shape_bytes(shape) + total_bytes(cluster_table(active) if sparse else {})


def shape_bytes(shape: SearchShape) -> int:
    """Return the bytes of a search of a shape, with what it takes besides arrays."""
    return total_bytes(shape.table) + FIXED


def member_bytes(
    n: int,
    active: int,
    m: int,
    devices: int,
    *,
    several: int | None = None,
    **form: Any,
) -> dict[str, int]:
    """Return a device's bytes in a domain of equal devices, by kind.

    n, active, m, several: of the whole graph, see ``member_search_bytes``, like form
    graph: as ``MemberRows`` holds it; search: kept for searches, including memory
    shared by the devices; total: the sum
    """
    local, own, edges = (-(-count // devices) for count in (n, active, m))
    graph = total_bytes(member_table(local, own, edges, room_of(own) * devices))
    search = member_search_bytes(
        *(n, local, own, edges, devices),
        several=None if several is None else -(-several // devices),
        **form,
    )
    return {"graph": graph, "search": search, "total": graph + search}


def room_of(active: int) -> int:
    """Return how many positions a device has whose part has so many with edges."""
    return -(-max(active, 1) // GRANULE) * GRANULE


def member_search_bytes(
    n: int,
    local: int,
    active: int,
    m: int,
    devices: int,
    *,
    push_only: bool = False,
    wide: bool | None = None,
    listed: int | None = None,
    several: int | None = None,
    multiprocessors: int = MULTIPROCESSORS,
    **form: Any,
) -> int:
    """Return the bytes that searches need on a device of a domain, with shared memory.

    n: of the whole graph; local, active, m: as ``DeviceGraph`` has them of the part
    several: vertices of degree 2 or more, where searches may leave out the leaves
    wide: default: where a mean row is short; listed, form: as of ``expected_shape``
    """
    room = room_of(active)
    coded = apart = 0
    leaves = 0 if several is None or devices == 1 else active - several
    if leaves and leaves * LEAST_LEAVES >= active:
        # another device may have more that are searched
        coded = room_of(active - leaves) + GRANULE
        apart = (room - active + leaves) * devices // 32
    pushed, share = MOST_PARTS * ALONE, devices * active // QUEUE_SHARE
    if listed is None and several is not None:
        listed = LISTS * several
    shape = expected_shape(
        *(local, active, m, multiprocessors),
        wide=m <= SPARSE_DEGREE * active if wide is None else wide,
        wide_ids=id_word(n) == "u64",
        listed=listed,
        queue=active if push_only else min(active, max(pushed, share)),
        cuts=most_cuts(
            *(room * devices // 32, RANGES * multiprocessors, multiprocessors),
            own=room // 32,
            apart=apart,
            others=1,
        ),
        **form,
    )
    shared = shared_table(devices, room // GRANULE, shape.cuts, coded)
    return shape_bytes(shape) + total_bytes(shared)


def split_rows(
    degrees: DegreeHistogram, total: int, have: int, devices: int = 1
) -> dict[str, int]:
    """Return how rows are split where the columns of all do not fit a device.

    degrees: of the whole graph; total: bytes of a device with all columns of its rows
    have: bytes of it; devices: that share the vertices

    kept: columns of a row on the device, LEAST_KEPT where not even those fit; device:
    bytes there; host: bytes of the tails of all devices
    """
    some = degrees.degrees > 0
    lengths, counts = degrees.degrees[some], degrees.counts[some]
    edges, active = -(-degrees.m // devices), -(-int(counts.sum()) // devices)
    fixed = total - 4 * edges + (4 * active if edges < WIDE else 0)
    return most_kept(lengths, counts, degrees.m, fixed, have, devices)


def most_kept(
    lengths: Floats | Ids,
    counts: Floats | Ids,
    m: int,
    fixed: int,
    have: int,
    devices: int = 1,
) -> dict[str, int]:
    """Return how rows are split with the most columns on a device of ``have`` bytes.

    lengths, counts: of rows, and how many have it, of all devices; m: their sum
    fixed: bytes of a device without columns and tails; the result: see ``split_rows``
    """

    def at(kept: int) -> dict[str, int]:
        tails = counts @ np.maximum(lengths - kept, 0)
        tailed = counts[lengths >= kept].sum()
        heads = int(-(-(4 * (m - tails) + 8 * tailed) // devices))
        return {"kept": kept, "device": fixed + heads, "host": math.ceil(4 * tails)}

    low, high = LEAST_KEPT, math.ceil(lengths.max(initial=LEAST_KEPT))
    while low < high:
        kept = (low + high + 1) // 2
        if at(kept)["device"] <= have:
            low = kept
        else:
            high = kept - 1
    return at(low)
