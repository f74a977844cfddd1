"""Many searches on any number of ranks, which share sources or search parts.

Where the whole graph fits the memory of each rank, every rank holds it and takes a
share of the sources. Otherwise the ranks search the parts of the store together, up to
512 sources in one traversal; one after the other with engine reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from distbfs.engines.base import TAIL_COUNTS
from distbfs.errors import UsageError
from distbfs.multisearch import bits
from distbfs.multisearch.base import (
    SUMS,
    WAYS,
    ProblemRunner,
    Results,
    RunOptions,
    agreeing,
    check_problem,
)
from distbfs.multisearch.exact_diameter import Extremes
from distbfs.multisearch.numpy_runner import (
    Outputs,
    check_sources,
    kept_value,
    of_counts,
)
from distbfs.multisearch.part_loop import Wanted
from distbfs.multisearch.problem import Problem, State
from distbfs.multisearch.traversals import Traversals, traversals_of
from distbfs.options import check_choice
from distbfs.partition.part import Part
from distbfs.plan.memory import (
    PartShape,
    array_bytes,
    build_bytes,
    may_fill,
    readable,
)
from distbfs.search.holding import Source
from distbfs.search.session import Session
from distbfs.search.vertices import gather_on_first
from distbfs.types import Array, Ids, World, slice_bounds

ROWS_BYTES = 1 << 28  # of pairwise results passed on at once


class Searcher(Protocol):
    """Runs problems over one graph on all ranks; applications are written for it.

    world: the ranks; n: vertices; directed: whether edges lead one way only
    tails: what traversals have read of tails in host memory, on all ranks, by the names
    in ``TAIL_COUNTS``; empty if no row has a tail
    """

    world: World
    n: int
    directed: bool
    options: RunOptions
    tails: dict[str, int]

    @property
    def part(self) -> Part | None:
        """The whole graph, in input ids, where each rank holds it."""

    @property
    def engine(self) -> str:
        """Name of the engine."""

    def share(self, sources: Ids) -> Ids:
        """Return this rank's sources, int64 [k]; all if ranks search together."""

    def extremes(self, vertex: int) -> Extremes | None:
        """Return radius and diameter of a component, or None if they need many runs."""

    def dependencies(self, sources: Ids) -> Array | None:
        """Return the sum of Brandes' dependencies of sources, float64 [n] (collective).

        None where a problem finds them.
        """

    def run(
        self, problem: Problem, sources: Ids, options: RunOptions | None = None
    ) -> Results:
        """Run a problem from sources, equal on all ranks (collective).

        Results per search and per level are those of all sources, on all ranks; per
        vertex the sum over the ranks, on all ranks; per pair rank 0 has all rows and
        the others none. Raises TooDeep on all ranks where a level does not fit.
        """

    def at_once(self, itemsize: int) -> int:
        """Return the number of sources at once for pairwise results of a size."""

    def turned(self) -> Searcher:
        """Return a searcher along reversed edges; itself for undirected graphs.

        Raises UsageError where that is not possible.
        """

    @property
    def smallest(self) -> int:
        """Number of sources in a batch of all ranks."""

    def describe(self) -> dict[str, Any]:
        """Return the searcher's hardware and settings, for reports (JSON values)."""


class WholeSearcher:
    """Every rank holds the whole graph and takes a share of the sources.

    part: one part without delegates, in input ids
    where: which rows are in host memory, in words; "" if none is
    """

    def __init__(
        self, world: World, runner: ProblemRunner, part: Part, options: RunOptions
    ) -> None:
        self.world, self.runner, self.part, self.options = world, runner, part, options
        self.n, self.directed = part.layout.n, part.directed
        self.graph = runner.prepare(part, options)
        self.engine, self.where = runner.name, runner.where(self.graph)
        self.tails: dict[str, int] = {}

    def extremes(self, vertex: int) -> Extremes | None:
        """Return radius and diameter of a component; see ``Searcher``."""
        return self.runner.extremes(self.graph, vertex)

    def share(self, sources: Ids) -> Ids:
        """Return this rank's sources, int64 [k]."""
        first, last = slice_bounds(len(sources), self.world.size, self.world.rank)
        return sources[first:last]

    def dependencies(self, sources: Ids) -> None:
        """Return None; see ``Searcher``."""

    def run(
        self, problem: Problem, sources: Ids, options: RunOptions | None = None
    ) -> Results:
        """Run a problem; see ``Searcher``."""
        check_problem(problem)
        check_sources(sources, self.n)
        options, share = options or self.options, self.share(sources)
        with agreeing(self.world):
            results = self.runner.run(problem, self.graph, share, options)
        own = np.array([results.facts.get(name, 0) for name in TAIL_COUNTS])
        sums = dict(zip(TAIL_COUNTS, self.world.allreduce(own).tolist(), strict=True))
        if any(sums.values()):
            add_counts(self.tails, sums)
        if self.world.size == 1:
            return results
        joined = {
            state.name: self._joined(state, results[state.name])
            for state in problem.state
            if state.result
        }
        return Results(joined, results.facts | (sums if self.tails else {}))

    def _joined(self, state: State, value: Array) -> Array:
        """Combine a result of all ranks."""
        flag = value.dtype == np.bool_
        plain = value.view(np.uint8) if flag else value
        if state.per == "vertex":
            return self.world.allreduce(plain, "max" if flag else "sum")
        if state.per == "level":
            width = int(self.world.allreduce(np.array([value.shape[1]]), "max")[0])
            padded = np.pad(value, ((0, 0), (0, width - value.shape[1])))
            rows = np.concatenate(self.world.allgather(padded.ravel()))
            return rows.reshape(-1, width) if width else value  # no searches
        if state.per == "search":
            joined = np.concatenate(self.world.allgather(plain))
        else:
            blocks = gather_on_first(self.world, plain.ravel())
            held = plain[:0] if blocks is None else blocks
            joined = held.reshape(-1, self.n) if self.n else plain
        return joined.view(np.bool_) if flag else joined

    def at_once(self, itemsize: int) -> int:
        """Return the number of sources to run at once: up to 512 a rank."""
        fits = ROWS_BYTES // max(self.n * itemsize * self.world.size, 1)
        step = max(fits // bits.LANE * bits.LANE, min(fits, bits.LANE), 1)
        return min(step, bits.MOST_SEARCHES) * self.world.size

    @property
    def smallest(self) -> int:
        """Number of sources in a batch of all ranks."""
        return (self.options.batch or bits.MOST_SEARCHES) * self.world.size

    def turned(self) -> WholeSearcher:
        """Return a searcher along reversed edges."""
        if not self.directed:
            return self
        part = self.part.reversed()
        return WholeSearcher(self.world, self.runner, part, self.options)

    def describe(self) -> dict[str, Any]:
        """Return the searcher's hardware and settings."""
        return {**self.runner.describe(), "divided": "sources"}


class PartsSearcher:
    """The ranks search the parts of a graph together.

    Engines "openmp" and "xbfs" run bit-parallel traversals; others search from one
    source after the other.
    """

    directed = False

    def __init__(self, session: Session, options: RunOptions) -> None:
        self.world, self.options, self._session = session.world, options, session
        self.n, self.engine = session.layout.n, session.options.engine
        self.part = None
        self.tails: dict[str, int] = {}
        self._traversals = traversals_of(session)

    @property
    def smallest(self) -> int:
        """Number of sources in a batch; 1 where they take turns."""
        if self._traversals is None:
            return 1
        return min(self.options.batch or bits.MOST_SEARCHES, bits.MOST_SEARCHES)

    def share(self, sources: Ids) -> Ids:
        """Return all sources: the ranks search together."""
        return sources

    def extremes(self, vertex: int) -> None:
        """Return None: each search is one of the session's."""

    def dependencies(self, sources: Ids) -> Array:
        """Return the sum of the dependencies of sources; see ``Searcher``."""
        check_sources(sources, self.n)
        vertices, totals, first = self._session.vertices, list[Array](), 0
        inside = vertices.inside(sources)
        while first < len(sources):
            values = None
            if self._traversals is not None and self.options.bits:
                values = self._traversals.dependencies(inside[first:], self.options)
            shares, some = values or (self._dependencies_of(int(sources[first])), 1)
            totals = [np.add(*x) for x in zip(totals, shares, strict=False)] or shares
            first += some
        if not totals:
            return np.zeros(self.n)
        block = vertices.block(totals, np.float64)
        return np.concatenate(self.world.allgather(block))

    def _dependencies_of(self, root: int) -> list[Array]:
        """Return the dependencies of a source, float64, of each shard by local id."""
        session = self._session
        result = session.search(root, parents=False, stop=self.options.stop)
        return session.paths.dependencies([level for level, _ in result.shards])

    def run(
        self, problem: Problem, sources: Ids, options: RunOptions | None = None
    ) -> Results:
        """Run a problem that needs no functions; see ``Searcher``."""
        check_problem(problem)
        check_sources(sources, self.n)
        options = options or self.options
        if not problem.bits:
            raise UsageError(
                f"problem {problem.name} has functions and needs the whole graph on "
                "each rank; it cannot run over parts"
            )
        width = self.n if self.world.rank == 0 else 0
        outputs = Outputs(problem, len(sources), width)
        if self._traversals is not None and options.bits:
            self._in_batches(self._traversals, problem, sources, options, outputs)
        else:
            self._in_turn(problem, sources, options, outputs)
        values = outputs.results()
        for state in problem.state:
            if state.per == "pair" and self.world.rank:
                values[state.name] = values[state.name][:0]
            if state.per == "vertex":  # which rank 0 alone has
                rows = self.world.allgather(values[state.name])
                values[state.name] = np.concatenate(rows)
        return Results(values, self.describe())

    def _in_turn(
        self, problem: Problem, sources: Ids, options: RunOptions, outputs: Outputs
    ) -> None:
        """Search from one source after the other."""
        for k, root in enumerate(sources.tolist()):
            result = self._session.search(
                root, parents=False, depth_limit=options.depth, stop=options.stop
            )
            level: Array | None = None
            counts = result.level_counts()
            for state in problem.state:
                if state.per not in ("pair", "vertex"):
                    value = of_counts(state.name, counts[None])
                    outputs.put(state.name, slice(k, k + 1), value)
                    continue
                if level is None:
                    level = self._on_first(result.to_numpy()[0])[None]
                deep = len(counts) - 1
                value = kept_value(state, level, deep)
                outputs.put(state.name, slice(k, k + 1), value)

    def _in_batches(
        self,
        traversals: Traversals,
        problem: Problem,
        sources: Ids,
        options: RunOptions,
        outputs: Outputs,
    ) -> None:
        """Search from up to 512 sources in one traversal."""
        by_pair = [s for s in problem.state if s.per == "pair"]
        sums = tuple(s.name for s in problem.state if s.per == "vertex")
        others = [s.name for s in problem.state if s.per not in ("pair", "vertex")]
        vertices, first = self._session.vertices, 0
        inside = vertices.inside(sources)
        wanted = Wanted(
            levels=bool(by_pair),
            counts=bool(others),
            sums=sums,
            limit=options.depth,
            stop=options.stop,
        )
        while first < len(sources):
            searches, some = traversals.run(inside[first:], options, wanted)
            add_counts(self.tails, searches.tail_counts())
            rows = slice(first, first + some)
            if others:
                counts = searches.counts()
            for name in others:
                outputs.put(name, rows, of_counts(name, counts))
            for name in sums:
                block = vertices.block(searches.sums(name), np.dtype(SUMS[name]).type)
                outputs.put(name, rows, self._on_first(block))
            for search in range(some if by_pair else 0):
                block = vertices.block(searches.levels(search), np.int32)
                level, row = self._on_first(block)[None], first + search
                for state in by_pair:
                    value = kept_value(state, level, searches.deepest)
                    outputs.put(state.name, slice(row, row + 1), value)
            first += some

    def _on_first(self, block: Array) -> Array:
        """Return the blocks of all ranks, [n], on rank 0; [0] on others."""
        values = gather_on_first(self.world, block)
        return block[:0] if values is None or self.world.rank else values

    def at_once(self, itemsize: int) -> int:
        """Return the number of sources to run at once: lanes of 64 if they fit."""
        fits = max(ROWS_BYTES // max(self.n * itemsize, 1), 1)
        return fits // bits.LANE * bits.LANE or fits

    def turned(self) -> PartsSearcher:
        """Return the same searcher: graphs in parts are symmetric."""
        return self

    def describe(self) -> dict[str, Any]:
        """Return the searcher's hardware and settings."""
        return {**self._session.describe(), "divided": "parts"}


def add_counts(sums: dict[str, int], counts: Mapping[str, int]) -> None:
    """Add counts to sums by name."""
    for name, count in counts.items():
        sums[name] = sums.get(name, 0) + count


def whole_bytes(source: Source) -> int:
    """Estimate the bytes of a rank that holds a whole graph and 64 searches of it."""
    n, m = source.n, source.most_edges
    edges = {"nn": m, "nd": 0, "dn": 0, "dd": 0}
    shape = PartShape(n, 1, 0, n, n, 0, edges, 0)
    held = sum(array_bytes(shape).values())
    if source.directed:
        held += 8 * n + 4 * m
    searching = bits.bytes_needed(n, 1, levels=True) + bits.LANE * n
    if source.is_whole:
        return held + searching
    return max(build_bytes(shape, m), held + searching)


def choose_sharing(world: World, source: Source, wanted: str) -> tuple[str, str]:
    """Return ("sources" or "parts", reason); equal on all ranks (collective).

    auto: parts where the whole graph, as ``whole_bytes`` estimates it, takes more than
    any rank may fill; else sources. A single rank always holds the whole graph, and so
    do ranks with a directed graph.
    """
    check_choice("divide", wanted, WAYS)
    if source.directed and wanted == "parts":
        raise UsageError("a directed graph has no parts; allowed: auto, sources")
    if wanted != "auto":
        return wanted, "as asked"
    if world.size == 1 or source.directed:
        return "sources", "one rank" if world.size == 1 else "the graph is directed"
    need = whole_bytes(source)
    room = int(world.allreduce(np.array([may_fill(world)[0]]), "min")[0])
    text = f"a rank needs {readable(need)} for all, and may fill {readable(room)}"
    return ("sources" if need <= room else "parts"), text
