"""Batches of problems with NumPy functions over arrays of edges.

A function gets ``s``, the batch of searches that runs now, and arrays of rows and
edges:

- ``init(s, i)``, ``end(s, i)``: rows i of the batch, int64 [b]
- ``prior(s, i)``, ``post(s, i)``: the rows that have a frontier, on ``s.depth_now``
- ``visit_vertex(s, i, u, v)``: edges (u, v) out of the frontiers of rows i, int64 [e];
  u is on level ``s.depth_now``
- ``finalize(s)``: after all batches; per-vertex state and results of all searches

Vertices are input ids.  A row of the batch is search ``s.first + i``.  State is an
attribute by its name: [b] per search, [n] per vertex, [b, n] per pair; ``s.level`` is
always there, int32 [b, n], and right for all vertices up to one level below the
frontier.  The same row and vertex may occur many times in one call: NumPy's
``np.add.at`` and ``np.bincount`` add up such repeats, ``array[i, v] += x`` does not.

It also serves as the specification of all runners: ``NumpyWalk`` traverses level by
level in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from distbfs.distinct import distinct
from distbfs.errors import SearchStopped, UsageError
from distbfs.graph.csr import CSR, row_blocks, row_offsets
from distbfs.multisearch.base import (
    KEPT,
    SUMS,
    RunOptions,
    call,
    check_depth,
    check_results,
)
from distbfs.multisearch.problem import Problem, State
from distbfs.partition.part import Part
from distbfs.types import Array, Ids


class Searches:
    """A batch of searches as functions see it; see the module.

    n: number of vertices; sources: int64 [b]; first: index of the batch's first search
    level: int32 [b, n]; depth_now: level of the frontier
    frontiers: for each level (rows, vertices), in the order of discovery
    """

    def __init__(
        self, n: int, sources: Ids, first: int, walk: NumpyWalk | None
    ) -> None:
        self.n, self.sources, self.first = n, sources, first
        self.level = np.full((len(sources), n), -1, dtype=np.int32)
        self.depth_now = 0
        self.frontiers: list[tuple[Ids, Ids]] = []
        self._walk = walk

    def __getattr__(self, name: str) -> Any:
        names = ", ".join(k for k in vars(self) if not k.startswith("_"))
        raise AttributeError(f"there is no state '{name}'; there are: {names}")

    def backwards(self) -> Iterator[tuple[Ids, Ids, Ids]]:
        """Yield the edges (i, u, v), int64 [e], of reached vertices, deepest u first.

        They come in pieces with u of a single level.
        """
        for depth in range(len(self.frontiers) - 1, -1, -1):
            self.depth_now = depth
            if self._walk is not None:
                yield from self._walk.edges(*self.frontiers[depth])


class NumpyWalk:
    """Traverses a whole graph for a batch of searches, level by level in NumPy.

    part: one part without delegates, in input ids; most: largest number of searches
    of a batch
    """

    most = 1 << 31

    def __init__(self, part: Part) -> None:
        self._part, self.n = part, part.layout.n

    @cached_property
    def _rows(self) -> CSR:
        """The rows of neighbours by id; columns are ids."""
        part = self._part
        columns = part.vertices[part.nn.columns]
        return CSR(part.nn.offsets, columns).permute_rows(part.numbers)

    def frontiers(
        self,
        sources: Ids,
        level: Array,
        options: RunOptions,  # noqa: ARG002
    ) -> Iterator[tuple[Ids, Ids]]:
        """Yield (rows, vertices) of each level, ascending by row.

        level: int32 [b, n], -1 everywhere at first; when a level is yielded, it already
        holds the next one
        options: of the run, for walks that find all levels at once
        """
        i, u = np.arange(len(sources)), sources
        level[i, u] = 0
        depth = 0
        while len(u):
            depth += 1
            keys = []
            for row, _, v in self.edges(i, u):
                new = level[row, v] < 0
                row, v = row[new], v[new]  # noqa: PLW2901
                level[row, v] = depth
                keys.append(distinct(row * level.shape[1] + v))
            yield i, u
            key = distinct(np.concatenate(keys)) if keys else u[:0]
            i, u = np.divmod(key, level.shape[1])

    def edges(self, i: Ids, u: Ids) -> Iterator[tuple[Ids, Ids, Ids]]:
        """Yield pieces (i, u, v), int64 [e], of all edges out of u in searches i."""
        rows = self._rows
        lengths = rows.offsets[u + 1] - rows.offsets[u]
        for first, last in row_blocks(row_offsets(lengths)):
            place, column = rows.edges_of(u[first:last])
            piece = first + place
            yield i[piece], u[piece], column.astype(np.int64)


def batch_size(problem: Problem, n: int, options: RunOptions, most: int) -> int:
    """Return the number of searches that run at once, at least 1."""
    if options.batch:
        return min(options.batch, most)
    pair = sum(np.dtype(s.dtype).itemsize for s in problem.state if s.per == "pair")
    fits = options.memory // max(n * (4 + 16 + pair), 1)
    return int(min(max(fits, 1), most))


class Outputs:
    """State that is kept from batch to batch, and the results of all searches."""

    def __init__(self, problem: Problem, k: int, n: int) -> None:
        self._problem = problem
        shapes = {"search": (k,), "vertex": (n,), "pair": (k, n), "level": (k, 0)}
        self.values: dict[str, Array] = {}
        for state in problem.state:
            if state.result or state.per == "vertex":
                shape, fill = shapes[state.per], filled(state)
                if state.per == "pair":
                    check_results((k, n), state.dtype)
                if state.name in KEPT:
                    fill = 0
                self.values[state.name] = np.full(shape, fill, dtype=state.dtype)

    def begin(self, s: Searches) -> None:
        """Create the state of a batch."""
        shapes = {"search": (len(s.sources),), "pair": s.level.shape}
        for state in self._problem.state:
            if state.name in KEPT:
                continue
            if state.per == "vertex":
                value = self.values[state.name]
            else:
                value = np.full(shapes[state.per], filled(state), dtype=state.dtype)
            setattr(s, state.name, value)

    def take(self, s: Searches) -> None:
        """Store the results of a batch."""
        rows = slice(s.first, s.first + len(s.sources))
        for state in self._problem.state:
            if state.name in KEPT and state.name in self.values:
                self.put(state.name, rows, kept_value(state, s.level))
            elif state.name in self.values and state.per != "vertex":
                self.values[state.name][rows] = getattr(s, state.name)

    def put(self, name: str, rows: slice, value: Array) -> None:
        """Store results of searches ``rows``: [b], [b, n] or [b, levels].

        Sums by vertex, [n], are added.
        """
        held = self.values[name]
        if name in SUMS:
            held += value
        elif name == "count":
            wider = value.shape[1] - held.shape[1]
            if wider > 0:
                held = np.pad(held, ((0, 0), (0, wider)))
                self.values[name] = held
            held[rows, : value.shape[1]] = value
        else:
            held[rows] = value

    def results(self) -> dict[str, Array]:
        """Return the results by name, [k], [n], [k, n] or [k, levels]."""
        asked = {s.name for s in self._problem.state if s.result}
        return {name: x for name, x in self.values.items() if name in asked}


def of_counts(name: str, counts: Array) -> Array:
    """Compute a standard result from counts of vertices, int64 [b, levels]."""
    if name == "count":
        return counts
    if name == "reached":
        return counts.sum(axis=1)
    places = np.arange(counts.shape[1], dtype=np.int64)
    if name == "distance":
        return counts @ places
    if name == "harmonic":
        shares: Array = counts[:, 1:] @ (1 / places[1:])
        return shares
    return np.where(counts > 0, places, 0).max(axis=1, initial=0)


def filled(state: State) -> Any:
    """Return a state's fill value in its dtype; raise UsageError if it does not fit."""
    try:
        return np.array(state.fill).astype(state.dtype, casting="unsafe")
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(
            f"state {state.name}: {state.fill!r} is not of dtype {state.dtype}"
        ) from error


def kept_value(state: State, level: Array) -> Array:
    """Compute a standard result from int32 levels [b, n]."""
    if state.name == "level":
        check_depth(int(level.max(initial=0)), state.dtype)
        return level.astype(state.dtype)
    reached = level >= 0
    if state.name == "reachable":
        return reached
    if state.per == "vertex":
        return sum_by_vertex(state.name, level, reached)
    width = int(level.max(initial=0)) + 1
    counts = [np.bincount(row[row >= 0], minlength=width) for row in level]
    return of_counts(
        state.name, np.array(counts, dtype=np.int64).reshape(len(level), width)
    )


def sum_by_vertex(name: str, level: Array, reached: Array) -> Array:
    """Compute a sum by vertex, [n], from int32 levels [b, n]; reached: level >= 0."""
    if name == "reached_from":
        return reached.sum(axis=0)
    if name == "distance_from":
        return np.where(reached, level, 0).sum(axis=0, dtype=np.int64)
    zeros = np.zeros(level.shape)
    return np.divide(1, level, out=zeros, where=level > 0).sum(axis=0)


def run_batches(
    problem: Problem, walk: NumpyWalk, sources: Ids, options: RunOptions
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Run a problem in batches of searches; return (results, facts)."""
    outputs, n = Outputs(problem, len(sources), walk.n), walk.n
    size = batch_size(problem, n, options, min(walk.most, max(len(sources), 1)))
    batches = range(0, len(sources), size)
    levels = 0
    for first in batches:
        s = Searches(n, sources[first : first + size], first, walk)
        outputs.begin(s)
        rows = np.arange(len(s.sources))
        call(problem, "init", s, rows)
        for depth, (i, u) in enumerate(walk.frontiers(s.sources, s.level, options)):
            if options.stop is not None and options.stop():
                raise SearchStopped(f"the searches were stopped at level {depth}")
            s.depth_now = depth
            s.frontiers.append((i, u))
            if depth == options.depth:
                break
            at_work = distinct(i)
            call(problem, "prior", s, at_work)
            for edges in (
                walk.edges(i, u) if "visit_vertex" in problem.functions else ()
            ):
                call(problem, "visit_vertex", s, *edges)
            call(problem, "post", s, at_work)
        if options.depth is not None:
            s.level[s.level > options.depth] = -1
        levels = max(levels, len(s.frontiers))
        call(problem, "end", s, rows)
        outputs.take(s)
    every = Searches(n, sources[:0], 0, None)
    every.sources = sources
    for name, value in outputs.values.items():
        setattr(every, name, value)
    call(problem, "finalize", every)
    return outputs.results(), {"batches": len(batches), "levels": levels}
