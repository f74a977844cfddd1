"""Betweenness centrality of vertices, exact or from k sources.

It is a problem that every engine runs; engine openmp also has a kernel of its own.

Sources: Brandes 2001; Brandes and Pich 2007 for estimates. Scales are those of NetworkX
3.6 (``betweenness_centrality``).
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cc
from distbfs.device.calls import LongCall
from distbfs.device.structures import structure
from distbfs.engines.openmp.paths import SOURCE, prepare
from distbfs.errors import SearchStopped, UsageError
from distbfs.multisearch.application import Application, Normalized, Task
from distbfs.multisearch.apps.sampling import SampleOptions, deviation, draw, requested
from distbfs.multisearch.base import Results, RunOptions
from distbfs.multisearch.numpy_runner import NumpyWalk, run_batches
from distbfs.multisearch.problem import Problem, State
from distbfs.options import SEARCH, option
from distbfs.partition.part import Part
from distbfs.types import Array, Ids

if TYPE_CHECKING:
    from distbfs.multisearch.searchers import Searcher

DENSE = 8  # mean degree from which levels are counted by the cheaper direction


def begin(s: Any, i: Ids) -> None:
    """Count one path from each source to itself; i: searches, int64 [b]."""
    s.sigma[i, s.sources[i]] = 1
    s.power = np.zeros_like(s.level)  # sigma * 2^power paths lead to a vertex


def count_paths(s: Any, i: Ids, u: Ids, v: Ids) -> None:
    """Add the number of paths to u to that of v, one level on; i, u, v: int64 [e]."""
    down = s.level[i, v] == s.depth_now + 1
    i, u, v = i[down], u[down], v[down]
    share, power = np.frexp(s.sigma[i, u])
    power += s.power[i, u]
    before = s.power[i, v]
    np.maximum.at(s.power, (i, v), power)
    now = s.power[i, v]
    s.sigma[i, v] = np.ldexp(s.sigma[i, v], before - now)
    np.add.at(s.sigma, (i, v), np.ldexp(share, power - now))


def accumulate(s: Any, i: Ids) -> None:
    """Sum dependencies from the deepest level to the first."""
    for row, u, v in s.backwards():
        down = s.level[row, v] == s.depth_now + 1
        a, b, c = row[down], u[down], v[down]
        share = np.ldexp(s.sigma[a, b] / s.sigma[a, c], s.power[a, b] - s.power[a, c])
        np.add.at(s.delta, (a, b), share * (1 + s.delta[a, c]))
    s.delta[i, s.sources[i]] = 0
    s.value += s.delta.sum(axis=0)


CUDA = """
/* sigma counts shortest paths from the source; delta, level by level back, the share of
 * pairs whose paths go through a vertex.  value [n] adds up over sources. */
void init(Search &s) {
    if (s.thread() == 0) s.sigma[s.source] = 1;
}

void visit_vertex(Search &s, u32 u, u32 v) {
    if (s.level[v] == s.depth + 1) atomicAdd(&s.sigma[v], s.sigma[u]);
}

/* The array delta holds (1 + delta) / sigma of the levels that are done: delta of u is
 * sigma[u] times the sum of these over those that come after u. */
void end(Search &s) {
    for (u32 d = s.depth; d > 0; d--)
        s.each_sum(
            d,
            [&](u32, u32 w) { return s.level[w] == d + 1 ? s.delta[w] : 0.0; },
            [&](u32 v, double sum) {
                const double sigma = s.sigma[v], delta = sigma * sum;
                s.delta[v] = (1 + delta) / sigma;
                if (delta != 0) atomicAdd(&s.value[v], delta);
            });
}
"""

PROBLEM = Problem(
    "betweenness",
    (
        State("sigma", "float64", "pair", result=False),
        State("delta", "float64", "pair", result=False),
        State("value", "float64", "vertex"),
    ),
    {"init": begin, "visit_vertex": count_paths, "end": accumulate},
    CUDA,
)


REACHED = Problem(
    "reached",
    (State("reached", "int64", "search"), State("reached_from", "int64", "vertex")),
    bits=True,
)


def dependencies(part: Part, sources: Ids, options: RunOptions) -> Array:
    """Return the sum of the dependencies of sources on each vertex, float64 [n], by id.

    The kernel for CPUs computes it, except for sources from which the numbers of paths
    are too far apart. Raises MemoryError if memory is short and SearchStopped when
    ``options.stop`` returns True.
    """
    library = prepare("float64", part.nn.offsets.itemsize)
    threads, n = cc.thread_count(options.threads), part.local_count
    value, far = np.zeros(n, dtype=np.float64), np.zeros(n, dtype=np.uint8)
    numbers = part.numbers[sources]
    shares = max(min(threads, len(numbers)), 1)
    of_each = {
        **dict.fromkeys(("paths", "coef", "of_share"), (np.float64, n)),
        "level": (np.int32, n),
        "queue": (np.uint32, n + 1),
        **dict.fromkeys(("begins", "out", "into"), (np.int64, n + 2)),
        "scaled": (np.uint8, n + 2),
    }
    arrays = {
        name: np.empty((shares, size), dtype) for name, (dtype, size) in of_each.items()
    }
    task = structure(SOURCE, "sources", {"COUNT": "double", "EXACT": 0})(
        offsets=part.nn.offsets,
        columns=part.nn.columns,
        in_offsets=part.pulled.offsets,
        in_columns=part.pulled.columns,
        n=n,
        active=part.active,
        sparse=part.nn.edges < DENSE * part.active,
        value=value,
        far=far,
        sources=numbers,
        count=len(numbers),
        shares=shares,
        **arrays,
    )
    stopped = SearchStopped(f"{len(numbers)} searches were stopped")
    if options.stop is not None and options.stop():  # a short call does not ask
        raise stopped
    call = LongCall(library, options.stop, often=True)
    call(library.add_dependencies, ctypes.byref(task))
    if call.ended:
        raise stopped
    by_id = np.empty_like(value)
    by_id[part.vertices] = value
    if far.any():
        rest, walk = sources[far[numbers] > 0], NumpyWalk(part)
        by_id += run_batches(PROBLEM, walk, rest, options)[0]["value"]
    return by_id


def path_ends(searcher: Searcher, sources: Ids) -> Array:
    """Count the paths from sources that begin or end at each vertex, float64 [n].

    Pairs of a source and a vertex that it reaches count. Collective; all ranks get the
    result.
    """
    results = searcher.run(REACHED, sources)
    value: Array = results["reached_from"].astype(np.float64)
    value[sources] += results["reached"] - 2  # ends at a source itself do not count
    return value


def scaled(
    value: Array,
    sources: Ids,
    *,
    normalized: bool,
    directed: bool,
    endpoints: bool = False,
) -> Array:
    """Scale sums of dependencies, float64 [n], to betweenness.

    sources: int64 [k], distinct; endpoints: whether the sums include the ends of paths.
    With k < n sources, values are estimates, scaled as in NetworkX: without endpoints,
    searches from a source add nothing to its own value, so the betweenness of a single
    source is NaN. Without sources all values are 0.
    """
    n, k = len(value), len(sources)
    others = n if endpoints else n - 1
    if others < 2 or not k:
        return np.zeros(n)
    halves = 1 if directed else 2
    every = k == n
    pairs = others - 1 if normalized else halves / others
    of_others = 1 / ((others if every else k) * pairs)
    out = value * of_others
    if not every and not endpoints:
        out[sources] = value[sources] / ((k - 1) * pairs) if k > 1 else math.nan
    return out


def bounds(
    value: Array,
    sources: Ids,
    failure: float,
    *,
    normalized: bool,
    directed: bool,
    endpoints: bool = False,
) -> tuple[Array, Array]:
    """Return bounds of betweenness, from sums of the dependencies of some sources.

    Both float64 [n]. Each of N sources adds 0 to M: N = n - 1, since a vertex has no
    dependency of its own, and M = n - 2; with endpoints N = n and M = n - 1. The error
    of their mean is at most M t, with t as in ``sampling``; a bound fails with a
    probability of at most ``failure``. For other arguments, see ``scaled``.
    """
    n = len(value)
    others = n if endpoints else n - 1
    count, most = np.full(n, len(sources)), max(others - 1, 0)
    if not endpoints:
        count[sources] -= 1
    total = value * others / np.maximum(count, 1)
    off = others * most * deviation(count, others, failure)
    low = np.maximum(total - off, value)
    high = np.minimum(total + off, value + (others - count) * most)
    scale = partial(
        scaled,
        sources=np.arange(n),
        normalized=normalized,
        directed=directed,
        endpoints=endpoints,
    )
    return scale(low), scale(high)


def sums(searcher: Searcher, sources: Ids, *, endpoints: bool = False) -> Array:
    """Return the sum of the dependencies of sources, float64 [n] (collective).

    It is equal on all ranks. endpoints: whether the ends of paths count as lying on
    them. Raises UsageError if numbers of paths are too large for devices or for parts,
    or if devices hold the graph in parts and some of its edges are in host memory.
    """
    value = searcher.dependencies(sources)
    if value is None:
        value = searcher.run(PROBLEM, sources)["value"]
    if not np.isfinite(value).all():
        raise UsageError(
            "betweenness on devices, and over parts, counts at most 1.8e308 shortest "
            "paths between two vertices, and there are more; allowed: engine openmp or "
            "reference, with the whole graph on each rank (--divide sources)"
        )
    return value + path_ends(searcher, sources) if endpoints else value


def run(task: Task, *, normalized: bool, endpoints: bool, **asked: Any) -> Results:
    """Compute betweenness, or estimate it from samples."""
    searcher, n, sources = task.searcher, task.searcher.n, task.sources
    estimate, failure = requested(**asked), 0.0
    if estimate is not None:
        failure = estimate.failure(n)
        count = estimate.count(n if endpoints else n - 1, failure)
        sources = draw(task, estimate, count)
    pieces = task.pieces()
    total = pieces.run(
        PROBLEM,
        sources,
        lambda some: {"value": sums(searcher, some, endpoints=endpoints)},
    )["value"]
    facts = {"normalized": normalized, "endpoints": endpoints}
    ways = {**facts, "directed": searcher.directed}
    value = scaled(total, sources, **ways)
    facts |= pieces.facts()
    if estimate is not None:
        low, high = bounds(total, sources, failure, **ways)
        return estimate.results(task, sources, value, low, high, facts)
    return Results({"value": value}, {**facts, "largest": task.largest(value)})


@dataclass(frozen=True, kw_only=True)
class BetweennessOptions(Normalized, SampleOptions):
    """Options of betweenness.

    endpoints: Count the ends of paths as lying on them.
    """

    endpoints: bool = option(SEARCH, default=False)


APP = Application(
    "betweenness",
    "betweenness of each vertex, as NetworkX has it",
    run,
    BetweennessOptions,
    resumes=True,
)
