"""Table II of the Pan paper: its rows beside ours.

Ours is the fastest measured row of the same scale and number of devices; where there is
none, of the same scale, else of the largest scale, which stands there for orientation.
Rates of the paper are geometric means, so ours are too; the harmonic mean, as Graph500
counts, is beside it.  Source: Pan, Pearce, Owens 2018, Table II.
"""

from __future__ import annotations

from typing import Any

import pan_figures as pan
import pan_runs as runs

from distbfs.report.tables import print_table

P100, LARGE = "Tesla P100", "31x2x2 Tesla P100"
# scale, devices, reference, its hardware, its GTEPS, the paper's hardware and GTEPS
PUBLISHED = [
    (24, 1, "Pan [5]", f"1x1x1 {P100}", 31.6, f"1x1x1 {P100}", 22.9),
    (25, 2, "Pan [5]", f"1x1x2 {P100}", 42.9, f"1x1x2 {P100}", 32.5),
    (26, 4, "Pan [5]", f"1x1x4 {P100}", 46.1, f"1x1x4 {P100}", 39.8),
    (33, 124, "Bernaschi [18]", "4096x1x1 Tesla K20X", 828.39, LARGE, 259.8),
    (29, 8, "Krajecki [20]", "64x1x1 Tesla K20Xm", 13.7, f"2x1x4 {P100}", 53.13),
    (33, 124, "Yasui [9]", "128x10x1/10 Xeon E5-4650 v2", 174.7, LARGE, 259.8),
    (33, 124, "Buluç [16]", "1204x1x1 Xeon E5-2695 v2", 240.0, LARGE, 259.8),
]


def ours(rows: list[runs.Row], scale: int, devices: int) -> runs.Row:
    """Return the row that stands beside a published one."""
    same = [row for row in rows if row["scale"] == scale]
    largest = max(row["scale"] for row in rows)
    candidates = (
        [row for row in same if row["devices"] == devices]
        or same
        or [row for row in rows if row["scale"] == largest]
    )
    return max(candidates, key=lambda row: row["GTEPS"])


def main() -> None:
    args = runs.arguments(__doc__).parse_args()
    rows, origins = runs.read(args.files)
    rows = runs.chosen(
        rows,
        "of Kronecker graphs with parents",
        lambda row: row["scale"] is not None and row["options"]["parents"],
    )
    rows_of_table: list[dict[str, Any]] = []
    for scale, devices, name, hardware, rate, theirs, paper in PUBLISHED:
        row = ours(rows, scale, devices)
        rows_of_table.append(
            {
                "scale": scale,
                "reference": name,
                "reference_hardware": hardware,
                "reference_GTEPS": rate,
                "paper_hardware": theirs,
                "paper_GTEPS": paper,
                "our_scale": row["scale"],
                "our_devices": row["devices"],
                "our_hardware": row["where"] or row["engine"],
                "geometric_mean_GTEPS": row["geometric_mean_GTEPS"],
                "harmonic_mean_GTEPS": row["GTEPS"],
                "alike": (row["scale"], row["devices"]) == (scale, devices),
            }
        )

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        bars = {
            "reference_GTEPS": "reference",
            "paper_GTEPS": "paper",
            "geometric_mean_GTEPS": "ours",
        }
        for k, (name, label) in enumerate(bars.items()):
            at = [place + 0.27 * (k - 1) for place in range(len(rows_of_table))]
            drawn = axes.bar(
                at, [row[name] for row in rows_of_table], 0.27, label=label
            )
            axes.bar_label(drawn, fmt="%.4g", fontsize=6)
        names = [
            f"scale {row['scale']}\n{row['reference']}\nours: scale {row['our_scale']}"
            f"\non {row['our_devices']} device{'s' * (row['our_devices'] > 1)}"
            for row in rows_of_table
        ]
        axes.set_xticks(range(len(rows_of_table)), names, fontsize=7)
        axes.set_yscale("log")
        axes.margins(y=0.1)
        axes.set_ylabel("GTEPS, geometric mean")
        axes.legend(fontsize=8)

    names = ("scale", "reference", "on", "GTEPS", "paper on", "GTEPS", "our scale")
    more = ("on", "geometric mean GTEPS", "harmonic mean", "same size")
    lines = []
    for row in rows_of_table:
        cells, where = (
            list(row.values()),
            f"{row['our_devices']} x {row['our_hardware']}",
        )
        lines.append([*cells[:7], where, *cells[9:]])
    print_table((*names, *more), lines)
    pan.save(
        args.out, "pan_table2", {"rows": rows_of_table, "inputs": origins}, draw, (9, 4)
    )


if __name__ == "__main__":
    pan.main(main)
