"""The sweep of direction factors: rates over the factor that turns to pull.

From files of ``bench_parts.py --scales S --factors sweep``: one of dd, dn and nd has
each value from 1e-8 to 10, the others what they have by default.
Source: Pan, Pearce, Owens 2018, Section VI-B.
"""

from __future__ import annotations

from typing import Any

import pan_figures as pan
import pan_runs as runs

from distbfs.options import SubgraphFactors

PAPER = {"dd": 0.5, "dn": 0.05, "nd": 1e-7}
COLOURS = {"dd": "tab:blue", "dn": "tab:green", "nd": "tab:red"}


def lines_of(rows: list[runs.Row]) -> dict[str, dict[str, Any]]:
    """Return rates over each factor, the best one and the range near it."""
    rates_of: dict[str, dict[float, float]] = {}
    for row in rows:
        name, _, value = row["variant"].partition("=")
        rates_of.setdefault(name, {})[float(value)] = row["GTEPS"]
    return {
        name: {**runs.near_best(rates), "rates": dict(sorted(rates.items()))}
        for name, rates in rates_of.items()
    }


def main() -> None:
    args = runs.arguments(__doc__).parse_args()
    rows, origins = runs.read(args.files)
    swept = runs.chosen(
        rows,
        "of direction factors",
        lambda row: row["variant"].partition("=")[0] in runs.SWITCHING,
    )
    keys = list(dict.fromkeys((runs.name_of(x), x["threshold"]) for x in swept))
    graphs = [
        {
            "graph": graph,
            "threshold": threshold,
            "lines": lines_of(
                [x for x in swept if (runs.name_of(x), x["threshold"]) == key]
            ),
            "default": next(
                (
                    x["GTEPS"]
                    for x in rows
                    if (runs.name_of(x), x["threshold"], x["variant"])
                    == (*key, runs.PLAIN)
                ),
                None,
            ),
        }
        for key in keys
        for graph, threshold in [key]
    ]

    def draw(figure: Any) -> None:
        every = figure.subplots(1, len(graphs), squeeze=False)[0]
        for axes, panel in zip(every, graphs, strict=True):
            for name, line in panel["lines"].items():
                at, rates = list(line["rates"]), list(line["rates"].values())
                axes.plot(at, rates, "-o", ms=3.5, color=COLOURS[name], label=name)
                usual = getattr(SubgraphFactors(), name).to_pull
                axes.axvline(usual, color=COLOURS[name], ls=":", lw=1)
            if panel["default"] is not None:
                style = {"color": "black", "ls": "--", "lw": 1}
                axes.axhline(panel["default"], label="all by default", **style)
            axes.set_xscale("log")
            runs.from_zero(axes)
            axes.set_xlabel("factor that turns to pull (dotted: default)")
            axes.set_ylabel("GTEPS")
            axes.set_title(f"{panel['graph']}, TH {panel['threshold']}", fontsize=9)
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8)

    for panel in graphs:
        for name, line in panel["lines"].items():
            print(
                f"{panel['graph']}, {name}: best {line['best']:g} with "
                f"{line['GTEPS']:.4g} GTEPS, within 5 % from {line['near'][0]:g} to "
                f"{line['near'][1]:g}; the paper {PAPER[name]:g}"
            )
    defaults = {name: vars(getattr(SubgraphFactors(), name)) for name in runs.SWITCHING}
    values = {
        "graphs": graphs,
        "defaults": defaults,
        "paper": PAPER,
        "inputs": origins,
    }
    pan.save(args.out, "pan_factors", values, draw, (2 + 4.5 * len(graphs), 4))


if __name__ == "__main__":
    pan.main(main)
