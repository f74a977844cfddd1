"""Whole graphs as rows: parts made of them; rows and edges by id read from parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from distbfs.graph.csr import CSR, row_blocks, row_offsets
from distbfs.partition.layout import Layout
from distbfs.partition.part import Part
from distbfs.types import Array, Ids


def part_of_rows(offsets: Array, columns: Array, incoming: CSR | None) -> Part:
    """Return rows as a graph in one part, numbered by id; no array is copied.

    offsets: uint32 or uint64 [n + 1]; columns: uint32 [m], in any order
    incoming: edges into each vertex, None if the rows are symmetric
    """
    n, none = len(offsets) - 1, CSR.empty(0)
    ids, nn = np.zeros(0, dtype=np.int64), CSR(offsets, columns)
    degrees = nn.degrees()
    ends = 2 * degrees if incoming is not None else degrees
    part = Part(
        Layout(n, 1),
        0,
        int(degrees.max(initial=0)),
        ids,
        ids,
        nn,
        CSR.empty(n),
        none,
        none,
        np.arange(n, dtype=np.uint32),
        degrees if incoming is None else degrees + incoming.degrees(),
        ends,
        n,
        {} if incoming is None else {"nn": incoming},
        None if incoming is None else 2 * incoming.degrees(),
    )
    part.check()
    return part


def without_loops(part: Part) -> Part:
    """Return a part without loops; the same part if it has none."""
    out = loopless(part.nn)
    if out is part.nn:
        return part
    into = {name: loopless(rows) for name, rows in part.incoming.items()}
    return replace(part, nn=out, incoming=into)


def loopless(rows: CSR) -> CSR:
    """Return rows without loops; the same rows if they have none."""
    loops = loop_counts(rows)
    if not loops.any():
        return rows
    kept = rows.columns != rows.sources()
    return CSR(row_offsets(rows.degrees() - loops), rows.columns[kept])


def loop_counts(rows: CSR) -> Ids:
    """Return the number of loops in each row, int64 [rows]."""
    loops = np.zeros(rows.rows, dtype=np.int64)
    degrees = rows.degrees()
    for first, last in row_blocks(rows.offsets):
        edges = slice(int(rows.offsets[first]), int(rows.offsets[last]))
        own = np.repeat(np.arange(first, last), degrees[first:last])
        looped = own[rows.columns[edges] == own]
        loops[first:last] = np.bincount(looped - first, minlength=last - first)
    return loops


def sorted_rows(part: Part) -> CSR:
    """Return a whole graph by id, with ascending neighbours of each vertex."""
    sources, targets = edges_by_id(part)
    keys = sources.astype(np.uint64) << np.uint64(32) | targets.astype(np.uint64)
    return CSR.from_keys(part.local_count, keys)


def edge_listing(part: Part) -> tuple[Ids, Ids]:
    """Return the edges of a whole graph by id, [edges, 2], undirected ones once.

    The position of each among the stored edges, [edges], is returned as well. Edges are
    in the order of the rows if the graph is numbered by id, else sorted.
    """
    pairs = np.stack(edges_by_id(part), axis=1)
    places = np.arange(len(pairs))
    if not part.directed:
        places = np.flatnonzero(pairs[:, 0] <= pairs[:, 1])
        pairs = pairs[places]
    if not np.array_equal(part.vertices, np.arange(part.local_count)):
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        pairs, places = pairs[order], places[order]
    return pairs, places


def edge_attributes(part: Part, places: Ids) -> dict[str, list[Any]]:
    """Return the attributes of the stored edges at ``places``, by name."""
    columns = {}
    for name, attribute in part.attributes.items():
        values = attribute.values["nn"][places].tolist()
        words = attribute.words
        columns[name] = values if words is None else [words[x] for x in values]
    return columns


def edges_by_id(part: Part) -> tuple[Ids, Ids]:
    """Return the ids of both ends of each stored edge, int64 [m], in stored order."""
    ids = part.vertices.astype(np.int64)
    return ids[part.nn.sources()], ids[part.nn.columns]


def neighbours_of(part: Part, vertex: int) -> Ids:
    """Return the ids of the neighbours of an id, int64 [k].

    They are in ascending order if vertices are sorted by degree, else in the order in
    which they were given.
    """
    rows, number = part.nn, part.number_of(vertex)
    some = rows.columns[int(rows.offsets[number]) : int(rows.offsets[number + 1])]
    ids = part.vertices[some].astype(np.int64)
    return ids if np.array_equal(ids, some) else np.sort(ids)
