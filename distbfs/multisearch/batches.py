"""Runs of problems whose state a traversal keeps, in batches with a bit a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distbfs.errors import OutOfMemory, SearchStopped
from distbfs.multisearch.base import RunOptions, check_depth
from distbfs.multisearch.numpy_runner import Outputs, of_counts
from distbfs.multisearch.part_loop import PartSearches, Wanted

if TYPE_CHECKING:
    from distbfs.multisearch.problem import Problem
    from distbfs.types import Array, Ids


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
