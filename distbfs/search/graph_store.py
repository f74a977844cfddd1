"""Graphs of programs as stores: names of vertices as ids of a file, and back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import OutOfMemory, StoreError, UsageError, WrongTypeError
from distbfs.formats.attributes import Values
from distbfs.formats.ids import CountedIds, IdMap, IntegerIds, TextIds, first_of
from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld
from distbfs.search.graph_input import HeldTuples
from distbfs.search.graph_rows import edge_listing
from distbfs.store.hdf5 import open_store
from distbfs.store.whole import whole_graph
from distbfs.store.write import write_graph

if TYPE_CHECKING:
    from distbfs.partition.part import Part
    from distbfs.types import Ids


def nodes_of(ids: IdMap | None, n: int) -> Sequence[Any] | None:
    """Return the names of n vertices from a file's ids, None if these are 0 … n-1."""
    if ids is None:
        return None
    first = first_of(ids)
    if first is not None:
        return range(first, first + n)
    return list(ids.names(np.arange(n, dtype=np.int64)))


def read_store(folder: Path, first_id: int | None) -> tuple[Part, Sequence[Any] | None]:
    """Return the graph of a store, and the names of its vertices, see ``nodes_of``.

    first_id: see ``Store.load_ids``. Raises StoreError, and OutOfMemory if the graph
    does not fit.
    """
    store = open_store(folder)
    nodes = nodes_of(store.load_ids(first_id), store.manifest.n)
    try:
        return whole_graph(store), nodes
    except MemoryError as error:
        raise OutOfMemory(
            f"{folder}: the graph does not fit the memory of this machine; "
            "distbfs.open searches it on several ranks"
        ) from error


def ids_of_nodes(nodes: Sequence[Any] | None) -> tuple[IdMap | None, Ids | None]:
    """Return names of vertices as ids of a store, and the vertex of each, int64 [n].

    Both are None if the names are the vertex numbers; the second is None if the ids are
    in ascending order.
    Raises WrongTypeError if names are neither integers of 0 or more nor text.
    """
    if nodes is None:
        return None, None
    if isinstance(nodes, range):
        return CountedIds(len(nodes), nodes.start), None
    kinds = set(map(type, nodes))
    if not kinds <= {int} and not kinds <= {str}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise WrongTypeError(
            f"vertices have names of type {names}; allowed in a store: all integers, "
            "or all text"
        )
    order = np.array(sorted(range(len(nodes)), key=nodes.__getitem__), dtype=np.int64)
    rising = [nodes[k] for k in order.tolist()]
    try:
        if kinds <= {int}:
            ids: IdMap = IntegerIds(np.array(rising, dtype=np.int64))
        else:
            ids = TextIds.of([name.encode() for name in rising])
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"a vertex has a name that no store can have: {error}; allowed: integers "
            "from 0 to 2^63 - 1, or text that is not empty"
        ) from error
    return ids, order


def save(
    part: Part, nodes: Sequence[Any] | None, folder: Path, *, overwrite: bool
) -> None:
    """Write a whole graph as a store of one part; each edge counts once.

    Raises the errors of ``ids_of_nodes`` and ``write_graph``.
    """
    if os.path.lexists(folder) and not overwrite:
        raise StoreError(f"{folder} exists; overwrite=True replaces it")
    ids, order = ids_of_nodes(nodes)
    pairs, places = edge_listing(part)
    if order is not None:
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        pairs = rank[pairs]
    source = HeldTuples(pairs[:, 0], pairs[:, 1], part.local_count)
    source.attributes = {
        name: Values(x.values["nn"][places], x.words)
        for name, x in part.attributes.items()
    }
    options = BuildOptions(directed=part.directed)
    write_graph(SoloWorld(), source, folder, 1, options, overwrite=overwrite, ids=ids)
