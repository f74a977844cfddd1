"""The contract of a runner of problems on any hardware.

Problems whose state a traversal keeps run in batches of searches with a bit each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distbfs.errors import OutOfMemory, SearchStopped, UsageError
from distbfs.multisearch.base import (
    BITS,
    Results,
    RunOptions,
    check_depth,
    check_problem,
    check_sources,
)
from distbfs.multisearch.numpy_runner import Outputs, of_counts
from distbfs.multisearch.part_loop import PartSearches, Wanted

if TYPE_CHECKING:
    from distbfs.multisearch.problem import Problem
    from distbfs.partition.part import Part
    from distbfs.types import AnyArray, Array, Ids


class ProblemRunner(ABC):
    """Runs problems over whole graphs: one part without delegates.

    ``__init__`` raises CompilerMissing or DeviceMissing if it cannot run here.
    """

    name: str
    methods: tuple[str, ...]

    @abstractmethod
    def prepare(self, part: Part, options: RunOptions | None = None) -> Any:
        """Return a whole graph in the form that the runner needs.

        part: has the ids of the input (see ``whole.in_input_ids``)
        options: only ``device_memory`` and ``host_memory`` count here
        Raises UsageError if the runner cannot search such a graph.
        """

    def searches(self, graph: Any) -> AbstractContextManager[PartSearches | None]:  # noqa: ARG002
        """Return the bit-parallel searches of a graph, None if there are none."""
        return nullcontext()

    def run(
        self, problem: Problem, graph: Any, sources: Ids, options: RunOptions
    ) -> Results:
        """Run a problem from sources, int64 [k], vertices of the graph; k may be 0.

        graph: what ``prepare`` returned; only one run at a time may use it. Raises
        UsageError for a problem that cannot run and for an error in one of its
        functions, whose name and line the message has; ResourceError if memory runs
        out.
        """
        check_problem(problem)
        check_sources(sources, graph.n)
        if options.method and options.method not in self.methods:
            allowed = ", ".join(self.methods)
            raise UsageError(
                f"method '{options.method}' of engine {self.name}; allowed: {allowed}"
            )
        by_bits = problem.bits and options.method in ("", BITS)
        if options.method == BITS and not by_bits:
            raise UsageError(f"problem {problem.name} cannot run with method bits")
        with self.searches(graph) if by_bits else nullcontext() as searches:
            if searches is None:
                values, facts = self._run(problem, graph, sources, options)
            else:
                values, facts = run_in_batches(
                    problem, sources, graph.n, searches, options
                )
                facts["method"] = BITS
        return Results(values, {**self.describe(), **facts})

    @abstractmethod
    def _run(
        self, problem: Problem, graph: Any, sources: Ids, options: RunOptions
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Run a problem that has been checked; return (results, facts)."""

    def levels_from(self, graph: Any) -> Callable[[int], AnyArray] | None:  # noqa: ARG002
        """Return a function from a vertex id to levels, [n] by id, on a device.

        An array stays valid until the next call. Returns None, as by default, if many
        searches run at once.
        """
        return None

    def where(self, graph: Any) -> str:  # noqa: ARG002
        """Describe the rows of a graph that are in host memory, "" if none are."""
        return ""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return engine and devices of problems, for reports (JSON values)."""


def run_in_batches(
    problem: Problem,
    sources: Ids,
    n: int,
    searches: PartSearches,
    options: RunOptions,
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Run a problem from sources; return (results, facts) (collective).

    n: number of vertices on ranks that need results by vertex, else 0. If memory runs
    out, as for deep levels, all is searched again with fewer sources at a time.
    """
    outputs = Outputs(problem, len(sources), n)
    try:
        facts = _run(problem, sources, outputs, searches, options)
        return outputs.results(), facts
    except OutOfMemory:  # on all ranks
        if not searches.narrow():
            raise
    return run_in_batches(problem, sources, n, searches, options)


def _run(
    problem: Problem,
    sources: Ids,
    outputs: Outputs,
    searches: PartSearches,
    options: RunOptions,
) -> dict[str, Any]:
    """Put the results of a problem into ``outputs``; return facts of its batches."""
    states, first = [s for s in problem.state if s.result], 0
    facts: dict[str, Any] = {"batches": 0, "levels": 0}
    wanted = Wanted(
        levels=any(s.name == "level" for s in states),
        counts=any(s.per in ("search", "level") for s in states),
        sums=tuple(s.name for s in states if s.per == "vertex"),
        limit=options.depth,
        stop=options.stop,
    )
    while first < len(sources):
        try:
            count = searches.run_first(sources[first:], options, wanted)
        except SearchStopped as stopped:
            done = f"stopped after {first} of {len(sources)} sources"
            raise SearchStopped(done) from stopped
        rows = slice(first, first + count)
        first, wanted = first + count, replace(wanted, continued=True)
        facts["batches"] += 1
        facts["levels"] = max(facts["levels"], searches.deepest + 1)
        add_counts(facts, searches.tail_counts())
        counts: Array | None = None
        for state in states:
            name = state.name
            if name == "level":
                check_depth(searches.deepest, state.dtype)
            if state.per == "pair":
                searches.put_levels(outputs.values[name][rows])
            elif state.per != "vertex":
                counts = searches.counts() if counts is None else counts
                outputs.put(name, rows, of_counts(name, counts))
            elif first == len(sources):
                outputs.put(name, rows, searches.sum_by_id(name))
    return facts


def add_counts(sums: dict[str, int], counts: Mapping[str, int]) -> None:
    """Add counts to sums by name."""
    for name, count in counts.items():
        sums[name] = sums.get(name, 0) + count
