"""Kernel 1: from edge tuples to the parts of this rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from distbfs.build.host.rows import ServedRows, collect
from distbfs.build.host.separate import Distributor, sum_of
from distbfs.generate.hashing import permutation_by
from distbfs.graph.degrees import DegreeHistogram, histogram_of, occurring
from distbfs.graph.keys import BACK, BOTH, FORTH
from distbfs.options import BuildOptions
from distbfs.partition.layout import Layout, Placement
from distbfs.partition.part import Part
from distbfs.plan.host_memory import RAW_BYTES, BuildMemory
from distbfs.plan.threshold import suggest_host_threshold
from distbfs.timing import Stopwatch
from distbfs.types import SUBGRAPHS, Ids, TupleSource, World


@dataclass(frozen=True, kw_only=True)
class BuildCounts:
    """Counts of any construction, equal on all ranks, and this rank's seconds.

    passes: number of passes over the tuples
    making: "all" if each device made all tuples, "share" if it made a share; "" on the
    host
    """

    m: int
    loops: int
    passes: int
    generation_seconds: float
    construction_seconds: float
    making: str = ""


@dataclass(frozen=True, kw_only=True)
class BuildSummary(BuildCounts):
    """Counts of a construction of degree-separated parts.

    repeats: input tuples that repeat another one in either direction
    """

    n: int
    tuples: int
    repeats: int
    parts: int
    threshold: int
    delegates: int
    edges: dict[str, int]
    histogram: DegreeHistogram


def in_groups(count: int, raw_bytes: int, limit: int) -> list[list[int]]:
    """Group device indices, at least one each, so that raw edges fit a limit."""
    width = max(1, min(limit // max(raw_bytes, 1), count))
    return [list(range(k, min(k + width, count))) for k in range(0, count, width)]


def construct(
    source: TupleSource,
    world: World,
    parts: int,
    options: BuildOptions,
    sink: Callable[[Part], None],
    *,
    kept: bool = False,
    owned: bool = False,
) -> BuildSummary:
    """Build every part of this rank and pass each to ``sink`` (collective).

    owned: whether several parts own rows, so that all vertices with edges are delegates
    kept: whether the sink keeps all parts in memory

    The rows of one group of parts are held at a time. If all parts of the rank form one
    group, the tuples are read once, else twice per group: for degrees, then for parts.
    In a directed graph, all this is done for edges out and again for edges in.
    """
    directed = options.directed
    owned = owned and parts > 1
    clock = Stopwatch()
    layout, placement = Layout(source.n, parts), Placement(parts, world.size)
    if not owned:
        memory = BuildMemory(source, options.threshold, directed=directed, kept=kept)
        memory.check(world, parts)
    own_parts = placement.parts_of(world.rank)
    permutation = permutation_by(source.n, options.permute_seed)
    translate = None if permutation is None else permutation.forward
    threads = options.threads
    raw = RAW_BYTES * 2 * source.tuples // parts
    groups = in_groups(placement.per_rank, raw, options.pass_bytes)
    ways = (FORTH, BACK) if directed else (BOTH,)

    def rows_of(group: Sequence[int]) -> dict[int, list[ServedRows]]:
        served = [
            collect(source, world, parts, group, translate, clock, way, threads)
            for way in ways
        ]
        return {part: [rows[part] for rows in served] for part in served[0]}

    with clock("total"):
        degrees: dict[int, Ids] = {}
        loops = 0
        rows: dict[int, list[ServedRows]] = {}
        for group in groups:
            rows.clear()
            rows = rows_of(group)
            degrees.update({part: sum_of(sides) for part, sides in rows.items()})
            loops += sum(sides[0].loops for sides in rows.values())
        histogram = histogram_of(world, map(occurring, degrees.values()))
        threshold = 0 if owned else options.threshold
        if threshold is None:
            # mutant: world.broadcast(suggest_host_threshold(histogram, parts)) ->
            #   suggest_host_threshold(histogram, parts) :
            #   test_ranks_that_round_differently_take_one_threshold
            threshold = world.broadcast(suggest_host_threshold(histogram, parts))
        distributor = Distributor(
            world, layout, threshold, degrees, options.order_block, threads
        )
        make = distributor.own if owned else distributor.split
        counts = np.array([loops, 0, 0, 0, 0], dtype=np.int64)
        for group in groups:
            if len(groups) > 1:
                rows.clear()
                rows = rows_of(group)
            for device in group:
                part = make(own_parts[device], *rows.pop(own_parts[device]))
                counts[1:] += [getattr(part, name).edges for name in SUBGRAPHS]
                sink(part)
                del part
    counts = world.allreduce(counts)
    loops = int(counts[0])
    m = int(counts[1:].sum())
    generation = clock.get("generation")
    return BuildSummary(
        n=source.n,
        m=m,
        tuples=source.tuples,
        loops=loops,
        repeats=source.tuples - loops - (m if directed else m // 2),
        parts=parts,
        threshold=threshold,
        delegates=len(distributor.delegates),
        edges=dict(zip(SUBGRAPHS, counts[1:].tolist(), strict=True)),
        histogram=histogram,
        passes=len(ways) * (1 if len(groups) == 1 else 2 * len(groups)),
        generation_seconds=generation,
        construction_seconds=clock.get("total") - generation,
    )
