"""Summaries of the rows of ``bench_devices.py``: scaling, shapes, the largest scale."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from device_cells import Grid, Row

GOAL, AIM, AIM_GTEPS = 1.7, 1.9, 10_000.0


def figures_of(report: dict[str, Any]) -> Row:
    """Return the row's figures from a report of ``distbfs graph500``."""
    search = report.get("search", {})
    looked = [x["validate"] for x in report["searches"] if x["validate"] >= 0]
    return {
        "GTEPS": report["harmonic_mean_TEPS"] * 1e-9,
        "median_ms": 1e3 * report["median_time"],
        "quartiles_ms": [
            1e3 * report[f"{x}_time"] for x in ("firstquartile", "thirdquartile")
        ],
        "roots": report["NBFS"],
        "validated": len(looked),
        "validate_seconds": statistics.mean(looked) if looked else None,
        "result": report["result"],
        "ids": report["ids"],
        "mode": search.get("mode"),
        "exchange": search.get("exchange"),
        "threshold": report["TH"],
        "construction_seconds": report["construction_time"],
    }


def report_of(rows: Sequence[Row], grid: Grid) -> dict[str, Any]:
    """Return scaling, shapes, the largest scale, and the goals."""
    done = [row for row in rows if row["state"] == "done"]
    first = [row for row in done if row["turn"] == 1]
    summary: dict[str, Any] = {}
    for use in ("weak", "strong"):
        lines = {x: scaling(first, grid, x, use) for x in grid.methods}
        summary[use] = {x: line for x, line in lines.items() if len(line) > 1}
    summary |= {"shapes": shapes(first), "largest": largest(done, grid.devices)}
    if grid.cpu:
        return summary
    twice = {x: doubling(done, grid, x) for x in grid.methods}
    best = max((row["GTEPS"] for row in done), default=0.0)
    return summary | {
        "doubling": {x: pair for x, pair in twice.items() if pair},
        "best_GTEPS": best,
        "wanted": {"doubling": GOAL, "aim": AIM, "GTEPS": AIM_GTEPS},
        "reached": {
            "doubling": any(pair and pair["ratio"] >= GOAL for pair in twice.values()),
            "aim": any(pair and pair["ratio"] >= AIM for pair in twice.values()),
            "GTEPS": best >= AIM_GTEPS,
        },
    }


def scaling(rows: Sequence[Row], grid: Grid, method: str, use: str) -> list[Row]:
    """Return rates over devices; efficiency is that of each, over the first's."""
    line = {}
    for row in rows:
        devices = row["devices"]
        usual = row["ranks"] == grid.usual_ranks(devices)
        scale = grid.weak_scale(devices) if use == "weak" else grid.strong
        if (
            usual
            and row["method"] == grid.on(method, devices)
            and row["scale"] == scale
        ):
            line[devices] = row
    in_order = [line[x] for x in sorted(line)]
    named = ("devices", "shape", "scale", "method", "GTEPS", "validated", "roots")
    points = []
    for row in in_order:
        faster = row["GTEPS"] / in_order[0]["GTEPS"]
        share = faster * in_order[0]["devices"] / row["devices"]
        ratios = {"faster": faster, "efficiency": share}
        points.append({name: row[name] for name in named} | ratios)
    return points


def served(row: Row, grid: Grid, method: str) -> bool:
    """Return whether a row belongs to the series of a method of several devices."""
    return bool(row["method"] == grid.on(method, row["devices"]))


def doubling(rows: Sequence[Row], grid: Grid, method: str) -> Row | None:
    """Compare all devices at the last weak scale with half of them one before.

    A ratio for each repetition in which both ran.
    """
    most = grid.devices
    weak = [x for x in rows if "weak" in x["uses"] and served(x, grid, method)]
    at = {(x["devices"], x["turn"]): x for x in weak}
    turns = [t for d, t in at if d == most and (most // 2, t) in at]
    if not turns or most < 2:
        return None
    pairs = [(at[most, t], at[most // 2, t]) for t in sorted(turns)]
    ratios = [a["GTEPS"] / b["GTEPS"] for a, b in pairs]
    named = [f"{x['devices']} at {x['scale']}" for x in pairs[0]]
    middle = statistics.median(ratios)
    return {
        "cells": named,
        "ratios": ratios,
        "ratio": middle,
        "validated": min(x["validated"] for pair in pairs for x in pair),
    }


def shapes(rows: Sequence[Row]) -> list[Row]:
    """Return rates of all shapes; over the same method with one rank."""
    named = ("shape", "ranks", "scale", "method", "mode", "exchange", "GTEPS")
    shaped = [row for row in rows if "shapes" in row["uses"]]
    alone = {row["method"]: row["GTEPS"] for row in shaped if row["ranks"] == 1}
    return [
        {name: row[name] for name in named}
        | {"over_one_rank": row["GTEPS"] / alone[row["method"]]}
        for row in sorted(shaped, key=lambda x: (x["ranks"], x["method"]))
        if row["method"] in alone
    ]


def largest(rows: Sequence[Row], devices: int) -> Row | None:
    """Return the largest scale that all devices searched, and that was validated."""
    on_all = [row for row in rows if row["devices"] == devices]
    if not on_all:
        return None
    best = max(on_all, key=lambda x: (x["scale"], x["validated"] > 0, x["GTEPS"]))
    checked = [row["scale"] for row in on_all if row["validated"]]
    named = ("scale", "method", "GTEPS", "roots", "validated")
    return {name: best[name] for name in named} | {
        "largest_validated": max(checked, default=None)
    }


def lines_of(summary: dict[str, Any]) -> Iterator[str]:
    """Yield lines of text: scaling, and the goals."""
    for use in ("weak", "strong"):
        for method, line in summary[use].items():
            points = [
                f"{x['devices']} at {x['scale']}: x {x['faster']:.3g} "
                f"({x['efficiency']:.0%})"
                for x in line
            ]
            yield f"{use}, {method}: {', '.join(points)}"
    for method, pair in summary.get("doubling", {}).items():
        ratios = ", ".join(f"{x:.3g}" for x in pair["ratios"])
        yield f"{' over '.join(pair['cells'])}, {method}: {ratios}"
    if (top := summary["largest"]) is not None:
        checked = top["largest_validated"]
        yield f"largest scale: {top['scale']}, {top['method']}; validated: {checked}"


def draw(figure: Any, report: dict[str, Any]) -> None:
    """Draw weak scaling, strong scaling and shapes of a result file."""
    weak, strong, shape = figure.subplots(1, 3)
    unit = "parts" if report["form"] == "cpus" else "devices"
    for axes, use, label in (
        (weak, "weak", "GTEPS (dotted: linear)"),
        (strong, "strong", "times the rate of the fewest (dotted: linear)"),
    ):
        for method, line in report["told"][use].items():
            at = [x["devices"] for x in line]
            values = [x["GTEPS" if use == "weak" else "faster"] for x in line]
            (drawn,) = axes.plot(at, values, "-o", ms=4, label=method)
            ideal = [values[0] * x / at[0] for x in at]
            axes.plot(at, ideal, ":", lw=1, color=drawn.get_color())
            for x, value, point in zip(at, values, line, strict=True):
                text = f"{point['scale']}: {point['efficiency']:.0%}"
                shift = {"xytext": (3, -10), "textcoords": "offset points"}
                axes.annotate(text, (x, value), fontsize=6, **shift)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log", base=2)
            axes.set_xticks(at, at)
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.legend(fontsize=7)
        axes.margins(x=0.2)
        axes.set_xlabel(f"{unit} (scale: efficiency)")
        axes.set_ylabel(label)
        axes.set_title(f"{use} scaling", fontsize=9)
        axes.grid(alpha=0.3)
    rows = report["told"]["shapes"]
    names = [f"{x['shape']} {x['method']}" for x in rows]
    shape.barh(names, [x["GTEPS"] for x in rows], height=0.7)
    shape.tick_params(axis="y", labelsize=7)
    shape.set_xlabel("GTEPS")
    shape.set_title(f"hosts x ranks x {unit}", fontsize=9)
    shape.grid(axis="x", alpha=0.3)
    shape.set_axisbelow(True)
