"""What the scripts of Pan, Pearce, Owens 2018 that draw measured searches share.

Variants of search options by name, result files of ``bench_parts.py``, and figures of
which the paper has two of a kind.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pan_figures as pan

from distbfs import registry
from distbfs.errors import InputError, UsageError
from distbfs.options import Factors, SubgraphFactors

Row = dict[str, Any]
PLAIN, PUSH = "default", "push"
OPTIONS: dict[str, dict[str, Any]] = {
    PLAIN: {},
    PUSH: {"direction": "push"},
    "IR": {"mask_reduce": "nonblocking"},
    "BR": {"mask_reduce": "blocking"},
    "L": {"local_all2all": True},
    "U": {"uniquify": True},
    "levels": {"parents": False},
    **{name: {"exchange": name} for name in registry.EXCHANGES if name != "solo"},
}
SWITCHING = ("dd", "dn", "nd")  # subgraphs that have direction factors
DECADES = tuple(10.0**k for k in range(-8, 2))
# part of a search -> (label, colour), in the order in which they are stacked
PARTS = {
    "nn": ("visit nn", "#08519c"),
    "dd": ("visit dd", "#3182bd"),
    "nd": ("visit nd", "#6baed6"),
    "dn": ("visit dn", "#bdd7e7"),
    "queues": ("queues, counts of work", "tab:cyan"),
    "local": ("local exchange", "tab:orange"),
    "masks": ("delegate masks", "tab:green"),
    "normals": ("normal vertices", "tab:red"),
    "parents": ("parents", "tab:purple"),
    "rest": ("rest, and waiting", "tab:grey"),
}
NEEDED = ("devices", "variant", "threshold", "GTEPS", "median_ms", "valid", "searches")
NEAR = 0.95  # of the best rate: what is near-optimal
COLOURS = {PLAIN: "tab:blue", PUSH: "tab:red"}
LABELS = {PLAIN: "DOBFS", PUSH: "BFS (push only)"}


def changes_of(name: str) -> dict[str, Any]:
    """Return the search options that a variant changes.

    name: names of OPTIONS and direction factors as ``dd=0.5``, joined by "+".  A factor
    is the one that turns to pull; the other is 1e-7, or the same where that is less.
    """
    changes: dict[str, Any] = {}
    for word in name.split("+"):
        subgraph, equals, value = word.partition("=")
        if word in OPTIONS:
            changes |= OPTIONS[word]
        elif equals and subgraph in SWITCHING:
            try:
                factor = float(value)
            except ValueError as error:
                raise UsageError(f"variant '{name}': {value} is no number") from error
            back = getattr(SubgraphFactors(), subgraph).to_push
            changes[subgraph] = Factors(factor, min(factor, back))
        else:
            allowed = ", ".join((*OPTIONS, "dd=X", "dn=X", "nd=X"))
            raise UsageError(f"variant '{name}' has '{word}'; allowed: {allowed}")
    return changes


def sweep(values: Iterable[float]) -> list[str]:
    """Return variants with each direction factor at each value."""
    at = list(values)
    return [f"{name}={value:g}" for name in SWITCHING for value in at]


def read(paths: Sequence[Path]) -> tuple[list[Row], dict[str, Any]]:
    """Return the rows of result files, and where they come from, by file."""
    rows: list[Row] = []
    origins: dict[str, Any] = {}
    for path in paths:
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            rows_of_file = values.pop("rows")
            if any(name not in row for row in rows_of_file for name in NEEDED):
                raise KeyError
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path}: no results of bench_parts.py") from error
        rows += [
            {**row, "file": path.name}
            for row in rows_of_file
            if row["valid"] == row["validated"]
        ]
        origins[path.name] = values
    return rows, origins


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every script of result files has."""
    parser = argparse.ArgumentParser(
        description=(description or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("files", type=Path, nargs="+", help="from bench_parts.py")
    parser.add_argument("--out", type=Path, default=pan.RESULTS, help="output folder")
    return parser


def chosen(rows: Iterable[Row], what: str, test: Callable[[Row], bool]) -> list[Row]:
    """Return the rows that pass a test; InputError where there are none."""
    kept = [row for row in rows if test(row)]
    if not kept:
        raise InputError(f"the files have no valid rows {what}")
    return kept


def best(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], Row]:
    """Return the fastest row for each combination of values, in their order."""
    best_rows: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in names)
        if key not in best_rows or row["GTEPS"] > best_rows[key]["GTEPS"]:
            best_rows[key] = row
    return dict(sorted(best_rows.items()))


def device_scale(row: Row) -> int | None:
    """Return the scale a device, None where it is no whole one."""
    steps = int(row["devices"]).bit_length() - 1
    if row.get("scale") is None or row["devices"] != 1 << steps:
        return None
    return int(row["scale"]) - steps


def most_points(rows: Iterable[Row], value: Callable[[Row], int | None]) -> int:
    """Return the value which rows of the most numbers of devices have."""
    pairs = {(value(row), row["devices"]) for row in rows}
    counts = Counter(x for x, _ in pairs if x is not None)
    if not counts:
        raise InputError("the files have no valid rows of Kronecker graphs")
    return max(counts, key=lambda x: (counts[x], x))


def slim(row: Row) -> Row:
    """Return a row without what is told of single searches and levels."""
    return {k: v for k, v in row.items() if k not in ("seconds", "levels")}


def near_best(points: dict[Any, float]) -> dict[str, Any]:
    """Return where rates, by what is varied, are best and near that."""
    top = max(points, key=lambda x: points[x])
    near = [x for x, rate in points.items() if rate >= NEAR * points[top]]
    return {"best": top, "GTEPS": points[top], "near": [min(near), max(near)]}


def name_of(row: Row) -> str:
    """Return what a row searched, and on how many devices."""
    graph = row.get("graph") or f"scale {row['scale']}"
    several = "s" * (row["devices"] > 1)
    return f"{graph}, {row['devices']} device{several}"


def over_thresholds(
    name: str, args: argparse.Namespace, rows: list[Row], origins: dict[str, Any]
) -> None:
    """Draw rates over TH, a line for each graph, number of devices and variant."""
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["threshold"]):
        lines.setdefault((name_of(row), row["variant"]), []).append(row)
    graphs = []
    for (graph, variant), points in lines.items():
        rates = {row["threshold"]: row["GTEPS"] for row in points}
        usual = [row["threshold"] for row in points if row["suggested"]]
        graphs.append(
            {"graph": graph, "variant": variant, **near_best(rates)}
            | {"rates": rates, "suggested": usual[0] if usual else None}
        )

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for line in graphs:
            style = "-o" if line["variant"] == PLAIN else "--s"
            kind = LABELS.get(line["variant"], line["variant"])
            at = list(line["rates"])
            values = list(line["rates"].values())
            label = f"{kind}, {line['graph']}"
            (drawn,) = axes.plot(at, values, style, ms=3.5, label=label)
            if (th := line["suggested"]) is not None:
                spot = [th], [line["rates"][th]]
                marks = {"marker": "*", "ms": 12, "ls": "none"}
                axes.plot(*spot, color=drawn.get_color(), **marks)
        axes.set_xscale("log", base=2)
        from_zero(axes)
        axes.set_xlabel("degree threshold TH (star: as suggested)")
        axes.set_ylabel("GTEPS")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)

    for line in graphs:
        print(
            f"{line['graph']}, {line['variant']}: best TH {line['best']} with "
            f"{line['GTEPS']:.4g} GTEPS; within 5 % from {line['near'][0]} to "
            f"{line['near'][1]}; suggested {line['suggested']}"
        )
    values = {
        "lines": graphs,
        "rows": [slim(row) for row in rows],
        "inputs": origins,
    }
    pan.save(args.out, name, values, draw)


def stack(axes: Any, rows: Sequence[Row], labels: Sequence[str]) -> None:
    """Draw what searches spend their time with, and how long they take alone."""
    base = [0.0] * len(rows)
    for name, (label, colour) in PARTS.items():
        spent = [row["breakdown_ms"][name] for row in rows]
        axes.bar(range(len(rows)), spent, 0.7, bottom=base, color=colour, label=label)
        base = [a + b for a, b in zip(base, spent, strict=True)]
    marks = {"marker": "D", "ms": 4, "color": "black", "ls": "none"}
    real = [row["median_ms"] for row in rows]
    axes.plot(range(len(rows)), real, label="a search as it runs", **marks)
    axes.set_xticks(range(len(rows)), labels, fontsize=7)
    axes.set_ylabel("ms a search")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)


def from_zero(axes: Any) -> None:
    """Let the vertical axis begin at 0, with room above what is drawn."""
    axes.set_ylim(0, 1.08 * axes.get_ylim()[1])


def has_breakdown(row: Row) -> bool:
    """Return whether a row tells where its time went."""
    return bool(row.get("breakdown_ms"))
