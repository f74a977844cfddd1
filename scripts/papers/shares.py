"""Edges by the degrees of their ends, and bytes of parts; on the host alone.

Source: Pan, Pearce, Owens 2018, Sections III-C and VI-B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from distbfs.build.host.parts import construct
from distbfs.graph.csr import row_blocks
from distbfs.options import BuildOptions
from distbfs.partition.part import NUMBER_MASK, PART_SHIFT, Part
from distbfs.plan.memory import formula_bytes
from distbfs.ranks.world import SoloWorld
from distbfs.store.schema import part_arrays
from distbfs.types import SUBGRAPHS, Array, Ids, TupleSource


@dataclass(frozen=True)
class Ends:
    """How many directed edges have ends of which degrees; int64 arrays by degree.

    vertices[k]: of degree k; low[k], high[k]: edges whose end of the lower, higher
    degree has degree k
    """

    vertices: Ids
    low: Ids
    high: Ids

    def shares(self, threshold: int) -> dict[str, float]:
        """Return delegates over n, and nn, nd+dn and dd over m."""
        m = max(int(self.low.sum()), 1)
        nn = int(self.high[: threshold + 1].sum())
        dd = int(self.low[threshold + 1 :].sum())
        delegates = int(self.vertices[threshold + 1 :].sum())
        return {
            "delegates": delegates / max(int(self.vertices.sum()), 1),
            "nn": nn / m,
            "nd_dn": (m - nn - dd) / m,
            "dd": dd / m,
        }


def count_ends(parts: Callable[[], Iterable[Part]]) -> Ends:
    """Count the ends of all edges of a graph.

    parts: gives all parts in order, one after another; called twice
    """
    degrees = [part.degrees for part in parts()]
    starts = np.concatenate([[0], np.cumsum([len(x) for x in degrees])])
    every = np.concatenate(degrees)
    size = 1 + int(every.max(initial=0))
    low, high = np.zeros((2, size), dtype=np.int64)
    for part, mine in zip(parts(), degrees, strict=True):
        hubs = part.delegate_degrees
        places = partial(places_of, starts=starts, alone=part.layout.parts == 1)
        for graph, rows, of_column, times in (
            (part.nn, mine, lambda x, at=places: every[at(x)], 1),
            (part.nd, mine, lambda x, of=hubs: of[x], 2),  # and dn, its reverse
            (part.dd, hubs, lambda x, of=hubs: of[x], 1),
        ):
            for first, last in row_blocks(graph.offsets):
                offsets = graph.offsets[first : last + 1].astype(np.int64)
                a = np.repeat(rows[first:last], np.diff(offsets))
                b = of_column(graph.columns[offsets[0] : offsets[-1]])
                low += times * np.bincount(np.minimum(a, b), minlength=size)
                high += times * np.bincount(np.maximum(a, b), minlength=size)
    return Ends(np.bincount(every, minlength=size), low, high)


def places_of(columns: Array, starts: Ids, *, alone: bool) -> Array:
    """Return where the vertices of nn columns are among those of all parts.

    starts: int64 [parts + 1], of each part; alone: there is one part
    """
    if alone:
        return columns
    part = (columns >> PART_SHIFT).astype(np.int64)
    return starts[part] + (columns & NUMBER_MASK).astype(np.int64)


def built(
    source: TupleSource, parts: int, threshold: int | None
) -> tuple[list[Part], Any]:
    """Return (parts, summary) of a graph."""
    made: list[Part] = []
    options = BuildOptions(threshold=threshold)
    summary = construct(source, SoloWorld(), parts, options, made.append)
    return made, summary


def thresholds(largest: int, steps: int = 2) -> list[int]:
    """Return rising thresholds from 1 on, some for each power of two."""
    rounded = {round(2 ** (k / steps)) for k in range(steps * largest.bit_length() + 1)}
    return sorted(x for x in rounded if x <= largest)


def columns_of(rows: Sequence[dict[str, float]]) -> dict[str, list[float]]:
    """Return lists by name from dicts."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def weigh(source: TupleSource, parts: int, threshold: int | None) -> dict[str, Any]:
    """Return the bytes of a graph in some parts, by formula and as stored."""
    made, summary = built(source, parts, threshold)
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
