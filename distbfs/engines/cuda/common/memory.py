"""Estimate the device memory of a search by engine xbfs, before it exists.

Counts each array as ``DeviceGraph`` and ``FastSearch`` allocate it; upper bounds where
a size depends on more than n, active and m.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from distbfs.build.cuda.domain import GRANULE, LEAST_LEAVES
from distbfs.build.cuda.room import LEAST_KEPT
from distbfs.engines.cuda.xbfs.arrays import (
    CODE_BYTES,
    HUB_DEGREE,
    MOST_HUBS,
    MOST_SHARED,
    QUEUE_SHARE,
)
from distbfs.engines.cuda.xbfs.ranges import range_count, range_group, range_room
from distbfs.engines.cuda.xbfs.shared import ALONE, PAIR_BYTES, RANGES, WORDS
from distbfs.generate.cuda import id_word
from distbfs.graph.degrees import DegreeHistogram
from distbfs.graph.device_graph import COLUMN_PAD, SET_BITS

WIDE = 1 << 32  # offsets have 64 bits from this number of edges on
MULTIPROCESSORS = 132  # of an H200, the default
FAST_VERTEX = 8 + 2 + 8 + 6  # first, place, parent and direct, bitmaps
QUEUE_ENTRIES = 2 * 16  # bytes a vertex in both queues
LIST_PADS = 48 << 10  # padding of array ends
LISTS = 7  # columns of the k-th neighbour, k = 1 … 7
RANGE_WORDS = (range_room(MOST_SHARED) // WORDS - 1) * WORDS  # of a range, at most
BLOCK_IDS, CLASSES = 1 << 12, 128  # least; most
PIECE = 8  # bytes; sorting memory is freed before searches allocate
SPARSE_DEGREE, SPARSE_VERTEX = 4, 17  # mean degree; records of ClusterSearch
FIXED = 16 << 20  # counters, control, code


def graph_bytes(n: int, active: int, m: int) -> int:
    """Return the bytes of a ``DeviceGraph``."""
    offset = 4 if m < WIDE else 8
    return offset * (active + 1) + 4 * (m + COLUMN_PAD) + 4 * active + 8 * n


def search_bytes(
    n: int,
    active: int,
    m: int,
    *,
    parents: bool = True,
    levels: bool = True,
    in_ids: bool = True,
    queue: int | None = None,
    listed: int | None = None,
    cut: tuple[int, int] | None = None,
    multiprocessors: int = MULTIPROCESSORS,
) -> int:
    """Return the bytes that engine xbfs keeps between searches besides the graph.

    n, active, m: as in DeviceGraph; in_ids: results by id, else by number
    queue: vertices that a queue may hold; default: as in ``Arrays.make_queues``
    listed: sum of the vertices of degree 2 or more, 3 or more, … 8 or more; default:
    its upper bound
    cut: words of the bitmap that is cut at destination ranges, and the least ranges;
    default: of one device alone
    """
    if listed is None:
        listed = min(LISTS * active, max(m - active, 0))
    results = (levels + 4 * parents) * n if in_ids else 5 * levels * active
    queues = QUEUE_ENTRIES * (active // QUEUE_SHARE if queue is None else queue)
    words = active // 32
    cut = cut or (words, multiprocessors)
    group = range_group(words, range_count(*cut, RANGE_WORDS), multiprocessors)
    splits = split_bytes(active, m, *cut) * group
    blocks = max(n // BLOCK_IDS, 3 * multiprocessors)
    pieces = PIECE * min(words + blocks * CLASSES, active)
    wide = 4 * levels * n  # by one cluster of blocks
    sparse = SPARSE_VERTEX * active + wide if m <= SPARSE_DEGREE * active else 0
    fixed = FIXED + LIST_PADS + pieces + splits
    return FAST_VERTEX * active + queues + 4 * listed + results + sparse + fixed


def split_bytes(active: int, m: int, words: int, least: int) -> int:
    """Return the bytes of where rows of hubs are cut at destination ranges, at most.

    words: of the bitmap that is cut; least: ranges
    """
    ranges = range_count(words, least, RANGE_WORDS)
    return 4 * min(MOST_HUBS, m // HUB_DEGREE, active) * (ranges + 1)


def member_bytes(
    n: int,
    active: int,
    m: int,
    devices: int,
    *,
    several: int | None = None,
    parents: bool = True,
    levels: bool = True,
    multiprocessors: int = MULTIPROCESSORS,
) -> dict[str, int]:
    """Return a device's bytes in a domain of equal devices, by kind.

    n, active, m, several: of the whole graph, see ``member_search_bytes``
    graph: as ``MemberRows`` holds it; search: kept for searches, including memory
    shared by the devices; total: the sum
    """
    local, own, edges = (-(-count // devices) for count in (n, active, m))
    room = room_of(own)
    graph = (4 if edges < WIDE else 8) * (own + 1) + 4 * (edges + COLUMN_PAD)
    graph += 3 * 4 * own + 16 * -(-local // SET_BITS)  # rows, numbers, ends; members
    graph += 4 * room * devices  # names
    search = member_search_bytes(
        *(n, local, own, edges, devices),
        several=None if several is None else -(-several // devices),
        parents=parents,
        levels=levels,
        multiprocessors=multiprocessors,
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
    parents: bool = True,
    levels: bool = True,
    in_ids: bool = True,
    push_only: bool = False,
    listed: int | None = None,
    several: int | None = None,
    multiprocessors: int = MULTIPROCESSORS,
) -> int:
    """Return the bytes that searches need on a device of a domain, with shared memory.

    n: of the whole graph; local, active, m: as ``DeviceGraph`` has them of the part
    listed: as of ``search_bytes``
    several: vertices of degree 2 or more, where searches may leave out the leaves
    """
    room = room_of(active)
    search = search_bytes(
        local,
        active,
        m,
        parents=parents,
        levels=levels,
        in_ids=in_ids,
        queue=active if push_only else min(active, devices * active // QUEUE_SHARE),
        listed=listed,
        cut=(room * devices // 32, RANGES * multiprocessors),
        multiprocessors=multiprocessors,
    )
    if id_word(n) == "u64":
        # wide ids, no array of first columns
        search += 4 * local * (parents and in_ids) - 4 * active
    search += room * devices // 4  # two bitmaps of all positions
    if several is not None:
        search += leaves_bytes(active, several, m, devices)
    return search + 2 * PAIR_BYTES * (devices - 1) * (room + ALONE)


def leaves_bytes(active: int, several: int, m: int, devices: int) -> int:
    """Return the bytes on a device of a domain that leaves out leaves, at most.

    As of ``member_search_bytes``: codes of all positions that are searched, and where
    rows of hubs are cut among the others.
    """
    searched = room_of(several) + GRANULE  # another device may have more
    if devices == 1 or (active - several) * LEAST_LEAVES < active:
        return 0
    words = (room_of(active) - several) * devices // 32
    codes = CODE_BYTES * searched * devices // 32
    return codes + split_bytes(active, m, words, 1)


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

    def at(kept: int) -> dict[str, int]:
        tails = int(counts @ np.maximum(lengths - kept, 0))
        tailed = int(counts[lengths >= kept].sum())
        heads = 4 * (degrees.m - tails) + 8 * tailed
        return {"kept": kept, "device": fixed + -(-heads // devices), "host": 4 * tails}

    return most_kept(at, int(lengths.max(initial=LEAST_KEPT)), have)


def most_kept(
    at: Callable[[int], dict[str, int]], longest: int, have: int
) -> dict[str, int]:
    """Return how rows are split with the most columns on a device of ``have`` bytes.

    at: maps columns of a row there to ``split_rows``' values; longest: columns of a row
    """
    low, high = LEAST_KEPT, longest
    while low < high:
        kept = (low + high + 1) // 2
        if at(kept)["device"] <= have:
            low = kept
        else:
            high = kept - 1
    return at(low)
