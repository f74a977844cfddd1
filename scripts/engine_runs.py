"""Shared by the scripts that compare engines on one device.

Engines take turns, root by root; a limit of seconds a graph keeps a run short: every
engine searches at least once, then rounds continue while there is time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import figures
import numpy as np

from distbfs import registry
from distbfs.benchmark.statistics import rate_statistics
from distbfs.device import cuda
from distbfs.engines.base import WholeSearch
from distbfs.errors import ResourceError, ValidationError
from distbfs.generate.cuda import DeviceTuples, device_tuples
from distbfs.options import Knobs, SearchOptions
from distbfs.partition.share import Share
from distbfs.search.graph_input import HeldTuples
from distbfs.types import TupleSource
from distbfs.validation.cuda import validate_on_device

SECONDS = 10.0  # a graph
SMALL_SECONDS = 0.3  # --small
SMALLER = 64  # --small: fewer vertices by this factor
Make = Callable[[int], TupleSource]  # takes the divisor of the number of vertices


def scaled(kind: Any, scale: int, factor: int) -> Make:
    """Return a function that creates a graph of 2^scale vertices."""
    return lambda less: kind(scale - less.bit_length() + 1, factor)


def arguments(
    description: str | None, graphs: Mapping[str, Any], *, roots: int = 8
) -> argparse.ArgumentParser:
    """Return a parser with the common options of these scripts."""
    parser = figures.arguments(description, roots=roots)
    parser.add_argument(
        "--graphs", nargs="+", choices=list(graphs), default=list(graphs)
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="a graph")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the arguments; --small shortens the run."""
    args = parser.parse_args()
    if args.small:
        args.seconds = min(args.seconds, SMALL_SECONDS)
    return args


def made(graphs: Mapping[str, Make], args: Any) -> Iterator[tuple[str, TupleSource]]:
    """Yield the requested graphs, as tuples."""
    for name in args.graphs:
        yield name, graphs[name](SMALLER if args.small else 1)


def options_of(text: str) -> SearchOptions:
    """Return options from ``ENGINE[/METHOD[/DIRECTION[/KNOBS]]]``."""
    engine, method, direction, knobs = (text.split("/") + [""] * 3)[:4]
    more = {"knobs": Knobs.parse(knobs)} if knobs else {}
    direction = direction or "auto"
    return SearchOptions.named(
        engine=engine, method=method, direction=direction, **more
    )


def prepared(graph: Share, options: SearchOptions) -> WholeSearch:
    """Prepare a search; ``auto`` uses xbfs, as --engine auto does."""
    if options.engine == "auto":
        options = replace(options, engine="xbfs")
    kind = registry.lookup(registry.ENGINES, "engine", options.engine)
    search: WholeSearch = kind(options).on_graph(graph)
    return search


def searches_of(
    graph: Share, ways: Sequence[str]
) -> tuple[dict[str, WholeSearch], dict[str, str]]:
    """Return the searches by name, and why others are missing."""
    searches: dict[str, WholeSearch] = {}
    missing: dict[str, str] = {}
    for name in ways:
        add_search(searches, missing, graph, name)
    return searches, missing


def add_search(
    searches: dict[str, WholeSearch],
    missing: dict[str, str],
    graph: Share,
    name: str,
) -> None:
    """Prepare one search, or record why it cannot run."""
    try:
        searches[name] = prepared(graph, options_of(name))
    except ResourceError as error:
        missing[name] = str(error)


def made_once(source: TupleSource) -> DeviceTuples:
    """Return tuples that validations read many times; the host makes none twice."""
    tuples = device_tuples(source)
    if tuples.generated:
        return tuples
    u, v = (cuda.cupy().empty(source.tuples, dtype=tuples.dtype) for _ in "uv")
    tuples.fill(0, source.tuples, u, v)
    return device_tuples(HeldTuples(u, v, source.n))


def run(
    searches: Mapping[str, WholeSearch],
    roots: Sequence[int],
    seconds: float,
    tuples: TupleSource | None = None,
) -> dict[str, dict[str, Any]]:
    """Search from roots, engines taking turns; return the figures of each.

    tuples: of the graph; the first search of each engine and root is then validated,
    outside of the time.  Raises ValidationError.
    """
    on_device = None if tuples is None else made_once(tuples)
    taken: dict[str, dict[int, list[float]]] = {name: {} for name in searches}
    levels, edges = 0, {}
    for search in searches.values():
        search.search(roots[0])
    spent, rounds = 0.0, 0
    while not rounds or spent < seconds:
        for k, root in enumerate(roots):
            if (k or rounds) and spent >= seconds:
                break
            names = list(searches)
            turn = (k + rounds) % len(names)
            for name in [*names[turn:], *names[:turn]]:
                began = time.perf_counter()
                result = searches[name].search(root)
                spent += time.perf_counter() - began
                levels = max(levels, result.levels)
                if root not in taken[name] and on_device is not None:
                    parent = result.parent
                    said = validate_on_device(on_device, root, result.level, parent)
                    if not said.valid:
                        errors = "; ".join(said.errors)
                        raise ValidationError(f"{name}, root {root}: {errors}")
                    edges[root] = said.nedge
                taken[name].setdefault(root, []).append(result.seconds)
        rounds += 1
    errors = {}
    for name, by_root in taken.items():
        times = [x for one in by_root.values() for x in one]
        medians = [statistics.median(one) for one in by_root.values()]
        low, middle, high = np.quantile(times, [0.25, 0.5, 0.75]).tolist()
        errors[name] = {
            "median_seconds": statistics.median(medians),
            "quartile_seconds": [low, high],
            "all_median_seconds": middle,
            "searches": len(times),
            "levels": levels,
        }
        if edges:
            rate = rate_statistics([edges[root] for root in by_root], medians)
            errors[name]["harmonic_mean_GTEPS"] = rate["harmonic_mean"] / 1e9
    return errors


def about(graph: Share, name: str) -> dict[str, Any]:
    """Return the row's description of its graph."""
    return {
        "graph": name,
        "source": graph.source,
        "n": graph.n,
        "active": graph.active,
        "m": graph.m,
    }
