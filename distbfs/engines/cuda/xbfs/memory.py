"""Predictions of the device memory for graphs and searches by engine xbfs.

Sizes come from the tables by which arrays are allocated; they are upper bounds if they
depend on more than n, active and m. Edges between normal vertices are expected to stay
in a part as often as if they were dealt at random.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any

import numpy as np

from distbfs.build.cuda.domain import LEAST_LEAVES, member_table
from distbfs.build.cuda.inner import MOST_TARGETS, SLICE
from distbfs.build.cuda.inner_part import apart_table, inner_table
from distbfs.build.cuda.places import COLUMNS
from distbfs.build.cuda.room import LEAST_KEPT
from distbfs.device.array_table import places, total_bytes
from distbfs.engines.cuda.xbfs.between_params import (
    LINE,
    BetweenShape,
    box_bounds,
    symmetric_table,
)
from distbfs.engines.cuda.xbfs.cluster import cluster_table
from distbfs.engines.cuda.xbfs.search_table import (
    LISTS,
    QUEUE_SHARE,
    SearchShape,
    expected_shape,
    most_cuts,
    words_of,
)
from distbfs.engines.cuda.xbfs.shared import ALONE, MOST_PARTS, RANGES, shared_table
from distbfs.engines.streamed import MOST_STREAMED
from distbfs.generate.cuda import MAX_VERTICES, id_type, id_word
from distbfs.graph.degrees import DegreeHistogram
from distbfs.graph.device_graph import WIDE, vertices_table
from distbfs.partition.layout import Domains, Layout
from distbfs.partition.part import mask_words
from distbfs.partition.share import GRANULE, ShareCounts
from distbfs.plan.memory import PartShape, array_bytes, subgraph_bytes
from distbfs.types import Floats, Ids

MULTIPROCESSORS = 132  # of an H200, the default
SPARSE_DEGREE = 4  # mean degree up to which one cluster may search
FIXED = 16 << 20  # counters, control, code of kernels, what the pool rounds up
NAMING = 3 * 4  # what is asked of a share, both answers, while targets are named
MADE_NORMAL = 28  # counts, order, length, position and id of a normal vertex
SORTED = 5 * 8  # an outer edge of a pass, with its sort
BOXED = 8  # a number or a question, with an id
ARRIVING = 3  # boxes from others, of two rounds, in ``exchange.buffer.Buffer``
DEVIATIONS = 4  # of the delegates of a lane from their mean, at most


def search_bytes(
    n: int,
    active: int,
    m: int,
    *,
    multiprocessors: int = MULTIPROCESSORS,
    **form: Any,
) -> int:
    """Return the bytes that engine xbfs keeps between searches besides the graph.

    n, active, m: as in Share; form: as in ``expected_shape``
    """
    sparse = m <= SPARSE_DEGREE * active
    shape = expected_shape(n, active, m, multiprocessors, wide=sparse, **form)
    return shape_bytes(shape) + total_bytes(cluster_table(active) if sparse else {})


def shape_bytes(shape: SearchShape) -> int:
    """Return the bytes of a search of a shape, including those besides arrays."""
    return total_bytes(shape.table) + FIXED


def member_bytes(
    n: int,
    active: int,
    m: int,
    devices: int,
    *,
    several: int | None = None,
    directed: bool = False,
    **form: Any,
) -> dict[str, int]:
    """Return a device's bytes in a domain of equal devices, by kind.

    n, active, m, several: those of the whole graph; for ``several`` and ``form``, see
    ``member_search_bytes``
    The kinds are graph, as ``Share`` holds it; search, what searches keep,
    including the memory that devices share; and total, the sum.
    """
    local, own, edges = (-(-count // devices) for count in (n, active, m))
    room = room_of(own) * devices
    graph = total_bytes(member_table(local, own, edges, room, directed=directed))
    search = member_search_bytes(
        n,
        local,
        own,
        edges,
        devices,
        several=None if several is None else -(-several // devices),
        bare=directed,
        **form,
    )
    return {"graph": graph, "search": search, "total": graph + search}


def room_of(active: int) -> int:
    """Return the number of positions of a device whose part has ``active`` vertices."""
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

    n: number of vertices of the whole graph; local, active, m: those of the part, as in
    ``Share``
    several: number of vertices of degree 2 or more, if searches may leave out leaves
    wide: by default, whether rows are short on average; listed, form: as in
    ``expected_shape``
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
        local,
        active,
        m,
        multiprocessors,
        wide=m <= SPARSE_DEGREE * active if wide is None else wide,
        wide_ids=id_word(n) == "u64",
        listed=listed,
        queue=active if push_only else min(active, max(pushed, share)),
        cuts=most_cuts(
            room * devices // 32,
            RANGES * multiprocessors,
            multiprocessors,
            own=room // 32,
            apart=apart,
            others=1,
        ),
        **form,
    )
    shared = shared_table(devices, room // GRANULE, shape.cuts, coded)
    return shape_bytes(shape) + total_bytes(shared)


def split_rows(
    degrees: DegreeHistogram,
    total: int,
    have: int,
    devices: int = 1,
    *,
    ends: int | None = None,
) -> dict[str, int]:
    """Split rows whose columns do not all fit a device.

    degrees: histogram of the whole graph; total: bytes that a device needs for all
    columns of its rows
    have: bytes that the device has; devices: number of devices that share the vertices

    ends: number of vertices with edges of a directed graph, each of which has two rows

    The result has kept: columns of a row on the device, LEAST_KEPT if fewer fit;
    device: bytes needed there; host: bytes of the tails of all devices.
    """
    some = degrees.degrees > 0
    lengths, counts = degrees.degrees[some], degrees.counts[some]
    edges, active = -(-degrees.m // devices), -(-int(counts.sum()) // devices)
    rows, limit = active, WIDE
    if ends is not None:
        rows, limit = 2 * -(-ends // devices), 2 * WIDE
    fixed = total - 4 * edges + (4 * rows if edges < limit else 0)
    return most_kept(lengths, counts, degrees.m, fixed, have, devices)


def most_kept(
    lengths: Floats | Ids,
    counts: Floats | Ids,
    m: int,
    fixed: int,
    have: int,
    devices: int = 1,
) -> dict[str, int]:
    """Split rows so that a device of ``have`` bytes keeps the most columns.

    lengths, counts: lengths of rows, and how many rows of all devices have each; m: the
    sum of all lengths
    fixed: bytes of a device without columns and tails; for the result, see
    ``split_rows``
    """

    def at(kept: int) -> dict[str, int]:
        tails = counts @ np.maximum(lengths - kept, 0)
        tailed = counts[lengths >= kept].sum()
        heads = int(-(-(4 * (m - tails) + 8 * tailed) // devices))
        return {"kept": kept, "device": fixed + heads, "host": math.ceil(4 * tails)}

    more = range(LEAST_KEPT + 1, math.ceil(lengths.max(initial=LEAST_KEPT)) + 1)
    return at(LEAST_KEPT + bisect_right(more, have, key=lambda x: at(x)["device"]))


def part_bytes(shape: PartShape, **form: Any) -> dict[str, int]:
    """Return the device memory of one part that is searched on a GPU: bytes by kind.

    The kinds are graph: Table I (Pan et al. 2018); numbering: numbers of vertices;
    inner: the inner graph, and the outer edges; outer: columns of outer edges; search:
    what a search writes, and neighbours in separate arrays; messages: the most that
    goes to other parts at once, and notes of what was sent; searching: all during
    searches, for which the graph of Table I has been freed; total: the most at once, if
    everything lies on the device; making: while outer edges are made, with the columns
    of Table I in host memory.

    form: parents, levels and multiprocessors, as in ``member_search_bytes``
    """
    local, normals, others = shape.local, shape.active, shape.parts - shape.domain
    first = _delegate_positions(shape)[1]
    outer = shape.outer
    m = shape.stored_edges - outer
    of_delegates = shape.edges["dd"] + shape.edges["dn"]
    listed = min(LISTS * normals, m - of_delegates)
    places = first + normals
    every = places if shape.domain == 1 else room_of(places) * shape.domain
    targets = min(outer, others * normals)
    if shape.targets is not None:
        targets = min(targets, shape.targets)
    apart = apart_table(
        shape.n,
        every,
        normals=normals,
        owned=shape.owned,
        edges=outer,
        targets=targets,
    )
    if shape.directed:
        apart |= {f"in_{x}": y for x, y in apart.items() if x != "ids"}
    numbering = total_bytes(vertices_table(local, local))  # of a ``Part``
    sizes = array_bytes(shape)
    making = sum(size for name, size in sizes.items() if name.endswith("/offsets"))
    making += total_bytes(apart)
    making += max(SORTED * min(outer, SLICE), NAMING * min(targets, COLUMNS))
    making += MADE_NORMAL * normals + numbering + 12 * places
    making += 4 * normals * (shape.domain - 1)  # positions of the whole domain
    searches = share_bytes(
        counts_of(shape, targets), listed=LISTS * first + listed, **form
    )
    graph = sum(subgraph_bytes(shape).values())
    if shape.directed and not shape.delegates:
        graph += 4 * (local + 3)  # offsets of nd, dn and dd in, which no store has
    needs = {
        "graph": graph,
        "numbering": numbering,
        "inner": total_bytes(
            inner_table(local, places, m, directed=shape.directed) | apart
        ),
        "outer": total_bytes({x: y for x, y in apart.items() if "columns" in x}),
        **searches,
    }
    kept = needs["numbering"] + needs["inner"]
    searching = kept + sum(searches.values())
    total = max(kept + needs["graph"], searching)
    return needs | {"searching": searching, "total": total, "making": making}


def counts_of(shape: PartShape, targets: int = 0) -> ShareCounts:
    """Return the counts of a share of the mean part; targets: of outer edges."""
    parts, domains = (
        shape.parts,
        Domains((shape.domain,) * (shape.parts // shape.domain)),
    )
    positions, first = _delegate_positions(shape)
    return ShareCounts(
        Layout(shape.n, parts),
        0,
        domains,
        first + shape.active,
        shape.stored_edges - shape.outer,
        np.zeros(0, np.int64),
        shape.directed,
        delegates=positions,
        targets=targets,
        outer_edges=np.full(parts, shape.edges["nn"] // parts),
        owned=np.full(parts, shape.owned),
    )


def boxes_of(share: ShareCounts) -> Ids:
    """Return the offsets of a share's boxes; see ``box_bounds``."""
    return box_bounds(share.domains, share.index, share.outer_edges, share.owned)


def _delegate_positions(shape: PartShape) -> tuple[int, int]:
    """Return (all, one device's) positions of delegates, as ``Delegates`` deals them.

    If a domain has several devices, each has about its share, in whole granules.
    """
    lanes = shape.domain
    if lanes == 1:
        positions = 64 * mask_words(shape.delegates)
        return positions, positions
    mean = shape.delegates / lanes
    most = min(mean + DEVIATIONS * math.sqrt(mean), shape.delegates)
    own = room_of(math.ceil(most)) if shape.delegates else 0
    return own * lanes, own


def part_problem(shape: PartShape) -> str:
    """Return the reason why no device of any size can build a part, "" if one can.

    It compares expected counts with the limits of ``SeparatedPart.separate``,
    ``DomainBuilder`` and ``InnerBuilder``.
    """
    d, normals, targets = shape.delegates, shape.active, shape.targets or 0
    rows = (_delegate_positions(shape)[1] + normals) * shape.domain
    if shape.n > MAX_VERTICES:
        return f"{shape.n} vertices; allowed on devices: {MAX_VERTICES}"
    if shape.local >= WIDE:
        return f"{shape.local} vertices per part; allowed: {WIDE - 1}"
    if max(2 * (normals + d), rows + normals + d) + 512 >= WIDE:
        return (
            f"{normals} normal vertices and {d} delegates on each of {shape.domain} "
            f"devices; allowed: about {WIDE // 2} together"
        )
    if targets > MOST_TARGETS:
        return f"edges to {targets} vertices of other domains; allowed: {MOST_TARGETS}"
    owned = 1 << (64 - max((shape.n - 1).bit_length(), 32))
    if shape.owned > owned:
        return f"{shape.owned} delegates of a part; allowed: {owned}"
    return ""


def split_part(
    degrees: DegreeHistogram, shape: PartShape, total: int, have: int
) -> dict[str, int]:
    """Split the rows of a part that do not fit a device, like ``split_rows``.

    The values are expectations: rows of delegates are dealt evenly to the domains, and
    all normal vertices have the same share of their edges inside.
    total: bytes that the device needs for searches, with all columns; have: bytes that
    it has. In the result, host is the bytes of the tails of one part.
    """
    parts, outer = shape.parts, shape.outer
    inside = 1 - outer / max(shape.edges["nn"] + shape.edges["nd"], 1)
    sides = 1 + shape.directed  # rows of a vertex, all of which ``degrees`` counts
    large = np.cumsum(degrees.counts[::-1])[::-1] <= sides * shape.delegates
    some, pieces = degrees.degrees > 0, parts / shape.domain
    lengths = np.where(large, degrees.degrees / pieces, degrees.degrees * inside)[some]
    shares = np.where(large, shape.domain, parts)
    counts = (degrees.counts / shares)[some]
    m = sides * (shape.stored_edges - outer)
    rows = sides * (_delegate_positions(shape)[1] + shape.active)
    fixed = total - 4 * m + (4 * rows if m < sides * WIDE else 0)

    return most_kept(lengths, counts, m, fixed, have)


def share_bytes(
    share: ShareCounts, *, multiprocessors: int = MULTIPROCESSORS, **form: Any
) -> dict[str, int]:
    """Return the bytes of a share's searches, including neighbours, and of messages.

    form: as in ``expected_shape``

    Its inner graph and outer edges are not included.
    """
    n, devices, boxes = share.layout.n, share.devices, int(boxes_of(share)[-1])
    between = BetweenShape(
        words=words_of(share.active),
        parts=share.domains.shares,
        targets=share.targets,
        normals=share.delegates // devices,
        delegates=share.delegates,
        owned=int(share.owned[share.index]),
        boxes=boxes,
        directed=share.directed,
    )
    form |= {"wide": True, "bare": share.directed}
    counts = share.local, share.active, share.m
    if devices == 1:
        form |= {"wide_ids": id_type(n) is np.uint64, "queue": share.active}
        inside = shape_bytes(expected_shape(*counts, multiprocessors, **form))
    else:
        form |= {"push_only": True, "multiprocessors": multiprocessors}
        inside = member_search_bytes(n, *counts, devices, **form)
    # an exchange keeps what has come in two rounds
    arriving = ARRIVING * boxes if between.in_rounds else 0
    return {
        "search": inside + total_bytes(between.table()),
        "messages": total_bytes(between.messages()) + BOXED * arriving,
    }


def symmetric_bytes(shape: PartShape) -> int:
    """Return the bytes on each device into which other devices put messages.

    Only exchange ``nvshmem`` needs them, if a search is one launch, that is, with up to
    MOST_STREAMED devices in several domains; otherwise the result is 0. Every device
    has room for the largest box of all from each device of other domains: ``shape`` is
    that of the part with this box.
    """
    share = counts_of(shape)
    domains, slot = share.domains, int(np.diff(boxes_of(share)).max())
    if not shape.domain < shape.parts <= MOST_STREAMED:
        return 0
    words = share.delegates // 32
    return places(symmetric_table(domains, slot, shape.owned, words), LINE)[1]
