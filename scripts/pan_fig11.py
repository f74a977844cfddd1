"""Fig. 11 of the Pan paper: strong scaling, the same graph on more devices.

From one file of ``bench_parts.py`` for each number of devices.
Source: Pan, Pearce, Owens 2018, Section VI-C.
"""

from __future__ import annotations

from typing import Any

import pan_figures as pan
import pan_runs as runs


def line_of(rows: list[runs.Row]) -> list[dict[str, Any]]:
    """Return rates and how much faster each number of devices is than the least."""
    best_rows = list(runs.best(rows, "devices").values())
    names = ("devices", "threshold", "exchange", "GTEPS", "median_ms")
    return [
        {name: row[name] for name in names}
        | {"faster": row["GTEPS"] / best_rows[0]["GTEPS"]}
        for row in best_rows
    ]


def main() -> None:
    parser = runs.arguments(__doc__)
    parser.add_argument("--scale", type=int, help="of the graph; else found")
    args = parser.parse_args()
    rows, origins = runs.read(args.files)
    usual = [row for row in rows if row["variant"] in runs.LABELS]
    scale = args.scale
    if scale is None:
        scale = runs.most_points(usual, lambda row: row["scale"])
    usual = runs.chosen(usual, f"of scale {scale}", lambda row: row["scale"] == scale)
    lines = {
        name: line_of(rows_of_variant)
        for name in runs.LABELS
        if (rows_of_variant := [row for row in usual if row["variant"] == name])
    }

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for name, points in lines.items():
            at = [point["devices"] for point in points]
            rates = [point["GTEPS"] for point in points]
            colour = runs.COLOURS[name]
            axes.plot(at, rates, "-o", color=colour, label=runs.LABELS[name])
            ideal = [rates[0] * k / at[0] for k in at]
            axes.plot(at, ideal, ":", color=colour, lw=1)
            for point in points:
                shift = {"xytext": (4, -11), "textcoords": "offset points"}
                spot = point["devices"], point["GTEPS"]
                axes.annotate(f"x {point['faster']:.2f}", spot, fontsize=7, **shift)
        ticks = sorted({p["devices"] for points in lines.values() for p in points})
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, ticks)
        runs.from_zero(axes)
        axes.margins(x=0.15)
        axes.set_xlabel("devices (dotted: linear)")
        axes.set_ylabel("GTEPS")
        axes.set_title(f"Kronecker, scale {scale}", fontsize=9)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)

    for name, points in lines.items():
        for point in points:
            print(
                f"{name}: {point['devices']} devices, {point['GTEPS']:.4g} GTEPS, "
                f"x {point['faster']:.3g}"
            )
    values = {"scale": scale, "lines": lines, "inputs": origins}
    pan.save(args.out, "pan_fig11", values, draw)


if __name__ == "__main__":
    pan.main(main)
