"""Summaries of the rows of ``bench_devices.py``: scaling, shapes, the largest scale."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from device_cells import EXCHANGES, Grid, Row

KINDS = ("masks", "normals", "questions", "answers", "parents")  # what is sent
WANTED = {  # GTEPS of four devices of one host by (scale, internal ids): must, aim
    (28, False): (4500, 5500),
    (28, True): (5200, 6500),
    (26, False): (3300, 4000),
    (26, True): (3800, 5000),
    (31, False): (4500, 5500),
}
WANTED_BETWEEN = {2: (1800, 3000), 1: (1500, 2500)}  # scale 28, nccl, by domain
WANTED_OF_ONE = (0.25, 0.42)  # a device in domains of one each, weak scaling, over one


def figures_of(report: dict[str, Any]) -> Row:
    """Return the row's figures from a report of ``distbfs graph500``."""
    search = report.get("search", {})
    looked = [x["validate"] for x in report["searches"] if x["validate"] >= 0]
    large = report["harmonic_mean_TEPS_large"]
    return {
        "GTEPS": report["harmonic_mean_TEPS"] * 1e-9,
        "GTEPS_large": None if large is None else large * 1e-9,
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


def sent_of(records: Iterable[str]) -> Row:
    """Return medians over searches of what rank 0 sent, and of levels and their time.

    records: lines of ``--records``, a level each.  ``bytes``: by kind, of a search;
    ``us_a_level``: by phase, mean over the levels of a search
    """
    searches: dict[int, list[Row]] = {}
    for line in records:
        level = json.loads(line)
        searches.setdefault(level["root"], []).append(level)
    if not searches:
        return {}
    each = list(searches.values())

    def middle(name: str, entry: str, of: Callable[[list[float]], float]) -> float:
        return statistics.median(of([y[name][entry] for y in x]) for x in each)

    phases, mean = each[0][0]["seconds"], statistics.mean
    return {
        "levels": statistics.median(map(len, each)),
        "bytes": {kind: middle("bytes_sent", kind, sum) for kind in KINDS},
        "us_a_level": {x: 1e6 * middle("seconds", x, mean) for x in phases},
    }


def report_of(rows: Sequence[Row], grid: Grid) -> dict[str, Any]:
    """Return scaling, shapes, the largest scale, and rates beside those wanted."""
    done = [row for row in rows if row["state"] == "done"]
    summary: dict[str, Any] = {}
    methods = (grid.on(2),) if grid.cpu else (grid.on(2), EXCHANGES[0])
    for use in ("weak", "strong"):
        lines = {x: scaling(done, grid, x, use) for x in methods}
        summary[use] = {x: line for x, line in lines.items() if len(line) > 1}
    summary |= {"shapes": shapes(done), "largest": largest(done, grid.devices)}
    if not grid.cpu and grid.devices == 4:
        summary["wanted"] = list(wanted(done, summary["weak"]))
    return summary


def wanted(rows: Sequence[Row], weak: dict[str, Any]) -> Iterator[Row]:
    """Yield rates of four devices beside what must be and should be reached."""
    for row in rows:
        if row["devices"] != 4 or "checked" in row["uses"]:
            continue
        goal = WANTED.get((row["scale"], row["internal"]))
        if row["domain"]:
            first = (row["scale"], row["method"]) == (28, EXCHANGES[0])
            goal = WANTED_BETWEEN.get(row["domain"]) if first else None
        if goal:
            value = row["GTEPS_large"] or row["GTEPS"]
            yield {**named(row), "value": value, "must": goal[0], "aim": goal[1]}
    line = weak.get(EXCHANGES[0], [])
    if line and (last := line[-1])["devices"] == 4:
        must, aim = WANTED_OF_ONE
        value = {"value": last["efficiency"], "must": must, "aim": aim}
        yield {**named(last), "what": "efficiency", **value}


def named(row: Row) -> Row:
    """Return what names a row."""
    return {x: row[x] for x in ("shape", "scale", "way")}


def scaling(rows: Sequence[Row], grid: Grid, method: str, use: str) -> list[Row]:
    """Return rates over devices; efficiency is that of each, over the first's.

    One device alone begins the line of any method.
    """
    line = {}
    for row in rows:
        if use not in row["uses"] or row["internal"]:
            continue
        if row["method"] in (method, grid.on(1)):
            line[row["devices"]] = row
    in_order = [line[x] for x in sorted(line)]
    points = []
    for row in in_order:
        faster = row["GTEPS"] / in_order[0]["GTEPS"]
        share = faster * in_order[0]["devices"] / row["devices"]
        rest = {x: row[x] for x in ("devices", "GTEPS", "validated", "roots")}
        points.append({**named(row), **rest, "faster": faster, "efficiency": share})
    return points


def shapes(rows: Sequence[Row]) -> list[Row]:
    """Return rates of all divisions of the devices among ranks and domains."""
    shaped = [row for row in rows if {"shapes", "domains"} & set(row["uses"])]
    return [
        {**named(row), "ranks": row["ranks"], "GTEPS": row["GTEPS"]}
        for row in sorted(shaped, key=lambda x: (x["ranks"], x["way"]))
    ]


def largest(rows: Sequence[Row], devices: int) -> Row | None:
    """Return the largest scale that all devices searched, and that was validated."""
    on_all = [row for row in rows if row["devices"] == devices]
    if not on_all:
        return None
    best = max(on_all, key=lambda x: (x["scale"], x["validated"] > 0, x["GTEPS"]))
    checked = [row["scale"] for row in on_all if row["validated"]]
    rest = {x: best[x] for x in ("GTEPS", "roots", "validated")}
    most = max(checked, default=None)
    return {**named(best), **rest, "largest_validated": most}


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
    if (top := summary["largest"]) is not None:
        checked = top["largest_validated"]
        yield f"largest scale: {top['scale']}, {top['way']}; validated: {checked}"
    for row in summary.get("wanted", []):
        at = f"{row['shape']}, scale {row['scale']}, {row['way']}"
        what = row.get("what", "GTEPS")
        goal = f"must {row['must']:g}, aim {row['aim']:g}"
        yield f"{at}: {row['value']:.4g} {what} ({goal})"


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
            axes.legend(fontsize=7)
        axes.margins(x=0.2)
        axes.set_xlabel(f"{unit} (scale: efficiency)")
        axes.set_ylabel(label)
        axes.set_title(f"{use} scaling", fontsize=9)
        axes.grid(alpha=0.3)
    rows = report["told"]["shapes"]
    names = [f"{x['shape']} {x['way']}" for x in rows]
    shape.barh(names, [x["GTEPS"] for x in rows], height=0.7)
    shape.tick_params(axis="y", labelsize=7)
    shape.set_xlabel("GTEPS")
    shape.set_title(f"hosts x ranks x {unit}", fontsize=9)
    shape.grid(axis="x", alpha=0.3)
    shape.set_axisbelow(True)
