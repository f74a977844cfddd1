"""Figure 1 of the multi-search paper: the threshold T against the time.

Path lengths from 1,024 sources by the hybrid method, T = 0 to 256 and without end, over
that of T = 0; and the T that ``threshold auto`` chooses.
Source: McLaughlin, Riedy, Bader 2015, Section III-B.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any

import figures
import multi_figures as multi

THRESHOLDS = (0, 2, 4, 8, 16, 32, 64, 128, 256, 0xFFFFFFFF)


def measure(graph: Any, args: Any) -> dict[str, Any]:
    sources = multi.sources_of(graph, args.roots, args.seed)
    edges, deepest = multi.traversed(graph, sources)
    rows = [
        multi.measure_method(
            graph, sources, "hybrid", args.seconds, deepest, edges, threshold
        )
        for threshold in (*THRESHOLDS, None)
    ]
    times = [row["seconds"] for row in rows]
    return {
        "seconds": times[:-1],
        "speedup": [times[0] / x for x in times[:-1]],
        "joules": [row["joules"] for row in rows[:-1]],
        "chosen": rows[-1]["threshold"],
        "chosen_seconds": times[-1],
        "best": min(times[:-1]),
    }


def main() -> None:
    args = multi.family_arguments(__doc__, 0.5).parse_args()
    rows = []
    for name, _, graph in multi.families(args):
        rows.append({"graph": name, "n": graph.n, "m": graph.m, **measure(graph, args)})
        last = rows[-1]
        ratio = last["chosen_seconds"] / last["best"]
        print(f"{name}: T {last['chosen']} takes {ratio:.2f} of the best", flush=True)
        figures.save(args.out, "multi_fig01", {"thresholds": THRESHOLDS, "rows": rows})

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        styles = cycle(["o-", "s--", "^:"])
        names = [str(t) if t < 1 << 31 else "∞" for t in THRESHOLDS]
        for row in rows:
            axes.plot(names, row["speedup"], next(styles), label=row["graph"])
        axes.set_xlabel("threshold T")
        axes.set_ylabel("speed-up over T = 0")
        axes.legend(fontsize=7, ncols=2)

    figures.save(
        args.out, "multi_fig01", {"thresholds": THRESHOLDS, "rows": rows}, draw
    )


if __name__ == "__main__":
    figures.main(main)
