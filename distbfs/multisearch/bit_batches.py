"""Problems whose state a traversal keeps, in batches of searches with a bit each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from distbfs.errors import SearchStopped
from distbfs.multisearch.base import RunOptions, check_depth
from distbfs.multisearch.numpy_runner import Outputs, of_counts
from distbfs.multisearch.part_loop import Wanted

if TYPE_CHECKING:
    from distbfs.multisearch.problem import Problem
    from distbfs.types import Array, Ids


class Searched(Protocol):
    """Finished searches of one traversal."""

    @property
    def deepest(self) -> int:
        """The largest level of any search."""

    @property
    def adds_up(self) -> bool:
        """Whether sums cover all traversals so far."""

    def counts(self) -> Array:
        """Return the number of vertices by search and level, int64 [k, deepest + 1]."""

    def sum_by_id(self, name: str) -> Array:
        """Return a sum of ``base.SUMS`` by id, [n], on ranks that need results."""

    def put_levels(self, out: Array) -> None:
        """Write levels by id to ``out``, [k, n]; if it is unsigned, reachability."""

    def tail_counts(self) -> dict[str, int]:
        """Return the counts of tail reads; see ``PartSearches``."""


Search: TypeAlias = Callable[["Ids"], tuple[Searched, int]]


def wanted_of(problem: Problem, options: RunOptions) -> Wanted:
    """Return the results that a problem needs from a traversal."""
    results = [s for s in problem.state if s.result]
    return Wanted(
        levels=any(s.name == "level" for s in results),
        counts=any(s.per in ("search", "level") for s in results),
        sums=tuple(s.name for s in results if s.per == "vertex"),
        limit=options.depth,
        stop=options.stop,
    )


def run_in_batches(
    problem: Problem, sources: Ids, outputs: Outputs, search: Search
) -> dict[str, Any]:
    """Put the results of a problem into ``outputs``; return facts of its batches.

    search: function that searches from the first ones of some sources, and returns the
    searches and their number
    """
    facts: dict[str, Any] = {"batches": 0, "levels": 0}
    states, first = [s for s in problem.state if s.result], 0
    while first < len(sources):
        try:
            searched, count = search(sources[first:])
        except SearchStopped as stopped:
            done = f"stopped after {first} of {len(sources)} sources"
            raise SearchStopped(done) from stopped
        rows = slice(first, first + count)
        first += count
        facts["batches"] += 1
        facts["levels"] = max(facts["levels"], searched.deepest + 1)
        add_counts(facts, searched.tail_counts())
        counts: Array | None = None
        for state in states:
            name = state.name
            if name == "level":
                check_depth(searched.deepest, state.dtype)
            if state.per == "pair":
                searched.put_levels(outputs.values[name][rows])
            elif state.per != "vertex":
                counts = searched.counts() if counts is None else counts
                outputs.put(name, rows, of_counts(name, counts))
            elif first == len(sources) or not searched.adds_up:
                outputs.put(name, rows, searched.sum_by_id(name))
    return facts


def add_counts(sums: dict[str, int], counts: Mapping[str, int]) -> None:
    """Add counts to sums by name."""
    for name, count in counts.items():
        sums[name] = sums.get(name, 0) + count
