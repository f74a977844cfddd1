"""Fig. 8 of the Pan paper: what a search spends its time with, by options.

DO: direction optimisation; L: local all2all; U: uniquify; IR and BR: nonblocking and
blocking reduction of the masks.  Parts are those of searches that wait for each one, so
they add up to more than a search as it runs.  One diagram for each graph.
Source: Pan, Pearce, Owens 2018, Section VI-B.
"""

from __future__ import annotations

from typing import Any

import pan_figures as pan
import pan_runs as runs

MOST = 3  # diagrams


def label_of(row: runs.Row) -> str:
    """Return the options of a row as the paper writes them, and its exchange."""
    options = row["options"]
    words = [] if options["direction"] == "push" else ["DO"]
    words += ["L"] * options["local_all2all"] + ["U"] * options["uniquify"]
    words.append("IR" if options["mask_reduce"] == "nonblocking" else "BR")
    words += ["levels"] * (not options["parents"])
    return "+".join(words) + "\n" + row["exchange"]


def main() -> None:
    args = runs.arguments(__doc__).parse_args()
    rows, origins = runs.read(args.files)
    rows = runs.chosen(
        rows,
        "with a breakdown",
        lambda row: runs.has_breakdown(row) and "=" not in row["variant"],
    )
    graphs: dict[str, list[runs.Row]] = {}
    for row in rows:
        graphs.setdefault(runs.name_of(row), []).append(row)
    most = {
        name: list(
            {
                label_of(row): row
                for row in rows_of_graph
                if row["threshold"] == rows_of_graph[0]["threshold"]
            }.values()
        )
        for name, rows_of_graph in graphs.items()
    }
    shown = sorted(most, key=lambda name: -len(most[name]))[:MOST]

    def draw(figure: Any) -> None:
        every = figure.subplots(1, len(shown), squeeze=False)[0]
        for axes, name in zip(every, shown, strict=True):
            rows_of_graph = most[name]
            runs.stack(axes, rows_of_graph, [label_of(row) for row in rows_of_graph])
            axes.tick_params(axis="x", labelrotation=90)
            axes.set_title(f"{name}, TH {rows_of_graph[0]['threshold']}", fontsize=9)
        pan.shared_legend(figure, every[0], 6)

    values = {
        "inputs": origins,
        "graphs": {
            name: [
                {"options": label_of(row), **runs.slim(row)} for row in rows_of_graph
            ]
            for name, rows_of_graph in most.items()
        },
    }
    pan.save(args.out, "pan_fig08", values, draw, (max(4 + 3 * len(shown), 10), 5))


if __name__ == "__main__":
    pan.main(main)
