"""Tables of graphs: what the generators make beside what was published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from papers import plots
from papers.entries import HOLDS, OTHER, Entry, Row, Verdict, names_of
from papers.graphs import BY_PAPER, properties

NEAR = 0.2  # of a published value
COMPARED = {  # measured -> published
    "vertices": "n",
    "edges": "m",
    "deviation": "deviation",
    "highest": "highest",
    "diameter_at_least": "diameter",
    "clustering": "clustering",
}


def measure_graph(bench: Any, paper: str, name: str) -> Row:
    """Return a graph's properties, the published ones and their ratios."""
    graph, _ = bench.graph(paper, name)
    known = bench.published(paper, name)
    measured = properties(graph, bench.numbers[0])
    there = {key: getattr(known, key) for key in COMPARED.values()}
    row = bench.about(paper, name) | {"measured": measured, "published": there}
    row["exact"] = known.exact or name in bench.files
    row["ratio"] = {
        key: measured[mine] / there[key] for mine, key in COMPARED.items() if there[key]
    }
    return row


def judge_graphs(rows: Sequence[Row]) -> Verdict:
    """Return how like the graphs are; files and the papers' generators are them."""
    exact = [row["graph"] for row in rows if row["exact"]]
    unlike = []
    for row in rows:
        off = [f"{k} {x:.2g}" for k, x in row["ratio"].items() if abs(x - 1) > NEAR]
        if off:
            unlike.append(f"{row['graph']} ({', '.join(off)})")
    told = f"; more than 20 % off, as ratios: {', '.join(unlike)}" if unlike else ""
    words = f"{len(exact)} of {len(rows)} graphs are the paper's, others are alike"
    word = HOLDS if len(exact) == len(rows) and not unlike else OTHER
    return Verdict(word, words + told)


def draw_graphs(figure: Any, rows: Sequence[Row]) -> None:
    """Draw measured over published values."""
    keys = [key for key in COMPARED.values() if any(key in r["ratio"] for r in rows)]
    panels = figure.subplots(len(keys), 1, sharex=True, squeeze=False)[:, 0]
    for axes, key in zip(panels, keys, strict=True):
        values = [row["ratio"].get(key) for row in rows]
        plots.bars(axes, names_of(rows), {key: values}, key, log=True, one=True)
        axes.get_legend().remove()
    figure.suptitle("measured over published", fontsize=9)


def graph_table(paper: str, name: str, says: str, size: tuple[float, float]) -> Entry:
    """Return the entry of a paper's table of graphs."""
    return Entry(
        name,
        "the graphs, published and made",
        says,
        graphs=tuple(BY_PAPER[paper]),
        measure=lambda bench, graph: measure_graph(bench, paper, graph),
        judge=lambda rows: judge_graphs(rows[name]),
        draw=lambda figure, rows: draw_graphs(figure, rows[name]),
        size=size,
        value=4,
    )
