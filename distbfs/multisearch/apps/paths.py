"""Lengths of shortest paths from k sources, or from all vertices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from distbfs.errors import TooDeep
from distbfs.multisearch.application import Application, Facts, Take, Task
from distbfs.multisearch.base import MOST, Results, check_results
from distbfs.multisearch.problem import Problem, State
from distbfs.options import SEARCH, option
from distbfs.progress import unsaid
from distbfs.types import Array, Ids

if TYPE_CHECKING:
    from distbfs.multisearch.searchers import Searcher

Attempted = TypeVar("Attempted")


def problem(dtype: str) -> Problem:
    """Return the problem whose only result is ``level`` [k, n] with a dtype."""
    return Problem("apsp", (State("level", dtype, "pair", -1),), bits=True)


def stream(
    searcher: Searcher,
    sources: Ids,
    dtype: str,
    take: Take,
    done: Callable[[int], None] = lambda _: None,
) -> None:
    """Pass rows of levels to ``take(first row, levels [some, n])`` on rank 0.

    sources: int64 [k]; dtype: int8, int16 or int32, -1 = unreached; done: called with
    the number of finished sources. Collective. Raises TooDeep on all ranks if a level
    exceeds the dtype; earlier rows have been passed on by then.
    """
    step = searcher.at_once(np.dtype(dtype).itemsize)
    for first in range(0, len(sources), step):
        some = sources[first : first + step]
        level = searcher.run(problem(dtype), some)["level"]
        if searcher.world.rank == 0:
            take(first, level)
        done(first + len(some))


def in_narrowest(
    dtype: str, attempt: Callable[[str], Attempted], say: Callable[[str], None] = unsaid
) -> Attempted:
    """Call ``attempt(dtype)``, for "auto" with the narrowest that holds all levels.

    Raises TooDeep if a level exceeds the dtype.
    """
    if dtype != "auto":
        return attempt(dtype)
    *narrow, widest = MOST
    for now in narrow:
        try:
            return attempt(now)
        except TooDeep as error:  # noqa: PERF203
            say(f"{error}; repeated with a wider type")
    return attempt(widest)


def held_rows(shape: tuple[int, int], dtype: str) -> tuple[Array, Take]:
    """Return an array for rows of levels, and the function that puts them there."""
    check_results(shape, dtype)
    rows = np.empty(shape, dtype=dtype)

    def take(first: int, some: Array) -> None:
        rows[first : first + len(some)] = some

    return rows, take


def levels(searcher: Searcher, sources: Ids, dtype: str = "auto") -> Array:
    """Return levels [k, n] on rank 0, [0, n] on others (collective).

    dtype: "auto" means the narrowest that holds all levels. Raises OutOfMemory if they
    do not fit this machine.
    """
    count = 0 if searcher.world.rank else len(sources)

    def attempt(now: str) -> Array:
        rows, take = held_rows((count, searcher.n), now)
        stream(searcher, sources, now, take)
        return rows

    return in_narrowest(dtype, attempt)


def run(task: Task, *, dtype: str) -> Results:
    """Pass on levels, row by row, and count reached vertices."""

    def attempt(now: str) -> Facts:
        facts: Facts = {"dtype": now, "pairs_reached": 0, "largest_level": 0}
        none = np.array(-1).astype(now)
        count = len(task.sources)
        with task.rows(now) as take, task.progress("searching", count) as done:

            def look(first: int, rows: Array) -> None:
                there = rows != none
                facts["pairs_reached"] += int(there.sum())
                deepest = int(rows[there].max(initial=0))
                facts["largest_level"] = max(facts["largest_level"], deepest)
                take(first, rows)

            stream(task.searcher, task.sources, now, look, done)
        return facts

    return Results({}, in_narrowest(dtype, attempt, task.say))


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
