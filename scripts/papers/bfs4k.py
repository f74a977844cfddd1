"""Busato, Bombieri: BFS-4K, IEEE TPDS 2015: its figures and tables.

Engine bfs4k stands for the paper by method ``hash``, pushing, as published; ``claim``
is ours.  Times are of levels and parents in input ids, the paper's of its own program
on a GeForce GTX 780.
"""

from __future__ import annotations

from typing import Any

import engine_runs
import numpy as np

from distbfs.engines.cuda.papers.bfs4k.knobs import auto_knobs, degrees_of
from distbfs.engines.cuda.papers.bfs4k.search import Bfs4kSearch
from distbfs.options import Knobs
from distbfs.partition.share import Share
from papers import plots
from papers.entries import (
    Entry,
    Paper,
    Row,
    Rows,
    Verdict,
    count_of,
    drawn,
    geometric,
    names_of,
    published,
    verdict,
)
from papers.graphs import BFS4K
from papers.likeness import graph_table

REPEATS = ("repeats_found", "repeats_missed", "conflicts")  # counts of tables
HASH, CLAIM = "bfs4k/hash/push", "bfs4k/claim/push"
PUBLISHED_KNOBS = "k3=16,k6=128,k7=10"  # Section 7; the others follow from the degrees
AS_SET = f"{HASH}/{PUBLISHED_KNOBS}"
WARPS = tuple(f"virtual-warp/w{size}" for size in (1, 2, 4, 8, 16, 32))
BASELINES = ("harish", "edge-parallel")
MS = published(
    {
        "Amazon0505": (5.2, 7.2, 5.2, 4.3, None, 1.5),
        "web-Google": (12.0, 9.2, 12.0, 7.3, None, 1.6),
        "com-youtube": (57.0, 5.5, 19.0, None, None, 3.1),
        "as-skitter": (95.0, 24.0, 28.0, None, None, 6.5),
        "roadNet-CA": (120.7, 154.4, 120.7, 20.2, None, 5.5),
        "soc-LiveJournal1": (91.0, 61.0, 52.0, None, None, 24.4),
        "Gen-ForestFire": (37.0, 5.4, 14.0, None, None, 2.7),
        "Gen-SmallWorld": (33.0, 27.0, 24.0, None, None, 15.1),
        "europa.osm": (59620.0, 78422.0, 59620.0, 684.0, 305.0, 264.8),
        "hugehubbles-00020": (8123.0, 11922.0, 8123.0, 220.0, 103.0, 95.9),
        "nlpkt160": (351.0, 1486.0, 351.0, None, 80.4, 39.2),
        "audikw1": (68.0, 185.0, 36.0, 54.0, 21.5, 11.1),
        "cage15": (95.0, 213.0, 95.0, 96.0, 42.2, 28.8),
        "kkt_power": (36.0, 24.5, 36.0, 24.0, 8.8, 8.5),
        "coPapersCiteseer": (21.2, 40.6, 11.4, None, 8.6, 4.9),
        "kron_g500-logn20": (675.0, 47.4, 67.0, None, None, 34.4),
        "random.2Mv.128Me": (112.0, 73.0, 63.0, None, 66.5, 52.0),
        "rmat.2Mv.128Me": (103.0, 62.0, 56.0, None, None, 43.4),
    },
    *(*BASELINES, "virtual-warp", "luo", "garland", HASH),
)
GRAPHS = tuple(BFS4K)
USUAL = ("as-skitter", "kron_g500-logn20")  # figures 12 to 14; the paper: as-skitter

# tables 1 and 2, figure 15


def table_2(bench: Any, name: str) -> Row:
    """Measure all engines of a graph."""
    ways = (HASH, AS_SET, CLAIM, *BASELINES, *WARPS, "xbfs/fast/push", "xbfs/fast")
    row = bench.engines("bfs4k", name, ways)
    warps = {x: row["seconds"][x] for x in WARPS if x in row["seconds"]}
    if warps:
        row["best_warp"] = min(warps, key=lambda x: warps[x])
        row["seconds"]["virtual-warp"] = warps[row["best_warp"]]
    return row | {"published_ms": MS[name]} | bench.rivals("bfs4k", name)


def ahead(row: Row) -> bool:
    """Whether bfs4k is ahead of every baseline, as in the paper."""
    seconds = row["seconds"]
    best = min(seconds[AS_SET], seconds[HASH])
    return all(best < seconds[x] for x in (*BASELINES, "virtual-warp") if x in seconds)


def judge_table_2(rows: Rows) -> Verdict:
    these = rows["table 2"]
    good, every = count_of(ahead, these)
    behind = [row["graph"] for row in these if not ahead(row)]
    gains = [
        min(row["seconds"][x] for x in (*BASELINES, "virtual-warp"))
        / min(row["seconds"][x] for x in (HASH, AS_SET))
        for row in these
    ]
    words = f"{geometric(gains):.2f} times as fast as the best baseline"
    lost = f"; behind on {', '.join(behind)}" if behind else ""
    return verdict(good == every, f"ahead on {good} of {every} graphs, {words}{lost}")


def draw_table_2(figure: Any, rows: Rows) -> None:
    these = rows["table 2"]
    series = {
        name: [row["seconds"].get(way, np.nan) * 1e3 for row in these]
        for name, way in (
            *(("Harish", "harish"), ("edge parallel", "edge-parallel")),
            *(("best virtual warp", "virtual-warp"), ("bfs4k, hash", HASH)),
            ("bfs4k, published knobs", AS_SET),
        )
    }
    plots.bars(figure.subplots(), names_of(these), series, "ms a search", log=True)


def speedups(rows: Rows) -> dict[str, list[float]]:
    """Return the speed-up of bfs4k over each other, here and as published."""
    these = rows["table 2"]
    series: dict[str, list[float]] = {}
    for way in (*BASELINES, "virtual-warp"):
        series[way] = [r["seconds"][way] / r["seconds"][HASH] for r in these]
        series[f"{way}, paper"] = [
            r["published_ms"][way] / r["published_ms"][HASH] for r in these
        ]
    return series


def judge_figure_15(rows: Rows) -> Verdict:
    means = {name: geometric(values) for name, values in speedups(rows).items()}
    words = ", ".join(
        f"{way} {means[way]:.2f} (paper {means[f'{way}, paper']:.2f})"
        for way in (*BASELINES, "virtual-warp")
    )
    good = all(means[way] > 1 for way in (*BASELINES, "virtual-warp"))
    return verdict(good, f"geometric means of the speed-up of hash over: {words}")


def draw_figure_15(figure: Any, rows: Rows) -> None:
    label = "speed-up of bfs4k, hash, over"
    names = names_of(rows["table 2"])
    plots.bars(figure.subplots(), names, speedups(rows), label, log=True, one=True)


# figures 12 to 14: repeats, and what each feature brings

WITHOUT = 1  # log2 of the entries of a table that finds next to nothing
WARP = {"k5": 0, "k6": 1024, "k4": 0}
FIGURE_12 = {
    "VirtualWarp1": (Knobs(k1=1, **WARP), False),
    "VirtualWarp4": (Knobs(k1=4, **WARP), False),
    "EdgeDiscover": (Knobs(k4=64, k5=0, k6=1024), False),
    "VirtualWarp4+Hash64": (Knobs(k1=4, **WARP), True),
    "EdgeDiscover+Hash64": (Knobs(k4=64, k5=0, k6=1024), True),
}
FIGURE_13 = {"a warp, as Garland": 32, "128 threads": 128, "1,024 threads": 1024}
STEPS: dict[str, dict[str, Any]] = {  # each adds to those before it
    "virtual warps": {
        "k1": 4,
        "k2": 0,
        "k4": 0,
        "k5": 0,
        "k6": 128,
        "k7": 0,
        "ext": False,
    },
    "+ edge-discover": {"k4": 1, "ext": True},
    "+ second queue": {"k2": 0.15, "k3": 16},
    "+ one block": {"k5": 1},
    "+ coalesced writes": {"k7": 10},
    "+ hash tables": {"table": True},
}
AUTOMATIC = "automatic knobs"


def made_search(graph: Share, knobs: Knobs, *, table: bool = True) -> Bfs4kSearch:
    """Return a search by method hash, without its table where that is asked for."""
    search = Bfs4kSearch(graph, knobs=knobs, claim=False, parents=False)
    if not table:
        search.params.table = search.params.table_alone = WITHOUT
    return search


def figure_12(bench: Any, name: str) -> Row:
    """Count the vertices of each frontier, repeats with them, of one root."""
    graph, _ = bench.graph("bfs4k", name)
    number = bench.numbers[0]
    sizes, clean = {}, []
    for way, (knobs, table) in FIGURE_12.items():
        search = made_search(graph, knobs, table=table)
        log = search.search(number, records=True).records
        sizes[way] = [record.frontier for record in log]
        clean = [1, *(record.found for record in log[:-1])]
    return bench.about("bfs4k", name) | {"frontier": {"sequential": clean, **sizes}}


def judge_figure_12(rows: Rows) -> Verdict:
    def more(row: Row, way: str) -> float:
        sizes = row["frontier"]
        return sum(sizes[way]) / sum(sizes["sequential"]) - 1

    words, good = [], True
    for row in rows["figure 12"]:
        every = {way: more(row, way) for way in FIGURE_12}
        good &= every["VirtualWarp4+Hash64"] <= every["VirtualWarp4"]
        good &= every["EdgeDiscover"] <= every["VirtualWarp4"]
        told = ", ".join(f"{way} {100 * x:.1f} %" for way, x in every.items())
        words.append(f"{row['graph']}: {told}")
    return verdict(good, "repeats over the vertices searched: " + "; ".join(words))


def draw_figure_12(figure: Any, rows: Rows) -> None:
    these = rows["figure 12"]
    for axes, row in zip(
        figure.subplots(1, len(these), squeeze=False)[0], these, strict=True
    ):
        series = {
            way: (range(len(x)), [max(y, 1) for y in x])
            for way, x in row["frontier"].items()
        }
        plots.lines(
            axes, series, f"level, {row['graph']}", "frontier, with repeats", log="y"
        )


def figure_13(bench: Any, name: str) -> Row:
    """Count repeats found and missed by tables of several sizes; and time."""
    graph, _ = bench.graph("bfs4k", name)
    searches, counts = {}, {}
    for way, threads in FIGURE_13.items():
        knobs = Knobs(k1=4, k4=0, k5=0, k6=threads)
        searches[way] = made_search(graph, knobs)
        sums = dict.fromkeys(REPEATS, 0)
        for number in bench.numbers:
            for record in searches[way].search(number, records=True).records:
                for count in sums:
                    sums[count] += record.extra[count]
        counts[way] = sums
    return bench.strategies("bfs4k", name, searches) | {"counts": counts}


def judge_figure_13(rows: Rows) -> Verdict:
    words, good = [], True
    for row in rows["figure 13"]:
        small, large = (row["counts"][way] for way in (*FIGURE_13,)[:2])
        fewer = 1 - large["repeats_missed"] / max(small["repeats_missed"], 1)
        seconds = row["seconds"]
        gain = 1 - seconds["128 threads"] / seconds["a warp, as Garland"]
        good &= fewer > 0
        words.append(
            f"{row['graph']}: {100 * fewer:.1f} % fewer missed, "
            f"{100 * gain:.1f} % less time"
        )
    return verdict(
        good, "a table of 128 threads against one of a warp: " + "; ".join(words)
    )


def draw_figure_13(figure: Any, rows: Rows) -> None:
    these = rows["figure 13"]
    for axes, row in zip(
        figure.subplots(1, len(these), squeeze=False)[0], these, strict=True
    ):
        series = {
            way: [max(x, 1) for x in counts.values()]
            for way, counts in row["counts"].items()
        }
        plots.bars(
            axes, ["found", "missed", "conflicts"], series, row["graph"], log=True
        )


def figure_14(bench: Any, name: str) -> Row:
    """Measure the features added one after the other; no two steps are alike."""
    graph, source = bench.graph("bfs4k", name)
    ways: dict[str, Any] = {}
    knobs: dict[str, Any] = {"table": False}
    for step, more in STEPS.items():
        knobs |= more
        chosen = {k: v for k, v in knobs.items() if k != "table"}
        ways[step] = made_search(graph, Knobs(**chosen), table=knobs["table"])
    ways[AUTOMATIC] = made_search(graph, auto_knobs(degrees_of(graph)))
    row = bench.strategies("bfs4k", name, ways)
    row["written_in_turns"] = {
        step: sum(
            record.extra["in_turns"]
            for record in ways[step].search(bench.numbers[0], records=True).records
        )
        for step in STEPS
    }
    baselines, _ = engine_runs.searches_of(graph, BASELINES)
    done = engine_runs.run(baselines, bench.starts, bench.each / 4, source)
    for way, one in done.items():
        row["seconds"][way] = one["median_seconds"]
        row["searches"][way] = one["searches"]
    return row


def judge_figure_14(rows: Rows) -> Verdict:
    words, good = [], True
    for row in rows["figure 14"]:
        seconds = row["seconds"]
        times = [seconds[step] for step in STEPS]
        slower = [
            s for s, a, b in zip([*STEPS][1:], times, times[1:], strict=False) if b > a
        ]
        good &= not slower and min(times) < min(seconds[x] for x in BASELINES)
        gain = times[0] / times[-1]
        lost = f", slower with {' and '.join(slower)}" if slower else ""
        words.append(f"{row['graph']}: {gain:.2f} times as fast with all{lost}")
    return verdict(good, "; ".join(words))


def draw_figure_14(figure: Any, rows: Rows) -> None:
    these = rows["figure 14"]
    names = [*STEPS, AUTOMATIC, *BASELINES]
    series = {
        row["graph"]: [row["seconds"][name] * 1e3 for name in names] for row in these
    }
    plots.bars(figure.subplots(), names, series, "ms a search", log=True)


# fmt: off
PAPER = Paper(
    "bfs4k",
    "Busato, Bombieri: BFS-4K, IEEE TPDS 2015",
    (
        graph_table("bfs4k", "table 1", "18 graphs of several kinds", (12, 7)),
        Entry("table 2", "visiting times beside three baselines",
            "BFS-4K is the fastest on every graph", graphs=GRAPHS, measure=table_2,
            judge=judge_table_2, draw=draw_table_2, size=(12, 4.5), value=1),
        Entry("figure 12", "repeats by visiting technique",
            "virtual warps make most repeats, edge-discover few; the tables find most",
            graphs=USUAL, measure=figure_12, judge=judge_figure_12, draw=draw_figure_12,
            size=(11, 4), value=2),
        Entry("figure 13", "hash tables of a block against those of a warp",
            "25.8 % fewer missed repeats, 65 % fewer conflicts, 7.5 % less time",
            graphs=USUAL, measure=figure_13, judge=judge_figure_13, draw=draw_figure_13,
            size=(9, 4), value=2),
        Entry("figure 14", "what each feature brings",
            "each feature adds to the speed-up; all together are best", graphs=USUAL,
            measure=figure_14, judge=judge_figure_14, draw=draw_figure_14, size=(9, 5),
            value=2),
        Entry("figure 15", "speed-ups over the baselines",
            "above 1 on every graph, more than 100 over Harish on large diameters",
            rows_of=("table 2",), judge=judge_figure_15, draw=draw_figure_15,
            size=(12, 4.5)),
        Entry("table 2, Luo and Garland", "two more rivals",
            cannot="their programs are not part of this package; published times "
            "stand in the rows of table 2"),
        Entry("figure 1", "", cannot="a list of complexities, without a measurement"),
        *drawn(*(f"figure {k}" for k in range(2, 12))),
    ),
)
# fmt: on
