"""Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019: its figures and tables.

Engine xbfs-paper searches with the strategies that an entry names; times of strategies
are of levels alone, as in the paper, by vertex number.  The paper's baseline is another
program, Enterprise, which shares pulls out by degree classes: ``BASELINE`` does that
inside xbfs-paper.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from distbfs.device import cuda
from distbfs.engines.cuda.papers.bfs4k.knobs import degrees_of
from distbfs.engines.cuda.papers.xbfs.engine import default_balance
from distbfs.engines.cuda.papers.xbfs.search import MODES, PaperSearch
from distbfs.options import BALANCES
from papers import plots, queues
from papers.entries import (
    OTHER,
    Entry,
    Paper,
    Row,
    Rows,
    Verdict,
    column,
    drawn,
    geometric,
    names_of,
    published,
    verdict,
)
from papers.graphs import XBFS
from papers.likeness import graph_table

GRAPHS = tuple(XBFS)
SCAN = {"frontier": "single-scan", "asynchronous": False}
BASELINE = "baseline"
STEPS: dict[str, dict[str, Any]] = {
    BASELINE: {**SCAN, "balance": "degree"},
    "Ad": {"frontier": "auto", "balance": "degree", "asynchronous": False},
    "Ad+WB": {"frontier": "auto", "balance": "warp", "asynchronous": False},
    "Ad+WB+Async": {"frontier": "auto", "balance": "warp", "asynchronous": True},
}
MS = published(  # Table 2, on a Quadro P6000; Ligra on 24 cores
    {
        "DB": (7.9, 30.2, 12.9, 16.4, 54.0),
        "DP": (5.3, 14.0, 8.1, 22.9, 48.2),
        "EW": (19.6, 88.7, 74.7, 145.0, 71.9),
        "FR": (102.8, 408.0, 883.9, None, 526.7),
        "LJ": (6.9, 24.0, 17.0, 34.9, 29.4),
        "OR": (2.83, 14.2, 48.7, 154.1, 29.8),
        "TR": (28.1, 101.3, 73.4, 171.2, 95.1),
        "US": (10.2, 21.2, 17.7, 28.3, 62.6),
        "WK": (21.4, 76.9, 92.1, 168.5, 259.3),
        "WL": (23.6, 59.5, 120.7, 262.8, 58.3),
    },
    *("xbfs", "enterprise", "tigr", "gunrock", "ligra"),
)
ENGINES = ("xbfs-paper", "bfs4k", "virtual-warp/w32", "edge-parallel", "xbfs/fast")
NEAR = 1.02  # a balance is no slower within that


def gained(rows: Sequence[Row], over: str, way: str) -> list[float]:
    """Return by how much a way is faster than another one, by row."""
    return [row["seconds"][over] / row["seconds"][way] for row in rows]


def table_2(bench: Any, name: str) -> Row:
    """Measure xbfs-paper beside rivals that are here, and the baseline's strategies."""
    row = bench.engines("xbfs", name, ENGINES)
    levels = bench.strategies("xbfs", name, {"levels": {}, **STEPS})
    for way in ("levels", BASELINE):
        row["seconds"][way] = levels["seconds"][way]
        row["searches"][way] = levels["searches"][way]
    return row | {"published_ms": MS[name]} | bench.rivals("xbfs", name)


def judge_table_2(rows: Rows) -> Verdict:
    these = rows["table 2"]
    enterprise = geometric(gained(these, BASELINE, "levels"))
    others = [way for way in ENGINES[1:4] if all(way in r["seconds"] for r in these)]
    words = [f"{w} {geometric(gained(these, w, 'xbfs-paper')):.2f}" for w in others]
    good = enterprise > 1 and all(
        x > 1 for way in others for x in gained(these, way, "xbfs-paper")
    )
    told = (
        f"{enterprise:.2f} times as fast as Enterprise's strategies (paper 3.5), and "
    )
    return verdict(good, f"{told}over engines: {', '.join(words)}")


def draw_table_2(figure: Any, rows: Rows) -> None:
    these = rows["table 2"]
    ways = ("levels", BASELINE, *ENGINES)
    series = {
        way: [1e3 * r["seconds"].get(way, float("nan")) for r in these] for way in ways
    }
    plots.bars(figure.subplots(), names_of(these), series, "ms a search", log=True)


# figure 5


def figure_5(bench: Any, name: str) -> Row:
    """Measure the ways to make a queue, arrays of one share of members."""
    share = float(name.rstrip("%")) / 100
    top = queues.MILLION << 9 if bench.most is None else max(bench.most, 1 << 8)
    sizes = [x for x in (queues.MILLION << k for k in range(10)) if x <= top] or [top]
    blocks = queues.BLOCKS if bench.most is None else queues.BLOCKS[1:2]
    rows = []
    for vertices in sizes:
        rows.append(queues.measure(vertices, share, blocks))
        cuda.release()
    return {"graph": name, "sizes": rows}


def judge_figure_5(rows: Rows) -> Verdict:
    words, all_of_them = [], []
    for way in queues.WAYS[:2]:
        ratios = [x["speedup"][way] for row in rows["figure 5"] for x in row["sizes"]]
        all_of_them.append(geometric(ratios))
        words.append(f"{way} {min(ratios):.2f} to {max(ratios):.2f}")
    told = (
        f"speed-up over a two-pass prefix sum: {', '.join(words)}; paper 1.7 on a V100"
    )
    return verdict(all_of_them[0] > 1, told)


def draw_figure_5(figure: Any, rows: Rows) -> None:
    series = {}
    for row in rows["figure 5"]:
        for way in queues.WAYS[:2]:
            ratios = [x["speedup"][way] for x in row["sizes"]]
            sizes = [x["vertices"] / queues.MILLION for x in row["sizes"]]
            series[f"{way}, {row['graph']} in the frontier"] = (sizes, ratios)
    axes = figure.subplots()
    label = "speed-up over a prefix sum"
    plots.lines(axes, series, "vertices, millions (2^20)", label, log="xy")
    axes.axhline(1, color="black", lw=0.8)


# figure 9


def figure_9(bench: Any, name: str) -> Row:
    """Count pulled vertices by degree and by edge checks, powers of two."""
    graph, _ = bench.graph("xbfs", name)
    search = PaperSearch(graph, asynchronous=False, balance="static", parents=False)
    total: Any = None
    for number in bench.numbers:
        work = search.search(number, records=True).work
        assert work is not None
        total = work if total is None else total + work
    return bench.about("xbfs", name) | {
        "roots": len(bench.numbers),
        "vertices": total[:, 0].tolist(),
        "checks": total[:, 1].tolist(),
        "by_checks": total[:, 2:].tolist(),
    }


HIGH = 6  # degrees of 2^6 and more are high


def high_and_small(row: Row) -> tuple[int, int]:
    """Return pulled vertices of high degree, and those with under an eighth of it."""
    table = row["by_checks"]
    small = sum(sum(table[d][: d - 3]) for d in range(HIGH, len(table)))
    return sum(map(sum, table[HIGH:])), small


def judge_figure_9(rows: Rows) -> Verdict:
    words, good = [], True
    for row in rows["figure 9"]:
        every, small = high_and_small(row)
        if every:
            good &= 2 * small > every
            words.append(f"{row['graph']} {100 * small / every:.0f} %")
    if not words:
        return Verdict(OTHER, "no vertex of degree 64 and more was pulled")
    told = "vertices of degree 64 and more with under an eighth of it in edge checks: "
    return verdict(good, told + ", ".join(words))


def draw_figure_9(figure: Any, rows: Rows) -> None:
    these = rows["figure 9"]
    across = 5 if len(these) > 1 else 1
    panels = figure.subplots(-(-len(these) // across), across, squeeze=False).ravel()
    for axes, row in zip(panels, these, strict=False):
        table = row["by_checks"]
        at = [
            (d, w, x) for d, line in enumerate(table) for w, x in enumerate(line) if x
        ]
        most = max((x for _, _, x in at), default=1)
        sizes = [4 + 60 * (x / most) ** 0.5 for _, _, x in at]
        degree, work = [2.0**d for d, _, _ in at], [2.0**w for _, w, _ in at]
        axes.scatter(degree, work, sizes, facecolors="0.6", edgecolors="0.1", lw=0.5)
        axes.axline((1, 1), slope=1, color="black", ls=":", lw=0.8)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_title(row["graph"], fontsize=9)
    figure.supxlabel("degree of a pulled vertex")
    figure.supylabel("edge checks; area: vertices")


# figures 10 to 15


def figure_10(bench: Any, name: str) -> Row:
    """Count vertices of the next level that the first asynchronous pull finds."""
    graph, _ = bench.graph("xbfs", name)
    search = PaperSearch(graph, parents=False)
    early = every = pulls = 0
    for number in bench.numbers:
        log = search.search(number, records=True).records
        first = next((k for k, r in enumerate(log) if r.direction == "pull"), None)
        if first is None:
            continue
        pulls += 1
        by_first = log[first].extra["found_early"]
        early += by_first
        every += by_first
        if after := log[first + 1 : first + 2]:
            every += after[0].found - after[0].extra["found_early"]
    share = early / every if every else 0.0
    counts = {"searches_with_a_pull": pulls, "early": early, "next_level": every}
    return bench.about("xbfs", name) | counts | {"share": share}


def judge_figure_10(rows: Rows) -> Verdict:
    shares = {r["graph"]: r["share"] for r in rows["figure 10"] if r["next_level"]}
    if not shares:
        return Verdict(OTHER, "no search pulled")
    mean = statistics.mean(shares.values())
    least = min(shares, key=lambda name: shares[name])
    low = 100 * shares[least]
    told = f"mean {100 * mean:.0f} % (paper 88), least {low:.0f} % on {least}"
    return verdict(mean > 0.7, told)


def draw_figure_10(figure: Any, rows: Rows) -> None:
    these = rows["figure 10"]
    series = {"found by the first pull": [100 * x for x in column(these, "share")]}
    plots.bars(figure.subplots(), names_of(these), series, "% of the next level")


def steps(bench: Any, name: str) -> Row:
    """Measure the contributions one after the other; and the shares of pulls."""
    row = bench.strategies("xbfs", name, STEPS)
    graph, _ = bench.graph("xbfs", name)
    row["pull_share"] = {
        step: shares(PaperSearch(graph, parents=False, **form), bench.numbers)["pull"]
        for step, form in STEPS.items()
        if step != "Ad+WB"
    }
    return row


def shares(search: Any, numbers: Sequence[int]) -> dict[str, float]:
    """Return the share of time of each kind of level, with counters, over all roots."""
    spent = dict.fromkeys(MODES, 0.0)
    for number in numbers:
        for record in search.search(number, records=True).records:
            spent[record.direction] += record.seconds
    total = sum(spent.values()) or 1.0
    return {kind: seconds / total for kind, seconds in spent.items()}


def judge_figure_11(rows: Rows) -> Verdict:
    these = rows["figure 11"]
    means = {s: geometric(gained(these, BASELINE, s)) for s in (*STEPS,)[1:]}
    paper = {"Ad": 2.3, "Ad+WB": 3.1, "Ad+WB+Async": 3.5}
    words = [f"{s} {x:.2f} (paper {paper[s]})" for s, x in means.items()]
    good = 1 < means["Ad"] < means["Ad+WB"] < means["Ad+WB+Async"]
    return verdict(good, f"over Enterprise's strategies: {', '.join(words)}")


def speedups(entry: str, over: str, ways: Sequence[str], label: str) -> Any:
    """Return a function that draws speed-ups of ways over one of them, by graph."""

    def draw(figure: Any, rows: Rows) -> None:
        series = {way: gained(rows[entry], over, way) for way in ways}
        names = names_of(rows[entry])
        plots.bars(figure.subplots(), names, series, f"speed-up {label}", one=True)

    return draw


def judge_figure_12(rows: Rows) -> Verdict:
    paper = {BASELINE: 70, "Ad": 68, "Ad+WB+Async": 57}
    means = {
        step: 100 * statistics.mean(column(rows["figure 11"], "pull_share", step))
        for step in paper
    }
    words = [f"{step} {x:.0f} % (paper {paper[step]})" for step, x in means.items()]
    good = means["Ad+WB+Async"] < means[BASELINE]
    return verdict(good, f"share of pulls: {', '.join(words)}")


def draw_figure_12(figure: Any, rows: Rows) -> None:
    these = rows["figure 11"]
    shown = (BASELINE, "Ad", "Ad+WB+Async")
    for axes, step in zip(figure.subplots(1, 3, sharey=True), shown, strict=True):
        pull = [100 * x for x in column(these, "pull_share", step)]
        series = {"push": [100 - x for x in pull], "pull": pull}
        plots.stacked(axes, names_of(these), series, "% of the time")
        axes.set_xlabel(step)


def figure_13(bench: Any, name: str) -> Row:
    """Measure the shares of time of the ways to make queues."""
    graph, _ = bench.graph("xbfs", name)
    found = shares(PaperSearch(graph, parents=False), bench.numbers)
    return bench.about("xbfs", name) | {"share": found, "roots": len(bench.numbers)}


TITLES = dict(
    zip(MODES, ("scan-free", "single-scan", "no-queue", "double-scan"), strict=True)
)
PAPER_13 = dict(zip(MODES, (18.0, 15.7, 11.4, 54.9), strict=True))


def judge_figure_13(rows: Rows) -> Verdict:
    means = {
        m: 100 * statistics.mean(column(rows["figure 13"], "share", m)) for m in MODES
    }
    words = [f"{TITLES[m]} {means[m]:.0f} % (paper {PAPER_13[m]})" for m in MODES]
    return verdict(max(means, key=lambda m: means[m]) == "pull", ", ".join(words))


def draw_figure_13(figure: Any, rows: Rows) -> None:
    these = rows["figure 13"]
    series = {
        title: [100 * x for x in column(these, "share", mode)]
        for mode, title in TITLES.items()
    }
    plots.stacked(figure.subplots(), names_of(these), series, "% of the time")


def figure_14(bench: Any, name: str) -> Row:
    """Measure all ways to share out a pull."""
    graph, _ = bench.graph("xbfs", name)
    ways = {x: {"balance": x, "asynchronous": False} for x in BALANCES}
    row = bench.strategies("xbfs", name, ways)
    return row | {"degrees": degrees_of(graph).as_dict()}


def judge_figure_14(rows: Rows) -> Verdict:
    these = rows["figure 14"]
    means = {
        way: geometric(gained(these, "degree", way))
        for way in ("static", "warp", "thread")
    }
    paper = {"static": 1.4, "warp": 1.6, "thread": 1.6}
    best = [
        row["seconds"][default_balance(row["m"], row["active"])]
        <= NEAR * min(row["seconds"].values())
        for row in these
    ]
    words = [f"{way} {x:.2f} (paper {paper[way]})" for way, x in means.items()]
    told = f"over degree classes: {', '.join(words)}; the default is within 2 % of the "
    good = means["static"] > 1 and min(means["warp"], means["thread"]) > means["static"]
    return verdict(good, f"{told}fastest on {sum(best)} of {len(best)} graphs")


def figure_15(bench: Any, name: str) -> Row:
    """Count edge checks of synchronous and asynchronous pulls, means over roots."""
    graph, _ = bench.graph("xbfs", name)
    pulled: dict[str, float] = {}
    for way, chosen in (("synchronous", False), ("asynchronous", True)):
        search = PaperSearch(graph, asynchronous=chosen, parents=False)
        logs = [search.search(x, records=True).records for x in bench.numbers]
        pulls = [r.checks for log in logs for r in log if r.direction == "pull"]
        pulled[way] = sum(pulls) / len(logs)
    before = pulled["synchronous"]
    fewer = 1 - pulled["asynchronous"] / before if before else 0.0
    about = {"roots": len(bench.numbers), "pull_checks": pulled, "reduction": fewer}
    return bench.about("xbfs", name) | about


def judge_figure_15(rows: Rows) -> Verdict:
    fewer = column(rows["figure 15"], "reduction")
    told = f"{100 * min(fewer):.0f} to {100 * max(fewer):.0f} % fewer, mean "
    mean = 100 * statistics.mean(fewer)
    return verdict(mean > 10, f"{told}{mean:.1f} % (paper 1 to 51, mean 23.2)")


def draw_figure_15(figure: Any, rows: Rows) -> None:
    these = rows["figure 15"]
    names = [f"{r['graph']}\n{100 * r['reduction']:.0f} % fewer" for r in these]
    series = {
        way: [max(x, 1) / 1e6 for x in column(these, "pull_checks", way)]
        for way in ("synchronous", "asynchronous")
    }
    label = "edge checks of pulls, millions"
    plots.bars(figure.subplots(), names, series, label, log=True)


def judge_figure_16(rows: Rows) -> Verdict:
    these = rows["table 2"]
    gains = [r["published_ms"]["xbfs"] * 1e-3 / r["seconds"]["levels"] for r in these]
    told = (
        f"one kind of device is here: {geometric(gains):.1f} times the published P6000"
    )
    return Verdict(OTHER, f"{told}, on like graphs (the paper: a V100 2.3 times it)")


def draw_figure_16(figure: Any, rows: Rows) -> None:
    these = rows["table 2"]
    series = {
        "published, P6000": [r["published_ms"]["xbfs"] for r in these],
        "this device": [1e3 * r["seconds"]["levels"] for r in these],
    }
    plots.bars(figure.subplots(), names_of(these), series, "ms a search", log=True)


Measure = Callable[[Any, str], Row]


def over(
    name: str, title: str, says: str, measure: Measure | None, **more: Any
) -> Entry:
    """Return an entry over all graphs."""
    graphs = GRAPHS if measure else ("",)
    return Entry(name, title, says, graphs=graphs, measure=measure, **more)


# fmt: off
PAPER = Paper(
    "xbfs",
    "Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019",
    (
        graph_table("xbfs", "table 1", "ten graphs", (9, 6)),
        over("table 2", "run times beside others",
            "3.5 times as fast as Enterprise, the fastest on every graph", table_2,
            judge=judge_table_2, draw=draw_table_2, size=(11, 4.5), value=1),
        Entry("figure 5", "queues by atomic additions over those by a prefix sum",
            "atomic additions are faster, 1.7 times on a V100",
            graphs=tuple(f"{100 * share:g}%" for share in queues.SHARES),
            measure=figure_5, judge=judge_figure_5, draw=draw_figure_5, value=3),
        over("figure 9", "degree and work of pulled vertices",
            "most vertices of high degree need few edge checks, some need many",
            figure_9, judge=judge_figure_9, draw=draw_figure_9, size=(11, 5), value=3),
        over("figure 10", "vertices of the next level that a pull finds early",
            "88 % on average, over 99 % on six graphs, 40 % on US", figure_10,
            judge=judge_figure_10, draw=draw_figure_10, value=3),
        over("figure 11", "what each contribution brings over Enterprise",
            "2.3, 3.1 and 3.5 times", steps, judge=judge_figure_11,
            draw=speedups("figure 11", BASELINE, (*STEPS,), "over the baseline"),
            value=1),
        over("figure 12", "shares of time of push and pull",
            "pulls take 70 % in the baseline, 68 % with Ad, 57 % with all", None,
            rows_of=("figure 11",), judge=judge_figure_12, draw=draw_figure_12,
            size=(11, 3.5)),
        over("figure 13", "shares of time of the ways to make queues",
            "scan-free 18, single-scan 15.7, no queue 11.4, double-scan 54.9 %",
            figure_13, judge=judge_figure_13, draw=draw_figure_13, value=3),
        over("figure 14", "ways to balance pulls, over degree classes",
            "static 1.4, warp and thread 1.6 times", figure_14, judge=judge_figure_14,
            draw=speedups("figure 14", "degree", BALANCES, "over degree classes"),
            value=1),
        over("figure 15", "edge checks of synchronous and asynchronous pulls",
            "23.2 % fewer on average, 51 % on DP, 1 % on OR", figure_15,
            judge=judge_figure_15, draw=draw_figure_15, value=3),
        over("figure 16", "several kinds of GPU",
            "P6000 1.8, Titan Xp 2.3 and V100 4.1 times as fast as a K80", None,
            rows_of=("table 2",), judge=judge_figure_16, draw=draw_figure_16),
        *drawn("figure 1", "figure 2", "figure 3", "figure 4", "figure 6"),
        *drawn("figure 7", "figure 8"),
    ),
)
# fmt: on
