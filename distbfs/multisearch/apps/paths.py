"""Lengths of shortest paths from k sources, or from all vertices."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from distbfs.multisearch.base import MOST, TooDeep
from distbfs.multisearch.problem import Problem, State
from distbfs.multisearch.searchers import Searcher
from distbfs.types import Array, Ids

Take = Callable[[int, Array], None]


def problem(dtype: str) -> Problem:
    """Return the problem whose only result is ``level`` [k, n] of a dtype."""
    return Problem("apsp", (State("level", dtype, "pair", -1),), bits=True)


def stream(
    searcher: Searcher,
    sources: Ids,
    dtype: str,
    take: Take,
    done: Callable[[int], None] = lambda _: None,
) -> None:
    """Give rows of levels to ``take(first row, levels [some, n])`` on rank 0.

    sources: int64 [k]; dtype: int8, int16 or int32, -1 = unreached; done: told how
    many sources are finished.  Collective.  Raises TooDeep, on all ranks, where a
    level does not fit the dtype; rows before it were given.
    """
    step = searcher.at_once(np.dtype(dtype).itemsize)
    for first in range(0, len(sources), step):
        some = sources[first : first + step]
        level = searcher.run(problem(dtype), some)["level"]
        if searcher.world.rank == 0:
            take(first, level)
        done(first + len(some))


def levels(searcher: Searcher, sources: Ids, dtype: str = "auto") -> Array:
    """Return levels [k, n] on rank 0, [0, n] on others (collective).

    dtype: "auto" takes the narrowest that holds all of them.
    """
    if dtype != "auto":
        return _levels(searcher, sources, dtype)
    for now in list(MOST)[:-1]:
        with suppress(TooDeep):
            return _levels(searcher, sources, now)
    return _levels(searcher, sources, list(MOST)[-1])


def _levels(searcher: Searcher, sources: Ids, dtype: str) -> Array:
    """Return levels of a dtype; TooDeep where one does not fit."""
    rows = [np.empty((0, searcher.n), dtype=dtype)]
    stream(searcher, sources, dtype, lambda _, level: rows.append(level))
    return rows[1] if len(rows) == 2 else np.concatenate(rows)
