"""Pan, Pearce, Owens: Scalable BFS on a GPU Cluster, IPDPS 2018: figures and tables.

Engine pan searches parts as published, one device per domain; a row is of as many ranks
as run.py was started on (mpirun -n 2), and rows of other numbers stay beside it.  Times
are of levels and parents, the paper's of levels alone on P100.
"""

from __future__ import annotations

import math
from typing import Any

from distbfs.generate.expected import expected_edges, expected_histogram
from distbfs.generate.kronecker import Kronecker
from distbfs.options import SubgraphFactors
from distbfs.plan import memory
from distbfs.plan.threshold import DELEGATES_PER_PART, suggest_host_threshold
from papers import plots, shares
from papers.entries import (
    OPEN,
    OTHER,
    Entry,
    Paper,
    Row,
    Rows,
    Verdict,
    drawn,
    verdict,
)
from papers.graphs import PAN
from papers.parts import PARTS, PLAIN, PUSH, SWITCHING, PartGraph

SCALE, STRONG, WEAK = 25, 26, 25  # of one graph; of strong scaling; a device
COUNTED, BUILT = 17, 18  # scales that are counted edge by edge on the host
EXPECTED, LAST = 30, 33  # of the paper
SHOWN = 1 << 20  # the largest TH
GOAL = (16, 512)  # any TH here satisfies the paper's goal at scale 30
NAMES = {PLAIN: "DOBFS", PUSH: "BFS"}
FRIENDSTER = next(iter(PAN))


def scale_of(bench: Any, scale: int) -> int:
    """Return a scale, no larger than the run allows."""
    if bench.most is None:
        return scale
    return min(scale, max(int(math.log2(bench.most)), 2))


def kronecker(bench: Any, scale: int) -> Kronecker:
    """Return a graph of the run's seed."""
    return Kronecker(scale_of(bench, scale), 16, bench.seed)


def parts_of(
    bench: Any, source: Any, threshold: int | None = None, engine: str = ""
) -> PartGraph:
    """Build a graph in a part a rank, on devices where the engine is on them."""
    bench.drop()  # both do not fit
    engine = engine or bench.part_engine
    return PartGraph(bench.world, source, engine, threshold, bench.roots, bench.seed)


# table I, figures 5, 7 and 12: counts


def published_parts(bench: Any, source: Kronecker) -> PartGraph:
    """Build parts with the TH of fewest bytes, on one device as on two.

    One part has no delegates unless TH is named, and then nothing that pulls.
    """
    histogram = memory.expected_degrees(source.scale, 16)
    threshold = suggest_host_threshold(histogram, max(bench.world.size, 2))
    return parts_of(bench, source, threshold)


def table_1(bench: Any, name: str) -> Row:
    """Weigh the parts of a graph, by the formula and as stored."""
    threshold = None if name == "auto" else int(name)
    source = kronecker(bench, COUNTED)
    some = (2, 16) if bench.most is None else (2, 4)
    rows = [shares.weigh(source, parts, threshold) for parts in some]
    return {"graph": name, "rows": rows}


def judge_table_1(rows: Rows) -> Verdict:
    every = [x for row in rows["table i"] for x in row["rows"]]
    off = max(abs(x["subgraphs_over_formula"] - 1) for x in every)
    usual = [x for x in every if x["suggested"]]
    if not usual:
        return Verdict(OPEN, "nothing was measured with the suggested TH")
    edge, csr = (max(x[k] for x in usual) for k in ("over_edge_list", "over_csr"))
    told = (
        f"stored subgraphs within {100 * off:.2f} % of the formula; with the suggested "
    )
    told += f"TH at most {edge:.2f} of an edge list and {csr:.2f} of CSR"
    return verdict(off < 0.02 and edge < 0.5, f"{told} (paper about 0.33 and 0.5)")


def draw_table_1(figure: Any, rows: Rows) -> None:
    every = [x for row in rows["table i"] for x in row["rows"]]
    names = [
        f"p {x['parts']}\nTH {x['threshold']}{'*' * x['suggested']}" for x in every
    ]
    terms = {"8n": "8n", "8dp": "8dp", "4m": "4m", "4nn": "4|Enn|"}
    series = {
        text: [x["formula_by_term"][key] / x["m"] for x in every]
        for key, text in terms.items()
    }
    axes = figure.subplots()
    plots.stacked(axes, names, series, "bytes a stored edge; * TH suggested")
    real = [x["bytes_per_edge"] for x in every]
    axes.plot(range(len(every)), real, "kD", ms=4, label="stored")
    axes.axhline(16, color="black", ls="--", lw=1)


def expected_shares(scale: int, threshold: int) -> dict[str, float]:
    """Return expected delegates over n, and nn, nd+dn and dd over m."""
    edges = expected_edges(scale, threshold)
    degrees, vertices = expected_histogram(scale)
    m = sum(edges.values())
    return {
        "delegates": float(vertices[degrees > threshold].sum()) / 2.0**scale,
        "nn": edges["nn"] / m,
        "nd_dn": 2 * edges["nd"] / m,
        "dd": edges["dd"] / m,
    }


def figure_5(bench: Any, _: str) -> Row:
    """Count a graph over TH, beside what is expected of it and of scale 30."""
    source = kronecker(bench, COUNTED)
    made, summary = shares.built(source, 1, None)
    ends = shares.count_ends(lambda: made)
    at = shares.thresholds(summary.histogram.largest)
    near = [expected_shares(source.scale, x) for x in at]
    wide = shares.thresholds(SHOWN)
    far = shares.columns_of([expected_shares(EXPECTED, x) for x in wide])
    counted = shares.columns_of([ends.shares(x) for x in at])
    expected = shares.columns_of(near)
    off = {
        name: max(
            abs(a - b) for a, b in zip(counted[name], expected[name], strict=True)
        )
        for name in counted
    }
    return {
        "graph": "",
        "counted": {"scale": source.scale, "threshold": at, "share": counted},
        "expected": {"scale": EXPECTED, "threshold": wide, "share": far},
        "largest_difference": off,
    }


def judge_figure_5(rows: Rows) -> Verdict:
    [row] = rows["figure 5"]
    far = row["expected"]
    chosen = [
        (th, nn, 100 * d)
        for th, nn, d in zip(
            far["threshold"], far["share"]["nn"], far["share"]["delegates"], strict=True
        )
        if GOAL[0] <= th <= GOAL[1]
    ]
    most = 100 * max(nn for _, nn, _ in chosen)
    off = 100 * max(row["largest_difference"].values())
    told = (
        f"at scale 30 nn edges are at most {most:.1f} % for TH from 16 to 512; counted "
    )
    told += f"at scale {row['counted']['scale']} within {off:.1f} points of the formula"
    return verdict(most < 10 and off < 5, told)


def draw_shares(axes: Any, told: Row) -> None:
    """Draw shares over TH."""
    labels = {"nn": "nn", "nd_dn": "nd and dn", "dd": "dd", "delegates": "delegates"}
    series = {
        text: (told["threshold"], [100 * x for x in told["share"][key]])
        for key, text in labels.items()
    }
    plots.lines(axes, series, "degree threshold TH", "share, %", log="x")


def draw_figure_5(figure: Any, rows: Rows) -> None:
    [row] = rows["figure 5"]
    for axes, key in zip(
        figure.subplots(1, 2, sharey=True), ("counted", "expected"), strict=True
    ):
        draw_shares(axes, row[key])
        axes.set_title(f"scale {row[key]['scale']}, {key}", fontsize=9)


def suggested(scale: int, device: int) -> Row:
    """Return TH and what it gives, with some scale a device, by expected degrees."""
    parts = 1 << (scale - device)
    best = suggest_host_threshold(memory.expected_degrees(scale, 16), parts)
    share = expected_shares(scale, best)
    return {
        "scale": scale,
        "devices": parts,
        "threshold": best,
        "delegates": share["delegates"],
        "nn": share["nn"],
        "limit": DELEGATES_PER_PART / parts,
    }


def figure_7(bench: Any, _: str) -> Row:
    """Suggest TH over scales; build and count some at a lower scale a device."""
    last = scale_of(bench, BUILT)
    device, counted = max(last - 4, 1), []
    for scale in range(device + 1, last + 1):
        _, x = shares.built(Kronecker(scale), 1 << (scale - device), None)
        counted.append(
            {
                "scale": scale,
                "threshold": x.threshold,
                "delegates": x.delegates / x.n,
                "nn": x.edges["nn"] / x.m,
            }
        )
    wide = [suggested(scale, 26) for scale in range(27, LAST + 1)]
    near = [suggested(scale, device) for scale in range(device + 1, last + 1)]
    return {"graph": "", "wide": wide, "near": near, "counted": counted}


def judge_figure_7(rows: Rows) -> Verdict:
    [row] = rows["figure 7"]
    wide = row["wide"]
    growth = (wide[-1]["threshold"] / wide[0]["threshold"]) ** (1 / (len(wide) - 1))
    end = wide[-1]
    told = f"TH grows by {growth:.2f} a scale (paper 1.41); at scale 33 delegates "
    nn = 100 * end["nn"]
    told += f"{100 * end['delegates']:.2f} % and nn edges {nn:.1f} % (1.75, 6.3)"
    good = 1.2 < growth < 1.8 and abs(end["nn"] - 0.063) < 0.02
    return verdict(good and end["delegates"] < end["limit"], told)


def draw_figure_7(figure: Any, rows: Rows) -> None:
    [row] = rows["figure 7"]
    left, right = figure.subplots(1, 2)
    series = {
        text: ([x["scale"] for x in row[key]], [x["threshold"] for x in row[key]])
        for key, text in (
            ("wide", "26 a device"),
            ("near", "expected"),
            ("counted", "built"),
        )
    }
    plots.lines(left, series, "scale", "suggested TH", log="y")
    series = {
        text: ([x["scale"] for x in row["wide"]], [100 * x[key] for x in row["wide"]])
        for key, text in (
            ("delegates", "delegates"),
            ("nn", "nn edges"),
            ("limit", "4n/p"),
        )
    }
    plots.lines(right, series, "scale", "share, %", log="y")


def figure_12(bench: Any, name: str) -> Row:
    """Count the edges of a social graph over TH."""
    few = bench.most or 1 << COUNTED
    source = bench.published("pan", name).source(few)
    if name in bench.files:
        source = bench.source("pan", name)
    made, summary = shares.built(source, 1, None)
    ends = shares.count_ends(lambda: made)
    at = shares.thresholds(summary.histogram.largest)
    told = shares.columns_of([ends.shares(x) for x in at])
    facts = {"n": summary.n, "m": summary.m, "source": source.describe()}
    return {"graph": name, **facts, "threshold": at, "share": told}


def draw_figure_12(figure: Any, rows: Rows) -> None:
    draw_shares(figure.subplots(), rows["figure 12"][0])


def judge_figure_12(rows: Rows) -> Verdict:
    [row] = rows["figure 12"]
    wide = [
        th
        for th, nn in zip(row["threshold"], row["share"]["nn"], strict=True)
        if nn < 0.1
    ]
    told = f"nn edges are under 10 % up to TH {max(wide, default=0)}"
    paper = "paper, of Friendster itself: a wide range, from 16 to 128"
    return Verdict(OTHER, f"a likeness of {row['n']} vertices: {told} ({paper})")


# figures 6, 8 to 11 and 13: searches


def over_thresholds(source_of: Any) -> Any:
    """Return a function that measures a graph at one TH, with and without pulls."""

    def measure(bench: Any, name: str) -> Row:
        threshold = None if name == "auto" else int(name)
        graph = parts_of(bench, source_of(bench), threshold)
        variants = {way: graph.variant(way) for way in NAMES}
        return {"graph": name, **graph.facts, "variants": variants}

    return measure


def rates(rows: Any, way: str) -> dict[int, float]:
    """Return GTEPS by TH, of the most devices that were measured."""
    most = max(row["devices"] for row in rows)
    pairs = [
        (row["threshold"], row["variants"][way]["GTEPS"])
        for row in rows
        if row["devices"] == most
    ]
    return dict(sorted(pairs))


def judge_thresholds(entry: str, low: int, high: int) -> Any:
    """Return a judge of whether the best TH lies where the paper's does."""

    def judge(rows: Rows) -> Verdict:
        words, good = [], True
        for way, text in NAMES.items():
            by_th = rates(rows[entry], way)
            best = max(by_th, key=lambda th: by_th[th])
            near = [th for th, x in by_th.items() if x > 0.95 * by_th[best]]
            good &= any(low <= th <= high for th in near)
            words.append(
                f"{text} best at {best}, within 5 % from {near[0]} to {near[-1]}"
            )
        return verdict(good, f"{'; '.join(words)} (paper {low} to {high})")

    return judge


def draw_thresholds(entry: str) -> Any:
    """Return a function that draws rates over TH."""

    def draw(figure: Any, rows: Rows) -> None:
        series = {}
        for way, text in NAMES.items():
            by_th = rates(rows[entry], way)
            series[text] = (list(by_th), list(by_th.values()))
        axes = figure.subplots()
        plots.lines(axes, series, "degree threshold TH", "GTEPS", log="x")
        axes.set_ylim(bottom=0)

    return draw


ALONE = (PLAIN, PUSH)
BETWEEN = tuple(f"host+{x}" for x in ("BR", "IR", "BR+L", "BR+U", "BR+L+U", "BR+push"))


def figure_8(bench: Any, _: str) -> Row:
    """Measure options of searches and of the exchange, with a breakdown."""
    graph = published_parts(bench, kronecker(bench, SCALE))
    ways = ALONE + (BETWEEN if bench.world.size > 1 else ())
    variants = {way: graph.variant(way, bench.looked) for way in ways}
    return {"graph": "", **graph.facts, "variants": variants}


def judge_figure_8(rows: Rows) -> Verdict:
    row = max(rows["figure 8"], key=lambda x: x["devices"])
    times = {way: x["median_ms"] for way, x in row["variants"].items()}
    gain = times[PUSH] / times[PLAIN]
    told = f"DO makes a search {gain:.2f} times as fast"
    if row["devices"] == 1:
        return Verdict(OTHER, f"{told} on one device, which has nothing to exchange")
    more = ", ".join(f"{w} {times[w] / times['host+BR']:.2f}" for w in BETWEEN[1:])
    return verdict(gain > 1, f"{told}; time over host+BR: {more}")


def draw_breakdowns(entry: str, across: str) -> Any:
    """Return a function that draws the work in parts; across: variants or scales."""

    def draw(figure: Any, rows: Rows) -> None:
        these = sorted(rows[entry], key=lambda x: x["devices"])
        if across == "variants":
            these = these[-1:]
        stacks = {}
        for row in these:
            for way, x in row["variants"].items():
                if x["breakdown_ms"]:
                    stacks[f"{way}\n{row['devices']} dev."] = x["breakdown_ms"]
        series = {
            text: [x[part] for x in stacks.values()] for part, text in PARTS.items()
        }
        label = "ms a search, each part waited for"
        plots.stacked(figure.subplots(), list(stacks), series, label)

    return draw


def scaling(scale: Any) -> Any:
    """Return a function that measures pan and xbfs on all devices there are."""

    def measure(bench: Any, _: str) -> Row:
        source = kronecker(bench, scale(bench.world.size))
        graph = published_parts(bench, source)
        variants = {way: graph.variant(way, bench.looked) for way in NAMES}
        row = {"graph": "", "scale": source.scale, **graph.facts, "variants": variants}
        del graph
        if bench.part_engine == "pan":
            variants["xbfs"] = parts_of(bench, source, None, "xbfs").variant(PLAIN)
        return row

    return measure


def line(rows: Any, way: str) -> dict[int, float]:
    """Return GTEPS by devices."""
    pairs = [
        (r["devices"], r["variants"][way]["GTEPS"])
        for r in rows
        if way in r["variants"]
    ]
    return dict(sorted(pairs))


def judge_scaling(entry: str, least: float) -> Any:
    """Return a judge of the efficiency from the fewest to the most devices."""

    def judge(rows: Rows) -> Verdict:
        points = line(rows[entry], PLAIN)
        few, many = min(points), max(points)
        if few == many:
            told = f"{points[few]:.4g} GTEPS on {few}; run it under mpirun for more"
            return Verdict(OPEN, told)
        share = points[many] / points[few] / (many / few)
        told = (
            f"{points[few]:.4g} GTEPS on {few} and {points[many]:.4g} on {many} devices"
        )
        return verdict(share > least, f"{told}, efficiency {share:.2f}")

    return judge


def draw_scaling(entry: str) -> Any:
    """Return a function that draws rates over devices."""

    def draw(figure: Any, rows: Rows) -> None:
        series = {}
        for way, text in {**NAMES, "xbfs": "engine xbfs"}.items():
            points = line(rows[entry], way)
            if points:
                series[text] = (list(points), list(points.values()))
        plots.lines(figure.subplots(), series, "devices", "GTEPS", log="xy")

    return draw


def judge_figure_10(rows: Rows) -> Verdict:
    these = sorted(rows["figure 9"], key=lambda x: x["devices"])
    parts = [x["variants"][PLAIN]["breakdown_ms"] for x in these]
    if not parts[0] or len(parts) == 1:
        return Verdict(OPEN, "breakdowns of several numbers of devices are needed")
    work = [sum(x[k] for k in ("nn", "dd", "nd", "dn", "queues")) for x in parts]
    told = f"computation grows {work[-1] / work[0]:.2f} times"
    return verdict(work[-1] / work[0] < 4, f"{told} (paper 4 over 7 scales)")


PAPER_RATES = {  # scale, devices: reference's GTEPS, the paper's
    (24, 1): (31.6, 22.9),
    (25, 2): (42.9, 32.5),
    (26, 4): (46.1, 39.8),
}


def table_2(bench: Any, _: str) -> Row:
    """Measure the paper's own single-node row of as many devices."""
    devices = bench.world.size
    source = kronecker(bench, 23 + devices.bit_length())
    graph = published_parts(bench, source)
    return {
        "graph": "",
        "scale": source.scale,
        **graph.facts,
        "variants": {PLAIN: graph.variant(PLAIN)},
        "published": PAPER_RATES.get((source.scale, devices)),
    }


def judge_table_2(rows: Rows) -> Verdict:
    words = [
        f"scale {r['scale']} on {r['devices']}: "
        f"{r['variants'][PLAIN]['geometric_mean_GTEPS']:.4g} GTEPS"
        + (
            f" (paper {r['published'][1]}, Gunrock {r['published'][0]})"
            if r["published"]
            else ""
        )
        for r in rows["table ii"]
    ]
    told = "the clusters of the other rows are not here"
    return Verdict(OTHER, f"{'; '.join(words)}; other devices than P100, and {told}")


DECADES = tuple(10.0**k for k in range(-8, 2, 1))
PAPER_FACTORS = {"dd": 0.5, "dn": 0.05, "nd": 1e-7}


def factors(bench: Any, name: str) -> Row:
    """Measure one direction factor over decades, the others at their defaults."""
    graph = published_parts(bench, kronecker(bench, SCALE))
    ways = {f"{x:g}": graph.variant(f"{name}={x:g}") for x in DECADES}
    usual = getattr(SubgraphFactors(), name).to_pull
    return {
        "graph": name,
        **graph.facts,
        "default": usual,
        "paper": PAPER_FACTORS[name],
        "variants": ways | {PLAIN: graph.variant(PLAIN)},
    }


def judge_factors(rows: Rows) -> Verdict:
    words, good = [], True
    for row in rows["direction factors"]:
        points = {
            float(k): x["GTEPS"] for k, x in row["variants"].items() if k != PLAIN
        }
        near = sorted(x for x in points if points[x] > 0.95 * max(points.values()))
        good &= near[0] <= 3 * row["paper"] and row["paper"] <= 3 * near[-1]
        words.append(
            f"{row['graph']} {near[0]:g} to {near[-1]:g} (paper {row['paper']:g})"
        )
    return verdict(good, f"within 5 % of the best: {', '.join(words)}")


def draw_factors(figure: Any, rows: Rows) -> None:
    series = {}
    for row in rows["direction factors"]:
        points = {
            float(k): x["GTEPS"] for k, x in row["variants"].items() if k != PLAIN
        }
        series[row["graph"]] = (list(points), list(points.values()))
    axes = figure.subplots()
    plots.lines(axes, series, "factor that turns to pull", "GTEPS", log="x")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)


TH = ("8", "16", "32", "64", "128", "256")
# fmt: off
PAPER = Paper(
    "pan",
    "Pan, Pearce, Owens: Scalable BFS on a GPU Cluster, IPDPS 2018",
    (
        Entry("table i", "bytes of the subgraphs",
            "8n + 8dp + 4m + 4|Enn|, a third of an edge list, about half of CSR",
            graphs=("auto", "8", "128"), measure=table_1, judge=judge_table_1,
            draw=draw_table_1, value=4, device=False),
        Entry("table ii", "rates beside other work",
            "22.9, 32.5 and 39.8 GTEPS on 1, 2 and 4 P100; 259.8 on 124",
            measure=table_2, judge=judge_table_2, value=2),
        Entry("figure 5", "edges and delegates over TH, scale 30",
            "any TH from 16 to 512 keeps nn edges under 10 %", measure=figure_5,
            judge=judge_figure_5, draw=draw_figure_5, size=(9, 4), value=4,
            device=False),
        Entry("figure 6", "rates over TH",
            "a wide range is best, 45 to 90 at scale 30 on 16 devices", graphs=TH,
            measure=over_thresholds(lambda bench: kronecker(bench, SCALE)),
            judge=judge_thresholds("figure 6", 45, 90),
            draw=draw_thresholds("figure 6"), value=3),
        Entry("figure 7", "suggested TH over scales",
            "TH grows by about 1.41 a scale; 1.75 % delegates, 6.3 % nn at scale 33",
            measure=figure_7, judge=judge_figure_7, draw=draw_figure_7, size=(9, 4),
            value=4, device=False),
        Entry("figure 8", "options: DO, L, U, IR and BR",
            "DO cuts computation to a third; L and U bring little; BR beats IR",
            measure=figure_8, judge=judge_figure_8,
            draw=draw_breakdowns("figure 8", "variants"), size=(10, 4.5), value=3),
        Entry("figure 9", "weak scaling", "mostly linear to 124 devices",
            measure=scaling(lambda devices: WEAK + devices.bit_length() - 1),
            judge=judge_scaling("figure 9", 0.6), draw=draw_scaling("figure 9"),
            value=2),
        Entry("figure 10", "breakdown along weak scaling",
            "computation grows 4 times over 7 scales, communication slightly faster",
            rows_of=("figure 9",), judge=judge_figure_10,
            draw=draw_breakdowns("figure 9", "scales"), size=(10, 4.5)),
        Entry("figure 11", "strong scaling",
            "29 % more with twice the devices, then flat; BFS scales better",
            measure=scaling(lambda _: STRONG), judge=judge_scaling("figure 11", 0.5),
            draw=draw_scaling("figure 11"), value=3),
        Entry("figure 12", "edges and delegates over TH, Friendster",
            "a wide range of TH is suitable, 16 to 128", graphs=(FRIENDSTER,),
            measure=figure_12, judge=judge_figure_12, draw=draw_figure_12, value=4,
            device=False),
        Entry("figure 13", "rates over TH, Friendster",
            "TH from 32 to 91 is near the best", graphs=TH,
            measure=over_thresholds(lambda bench: bench.source("pan", FRIENDSTER)),
            judge=judge_thresholds("figure 13", 32, 91),
            draw=draw_thresholds("figure 13"), value=3),
        Entry("direction factors", "Section VI-B: when a subgraph turns to pull",
            "0.5, 0.05 and 1e-7 for dd, dn and nd are near the best", graphs=SWITCHING,
            measure=factors, judge=judge_factors, draw=draw_factors, value=3),
        Entry("figure 1", "",
            cannot="a survey of other machines, not a measurement of this one"),
        *drawn("figure 2", "figure 3", "figure 4"),
        Entry("WDC 2012", "Section VI-D: the hyperlink graph on 160 devices",
            "84.2 GTEPS of BFS, 79.7 of DOBFS",
            cannot="its 224 billion edges need more memory than eight devices have, "
            "and its 330 levels no generator has"),
    ),
)
# fmt: on
