"""Figure 5 of the Pan paper: edges and delegates over TH, of a Kronecker graph.

Left: a graph that is built, every edge counted, beside what is expected of it.  Right:
what is expected at a scale too large to build; the paper's is 30.
Source: Pan, Pearce, Owens 2018, Section VI-B.
"""

from __future__ import annotations

from typing import Any

import pan_figures as pan

from distbfs.errors import UsageError

LARGEST = 22  # scale that is counted
PAPER = (16, 512)  # any TH in this range satisfies the paper's goal at scale 30
NN_LIMIT, SHOWN = 0.1, 1 << 20


def main() -> None:
    parser = pan.arguments(__doc__)
    parser.add_argument("--scale", type=int, default=20, help="graph to be counted")
    parser.add_argument("--expected-scale", type=int, default=30, help="the other one")
    args = parser.parse_args()
    scale = 12 if args.small else args.scale
    if not 1 <= scale <= LARGEST or not 1 <= args.expected_scale <= 48:
        raise UsageError(f"scales go from 1 to {LARGEST}, the expected one to 48")
    parts, summary = pan.built(scale, 1, None)
    ends = pan.count_ends(lambda: parts)
    at = pan.thresholds(summary.histogram.largest)
    counted = pan.columns_of([ends.shares(x) for x in at])
    fine = pan.thresholds(summary.histogram.largest, 8)
    near = pan.expected_shares(scale, fine)
    same = pan.expected_shares(scale, at)
    wide = pan.thresholds(SHOWN, 8)
    far = pan.expected_shares(args.expected_scale, wide)
    worst = {
        name: max(abs(a - b) for a, b in zip(counted[name], same[name], strict=True))
        for name in counted
    }

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        pan.draw_shares(left, (fine, near), (at, counted))
        left.set_title(f"scale {scale}: counted (dots), expected (lines)", fontsize=9)
        left.set_ylabel("share, %")
        pan.draw_shares(right, (wide, far), None)
        right.axvspan(*PAPER, color="tab:orange", alpha=0.15, lw=0)
        right.text(90, 97, "paper: 16 … 512", fontsize=8, ha="center", va="top")
        title = f"scale {args.expected_scale}: expected"
        right.set_title(title, fontsize=9)
        pan.shared_legend(figure, left, 4)

    held = [x for x, nn in zip(wide, far["nn"], strict=True) if nn <= NN_LIMIT]
    values = {
        "counted": {"scale": scale, "m": summary.m, "threshold": at, "share": counted},
        "expected": {
            "scale": args.expected_scale,
            "threshold": wide,
            "share": far,
            "largest_threshold_with_nn_of_10_percent": max(held),
        },
        "expected_of_counted": {"threshold": at, "share": same},
        "largest_difference": worst,
    }
    pan.save(args.out, "pan_fig05", values, draw, (9, 4))


if __name__ == "__main__":
    pan.main(main)
