"""Figure 12 of the Pan paper: edges and delegates over TH, of a store of your own.

Every edge is counted; the paper's graph is Friendster.
Source: Pan, Pearce, Owens 2018, Section VI-D.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pan_figures as pan

from distbfs.exchange.world import SoloWorld
from distbfs.generate.kronecker import Kronecker
from distbfs.options import BuildOptions
from distbfs.partition.part import Part
from distbfs.store.hdf5 import Store, open_store
from distbfs.store.write import write_graph

STAND_IN = 16  # scale of the graph that is counted where no store is given


def count(store: Store) -> pan.Ends:
    """Count the edges of a store, one part in memory at a time."""

    def parts() -> Iterator[Part]:
        for index in range(store.manifest.parts):
            yield store.load_part(index)

    return pan.count_ends(parts)


def stand_in(folder: Path, scale: int) -> Store:
    """Return a small store in a folder."""
    write_graph(SoloWorld(), Kronecker(scale), folder / "g", 2, BuildOptions())
    return open_store(folder / "g")


def main() -> None:
    parser = pan.arguments(__doc__)
    parser.add_argument(
        "store", type=Path, nargs="?", help="a store; without one, a Kronecker graph"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.store is None:
            store = stand_in(Path(folder), 12 if args.small else STAND_IN)
            title = f"Kronecker, scale {store.manifest.n.bit_length() - 1}"
        else:
            store = open_store(args.store)
            title = args.store.name
        manifest = store.manifest
        ends = count(store)
    at = pan.thresholds(len(ends.vertices) - 1, 4)
    shares = pan.columns_of([ends.shares(x) for x in at])

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        pan.draw_shares(axes, None, (at, shares))
        axes.set_ylabel("share, %")
        axes.axvline(max(manifest.threshold, 1), color="grey", lw=1, ls=":")
        axes.text(manifest.threshold, 99, " TH of the store", fontsize=8, va="top")
        axes.set_title(f"{title}: n {manifest.n}, m {manifest.m}, counted", fontsize=9)
        pan.shared_legend(figure, axes, 4)

    stored = {
        "threshold": manifest.threshold,
        "share": ends.shares(manifest.threshold),
        "nn": manifest.nn / max(manifest.m, 1),
        "delegates": manifest.delegates / manifest.n,
    }
    values = {
        "graph": title,
        "n": manifest.n,
        "m": manifest.m,
        "threshold": at,
        "share": shares,
        "stored": stored,
    }
    pan.save(args.out, "pan_fig12", values, draw)


if __name__ == "__main__":
    pan.main(main)
