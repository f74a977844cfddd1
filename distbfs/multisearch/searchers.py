"""Many searches on any number of ranks, which share sources or search parts together.

If the whole graph fits the memory of each rank, every rank holds it and searches from a
share of the sources. Otherwise the ranks search the parts of the store together, with
up to 512 sources in one traversal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from distbfs.device.array_table import total_bytes
from distbfs.engines.base import TAIL_COUNTS
from distbfs.errors import UsageError
from distbfs.exchange.router import gather
from distbfs.multisearch import bits, domain_bits
from distbfs.multisearch.base import (
    BITS,
    WAYS,
    Results,
    RunOptions,
    check_problem,
    check_sources,
)
from distbfs.multisearch.batches import add_counts, run_in_batches
from distbfs.multisearch.part_bits import PartBitSearches
from distbfs.multisearch.part_loop import MOST_SEARCHES, PartSearches
from distbfs.multisearch.part_messages import PartMessages
from distbfs.multisearch.problem import Problem, State
from distbfs.options import check_choice
from distbfs.partition.part import Part
from distbfs.plan.memory import (
    PartShape,
    array_bytes,
    build_bytes,
    may_fill,
    readable,
)
from distbfs.ranks.agreement import errors_of_all
from distbfs.search.holding import Source
from distbfs.search.session import Session
from distbfs.types import AnyArray, Array, Ids, World, slice_bounds

PLANES = 8  # of levels, in estimates
ROWS_BYTES = 1 << 28  # of pairwise results passed on at once


class Searcher(ABC):
    """Runs problems over one graph on all ranks; applications use this interface.

    world: the ranks; n: number of vertices; directed: whether the graph is directed
    engine: name of the engine
    tails: counts of the reads of tails in host memory by traversals, on all ranks;
    their names are those of ``TAIL_COUNTS``; empty if no row has a tail
    """

    world: World
    n: int
    directed: bool
    options: RunOptions
    engine: str
    tails: dict[str, int]

    @property
    def apart(self) -> int:
        """Number of ranks that search apart from each other, from their own sources."""
        return 1

    def levels_from(self) -> Callable[[int], AnyArray] | None:
        """Return a function from a vertex id to levels, [n] by id, on a device.

        An array stays valid until the next call. Returns None, as by default, if many
        searches run at once.
        """
        return None

    def dependencies(self, sources: Ids) -> Array | None:  # noqa: ARG002
        """Return the sum of Brandes' dependencies of sources, float64 [n] (collective).

        Returns None if a problem must compute them instead.
        """
        return None

    def run(self, problem: Problem, sources: Ids) -> Results:
        """Run a problem from sources, equal on all ranks (collective).

        All ranks get results per search and per level, of all sources, and results per
        vertex, summed over the ranks. Of results per pair, rank 0 gets all rows and the
        others none. Raises TooDeep on all ranks if a level does not fit.
        """
        check_problem(problem)
        check_sources(sources, self.n)
        return self._run(problem, sources)

    @abstractmethod
    def _run(self, problem: Problem, sources: Ids) -> Results:
        """Run a problem that has been checked; see ``run``."""

    def at_once(self, itemsize: int) -> int:
        """Return how many sources to run at once if pairwise results have a size."""
        fits = ROWS_BYTES // max(self.n * itemsize * self.apart, 1)
        step = max(fits // bits.LANE * bits.LANE, min(fits, bits.LANE), 1)
        return min(step, MOST_SEARCHES) * self.apart

    @abstractmethod
    def turned(self) -> Searcher:
        """Return a searcher along reversed edges: itself for undirected graphs."""

    @property
    def smallest(self) -> int:
        """Number of sources in a batch of all ranks."""
        most = self.options.batch or MOST_SEARCHES
        return min(most, MOST_SEARCHES) * self.apart

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the searcher's hardware and settings, for reports (JSON values)."""


class WholeSearcher(Searcher):
    """Every rank holds the whole graph and takes a share of the sources.

    methods: variants of the engine
    part: one part without delegates, in input ids (see ``whole.in_input_ids``)
    graph: the same in the form that the engine needs
    where: description of the rows in host memory; "" if none are

    Raises UsageError if the engine cannot search such a graph.
    """

    methods: tuple[str, ...]
    part: Part
    where = ""

    def __init__(self, world: World, part: Part, options: RunOptions) -> None:
        self.world, self.part, self.options = world, part, options
        self.n, self.directed = part.layout.n, part.directed
        self.tails: dict[str, int] = {}
        self.graph = self._prepared()

    @staticmethod
    def check() -> None:
        """Raise CompilerMissing or DeviceMissing if the engine cannot run here."""

    @abstractmethod
    def _prepared(self) -> Any:
        """Return the graph in the form that the engine needs."""

    def _searches(self) -> AbstractContextManager[PartSearches | None]:
        """Return the bit-parallel searches of the graph, None if there are none."""
        return nullcontext()

    @abstractmethod
    def _by_functions(
        self, problem: Problem, sources: Ids
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Run a problem by its functions; return (results, facts)."""

    @property
    def apart(self) -> int:
        """All ranks search apart."""
        return self.world.size

    def share(self, sources: Ids) -> Ids:
        """Return this rank's sources, int64 [k]."""
        first, last = slice_bounds(len(sources), self.world.size, self.world.rank)
        return sources[first:last]

    def _run(self, problem: Problem, sources: Ids) -> Results:
        with errors_of_all(self.world):
            results = self._of_share(problem, self.share(sources))
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

    def _of_share(self, problem: Problem, sources: Ids) -> Results:
        """Run a problem from this rank's sources, of which there may be none."""
        method = self.options.method
        if method and method not in self.methods:
            allowed = ", ".join(self.methods)
            raise UsageError(
                f"method '{method}' of engine {self.engine}; allowed: {allowed}"
            )
        by_bits = problem.bits and method in ("", BITS)
        if method == BITS and not by_bits:
            raise UsageError(f"problem {problem.name} cannot run with method bits")
        with self._searches() if by_bits else nullcontext() as searches:
            if searches is None:
                values, facts = self._by_functions(problem, sources)
            else:
                values, facts = run_in_batches(
                    problem, sources, self.n, searches, self.options
                )
                facts["method"] = BITS
        return Results(values, {**self._describe(), **facts})

    def _joined(self, state: State, value: Array) -> Array:
        """Combine the values of a result from all ranks."""
        world = self.world
        if state.per == "vertex":
            return world.allreduce(value, "or" if value.dtype == np.bool_ else "sum")
        if state.per == "level":
            width = int(world.allreduce(np.array([value.shape[1]]), "max")[0])
            value = np.pad(value, ((0, 0), (0, width - value.shape[1])))
        send = partial(gather, world) if state.per == "pair" else world.allgather
        joined = np.concatenate(send(value.ravel()))
        return joined.reshape(-1, *value.shape[1:]) if len(joined) else value[:0]

    def turned(self) -> WholeSearcher:
        """Return a searcher along reversed edges."""
        if not self.directed:
            return self
        turned = type(self)(self.world, self.part.reversed(), self.options)
        turned.tails = self.tails
        return turned

    def describe(self) -> dict[str, Any]:
        """Return the searcher's hardware and settings."""
        return {**self._describe(), "divided": "sources"}

    @abstractmethod
    def _describe(self) -> dict[str, Any]:
        """Return engine and devices, for reports (JSON values)."""


class PartsSearcher(Searcher):
    """The ranks search the parts of a graph together, by bit-parallel traversals.

    Raises UsageError for engines other than "openmp" and "xbfs".
    """

    def __init__(
        self, session: Session, options: RunOptions, *, directed: bool = False
    ) -> None:
        self.world, self.options, self._session = session.world, options, session
        self.n, self.engine = session.layout.n, session.options.engine
        self.directed = directed
        self.tails: dict[str, int] = {}
        self._searches = searches_of(session)
        self._turned: PartsSearcher | None = None
        self._along = True  # edges, not reversed ones

    def dependencies(self, sources: Ids) -> Array | None:
        """Return the sum of the dependencies of sources; see ``Searcher``.

        Returns None along reversed edges.
        """
        if not self._along:
            return None
        check_sources(sources, self.n)
        totals, first = list[Array](), 0
        while first < len(sources):
            shares, some = self._searches.dependencies_of_first(
                sources[first:], self.options
            )
            totals = [np.add(*x) for x in zip(totals, shares, strict=False)] or shares
            first += some
        if not totals:
            return np.zeros(self.n)
        block = self._session.vertices.block(totals, np.float64)
        return np.concatenate(self.world.allgather(block))

    def _run(self, problem: Problem, sources: Ids) -> Results:
        if not problem.bits:
            raise UsageError(
                f"problem {problem.name} has functions and needs the whole graph on "
                "each rank; it cannot run over parts"
            )
        width = self.n if self.world.rank == 0 else 0
        values, facts = run_in_batches(
            problem, sources, width, self._searches, self.options
        )
        add_counts(self.tails, {x: facts[x] for x in TAIL_COUNTS if x in facts})
        for state in problem.state:
            if state.per == "pair" and self.world.rank:
                values[state.name] = values[state.name][:0]
            if state.per == "vertex":  # which rank 0 alone has
                rows = self.world.allgather(values[state.name])
                values[state.name] = np.concatenate(rows)
        return Results(values, self.describe())

    def turned(self) -> PartsSearcher:
        """Return a searcher along reversed edges, of the same parts."""
        if not self.directed:
            return self
        if self._turned is None:
            self._turned = turned = copy(self)
            turned._searches = self._searches.reversed()
            turned._turned, turned._along = self, not self._along
        return self._turned

    def describe(self) -> dict[str, Any]:
        """Return the searcher's hardware and settings."""
        return {**self._session.describe(), "divided": "parts"}


def searches_of(session: Session) -> PartSearches:
    """Return the searches of a session's parts from many sources (collective).

    With engine openmp, they search parts in host memory; with engine xbfs, rows on
    devices. Raises UsageError on all ranks for other engines, or if a rank has none of
    these.
    """
    held, engine, world = session.held, session.options.engine, session.world
    separated = session.separated if engine == "xbfs" else None
    shares = held.shares if separated is None else separated.shares
    ways = engine == "xbfs" and bool(shares), engine == "openmp" and bool(held.parts)
    on_devices, on_hosts = world.allreduce(np.array(ways), "min").tolist()
    if on_devices:
        messages = None
        if separated is not None and len(separated.placement.domains) > 1:
            devices = [share.cuda_device for share in shares]
            messages = PartMessages(
                world, separated.placement, devices, separated.exchange
            )
        return domain_bits.DomainBitSearches(
            world, shares, messages=messages, session=session
        )
    if on_hosts:
        return PartBitSearches(world, held.parts, session.options.threads, session)
    raise UsageError(
        f"engine {engine} does not search these parts from many sources; allowed: "
        "engine openmp or xbfs, or the whole graph on each rank (--divide sources)"
    )


def whole_bytes(source: Source) -> int:
    """Estimate a rank's bytes for a whole graph and 64 simultaneous searches."""
    n, m = source.n, source.most_edges
    edges = {"nn": m, "nd": 0, "dn": 0, "dd": 0}
    shape = PartShape(n, 1, 0, n, n, 0, edges, 0)
    held = sum(array_bytes(shape).values())
    if source.directed:
        held += 8 * n + 4 * m
    searching = total_bytes(bits.array_table(n, n, 1, PLANES)) + bits.LANE * n
    if source.is_whole:
        return held + searching
    return max(build_bytes(shape, m), held + searching)


def choose_sharing(world: World, source: Source, wanted: str) -> tuple[str, str]:
    """Return ("sources" or "parts", reason); equal on all ranks (collective).

    "auto" means parts if the whole graph, as ``whole_bytes`` estimates it, takes more
    memory than a rank may use, else sources. A single rank always holds the whole
    graph.
    """
    check_choice("divide", wanted, WAYS)
    if wanted != "auto":
        return wanted, "as asked"
    if world.size == 1:
        return "sources", "one rank"
    need = whole_bytes(source)
    room = int(world.allreduce(np.array([may_fill(world)[0]]), "min")[0])
    text = f"a rank needs {readable(need)} for all, and may fill {readable(room)}"
    return ("sources" if need <= room else "parts"), text
