"""Figure 7 of the Pan paper: suggested TH, delegates and nn edges over scales.

Lines: from expected degree histograms alone, scale 26 a device, up to scale 33 (the
paper's) or more; and at a lower scale a device, where dots are graphs that are built.
Source: Pan, Pearce, Owens 2018, Section VI-B.
"""

from __future__ import annotations

from typing import Any

import pan_figures as pan

from distbfs.errors import UsageError
from distbfs.generate.histogram import separate
from distbfs.plan import memory
from distbfs.plan.threshold import (
    DELEGATES_PER_PART,
    expected_nn,
    suggest_host_threshold,
)

PAPER_DEVICE, PAPER_LAST = 26, 33
LARGEST = 42
PAPER: dict[str, Any] = {
    "growth": 2**0.5,
    "scale_33": {"delegates": 0.0175, "nn": 0.063},
}
COLOURS = {"wide": "tab:blue", "low": "tab:orange"}


def expected(scale: int, device: int) -> dict[str, float]:
    """Return TH and what it gives, with some scale a device."""
    parts = 1 << (scale - device)
    histogram = memory.expected_degrees(scale, 16)
    best = suggest_host_threshold(histogram, parts)
    shares = separate(scale, [best])[0]
    return {
        "scale": scale,
        "devices": parts,
        "threshold": best,
        "delegates": shares.delegates / shares.n,
        "nn": shares.nn / shares.m,
        "nn_by_random_ends": expected_nn(histogram, best) / histogram.m,
        "limit": DELEGATES_PER_PART / parts,
    }


def counted(scale: int, device: int) -> dict[str, float]:
    """Return the same of a graph that is built."""
    parts = 1 << (scale - device)
    _, summary = pan.built(scale, parts, None)
    return {
        "scale": scale,
        "devices": parts,
        "threshold": summary.threshold,
        "delegates": summary.delegates / summary.n,
        "nn": summary.edges["nn"] / summary.m,
        "limit": DELEGATES_PER_PART / parts,
    }


def growth(rows: list[dict[str, float]]) -> float:
    """Return by what TH grows a scale, from the first to the last."""
    first, last = rows[0]["threshold"], rows[-1]["threshold"]
    return (last / first) ** (1 / (len(rows) - 1))


def main() -> None:
    parser = pan.arguments(__doc__)
    parser.add_argument("--last", type=int, default=PAPER_LAST, help="last scale")
    parser.add_argument("--device", type=int, default=14, help="scale a device, built")
    parser.add_argument(
        "--built", type=int, default=19, help="last scale that is built"
    )
    args = parser.parse_args()
    device, last = (10, 13) if args.small else (args.device, args.built)
    if not PAPER_DEVICE + 2 <= args.last <= LARGEST or not 1 <= device <= last - 2:
        raise UsageError(
            f"the last scale goes from {PAPER_DEVICE + 2} to {LARGEST}; build 2 scales "
            "more than one device has"
        )
    rows = {
        "wide": [expected(s, PAPER_DEVICE) for s in range(27, args.last + 1)],
        "low": [expected(s, device) for s in range(device + 1, last + 1)],
    }
    dots = [counted(s, device) for s in range(device + 1, last + 1)]
    labels = {
        "wide": f"scale {PAPER_DEVICE} a device",
        "low": f"scale {device} a device",
    }

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for name, points in rows.items():
            scales = [x["scale"] for x in points]
            colour = COLOURS[name]
            th = [x["threshold"] for x in points]
            left.plot(scales, th, "-o", ms=3, color=colour, label=labels[name])
            root = [th[0] * 2 ** ((s - scales[0]) / 2) for s in scales]
            label = "growth by √2 a scale" if name == "wide" else None
            left.plot(scales, root, ":", color="grey", label=label)
            for key, style, text in (
                ("delegates", "--", "delegates, of n"),
                ("nn", "-", "nn edges, of m"),
                ("limit", ":", "4n/p, of n"),
            ):
                values = [100 * x[key] for x in points]
                label = text if name == "wide" else None
                right.plot(scales, values, style, color=colour, label=label)
        scales = [x["scale"] for x in dots]
        marks = {"ls": "none", "color": "black", "fillstyle": "none"}
        th = [x["threshold"] for x in dots]
        left.plot(scales, th, marker="s", ms=7, label="built and counted", **marks)
        for key, marker in (("delegates", "^"), ("nn", "s")):
            values = [100 * x[key] for x in dots]
            label = f"built: {'nn' if key == 'nn' else key}"
            right.plot(scales, values, marker=marker, ms=6, label=label, **marks)
        for key, marker in (("delegates", "^"), ("nn", "s")):
            share = 100 * PAPER["scale_33"][key]
            label = f"paper: {'nn' if key == 'nn' else key}"
            marks = {"ls": "none", "color": "tab:red", "ms": 5, "marker": marker}
            right.plot([PAPER_LAST], [share], label=label, **marks)
        left.set_yscale("log", base=2)
        left.set_ylabel("suggested TH")
        right.set_yscale("log")
        right.yaxis.set_major_formatter("{x:g}")
        left.yaxis.set_major_formatter("{x:g}")
        right.set_ylabel("share, %")
        left.legend(fontsize=7)
        right.legend(fontsize=7, loc="center", bbox_to_anchor=(0.45, 0.5))
        for axes in (left, right):
            axes.set_xlabel("scale")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.grid(alpha=0.3)

    values = {
        "expected": rows,
        "counted": dots,
        "growth_of_TH_a_scale": {name: growth(points) for name, points in rows.items()},
        "paper": PAPER,
    }
    pan.save(args.out, "pan_fig07", values, draw, (9, 4))


if __name__ == "__main__":
    pan.main(main)
