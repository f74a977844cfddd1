"""Prediction of the host memory that building a graph takes, before any allocation."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import OutOfMemory
from distbfs.generate.expected import expected_edges
from distbfs.generate.families import from_description
from distbfs.generate.kronecker import Kronecker
from distbfs.partition.layout import MAX_LOCAL, Layout
from distbfs.plan.memory import (
    VERTEX,
    PartShape,
    array_bytes,
    build_bytes,
    expected_degrees,
    expected_shape,
    machine_memory,
    may_fill,
    one_way,
    readable,
)
from distbfs.plan.threshold import expected_nn, suggest_threshold

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distbfs.graph.degrees import DegreeHistogram
    from distbfs.types import TupleSource, World

OWNER = 80  # of each vertex on a rank that owns rows, while it has and searches them
RAW_BYTES = 16  # of a directed edge while it is collected and sorted
NO_EDGES = {"nn": 0, "nd": 0, "dn": 0, "dd": 0}
MOST_PARTS = 1 << 32
MUCH = 16  # at most, ranks of a host, and what a part has beside its edges


def has_room_for_rows(world: World, n: int, nbytes: int) -> bool:
    """Return whether each rank has room for rows of its own (collective).

    Every rank then holds some data of every vertex.

    nbytes: bytes of the edges of all ranks
    """
    lacks = OWNER * n + nbytes // world.size > may_fill(world)[0]
    return not world.allreduce(np.array([int(lacks)]), "max")[0]


def kronecker_of(description: Mapping[str, Any], n: int) -> tuple[int, int] | None:
    """Return the scale and edge factor of a Kronecker graph, None for other graphs."""
    if description["family"] != "kronecker":
        return None
    source = from_description(description)
    if not isinstance(source, Kronecker) or source.n != n:
        return None
    return source.scale, source.edge_factor


def nn_edges(
    histogram: DegreeHistogram, kronecker: tuple[int, int] | None, threshold: int
) -> float:
    """Return the expected nn edges of a graph of these degrees.

    kronecker: scale and edge factor of a Kronecker graph, None for other graphs
    """
    if not histogram.above(threshold):
        return histogram.m
    if kronecker is None:
        return expected_nn(histogram, threshold)
    scale, factor = kronecker
    return expected_edges(scale, threshold, factor)["nn"]


class BuildMemory:
    """The bytes that ranks need to build a graph in host memory.

    threshold: TH, None if it is suggested
    directed: whether the graph is directed
    kept: whether a rank holds all of its parts at once, for example to search them;
    otherwise it writes each to a store
    """

    def __init__(
        self,
        source: TupleSource,
        threshold: int | None = None,
        *,
        directed: bool = False,
        kept: bool = False,
    ) -> None:
        self._n, self._tuples = source.n, source.tuples
        self._threshold, self._kept = threshold, kept
        described = source.describe()
        self._directed = directed
        self._whole = described["family"] == "memory"  # it is in one part
        self._kronecker = None if self._whole else kronecker_of(described, source.n)

    @cached_property
    def _degrees(self) -> DegreeHistogram | None:
        return None if self._kronecker is None else expected_degrees(*self._kronecker)

    def _shape(self, parts: int) -> PartShape | None:
        """Return the expected shape of a mean part, None if degrees are not known."""
        degrees, threshold = self._degrees, self._threshold
        if degrees is None:
            return None
        if threshold is None:
            threshold = suggest_threshold(degrees, parts)
        nn = nn_edges(degrees, self._kronecker, threshold)
        shape = expected_shape(degrees, parts, threshold, nn)
        return one_way(shape) if self._directed else shape

    def of_rank(self, parts: int, own: int) -> int:
        """Return the peak bytes of a rank that builds ``own`` parts in turn.

        Where degrees are not known, this is a lower bound: vertices and raw edges are
        in memory at different times.
        """
        shape = self._shape(parts)
        if shape is None:
            raw = RAW_BYTES * 2 * self._tuples
            building = -(-max(raw, VERTEX * self._n) // parts)
            local = Layout(self._n, parts).local_count(0)
            shape = PartShape(self._n, parts, 0, local, 0, 0, NO_EDGES, 0)
        else:
            building = build_bytes(shape, self._tuples)
        return building + (own - 1) * self._kept * sum(array_bytes(shape).values())

    def check(self, world: World, parts: int) -> None:
        """Raise OutOfMemory if the ranks of this host need more memory than it has."""
        own, have = parts // world.size, machine_memory()
        if MUCH * (RAW_BYTES * 2 * self._tuples + VERTEX * self._n) <= have[0]:
            return  # without estimates, which take a tenth of a second
        ranks = world.hosts.count(world.hosts[world.rank])
        need = ranks * self.of_rank(parts, own)
        if need <= have[0]:
            return
        held = f"for the {ranks * own} of this host" if self._kept else "for a part"
        if not self._kept and ranks > 1:
            held += f" on each of {ranks} ranks"
        raise OutOfMemory(
            f"building a graph of {self._n} vertices and {self._tuples} tuples in "
            f"{parts} parts takes {readable(need)} {held}, and there are "
            f"{readable(have[0])} ({have[1]}); allowed: "
            f"{self._advice(have[0], world.size, 1 if self._kept else ranks)}"
        )

    def _advice(self, have: int, size: int, ranks: int) -> str:
        """Return the advice what would fit.

        have: bytes of memory of a host; size: number of ranks; ranks: ranks on a host
        """
        none = "fewer vertices (relabelling may help) or more memory"
        step = 1 if self._kept else size
        parts = -(-self._n // MAX_LOCAL // step) * step or step
        while not self._whole and parts <= MOST_PARTS:
            need = ranks * self.of_rank(parts, 1)
            if need <= have:
                if not self._kept:
                    return f"{parts} or more parts"
                return f"{parts} or more hosts like this, a rank and a part on each"
            least = max(parts + step, min(parts * need // have, 2 * parts))
            parts = -(-least // step) * step
        return none
