"""Fig. 6 of the Pan paper: rates over the degree threshold, Kronecker graphs.

From files of ``bench_parts.py --scales S --thresholds 16 32 64 auto --variants default
push``.  Source: Pan, Pearce, Owens 2018, Section VI-B.
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
        "of Kronecker graphs with variant default or push",
        lambda row: row["scale"] is not None and row["variant"] in wanted,
    )
    runs.over_thresholds("pan_fig06", args, rows, origins)


if __name__ == "__main__":
    pan.main(main)
