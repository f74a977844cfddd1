"""Number of vertices within k hops of sources."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from distbfs.multisearch.application import Application, Task
from distbfs.multisearch.base import Results
from distbfs.multisearch.problem import Problem, State
from distbfs.options import SEARCH, depth_limit, option
from distbfs.types import Array, Ids

if TYPE_CHECKING:
    from distbfs.multisearch.searchers import Searcher

PROBLEM = Problem("khop", (State("count", "int64", "level"),), bits=True)


def khop(searcher: Searcher, sources: Ids, hops: int | None) -> Array:
    """Count the vertices within 0, 1, … hops, int64 [k, hops + 1] (collective).

    The source is within 0 hops. hops: an integer >= 0; None, or a value of n or more,
    means the largest depth of the sources. Raises UsageError for other values.
    """
    hops = depth_limit("hops", hops, searcher.n)
    near = copy(searcher)
    near.options = replace(searcher.options, depth=hops)
    counts = near.run(PROBLEM, sources)["count"]
    width = counts.shape[1] if hops is None else hops + 1
    counts = np.pad(counts, ((0, 0), (0, max(width - counts.shape[1], 0))))
    within: Array = np.cumsum(counts, axis=1)
    return within


def run(task: Task, *, hops: int | None) -> Results:
    """Count the vertices within some hops."""
    within = khop(task.searcher, task.sources, hops)
    means = within.mean(axis=0).tolist() if len(within) else []
    return Results({"within": within}, {"mean_within": means})


@dataclass(frozen=True, kw_only=True)
class KHopOptions:
    """Options of khop.

    hops: How far to count; default: all.
    """

    hops: int | None = option(SEARCH, low=0)


APP = Application(
    "khop",
    "number of vertices within 0, 1, … hops of each source",
    run,
    KHopOptions,
    repeats=True,
)
