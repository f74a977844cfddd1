"""Applications of many searches, by Python on one rank and by commands on all."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import distbfs
from trials.checker import Truth, Wrong, close, equal
from trials.files import Written
from trials.shapes import draw_graph
from trials.stores import make_store, name_in, places
from trials.trial import Trial

MOST = 120  # vertices, as all of them are searched from in Python


def run(trial: Trial) -> None:
    """Make a graph and run a few applications on it."""
    if trial.world.size == 1 and trial.chance(0.6):
        truth = draw_graph(trial, most=MOST)
        ends = truth.pairs[:, 0], truth.pairs[:, 1]
        graph = distbfs.Graph.from_edges(*ends, n=truth.n, directed=truth.directed)
        for _ in range(1 + trial.below(4)):
            trial.choose(*CALLS)(trial, truth, graph, trial.choose(*ENGINES))
            trial.searches += 1
        return
    made, store, _ = make_store(trial, most=MOST)
    for _ in range(1 + trial.below(3)):
        command(trial, made, store)


ENGINES = ("auto", "openmp", "reference")


def table(truth: Truth, sources: list[int]) -> np.ndarray:
    """Return the levels of searches, int64 [k, n]."""
    rows = [truth.levels(source) for source in sources]
    return np.array(rows, dtype=np.int64).reshape(len(sources), truth.n)


def chosen(trial: Trial, n: int) -> list[int] | None:
    """Return some sources, perhaps twice, or None for all."""
    return None if not n or trial.chance(0.5) else trial.vertices(n, 6)


def simple_neighbours(truth: Truth) -> list[list[int]]:
    """Return the neighbours of each vertex, each once and without the vertex."""
    return [sorted(set(near) - {u}) for u, near in enumerate(truth.neighbours)]


def betweenness(truth: Truth, normalized: bool) -> np.ndarray:
    """Return betweenness by Brandes's algorithm (2001)."""
    n, near = truth.n, simple_neighbours(truth)
    total = np.zeros(n)
    for source in range(n):
        paths, level = [0.0] * n, [-1] * n
        before: list[list[int]] = [[] for _ in range(n)]
        paths[source], level[source] = 1.0, 0
        queue, order = deque([source]), []
        while queue:
            u = queue.popleft()
            order.append(u)
            for v in near[u]:
                if level[v] < 0:
                    level[v] = level[u] + 1
                    queue.append(v)
                if level[v] == level[u] + 1:
                    paths[v] += paths[u]
                    before[v].append(u)
        share = [0.0] * n
        for v in reversed(order):
            for u in before[v]:
                share[u] += paths[u] / paths[v] * (1 + share[v])
            if v != source:
                total[v] += share[v]
    if n < 3:
        return np.zeros(n)
    if normalized:
        return total / ((n - 1) * (n - 2))
    return total if truth.directed else total / 2


def closeness(truth: Truth, sources: list[int], normalized: bool) -> np.ndarray:
    """Return closeness of sources, by distances to them; NaN for other vertices."""
    out = np.full(truth.n, math.nan)
    for source in sources:
        level = truth.turned().levels(source)
        reached = level[level >= 0]
        others, total = len(reached) - 1, int(reached.sum())
        value = others / total if total else 0.0
        if normalized and truth.n > 1:
            value *= others / (truth.n - 1)
        out[source] = value
    return out


def harmonic(truth: Truth, sources: list[int]) -> np.ndarray:
    """Return harmonic centrality of sources; NaN for other vertices."""
    out = np.full(truth.n, math.nan)
    for source in sources:
        level = truth.turned().levels(source)
        out[source] = (1 / level[level > 0]).sum()
    return out


def eccentricity(truth: Truth, sources: list[int]) -> np.ndarray:
    """Return how far the farthest vertex in reach of each source is, -1 for others."""
    out = np.full(truth.n, -1)
    for source in sources:
        out[source] = truth.levels(source).max()
    return out


def within(truth: Truth, sources: list[int], hops: int | None) -> np.ndarray:
    """Return the vertices within 0, 1, … hops of sources; n hops are no limit."""
    levels = table(truth, sources)
    free = hops is None or hops >= truth.n
    deepest = int(levels.max(initial=0)) if free else hops
    counts = [((levels >= 0) & (levels <= k)).sum(axis=1) for k in range(deepest + 1)]
    return np.stack(counts, axis=1)


def check_extremes(truth: Truth, extremes: dict[str, Any]) -> None:
    """Raise Wrong unless radius and diameter are those of a largest component."""
    levels = table(truth, list(range(truth.n)))
    sizes = (levels >= 0).sum(axis=1)
    most = int(sizes.max(initial=0))
    ends = set()
    for vertex in np.flatnonzero(sizes == most).tolist():
        far = levels[levels[vertex] >= 0].max(axis=1)
        ends.add((int(far.min()), int(far.max())))
    radius_and_diameter = extremes["radius"], extremes["diameter"]
    if radius_and_diameter not in (ends or {(None, None)}):
        raise Wrong(
            "extremes", f"radius and diameter {radius_and_diameter}, not {sorted(ends)}"
        )
    equal("extremes", extremes["vertices"], most, "vertices of the component")
    equal("extremes", extremes["connected"], most == truth.n, "connected")


def call_lengths(trial: Trial, truth: Truth, graph: Any, engine: str) -> None:
    """Look at path lengths of every dtype."""
    sources = chosen(trial, truth.n)
    dtype = trial.choose("auto", "auto", "int8", "int16", "int32")
    wanted = table(truth, list(range(truth.n)) if sources is None else sources)
    if dtype == "int8" and wanted.max(initial=0) > 126:
        return
    lengths = distbfs.path_lengths(graph, sources, dtype, engine=engine)
    check_lengths(lengths, wanted, dtype)


def check_lengths(lengths: np.ndarray, wanted: np.ndarray, dtype: str) -> None:
    """Raise Wrong unless lengths of a dtype are right."""
    if dtype != "auto":
        equal("form", lengths.dtype, np.dtype(dtype), "lengths")
    close("level", lengths.astype(np.int64), wanted, "lengths")


def call_reachable(trial: Trial, truth: Truth, graph: Any, engine: str) -> None:
    """Look at whether pairs are linked."""
    count = trial.below(8) if truth.n else 0
    pairs = trial.rng.integers(0, max(truth.n, 1), (count, 2)).tolist()
    wanted = [bool(truth.levels(u)[v] >= 0) for u, v in pairs]
    reached = distbfs.reachable(graph, pairs, engine=engine)
    equal("level", reached.tolist(), wanted, f"reachable {pairs}")


def call_betweenness(trial: Trial, truth: Truth, graph: Any, engine: str) -> None:
    """Look at betweenness from all sources."""
    normalized = trial.chance(0.5)
    scores = distbfs.betweenness(graph, normalized=normalized, engine=engine)
    close("betweenness", scores, betweenness(truth, normalized), engine)


def call_closeness(trial: Trial, truth: Truth, graph: Any, engine: str) -> None:
    """Look at closeness."""
    sources, normalized = chosen(trial, truth.n), trial.chance(0.5)
    wanted = closeness(truth, every(truth, sources), normalized)
    scores = distbfs.closeness(graph, sources, normalized=normalized, engine=engine)
    close("closeness", scores, wanted, engine)


def call_harmonic(trial: Trial, truth: Truth, graph: Any, engine: str) -> None:
    """Look at harmonic centrality."""
    sources = chosen(trial, truth.n)
    scores = distbfs.harmonic(graph, sources, engine=engine)
    close("harmonic", scores, harmonic(truth, every(truth, sources)), engine)


def call_eccentricity(trial: Trial, truth: Truth, graph: Any, engine: str) -> None:
    """Look at eccentricities."""
    sources = chosen(trial, truth.n)
    eccentricities = distbfs.eccentricity(graph, sources, engine=engine)
    close(
        "eccentricity",
        eccentricities,
        eccentricity(truth, every(truth, sources)),
        engine,
    )


def call_diameter(_: Trial, truth: Truth, graph: Any, engine: str) -> None:
    """Look at radius and diameter."""
    if not truth.directed:
        facts = distbfs.search_many(graph, "diameter", None, engine).facts
        check_extremes(truth, facts)


def call_within(trial: Trial, truth: Truth, graph: Any, engine: str) -> None:
    """Look at how many vertices are within hops."""
    sources = chosen(trial, truth.n)
    hops = trial.choose(None, None, 0, 1, 2, 7)
    counts = distbfs.within_hops(graph, sources, hops, engine=engine)
    if truth.n:
        close("khop", counts, within(truth, every(truth, sources), hops), engine)


CALLS: tuple[Callable[..., None], ...] = (
    *(call_lengths, call_reachable, call_betweenness, call_closeness),
    *(call_harmonic, call_eccentricity, call_diameter, call_within),
)


def every(truth: Truth, sources: list[int] | None) -> list[int]:
    """Return the sources that are meant."""
    return list(range(truth.n)) if sources is None else sources


def command(trial: Trial, made: Written, store: Path) -> None:
    """Run an application by its command and look at its file."""
    truth = made.truth
    apps = ["apsp", "reachability", "betweenness", "closeness", "harmonic", "khop"]
    apps.append("eccentricity")
    app = trial.choose(*apps, *([] if truth.directed else ["diameter"]))
    out = trial.folder / f"{app}.h5"
    words: list[Any] = ["multisearch", app, store, "-o", out, "--force", "--json"]
    if app == "diameter":
        words = ["multisearch", app, store, "--json"]
    engine = trial.choose(*ENGINES)
    words += ["--engine", engine, "--threads", 1 + trial.below(2)]
    words += ["--batch", trial.choose(0, 0, 1, 3)]
    if not truth.directed:
        ways = ("auto", "sources") if app == "betweenness" else ("auto", "parts")
        if engine == "reference":  # it searches wholes
            ways = ("auto", "sources")
        words += ["--divide", trial.choose("sources", *ways)]
    sources = None if app in ("diameter", "betweenness") else chosen(trial, truth.n)
    pairs = trial.rng.integers(0, truth.n, (1 + trial.below(6), 2)).tolist()
    normalized, hops = trial.chance(0.5), trial.choose(None, 0, 2, 5)
    if app == "reachability":
        lines = [f"{name_in(made, u)}\t{name_in(made, v)}\n" for u, v in pairs]
        words += ["--pairs", trial.write("pairs", "".join(lines).encode())]
        sources = None
    elif sources is not None:
        sources = list(dict.fromkeys(sources))
        lines = [f"{name_in(made, s)}\n" for s in sources]
        words += ["--sources", trial.write("sources", "".join(lines).encode())]
    if app in ("betweenness", "closeness"):
        words += ["--normalized" if normalized else "--no-normalized"]
    if app == "khop" and hops is not None:
        words += ["--hops", hops]
    done = trial.good(*words)

    asked = Asked(app, every(truth, sources), pairs, normalized, hops)
    if app == "diameter":
        trial.check(lambda: check_extremes(truth, done.values["found"]))
    else:
        trial.check(lambda: check_file(made, out, asked))


@dataclass
class Asked:
    """The requested run of an application."""

    app: str
    sources: list[int]
    pairs: list[list[int]]
    normalized: bool
    hops: int | None


def check_file(made: Written, path: Path, asked: Asked) -> None:
    """Raise Wrong unless the file of an application is right."""
    truth, app, order = made.truth, asked.app, asked.sources
    with h5py.File(path) as file:
        place = places(made, file)
        held = {name: file[name][:] for name in file if name != "ids"}
    if app == "reachability":
        wanted = [int(truth.levels(u)[v] >= 0) for u, v in asked.pairs]
        equal("level", held["reachable"].tolist(), wanted, f"{asked.pairs}")
        ends = place[np.array(asked.pairs)].tolist()
        equal("form", held["pair"].tolist(), ends, "pairs")
        return
    if app in ("apsp", "khop"):
        back = {int(at): vertex for vertex, at in enumerate(place)}
        order = [back[int(at)] for at in held["sources"]]
        equal("form", sorted(order), sorted(asked.sources), "sources")
    if app == "apsp":
        check_lengths(held["level"][:, place], table(truth, order), "auto")
    elif app == "khop":
        close("khop", held["within"], within(truth, order, asked.hops), "khop")
    else:
        values = {
            "betweenness": lambda: betweenness(truth, asked.normalized),
            "closeness": lambda: closeness(truth, order, asked.normalized),
            "harmonic": lambda: harmonic(truth, order),
            "eccentricity": lambda: eccentricity(truth, order),
        }
        close(app, held["value"][place], values[app](), app)
