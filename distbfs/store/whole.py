"""Whole graphs from stores: one part in input ids, for many searches and programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from distbfs.build.host.kept import construct_kept
from distbfs.generate.hashing import Permutation
from distbfs.options import BuildOptions
from distbfs.partition.part import Part
from distbfs.ranks.world import SoloWorld
from distbfs.store.hdf5 import Store
from distbfs.store.tuples import StoreTuples, permutation_of, tuple_degrees_for
from distbfs.types import TupleSource

NO_DELEGATES = 1 << 62


def in_input_ids(part: Part, permutation: Permutation | None) -> Part:
    """Return a whole graph with the input's ids; rows and columns are shared."""
    if permutation is None:
        return part
    vertices = permutation.inverse(part.vertices.astype(np.int64))
    return replace(part, vertices=vertices.astype(part.vertices.dtype))


def whole_graph(store: Store) -> Part:
    """Return the graph of a store as one part without delegates, in input ids.

    A store of several parts, or with delegates, is built anew from its edges, which
    temporarily takes more memory (see ``searchers``).
    """
    manifest = store.manifest
    if manifest.parts == 1 and not manifest.delegates:
        return in_input_ids(store.load_part(0), permutation_of(store))
    part = whole_part(StoreTuples(store), directed=manifest.directed)
    ends = tuple_degrees_for(SoloWorld(), store, 1, None)[0]
    return replace(part, tuple_degrees=ends[part.vertices])


def whole_part(source: TupleSource, *, directed: bool = False) -> Part:
    """Build a graph of edge tuples in one part without delegates, by degree."""
    made: list[Part] = []
    options = BuildOptions(threshold=NO_DELEGATES, directed=directed)
    construct_kept(source, SoloWorld(), 1, options, made.append, kept=True)
    return made[0]
