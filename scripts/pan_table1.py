"""Table I of the Pan paper: bytes by its formula beside the bytes of real parts.

The formula is 8n + 8dp + 4m + 4|Enn|; our subgraphs add one closing offset a subgraph
and part, and offsets of 64 bits from 2^32 edges on.  An edge list takes 16m bytes, CSR
without separation 8n + 8m.
Source: Pan, Pearce, Owens 2018, Section III-C.
"""

from __future__ import annotations

from typing import Any

import pan_figures as pan

from distbfs.errors import UsageError
from distbfs.plan.memory import formula_bytes
from distbfs.store.schema import part_arrays
from distbfs.types import SUBGRAPHS

PARTS = (2, 4, 8, 16)
THRESHOLDS: tuple[int | None, ...] = (None, 8, 32, 128)
LARGEST = 22


def weigh(scale: int, parts: int, threshold: int | None) -> dict[str, Any]:
    """Return the bytes of a graph in some parts, by formula and as stored."""
    made, summary = pan.built(scale, parts, threshold)
    arrays = [part_arrays(part) for part in made]
    stored = {
        name: {
            "row_offsets": sum(a[f"{name}/offsets"].nbytes for a in arrays),
            "column_indices": sum(a[f"{name}/columns"].nbytes for a in arrays),
        }
        for name in SUBGRAPHS
    }
    n, m, d, nn = summary.n, summary.m, summary.delegates, summary.edges["nn"]
    total = sum(sum(sizes.values()) for sizes in stored.values())
    formula = formula_bytes(n, m, parts, d, nn)
    every = sum(array.nbytes for a in arrays for array in a.values())
    return {
        "parts": parts,
        "threshold": summary.threshold,
        "suggested": threshold is None,
        "n": n,
        "m": m,
        "delegates": d,
        "edges": summary.edges,
        "formula": formula,
        "formula_by_term": {
            "8n": 8 * n,
            "8dp": 8 * d * parts,
            "4m": 4 * m,
            "4nn": 4 * nn,
        },
        "stored": stored,
        "subgraphs": total,
        "subgraphs_over_formula": total / formula,
        "every_array": every,
        "bytes_per_edge": total / m,
        "over_edge_list": total / (16 * m),
        "over_csr": total / (8 * n + 8 * m),
    }


def main() -> None:
    parser = pan.arguments(__doc__)
    parser.add_argument("--scale", type=int, default=17, help="graph to be built")
    args = parser.parse_args()
    scale = 12 if args.small else args.scale
    if not 1 <= scale <= LARGEST:
        raise UsageError(f"the scale goes from 1 to {LARGEST}")
    chosen = PARTS[:2] if args.small else PARTS
    rows = [weigh(scale, p, th) for p in chosen for th in THRESHOLDS]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        base = [0.0] * len(rows)
        terms = {"8n": "8n", "8dp": "8dp", "4m": "4m", "4nn": "4|Enn|"}
        for name, label in terms.items():
            sizes = [row["formula_by_term"][name] / row["m"] for row in rows]
            axes.bar(range(len(rows)), sizes, 0.7, bottom=base, label=label)
            base = [a + b for a, b in zip(base, sizes, strict=True)]
        real = [row["bytes_per_edge"] for row in rows]
        marks = {"marker": "D", "ms": 4, "color": "black", "ls": "none"}
        axes.plot(range(len(rows)), real, label="stored subgraphs", **marks)
        every = [row["every_array"] / row["m"] for row in rows]
        marks |= {"marker": "_", "ms": 12}
        axes.plot(range(len(rows)), every, label="every stored array", **marks)
        axes.axhline(16, color="grey", ls="--", lw=1)
        axes.text(-0.4, 15.8, "edge list, 16m", va="top", size=8)
        csr = (8 * rows[0]["n"] + 8 * rows[0]["m"]) / rows[0]["m"]
        axes.axhline(csr, color="grey", ls=":", lw=1)
        axes.text(-0.4, csr + 0.1, "CSR, 8n + 8m", size=8)
        names = [
            f"p {row['parts']}\nTH {row['threshold']}{'*' * row['suggested']}"
            for row in rows
        ]
        axes.set_xticks(range(len(rows)), names, fontsize=7)
        axes.set_ylim(0, 16.8)
        axes.set_ylabel("bytes a stored edge")
        axes.set_title(f"Kronecker, scale {scale}; * TH suggested", fontsize=9)
        pan.shared_legend(figure, axes, 6)

    for row in rows:
        print(
            f"p {row['parts']:2}  TH {row['threshold']:4}  "
            f"formula {row['formula']:11}  stored {row['subgraphs']:11}  "
            f"ratio {row['subgraphs_over_formula']:.5f}  "
            f"bytes an edge {row['bytes_per_edge']:.3f}"
        )
    pan.save(args.out, "pan_table1", {"scale": scale, "rows": rows}, draw, (9, 4))


if __name__ == "__main__":
    pan.main(main)
