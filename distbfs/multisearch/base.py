"""Options and results of a run of a problem, and checks of both.

``State`` lists the states that the traversal itself keeps. Problems with ``bits``
declare no others.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distbfs.errors import DistbfsError, OutOfMemory, TooDeep, UsageError
from distbfs.multisearch.problem import FUNCTIONS, Problem, State
from distbfs.options import (
    ADVANCED,
    DEVICES,
    MOST_THREADS,
    SEARCH,
    check_choice,
    check_declared,
    check_range,
    depth_limit,
    option,
)
from distbfs.plan.memory import may_fill, readable
from distbfs.types import Array, Ids, Stop

KEPT = {
    "level": ("pair", "iu"),
    "reachable": ("pair", "bu"),
    "reached": ("search", "i"),
    "depth": ("search", "i"),
    "distance": ("search", "i"),
    "harmonic": ("search", "f"),
    "count": ("level", "i"),
    "reached_from": ("vertex", "i"),
    "distance_from": ("vertex", "i"),
    "harmonic_from": ("vertex", "f"),
}
SUMS = {  # per vertex, with the dtype that a traversal adds in
    name: {"i": "int64", "f": "float64"}[kinds]
    for name, (per, kinds) in KEPT.items()
    if per == "vertex"
}
MOST = {"int8": 126, "int16": (1 << 15) - 1, "int32": (1 << 31) - 1}
RESERVED = {"n", "sources", "first", "depth_now", "frontiers", "backwards"}
BATCH_BYTES = 1 << 30
WAYS = ("auto", "sources", "parts")
BITS = "bits"  # the method of bit-parallel traversals


@dataclass(frozen=True)
class RunOptions:
    """Options of the run of a problem.

    depth: the last level to search; None: search all levels
    memory: most bytes for a batch
    stop: function that is called between levels, or at least between batches; if it
    returns true, the run raises SearchStopped

    method: Variant of the engine; xbfs has hybrid, warp, work-efficient and
        edge-parallel.
    threshold: Degree from which a warp searches a vertex (method hybrid of xbfs).
    batch: Searches at once; 0: as many as memory allows.
    threads: Threads per rank; 0: this rank's share of the cores.
    device_memory: Memory of each device for a graph and its searches, such as 40GiB;
        neighbours that do not fit there go to host memory.  [what is free]
    host_memory: Memory of a host for the neighbours that do not fit on its devices.
        [what this process may use]
    """

    method: str = option(SEARCH, default="")
    threshold: int | str = option(ADVANCED, default="auto", kind=str, metavar="T|auto")
    batch: int = option(ADVANCED, default=0, low=0)
    threads: int = option(DEVICES, default=0, low=0, high=MOST_THREADS)
    depth: int | None = None
    memory: int = option("", default=BATCH_BYTES, low=1)
    device_memory: int | None = option(DEVICES, low=1, kind="bytes", metavar="BYTES")
    host_memory: int | None = option(DEVICES, low=1, kind="bytes", metavar="BYTES")
    stop: Stop | None = None

    def __post_init__(self) -> None:
        if self.threshold != "auto":
            if not isinstance(self.threshold, int):
                raise UsageError(
                    f"threshold is '{self.threshold}'; allowed: auto, 0 or more"
                )
            check_range("threshold", self.threshold, 0)
        check_declared(self)
        object.__setattr__(self, "depth", depth_limit("depth", self.depth))


@dataclass
class Results:
    """The results of a problem: arrays by name, and facts about its run.

    Attributes
    ----------
    values : dict of str to ndarray
        Shapes (k,), (n,), (k, n) or (k, levels) in host memory, by vertex id.
        ``finalize`` may have added others.
    facts : dict
        JSON values, such as the runner, the method, and numbers of batches and levels.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 1], [1, 2])
    >>> results = distbfs.search_many(graph, "eccentricity", None, "reference")
    >>> results["value"], results.facts["diameter"]
    (array([2, 1, 2], dtype=int32), 2)
    """

    values: dict[str, Array]
    facts: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        """Return a result by name; UsageError if there is none."""
        if name not in self.values:
            names = ", ".join(self.values) or "none"
            raise UsageError(f"there is no result '{name}'; there are: {names}")
        return self.values[name]


def check_sources(sources: Ids, n: int, what: str = "source") -> None:
    """Raise UsageError about ``what`` unless all ids, int64 [k], are vertices."""
    outside = sources[(sources < 0) | (sources >= n)]
    if len(outside):
        allowed = f"allowed: 0 to {n - 1}" if n else "the graph has none"
        raise UsageError(f"{what} {outside[0]} is not a vertex; {allowed}")


def check_problem(problem: Problem) -> None:
    """Raise UsageError for a contradictory problem."""
    where = f"problem {problem.name}"
    for name, function in problem.functions.items():
        if name not in FUNCTIONS:
            allowed = ", ".join(FUNCTIONS)
            raise UsageError(f"{where}: function '{name}'; allowed: {allowed}")
        if not callable(function):
            raise UsageError(f"{where}: {name} is a {type(function).__name__}")
    seen: set[str] = set()
    for state in problem.state:
        if state.name in seen:
            raise UsageError(f"{where}: state {state.name} is declared twice")
        seen.add(state.name)
        _check_state(where, state)
    if problem.bits and (problem.functions or seen - set(KEPT)):
        names = ", ".join(KEPT)
        raise UsageError(
            f"{where}: bits is for problems without functions whose state is among "
            f"{names}"
        )


def _check_state(where: str, state: State) -> None:
    """Raise UsageError unless a state has a name, a dtype and a shape."""
    if not state.name.isidentifier() or state.name in RESERVED:
        raise UsageError(f"{where}: '{state.name}' cannot be the name of a state")
    try:
        kind = np.dtype(state.dtype)
    except TypeError as error:
        raise UsageError(
            f"{where}: state {state.name}: '{state.dtype}' is not a dtype"
        ) from error
    if kind.kind not in "biuf":
        raise UsageError(
            f"{where}: state {state.name} is {kind}; allowed: numbers and bool"
        )
    if state.name in KEPT:
        per, kinds = KEPT[state.name]
        if state.per != per or kind.kind not in kinds:
            raise UsageError(
                f"{where}: {state.name} is kept by the traversal per {per}, not as "
                f"{kind} per {state.per}"
            )
        if state.name == "level":
            check_choice(f"{where}: dtype of level", kind.name, tuple(MOST))
    elif state.per not in ("search", "vertex", "pair"):
        raise UsageError(
            f"{where}: state {state.name} is per '{state.per}'; allowed: search, "
            "vertex, pair"
        )


def level_dtype(deepest: int) -> np.dtype[Any]:
    """Return the narrowest dtype of levels."""
    return np.dtype(next(name for name, most in MOST.items() if deepest <= most))


def check_depth(depth: int, dtype: str) -> None:
    """Raise UsageError if levels up to ``depth`` do not fit a dtype."""
    most = MOST[np.dtype(dtype).name]
    if depth > most:
        raise TooDeep(
            f"level {depth} does not fit {np.dtype(dtype)}, which ends at {most}"
        )


def check_results(shape: tuple[int, int], dtype: Any) -> None:
    """Raise OutOfMemory for results of searches that this machine cannot hold.

    shape: number of searches, and of values of each
    """
    (count, width), (room, of_all) = shape, may_fill()
    need = count * width * np.dtype(dtype).itemsize
    if need > room:
        raise OutOfMemory(
            f"the results of {count} searches, {width} values of {np.dtype(dtype)} "
            f"each, take {readable(need)}, and results may fill "
            f"{readable(room)} ({of_all}); allowed: fewer sources at a time, or "
            "distbfs multisearch, which writes a file row by row"
        )


def call(problem: Problem, name: str, *values: Any) -> None:
    """Call a problem's function if it has it; an error names the function and line."""
    function = problem.functions.get(name)
    if function is None:
        return
    try:
        function(*values)
    except (DistbfsError, MemoryError):
        raise
    except Exception as error:
        raise UsageError(
            f"problem {problem.name}: {name} failed: {located(function, error)}"
        ) from error


def located(function: Callable[..., Any], error: Exception) -> str:
    """Describe an error of a user's function in one line: file, line, error."""
    own = getattr(getattr(function, "__code__", None), "co_filename", None)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == own]
    where = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    text = " ".join(str(error).split())
    return f"{where}{type(error).__name__}: {text}" if text else type(error).__name__
