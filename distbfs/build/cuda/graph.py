"""The build of a whole graph on one CUDA device, in passes of bounded memory.

One pass over the tuples counts the ends at each vertex, which determines the numbers.
Then rows are built range by range: a pass collects the keys (row, column) of a range,
which are sorted and written as columns. If all keys fit, one range is enough, and the
tuples of the first pass are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from distbfs.build.cuda.chunks import Chunks
from distbfs.build.cuda.kernels import Kernels, check_ends
from distbfs.build.cuda.numbering import Numbering, lower_degrees
from distbfs.build.cuda.ranges import Ranges
from distbfs.build.cuda.room import Budget, Room, Split, agreed_splits
from distbfs.build.cuda.rows import Side, make_rows
from distbfs.build.cuda.trees import rank_trees
from distbfs.device import cuda
from distbfs.errors import InputError, UsageError
from distbfs.generate.cuda import device_tuples
from distbfs.graph.device_graph import MAX_VERTICES
from distbfs.partition.share import Rows, Share, whole_share
from distbfs.progress import Sum
from distbfs.ranks.world import SoloWorld
from distbfs.timing import Stopwatch
from distbfs.types import DeviceArray, TupleSource


def assemble(
    kernels: Kernels,
    pairs: Side,
    degrees: list[DeviceArray],
    ends: DeviceArray,
    *,
    tuples: int,
    source: dict[str, Any],
    loops: int = 0,
    wide: bool = False,
    links: list[DeviceArray] | None = None,
    back: Callable[[], Side] | None = None,
    room: Room | None = None,
) -> Share:
    """Build a graph from degrees and pairs of ids.

    degrees: a list of the degrees, in a directed graph those on each side, uint32 [n]
    by id, which is emptied
    ends, tuples, loops, source: as in Share
    links: as in ``rank_trees``, a list of one array, which is emptied, if a pair stands
    for two directed edges; else trees are not set apart
    back: function that returns the pairs of incoming edges of a directed graph, once
    the other rows are built
    room: as in ``build``; rows of both sides keep equally many columns on the device
    """
    both = bool(links)
    with kernels.phase("trees"):
        trees = rank_trees(kernels, degrees[0], links.pop()) if links else None
    with kernels.phase("numbering"):
        classed = degrees[0]
        if back is not None:
            classed = degrees[0] + degrees[1]
            lower_degrees(kernels, degrees[0], classed)
        numbering = Numbering(kernels, classed, trees)
        del classed, trees
        lengths = [kernels.gather(side, numbering.vertices) for side in degrees]
        degrees.clear()
        ranges = [Ranges(kernels, side) for side in lengths]
        del lengths
        splits: list[Split | None] = [None for _ in ranges]
        if room is not None:
            fit = [room.fit(len(ends), numbering, ranges)]
            [splits] = agreed_splits(SoloWorld(), room, fit)
            del fit

    def rows(pairs: Side) -> Rows:
        form = kernels, pairs, numbering, ranges, splits
        return make_rows(*form, both=both, wide=wide)

    out = into = rows(pairs)
    if back is not None:
        into = rows(back())
        if into.edges != out.edges:
            raise InputError("incoming and outgoing edges differ in number")
    return whole_share(
        n=len(ends),
        tuples=tuples,
        loops=loops,
        tuple_degrees=ends,
        source=source,
        seconds=kernels.clock.seconds,
        out=out,
        into=into,
        **numbering.arrays(),
    )


def check_size(n: int) -> None:
    """Raise UsageError if there are more vertices than 32-bit numbers."""
    if n > MAX_VERTICES:
        raise UsageError(
            f"{n} vertices do not fit one device's graph; allowed: {MAX_VERTICES}"
        )


def build(
    source: TupleSource,
    *,
    directed: bool = False,
    distinct: bool = False,
    buffer_bytes: int | None = None,
    wide: bool = False,
    room: Room | None = None,
    done: Sum | None = None,
) -> Share:
    """Build the graph of a source's tuples on the current device.

    directed: edges lead from u to v alone
    distinct: count each edge as one tuple, and no loops
    buffer_bytes: device memory for keys and their sort (default: what is free, up to
    BUFFER_BYTES; the keys of the longest row always fit)
    wide: make offsets of 64 bits for any number of edges
    room: memory limits of the graph and its searches, if rows may have tails in host
    memory
    done: called with the number of tuples made, in each pass; see ``Chunks``
    """
    check_size(source.n)
    cupy = cuda.cupy()
    clock = Stopwatch()
    n, count = source.n, source.tuples
    with cuda.memory_of(f"building a graph of {n} vertices and {count} tuples"):
        with clock("compile"):
            kernels = Kernels(clock)
            tuples = device_tuples(source)
        with kernels.phase("memory"):
            cuda.release()
            cheap = tuples.generated
            budget = Budget(n, 2 * count, count, buffer_bytes, cheap=cheap, room=room)
            chunks = Chunks(tuples, count, hold=budget.hold, done=done)
            chunks.expect(1 + directed)
            degrees = [cupy.zeros(n, np.uint32) for _ in range(2 * directed)]
            links = [] if directed else [cupy.zeros(n, np.uint64)]
            ends = cupy.zeros(n, np.uint32)
            sums = cupy.zeros(2, np.uint64)  # loops, ends

        def add(u: DeviceArray, v: DeviceArray) -> None:
            none = np.uint64(0)
            counts = degrees or (none, none)
            kernels.over(
                "count_ends",
                len(u),
                u,
                v,
                *counts,
                ends,
                sums,
                *(links or (none,)),
            )

        kernels.each(chunks, "degrees", add)
        with kernels.phase("degrees"):
            if links:
                degrees = [links[0].view(np.uint32)[::2].copy()]
            kernels.over(
                "add_degrees",
                n,
                np.uint32(len(degrees)),
                degrees[0],
                ends,
                sums[1:],
            )
            loops, total = (int(x) for x in sums.get())
        check_ends(total, count)
        graph = assemble(
            kernels,
            Side(chunks, budget, last=not directed),
            degrees,
            ends,
            tuples=count,
            source=source.describe(),
            loops=loops,
            wide=wide,
            links=links,
            back=(lambda: Side(chunks, budget, turned=True)) if directed else None,
            room=room,
        )
        if distinct:
            ends_of_one = 1 + directed  # at the vertex the edge leaves
            graph.tuples, graph.loops = ends_of_one * graph.m // 2, 0
            with kernels.phase("degrees"):
                ends[...] = 0
                lengths = cupy.diff(graph.out.offsets).astype(np.uint32)
                kernels.scatter(ends_of_one * lengths, graph.vertices, ends)
    return graph
