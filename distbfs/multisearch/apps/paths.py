"""Lengths of shortest paths from k sources, or from all vertices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distbfs.errors import TooDeep
from distbfs.multisearch.application import Application, Facts, Task
from distbfs.multisearch.base import MOST, Results
from distbfs.multisearch.problem import Problem, State
from distbfs.options import SEARCH, option


def problem(dtype: str) -> Problem:
    """Return the problem whose only result is ``level`` [k, n] with a dtype."""
    return Problem("apsp", (State("level", dtype, "pair", -1),), bits=True)


def stream(task: Task, dtype: str) -> Facts:
    """Store rows of levels as int8, int16 or int32; count reached vertices.

    Collective. Raises TooDeep on all ranks if a level exceeds the dtype.
    """
    searcher, sources = task.searcher, task.sources
    facts: Facts = {"dtype": dtype, "pairs_reached": 0, "largest_level": 0}
    step = searcher.at_once(np.dtype(dtype).itemsize)
    with task.rows(dtype) as take, task.progress("searching", len(sources)) as done:
        for first in range(0, len(sources), step):
            some = sources[first : first + step]
            level = searcher.run(problem(dtype), some)["level"]
            if searcher.world.rank == 0:
                take(first, level)
            facts["pairs_reached"] += int(np.count_nonzero(level >= 0))
            largest = max(facts["largest_level"], int(level.max(initial=0)))
            facts["largest_level"] = largest
            done(first + len(some))
    return facts


def run(task: Task, *, dtype: str) -> Results:
    """Store rows of levels, as "auto" in the narrowest dtype that holds them."""
    *narrow, widest = MOST if dtype == "auto" else (dtype,)
    for now in narrow:
        try:
            return Results({}, stream(task, now))
        except TooDeep as error:  # noqa: PERF203
            task.say(f"{error}; repeated with a wider type")
    return Results({}, stream(task, widest))


@dataclass(frozen=True, kw_only=True)
class PathOptions:
    """Options of apsp.

    dtype: Type of levels; auto: the narrowest that holds them.
    """

    dtype: str = option(SEARCH, default="auto", allowed=("auto", *MOST))


APP = Application(
    "apsp",
    "lengths of shortest paths from each source",
    run,
    PathOptions,
    repeats=True,
)
