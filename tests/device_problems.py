"""Problems over many searches as CUDA text: each kind of state, and each function."""

import math
from collections import defaultdict
from dataclasses import replace
from unittest import mock

from distbfs.device import cuda
from distbfs.multisearch import cuda_problems
from distbfs.multisearch.apps.betweenness import PROBLEM as BETWEENNESS
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.cuda_problems import DeviceRunner
from distbfs.multisearch.problem import Problem, State

PROBLEMS = {
    "betweenness": BETWEENNESS,
    "closeness": Problem(
        "closeness",
        (State("reached", "uint32", "search"), State("far", "uint64", "search")),
        cuda="""
void prior(Search &s) {
    if (s.thread() == 0) s.reached += s.size, s.far += (u64)s.size * s.depth;
}
""",
    ),
    "eccentricity": Problem(
        "eccentricity",
        (
            State("eccentricity", "int32", "search"),
            State("reached", "uint32", "search"),
        ),
        cuda="""
void prior(Search &s) {
    if (s.thread() == 0) s.eccentricity = s.depth, s.reached += s.size;
}
""",
    ),
    "khop": Problem(
        "khop",
        (
            State("count", "uint32", "search"),
            State("hops", "uint32", "search", result=False),
        ),
        cuda="""
void prior(Search &s) {
    if (s.thread() == 0 && s.depth <= s.hops) s.count += s.size;
}
""",
    ),
    "paths": Problem(
        "paths",
        (State("deepest", "uint32", "search"),),
        cuda="""
void prior(Search &s) {
    if (s.thread() == 0) s.deepest = s.depth;
}
""",
    ),
    "reachability": Problem(
        "reachability",
        (State("reached", "uint8", "pair"),),
        cuda="""
void init(Search &s) {
    if (s.thread() == 0) s.reached[s.source] = 1;
}

void visit_vertex(Search &s, u32 u, u32 v) {
    if (!s.reached[v]) s.reached[v] = 1;
}
""",
    ),
}


def device_problem(name, hops=0):
    """Return a problem; hops: how far "khop" counts."""
    problem = PROBLEMS[name]
    states = [replace(s, fill=hops) if s.name == "hops" else s for s in problem.state]
    return replace(problem, state=tuple(states))


def run_problem(problem, graph, sources, *, levels=False, block=None, **options):
    """Return (results, also by pair of all searches, by name; the runner)."""
    pairs, mean = defaultdict(list), {256: math.inf, 1024: 0}

    def sink(_first, _last, arrays):
        for name, array in arrays.items():
            pairs[name].append(array)

    asked = RunOptions(**options)
    runner = DeviceRunner(problem, graph, sources, asked, sink, levels=levels)
    usual = cuda_problems.WIDE_MEAN
    with mock.patch.object(cuda_problems, "WIDE_MEAN", mean.get(block, usual)):
        found = runner.run()
    join = cuda.cupy().concatenate
    return found | {name: join(arrays) for name, arrays in pairs.items()}, runner
