"""Tables II and III of the multi-search paper: methods by graphs, seconds and joules.

Path lengths from 1,024 sources by each method over twelve families at the paper's sizes
(multi_figures.FAMILIES); Oracle is the better of edge-parallel and work-efficient.  The
paper's figures, of a GTX Titan (seconds) and a K40c (joules), stand beside them for
orientation.  Edge-parallel searches that would take too long are cut off after some
levels and their time and energy multiplied by the levels that were left.
Source: McLaughlin, Riedy, Bader 2015, Section IV-B.
"""

from __future__ import annotations

import statistics
from typing import Any

import figures
import multi_figures as multi

from distbfs.report.tables import print_table

WAYS = (*((name, 16) for name in multi.METHODS), ("hybrid", None))


def measure(graph: Any, args: Any) -> dict[str, Any]:
    sources = multi.sources_of(graph, args.roots, args.seed)
    edges, deepest = multi.traversed(graph, sources)
    methods: dict[str, Any] = {}
    for method, threshold in WAYS:
        name = method if threshold else f"{method}, T auto"
        methods[name] = multi.measure_method(
            graph, sources, method, args.seconds, deepest, edges, threshold
        )
    row: dict[str, Any] = {"edges": edges, "deepest": deepest, "methods": methods}
    for key in ("seconds", "joules"):
        parts = [methods[name][key] for name in multi.METHODS[:2]]
        if any(part is None for part in parts) or methods["hybrid"][key] is None:
            continue
        oracle = min(parts)
        row[f"oracle_{key}"] = oracle
        row[f"saved_{key}"] = 1 - methods["hybrid"][key] / oracle
        row[f"saved_{key}_auto"] = 1 - methods["hybrid, T auto"][key] / oracle
    return row


def show(rows: list[dict[str, Any]], key: str, published: dict[str, Any]) -> None:
    """Print one table."""
    names = [method if t else f"{method}, T auto" for method, t in WAYS]
    lines = []
    for row in rows:
        values = [row["methods"][name][key] for name in names]
        cells = ["-" if value is None else value for value in values]
        saved = row.get(f"saved_{key}")
        percent = "-" if saved is None else f"{100 * saved:.0f} %"
        lines.append((row["graph"], *cells, percent, published[row["graph"]]))
    print(f"\n{key}")
    print_table(("graph", *names, "saved over oracle", "published"), lines)


def main() -> None:
    args = multi.family_arguments(__doc__, 1.0).parse_args()
    rows: list[dict[str, Any]] = []
    values: dict[str, Any] = {
        "published_seconds": multi.SECONDS_OF_PAPER,
        "published_joules": multi.JOULES_OF_PAPER,
        "rows": rows,
    }
    for name, _, graph in multi.families(args):
        about = {"graph": name, "source": graph.source, "n": graph.n, "m": graph.m}
        rows.append(about | measure(graph, args))
        for key in ("seconds", "joules"):
            saved = [r[f"saved_{key}"] for r in rows if f"saved_{key}" in r]
            if saved:
                values[f"mean_saved_{key}"] = statistics.mean(saved)
        print(f"{name}: n {graph.n}, m {graph.m}", flush=True)
        figures.save(args.out, "multi_tables", values)
    show(rows, "seconds", multi.SECONDS_OF_PAPER)
    show(rows, "joules", multi.JOULES_OF_PAPER)
    for key in ("seconds", "joules"):
        if f"mean_saved_{key}" in values:
            print(f"saved {key}, mean: {100 * values[f'mean_saved_{key}']:.0f} %")


if __name__ == "__main__":
    figures.main(main)
