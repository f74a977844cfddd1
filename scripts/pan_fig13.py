"""Fig. 13 of the Pan paper: rates over the degree threshold, a graph of your own.

From files of ``bench_parts.py --graph STORE --thresholds 16 32 64 auto --variants
default push``; the paper has the friendster graph.
Source: Pan, Pearce, Owens 2018, Section VI-D.
"""

from __future__ import annotations

import pan_figures as pan
import pan_runs as runs


def main() -> None:
    args = runs.arguments(__doc__).parse_args()
    rows, origins = runs.read(args.files)
    wanted = (runs.PLAIN, runs.PUSH)
    rows = runs.chosen(
        rows,
        "of a stored graph with variant default or push",
        lambda row: row["graph"] is not None and row["variant"] in wanted,
    )
    runs.over_thresholds("pan_fig13", args, rows, origins)


if __name__ == "__main__":
    pan.main(main)
