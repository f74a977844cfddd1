"""What ``distbfs plan`` plans for: a store, or a graph that is not there yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.cli.common import Terminal
from distbfs.cli.info import shape_of
from distbfs.generate.kronecker import MAX_SCALE
from distbfs.graph.degrees import DegreeHistogram, merge
from distbfs.partition import memory
from distbfs.partition.degree import expect, suggest_threshold
from distbfs.partition.memory import PartShape
from distbfs.store import safety, schema
from distbfs.store.hdf5 import Store, open_store, read_array


@dataclass(frozen=True)
class Graph:
    """A graph to be planned for.

    title: what it is; basis: what the counts come from; origin: of the threshold
    active: vertices with edges
    shapes: of every part where ``exact``, else the mean part alone
    files: bytes on disk of every part, or empty where there is no such store
    """

    title: str
    basis: str
    origin: str
    n: int
    m: int
    active: int
    tuples: int
    parts: int
    threshold: int
    delegates: int
    nn: int
    exact: bool
    shapes: Sequence[PartShape]
    files: Sequence[int] = ()


def stored(store: Store) -> Graph:
    """Return a store as it is."""
    manifest = store.manifest
    return Graph(
        title=str(store.folder),
        basis="exact, from the manifest",
        origin="that of the store",
        n=manifest.n,
        m=manifest.m,
        active=sum(record.active for record in manifest.records) + manifest.delegates,
        tuples=manifest.tuples,
        parts=manifest.parts,
        threshold=manifest.threshold,
        delegates=manifest.delegates,
        nn=manifest.nn,
        exact=True,
        shapes=[shape_of(store, index) for index in range(manifest.parts)],
        files=[record.file_bytes for record in manifest.records],
    )


def expected(
    histogram: DegreeHistogram,
    kronecker: tuple[int, int] | None,
    parts: int,
    threshold: int | None,
    **told: Any,
) -> Graph:
    """Return what a graph of these degrees is expected to be in some parts.

    kronecker: scale and edge factor where it is such a graph
    """
    origin = "suggested" if threshold is None else "given"
    if threshold is None:
        threshold = suggest_threshold(histogram, parts).threshold
    separation = expect(histogram, parts, threshold)
    nn = separation.nn_edges
    if kronecker is not None:
        nn = memory.expected_nn(*kronecker, threshold)
    if not separation.delegates:
        nn = histogram.m
    return Graph(
        origin=origin,
        n=histogram.n,
        m=histogram.m,
        active=histogram.above(0),
        parts=parts,
        threshold=threshold,
        delegates=separation.delegates,
        nn=round(nn),
        exact=False,
        shapes=[memory.expected_shape(histogram, parts, threshold, nn)],
        **told,
    )


def kronecker_of(manifest: schema.Manifest) -> tuple[int, int] | None:
    """Return scale and edge factor of a Kronecker graph, None for another one."""
    source = manifest.source
    scale, factor = source.get("scale"), source.get("edge_factor")
    if source["family"] != "kronecker":
        return None
    if not isinstance(scale, int) or not isinstance(factor, int):
        return None
    possible = 1 <= scale <= MAX_SCALE and factor >= 1
    return (scale, factor) if possible and manifest.n == 1 << scale else None


def degrees_of(store: Store, terminal: Terminal) -> DegreeHistogram:
    """Return the degrees of a store; reads one array of each part."""
    manifest, found = store.manifest, []
    with terminal.progress("reading degrees", manifest.parts) as done:
        for index, record in enumerate(manifest.records):
            path = store.folder / schema.part_name(index)
            specs = schema.part_specs(
                manifest.layout, index, manifest.delegates, record.edges
            )
            with safety.opened(path, record.file_bytes) as file:
                dataset = safety.check_objects(file, specs, record.file_bytes)
                digest = record.digests["degrees"]
                degrees = read_array(dataset["degrees"], "degrees", digest)
            found.append(np.unique(degrees, return_counts=True))
            done(index + 1)
    return DegreeHistogram(*merge([(values, counts) for values, counts in found]))


def of_kronecker(
    scale: int, edge_factor: int, devices: int, threshold: int | None
) -> Graph:
    """Return what a Kronecker graph is expected to be; quick at any scale."""
    return expected(
        memory.expected_degrees(scale, edge_factor),
        (scale, edge_factor),
        devices,
        threshold,
        title=f"kronecker, scale {scale}, edge factor {edge_factor}",
        basis="expected, nothing was generated",
        tuples=edge_factor << scale,
    )


def of_store(
    terminal: Terminal, store: Path, devices: int | None, threshold: int | None
) -> Graph:
    """Return a store as it is, or as it would be in other parts."""
    opened = open_store(store)
    manifest = opened.manifest
    same = devices in (None, manifest.parts)
    if same and threshold in (None, manifest.threshold):
        return stored(opened)
    return expected(
        degrees_of(opened, terminal),
        kronecker_of(manifest),
        devices or manifest.parts,
        threshold,
        title=f"{store}, built anew",
        basis="expected from the degrees of the store",
        tuples=manifest.tuples,
    )
