"""Fig. 10 of the Pan paper: what a search spends its time with along weak scaling.

DOBFS on the left, BFS (push only) on the right; see pan_fig08.py for the parts.
Source: Pan, Pearce, Owens 2018, Section VI-C.
"""

from __future__ import annotations

from typing import Any

import pan_figures as pan
import pan_runs as runs


def main() -> None:
    parser = runs.arguments(__doc__)
    parser.add_argument("--device-scale", type=int, help="scale a device; else found")
    args = parser.parse_args()
    rows, origins = runs.read(args.files)
    usual = [
        row for row in rows if row["variant"] in runs.LABELS and runs.has_breakdown(row)
    ]
    scale = args.device_scale
    if scale is None:
        scale = runs.most_points(usual, runs.device_scale)
    usual = runs.chosen(
        usual,
        f"of scale {scale} a device with a breakdown",
        lambda row: runs.device_scale(row) == scale,
    )
    lines = {
        name: list(runs.best(rows_of_variant, "devices").values())
        for name in runs.LABELS
        if (rows_of_variant := [row for row in usual if row["variant"] == name])
    }

    def draw(figure: Any) -> None:
        every = figure.subplots(1, len(lines), squeeze=False)[0]
        for axes, (name, rows_of_variant) in zip(every, lines.items(), strict=True):
            labels = [f"scale {x['scale']}\non {x['devices']}" for x in rows_of_variant]
            runs.stack(axes, rows_of_variant, labels)
            axes.set_title(runs.LABELS[name], fontsize=9)
            axes.set_xlabel("graph, devices")
        pan.shared_legend(figure, every[0], 6)

    values = {
        "device_scale": scale,
        "lines": {
            k: [runs.slim(row) for row in rows_of_variant]
            for k, rows_of_variant in lines.items()
        },
        "inputs": origins,
    }
    pan.save(args.out, "pan_fig10", values, draw, (9, 4.5))


if __name__ == "__main__":
    pan.main(main)
