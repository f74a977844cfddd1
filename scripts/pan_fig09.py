"""Fig. 9 of the Pan paper: weak scaling, so many vertices a device on more devices.

From one file of ``bench_parts.py`` for each number of devices.
Source: Pan, Pearce, Owens 2018, Section VI-C.
"""

from __future__ import annotations

from typing import Any

import pan_figures as pan
import pan_runs as runs

PAPER = {"devices": 124, "scale": 33, "GTEPS": 259.8, "device": "Tesla P100"}


def line_of(rows: list[runs.Row]) -> list[dict[str, Any]]:
    """Return rates and efficiency over devices."""
    best_rows = runs.best(rows, "devices")
    first = next(iter(best_rows.values()))
    share = first["GTEPS"] / first["devices"]
    return [
        {
            "devices": row["devices"],
            "scale": row["scale"],
            "threshold": row["threshold"],
            "exchange": row["exchange"],
            "GTEPS": row["GTEPS"],
            "efficiency": row["GTEPS"] / row["devices"] / share,
        }
        for row in best_rows.values()
    ]


def main() -> None:
    parser = runs.arguments(__doc__)
    parser.add_argument("--device-scale", type=int, help="scale a device; else found")
    args = parser.parse_args()
    rows, origins = runs.read(args.files)
    usual = [row for row in rows if row["variant"] in runs.LABELS]
    scale = args.device_scale
    if scale is None:
        scale = runs.most_points(usual, runs.device_scale)
    usual = runs.chosen(
        usual, f"of scale {scale} a device", lambda row: runs.device_scale(row) == scale
    )
    lines = {
        name: line_of(rows_of_variant)
        for name in runs.LABELS
        if (rows_of_variant := [row for row in usual if row["variant"] == name])
    }
    most = max(map(len, lines.values()))
    lines = {name: x for name, x in lines.items() if len(x) > 1 or most == 1}

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
                text = f"scale {point['scale']}: {point['efficiency']:.0%}"
                shift = {"xytext": (4, -11), "textcoords": "offset points"}
                spot = point["devices"], point["GTEPS"]
                axes.annotate(text, spot, fontsize=7, **shift)
        ticks = sorted({p["devices"] for points in lines.values() for p in points})
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(ticks, ticks)
        axes.margins(x=0.15)
        axes.set_xlabel("devices (dotted: linear)")
        axes.set_ylabel("GTEPS")
        axes.set_title(f"scale {scale} a device", fontsize=9)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)

    for name, points in lines.items():
        for point in points:
            print(
                f"{name}: {point['devices']} devices, scale {point['scale']}, "
                f"{point['GTEPS']:.4g} GTEPS, {point['efficiency']:.1%}"
            )
    values = {
        "device_scale": scale,
        "lines": lines,
        "paper": PAPER,
        "inputs": origins,
    }
    pan.save(args.out, "pan_fig09", values, draw)


if __name__ == "__main__":
    pan.main(main)
