"""Sevilmis, Sivri, Aydin: CS406 project, 2019: its figures and tables.

Engine openmp (methods push and hybrid) by threads, engines layer and frontier on a
device.  Speed-ups are over one thread of openmp by the same method, as in the paper.
The hybrid turns at n/32 vertices of the frontier, where n counts the vertices that have
edges, not all that have an id.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import figures

from distbfs.benchmark.roots import choose_roots
from distbfs.options import SearchOptions
from papers import plots
from papers.entries import (
    OPEN,
    Entry,
    Paper,
    Row,
    Rows,
    Verdict,
    drawn,
    published,
    verdict,
)
from papers.graphs import CS406

METHODS = ("push", "hybrid")
LAYER, FRONTIER = ("layer/push", "layer/hybrid"), ("frontier/push", "frontier/hybrid")
GRAPHS = tuple(CS406)
SERIAL = published(  # Table 1, seconds of one thread, the best speed-up over threads
    {
        "coPapers": (0.0564, 0.0411, 2.62326, 4.37234),
        "rmat-er": (3.7992, 1.3912, 6.218, 5.30183),
        "rmat-b": (2.5821, 0.5273, 6.22193, 3.88292),
        "europe": (1.6455, 1.5177, 2.58604, 2.285),
        "wiki": (0.2651, 0.0797, 5.1376, 2.98502),
    },
    *("push", "hybrid", "best_push", "best_hybrid"),
)
DEVICE = published(  # Tables 2 and 3, seconds on a GTX TITAN X
    {
        "coPapers": (0.055, 0.0036, 0.0096, 0.0044),
        "rmat-er": (0.1671, 0.0267, 0.2947, 0.11),
        "rmat-b": (0.1738, 0.1596, 0.2268, 0.0748),
        "europe": (10.7791, 10.7351, 0.5278, 0.5873),
        "wiki": (0.0322, 0.0231, 0.0332, 0.0199),
    },
    *(*LAYER, *FRONTIER),
)


def table_1(bench: Any, name: str) -> Row:
    """Measure openmp by threads, both methods taking turns; on the host alone."""
    source = bench.source("cs406", name)
    ways = {
        (method, many): SearchOptions("openmp", method, threads=many)
        for method in METHODS
        for many in bench.threads
    }
    sessions = figures.host_sessions(source, ways)
    first = next(iter(sessions.values()))
    roots = choose_roots(source.n, bench.roots, bench.seed, first.connected).tolist()
    taken: dict[Any, list[float]] = {way: [] for way in ways}
    for session in sessions.values():
        session.search(roots[0])
    began, rounds = time.perf_counter(), 0
    while not rounds or time.perf_counter() - began < bench.each:
        for root in roots:
            for way, session in sessions.items():
                taken[way].append(session.search(root).seconds)
            if rounds and time.perf_counter() - began > bench.each:
                break
        rounds += 1
    for session in sessions.values():
        session.close()
    return {
        "graph": name,
        "source": source.describe(),
        "published": SERIAL[name],
        "seconds": {
            method: {str(k): statistics.median(taken[method, k]) for k in bench.threads}
            for method in METHODS
        },
        "searches": len(next(iter(taken.values()))),
    }


def milliseconds(row: Row, method: str) -> dict[str, float]:
    """Return times by the number of threads."""
    return {many: 1e3 * x for many, x in row["seconds"][method].items()}


def gains(row: Row, method: str) -> dict[str, float]:
    """Return speed-ups over one thread by the number of threads."""
    seconds = row["seconds"][method]
    first = next(iter(seconds.values()))
    return {many: first / x for many, x in seconds.items()}


def judge_table_1(rows: Rows) -> Verdict:
    these, words = rows["table 1"], []
    good = True
    for row in these:
        best = {method: max(gains(row, method).values()) for method in METHODS}
        one = [next(iter(row["seconds"][method].values())) for method in METHODS]
        good &= one[1] < one[0] and min(best.values()) > 1
        words.append(f"{row['graph']} {best['push']:.1f} and {best['hybrid']:.1f}")
    most = max(map(int, these[0]["seconds"]["push"]))
    told = f"best speed-ups up to {most} threads, push and hybrid: {', '.join(words)}"
    return verdict(good, told)


def over_threads(
    value: Callable[[Row, str], dict[str, float]], label: str, *, log: bool = False
) -> Callable[[Any, Rows], None]:
    """Return a function that draws a value over threads: a panel per method."""

    def draw(figure: Any, rows: Rows) -> None:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, method in zip(panels, METHODS, strict=True):
            series = {}
            for row in rows["table 1"]:
                points = value(row, method)
                series[row["graph"]] = ([int(x) for x in points], list(points.values()))
            scale = "xy" if log else "x"
            plots.lines(axes, series, f"threads, {method}", label, log=scale)

    return draw


def efficiency(row: Row, method: str) -> dict[str, float]:
    """Return speed-ups over the number of threads."""
    return {many: x / int(many) for many, x in gains(row, method).items()}


def judge_figure_2(rows: Rows) -> Verdict:
    ahead = [
        row["graph"]
        for row in rows["table 1"]
        if all(
            row["seconds"]["hybrid"][k] < row["seconds"]["push"][k]
            for k in row["seconds"]["push"]
        )
    ]
    every = len(rows["table 1"])
    told = f"hybrid is ahead at every number of threads on {len(ahead)} of {every}"
    return verdict(len(ahead) == every, told)


def judge_figure_3(rows: Rows) -> Verdict:
    good, words = True, []
    for row in rows["table 1"]:
        points = list(gains(row, "push").values())
        good &= points[-1] > points[0]
        words.append(f"{row['graph']} {points[-1]:.2f}")
    return verdict(good, f"speed-up of push at the most threads: {', '.join(words)}")


def judge_figure_4(rows: Rows) -> Verdict:
    higher = []
    for row in rows["table 1"]:
        last = [list(efficiency(row, method).values())[-1] for method in METHODS]
        higher.append(last[0] > last[1])
    told = (
        f"push is more efficient at the most threads on {sum(higher)} of {len(higher)}"
    )
    return verdict(2 * sum(higher) > len(higher), told)


def on_device(ways: tuple[str, ...]) -> Callable[[Any, str], Row]:
    """Return a function that measures two engines of a device on a graph."""

    def measure(bench: Any, name: str) -> Row:
        row = bench.engines("cs406", name, ways)
        told = {way: DEVICE[name][way] for way in ways}
        return row | {"published_seconds": told}

    return measure


def judge_hybrid(table: str, ways: tuple[str, str]) -> Callable[[Rows], Verdict]:
    """Return a judge of whether hybrid is ahead of push where it is in the paper."""

    def judge(rows: Rows) -> Verdict:
        alike, words = True, []
        for row in rows[table]:
            gain = row["seconds"][ways[0]] / row["seconds"][ways[1]]
            told = row["published_seconds"]
            paper = told[ways[0]] / told[ways[1]]
            alike &= (gain > 1) == (paper > 1)
            words.append(f"{row['graph']} {gain:.2f} (paper {paper:.2f})")
        return verdict(alike, f"push over hybrid: {', '.join(words)}")

    return judge


def device_times(rows: Rows) -> dict[str, dict[str, float]]:
    """Return seconds by way and graph, of both tables."""
    times: dict[str, dict[str, float]] = {}
    for table in ("table 2", "table 3"):
        for row in rows[table]:
            for way, x in row["seconds"].items():
                times.setdefault(way, {})[row["graph"]] = x
    return times


def device_gains(rows: Rows) -> dict[str, dict[str, float]]:
    """Return speed-ups over one thread by way and graph, where both were measured."""
    serial = {row["graph"]: row for row in rows["table 1"]}
    return {
        way: {
            name: next(iter(serial[name]["seconds"][way.partition("/")[2]].values()))
            / x
            for name, x in by_graph.items()
            if name in serial
        }
        for way, by_graph in device_times(rows).items()
    }


def names_in(series: dict[str, dict[str, float]]) -> list[str]:
    return [name for name in GRAPHS if any(name in x for x in series.values())]


def draw_by_graph(
    make: Callable[[Rows], dict[str, dict[str, float]]], label: str, factor: float = 1
) -> Callable[[Any, Rows], None]:
    """Return a function that draws bars by graph and way."""

    def draw(figure: Any, rows: Rows) -> None:
        series = make(rows)
        names = names_in(series)
        by_way = {
            way: [x[name] * factor if name in x else None for name in names]
            for way, x in series.items()
        }
        plots.bars(figure.subplots(), names, by_way, label, log=True)

    return draw


def judge_figure_5(rows: Rows) -> Verdict:
    times = device_times(rows)
    europe = [times[way].get("europe") for way in (LAYER[0], FRONTIER[0])]
    if None in europe:
        return Verdict(OPEN, "europe was not measured")
    gain = europe[0] / europe[1]
    told = f"on europe frontier is {gain:.1f} times as fast as layer (paper 20.4)"
    return verdict(gain > 1, told)


def judge_figure_6(rows: Rows) -> Verdict:
    best = device_gains(rows)
    words = [f"{way} {max(x.values(), default=0):.0f}" for way, x in best.items()]
    paper = "paper: layer/hybrid 52 on rmat-er"
    good = all(max(x.values(), default=0) > 1 for x in best.values())
    return verdict(
        good, f"highest speed-ups over a thread: {', '.join(words)} ({paper})"
    )


def all_gains(rows: Rows) -> dict[str, dict[str, float]]:
    """Return the best speed-up over threads, and those of the device."""
    host = {
        f"openmp/{method}": {
            row["graph"]: max(gains(row, method).values()) for row in rows["table 1"]
        }
        for method in METHODS
    }
    return host | device_gains(rows)


def judge_figure_7(rows: Rows) -> Verdict:
    series = all_gains(rows)
    ahead = [
        name
        for name in names_in(device_times(rows))
        if max(series[w].get(name, 0.0) for w in (*LAYER, *FRONTIER))
        > max(series[f"openmp/{m}"].get(name, 0.0) for m in METHODS)
    ]
    every = len(names_in(device_times(rows)))
    told = f"a device is ahead of all threads on {len(ahead)} of {every} graphs"
    return verdict(len(ahead) == every, told)


# fmt: off
PAPER = Paper(
    "cs406",
    "Sevilmis, Sivri, Aydin: Parallelization of BFS, CS406 project, 2019",
    (
        Entry("table 1", "openmp by threads: times, speed-ups, efficiency",
            "speed-ups of 2.3 to 6.2 with 8 or 16 threads; hybrid faster in all",
            graphs=GRAPHS, measure=table_1, judge=judge_table_1, value=4, device=False),
        Entry("table 2", "layer-based searches on a device",
            "hybrid ahead of push on all graphs, up to 52 times one thread",
            graphs=GRAPHS, measure=on_device(LAYER),
            judge=judge_hybrid("table 2", LAYER), value=3),
        Entry("table 3", "frontier-based searches on a device",
            "hybrid ahead of push but on europe, where it is slower by 10 %",
            graphs=GRAPHS, measure=on_device(FRONTIER),
            judge=judge_hybrid("table 3", FRONTIER), value=3),
        Entry("figure 2", "times by threads, top-down and hybrid",
            "hybrid takes less time at every number of threads", rows_of=("table 1",),
            judge=judge_figure_2,
            draw=over_threads(milliseconds, "ms a search", log=True),
            size=(9, 4), device=False),
        Entry("figure 3", "speed-ups by threads",
            "they grow to 16 threads but on europe and wiki", rows_of=("table 1",),
            judge=judge_figure_3, draw=over_threads(gains, "speed-up over one thread"),
            size=(9, 4), device=False),
        Entry("figure 4", "parallel efficiency by threads",
            "higher for top-down than for hybrid", rows_of=("table 1",),
            judge=judge_figure_4, draw=over_threads(efficiency, "efficiency"),
            size=(9, 4), device=False),
        Entry("figure 5", "times on the device, by graph",
            "frontier far ahead of layer on europe, which has thousands of levels",
            rows_of=("table 2", "table 3"), judge=judge_figure_5,
            draw=draw_by_graph(device_times, "ms a search", 1e3)),
        Entry("figure 6", "speed-ups on the device over one thread",
            "above 1 but for layer on europe; the highest is layer, hybrid on rmat-er",
            rows_of=("table 1", "table 2", "table 3"), judge=judge_figure_6,
            draw=draw_by_graph(device_gains, "speed-up over one thread")),
        Entry("figure 7", "speed-ups of threads and device beside each other",
            "the device is ahead of 16 threads on all graphs but europe",
            rows_of=("table 1", "table 2", "table 3"), judge=judge_figure_7,
            draw=draw_by_graph(all_gains, "speed-up over one thread")),
        *drawn("figure 1"),
    ),
)
# fmt: on
