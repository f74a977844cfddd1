"""Predicted weak scaling with the paper's cost model, beside what was measured.

Scale 26 a device, 1 to 8192 devices.  Constants are those of ``distbfs plan``: fitted
to level records where these are given with their reports, else assumed.  Measured
points: files of ``distbfs graph500 --json``; or JSON with "rows" that have "devices",
"scale" and "GTEPS"; those with another "variant" than default are left out.
Source: Pan, Pearce, Owens 2018, Sections V and VI-C (Fig. 9).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pan_figures as pan

from distbfs.engines.cuda.xbfs.memory import part_bytes
from distbfs.errors import InputError, UsageError
from distbfs.plan.cost_model import Run
from distbfs.terminal.plan_input import (
    model_of,
    of_kronecker,
    read_report,
    runs_of,
)

PLAIN = "default"  # the variant that is meant, of several
PARTS = {
    "work": "tab:blue",
    "masks": "tab:green",
    "normals": "tab:red",
    "latency": "tab:purple",
    "finish": "tab:grey",
}


def measured(path: Path) -> list[dict[str, float]]:
    """Return the points of a result file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(values, dict) and "rows" in values:
            names = {"devices": int, "scale": int, "GTEPS": float}
            rows = [x for x in values["rows"] if x.get("variant", PLAIN) == PLAIN]
            return [{k: of(row[k]) for k, of in names.items()} for row in rows]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no rows with devices, scale and GTEPS") from error
    report = read_report(path)
    point = {
        "devices": report["parts"],
        "scale": report["SCALE"],
        "GTEPS": report["GTEPS"],
    }
    return [point]


def options() -> argparse.Namespace:
    """Return what the command line says, checked."""
    parser = pan.arguments(__doc__)
    parser.add_argument("--device-scale", type=int, default=26, help="scale a device")
    parser.add_argument("--last", type=int, default=13, help="2^LAST devices, the most")
    parser.add_argument("--per-rank", type=int, default=1, help="devices a rank")
    parser.add_argument(
        "--bandwidth", type=float, nargs="+", help="bytes/s between ranks, a line each"
    )
    parser.add_argument("--latency", type=float, help="seconds a level")
    parser.add_argument("--rate", type=float, help="visits/s of a device")
    parser.add_argument("--records", type=Path, nargs="*", default=[], help="to fit")
    parser.add_argument("--report", type=Path, nargs="*", default=[], help="of records")
    parser.add_argument("--measured", type=Path, nargs="*", default=[], help="points")
    args = parser.parse_args()
    if not 1 <= args.device_scale <= 28 or not 1 <= args.last <= 16:
        raise UsageError("the scale a device goes from 1 to 28, --last from 1 to 16")
    if len(args.records) != len(args.report):
        raise UsageError("every file of --records needs its --report")
    if args.per_rank < 1 or args.per_rank & (args.per_rank - 1):
        raise UsageError("--per-rank is a power of 2")
    if args.small:
        args.last = min(args.last, 5)
    return args


def line_of(
    args: argparse.Namespace, bandwidth: float | None, runs: Sequence[Run]
) -> dict[str, Any]:
    """Return a line of predictions along weak scaling."""
    rows: list[dict[str, Any]] = []
    constants = {"bandwidth": bandwidth, "latency": args.latency, "rate": args.rate}
    for k in range(args.last + 1):
        graph = of_kronecker(args.device_scale + k, 16, 1 << k, None)
        model = model_of(graph, min(args.per_rank, 1 << k), runs, **constants).as_dict()
        names = ("GTEPS", "seconds", "seconds_by_part", "mask_bytes", "normal_bytes")
        point = {
            "devices": 1 << k,
            "scale": args.device_scale + k,
            "threshold": graph.threshold,
            "delegates": graph.delegates,
            "nn": graph.nn,
            "device_bytes": part_bytes(graph.shapes[0])["total"],
        }
        rows.append(point | {name: model[name] for name in names})
    return {"constants": model["constants"], "rows": rows}


def draw_rates(
    axes: Any, lines: list[dict[str, Any]], points: list[dict[str, float]]
) -> None:
    """Draw predicted rates over devices, measured ones on them."""
    for line in lines:
        bandwidth = line["constants"]["bandwidth"]
        at = [row["devices"] for row in line["rows"]]
        rates = [row["GTEPS"] for row in line["rows"]]
        label = f"model, {bandwidth['value'] / 1e9:.3g} GB/s ({bandwidth['origin']})"
        axes.plot(at, rates, "-o", ms=3, label=label)
    first = lines[0]["rows"][0]["GTEPS"]
    ideal = [first * devices for devices in at]
    axes.plot(at, ideal, ":", color="grey", label="linear from one device")
    if points:
        at, rates = ([p[k] for p in points] for k in ("devices", "GTEPS"))
        marks = {"ls": "none", "marker": "*", "ms": 9, "color": "tab:red"}
        axes.plot(at, rates, label="measured", **marks)
    for point in points:
        spot = (point["devices"], point["GTEPS"])
        shift = {"xytext": (7, -8), "textcoords": "offset points"}
        axes.annotate(f"scale {point['scale']}", spot, fontsize=7, **shift)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylabel("GTEPS")


def draw_times(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Draw what a search is predicted to spend its time with."""
    base = [0.0] * len(rows)
    for name, colour in PARTS.items():
        spent = [1e3 * row["seconds_by_part"][name] for row in rows]
        axes.bar(range(len(rows)), spent, 0.7, bottom=base, color=colour, label=name)
        base = [a + b for a, b in zip(base, spent, strict=True)]
    names = [row["devices"] for row in rows]
    axes.set_xticks(range(len(rows)), names, fontsize=7, rotation=45)
    axes.set_ylabel("predicted ms a search")


def main() -> None:
    args = options()
    first = of_kronecker(args.device_scale, 16, 1, None)
    runs = runs_of(args.records, args.report, first.counts(1))
    points = [point for path in args.measured for point in measured(path)]
    lines = [line_of(args, x, runs) for x in args.bandwidth or [None]]

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        draw_rates(left, lines, points)
        draw_times(right, lines[0]["rows"])
        constants = lines[0]["constants"]
        rate, latency, bandwidth = (
            constants[name] for name in ("rate", "latency", "bandwidth")
        )
        right.set_title(f"at {bandwidth['value'] / 1e9:.3g} GB/s a device", fontsize=9)
        left.set_title(f"scale {args.device_scale} a device", fontsize=9)
        for axes in (left, right):
            axes.set_xlabel("devices")
            axes.grid(alpha=0.3)
            axes.set_axisbelow(True)
            axes.legend(fontsize=7)
        figure.suptitle(
            f"weak scaling by the cost model: {rate['value']:.3g} visits/s a device "
            f"({rate['origin']}), {latency['value'] * 1e6:.3g} µs a level "
            f"({latency['origin']})",
            fontsize=9,
        )

    values = {
        "device_scale": args.device_scale,
        "devices_per_rank": args.per_rank,
        "records": [str(path) for path in args.records],
        "lines": lines,
        "measured": points,
    }
    pan.save(args.out, "pan_model", values, draw, (9, 4))


if __name__ == "__main__":
    pan.main(main)
