"""Reachability and distance of many pairs of vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.multisearch.application import Application, Task
from distbfs.multisearch.base import Results
from distbfs.multisearch.problem import Problem, State
from distbfs.types import Array, Ids

if TYPE_CHECKING:
    from distbfs.multisearch.searchers import Searcher

PROBLEM = Problem("reachability", (State("reachable", "bool", "pair"),), bits=True)


def reachability(searcher: Searcher, pairs: Ids) -> Array:
    """Return whether pairs[j, 0] reaches pairs[j, 1], bool [q] (collective).

    pairs: int64 [q, 2], equal on all ranks. One search runs from each distinct source.
    Rank 0 gets the result, other ranks get [0].
    """
    sources, of_pair = np.unique(pairs[:, 0], return_inverse=True)
    order = np.argsort(of_pair, kind="stable")
    begins = np.searchsorted(of_pair[order], np.arange(len(sources) + 1))
    first_rank = searcher.world.rank == 0
    out = np.zeros(len(pairs) if first_rank else 0, dtype=np.bool_)
    step = searcher.at_once(1)
    for first in range(0, len(sources), step):
        some = sources[first : first + step]
        rows = searcher.run(PROBLEM, some)["reachable"]
        if first_rank:
            asked = order[begins[first] : begins[first + len(some)]]
            out[asked] = rows[of_pair[asked] - first, pairs[asked, 1]]
    return out


def run(task: Task) -> Results:
    """Answer pairs."""
    answers = reachability(task.searcher, task.pairs)
    facts = {"pairs": len(task.pairs), "reachable": int(answers.sum())}
    return Results({"pair": task.pairs, "reachable": answers}, facts)


APP = Application(
    "reachability",
    "whether the first vertex of each of --pairs reaches the second",
    run,
    takes="pairs",
)
