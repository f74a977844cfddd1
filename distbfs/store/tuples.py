"""The edges of a store as edge tuples, for repartitioning or validation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from distbfs.exchange.router import send
from distbfs.formats.attributes import Values
from distbfs.generate.hashing import Permutation, permutation_by
from distbfs.partition.edge_keys import ends_of, names_read
from distbfs.partition.layout import Layout, Placement
from distbfs.partition.part import Part
from distbfs.registry import FAMILIES
from distbfs.store.hdf5 import Store, read_array
from distbfs.types import Array, Ids, World

CHUNK = 1 << 20
DEFAULT_SEED = 1  # of ids that no generator has permuted


def permutation_of(store: Store) -> Permutation | None:
    """Return the permutation from input ids to the ids of a store, None without one."""
    relabel = store.manifest.relabel
    seed = None if relabel["method"] == "none" else int(relabel["seed"])
    return permutation_by(store.manifest.n, seed)


def spreading_seed(store: Store, parts: int) -> int | None:
    """Return the seed of the permutation that spreads input ids over parts.

    None for one part, or if a generator has permuted the ids.
    """
    manifest = store.manifest
    if parts == 1 or manifest.source["family"] in FAMILIES:
        return None
    return int(manifest.relabel.get("seed", DEFAULT_SEED))


class StoreTuples:
    """A TupleSource over a store: its edges in input ids, without loops and repeats.

    An undirected edge is yielded in both directions, unless it is one of nd. One part
    is in memory at a time.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._permutation = permutation_of(store)
        self._names = names = names_read(directed=store.manifest.directed)
        self._sizes = np.array(
            [
                [record.edges[name] for name in names]
                for record in store.manifest.records
            ],
            dtype=np.int64,
        )
        self.n, self.parts = store.manifest.n, store.manifest.parts
        self.tuples = int(self._sizes.sum())
        self._part: Part | None = None
        self._ids: list[Ids | None] = [None] * store.manifest.parts

    @cached_property
    def attributes(self) -> dict[str, Values]:
        """Attributes of the edges, in the order of the edges; reads all parts."""
        manifest = self._store.manifest
        pieces: dict[str, list[Array]] = {name: [] for name in manifest.attributes}
        for index in range(self.parts if pieces else 0):
            part = self._load(index)
            for name, held in pieces.items():
                held.extend(part.attributes[name].values[x] for x in self._names)
        return {
            name: Values(np.concatenate(held), manifest.words_of(name))
            for name, held in pieces.items()
        }

    def describe(self) -> dict[str, Any]:
        """Return the description of the original tuples."""
        return dict(self._store.manifest.source)

    def bounds(self, index: int) -> tuple[int, int]:
        """Return the range of a part's edges among all edges."""
        upto = int(self._sizes[:index].sum())
        return upto, upto + int(self._sizes[index].sum())

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the edges start … stop-1."""
        ends = np.cumsum(self._sizes.ravel())
        while start < stop:
            piece = int(np.searchsorted(ends, start, side="right"))
            index, place = divmod(piece, len(self._names))
            first = start - int(ends[piece] - self._sizes.ravel()[piece])
            count = min(CHUNK, stop - start, int(ends[piece]) - start)
            yield self._edges(index, self._names[place], first, first + count)
            start += count

    def edges(self) -> Iterator[Ids]:
        """Yield every edge once, int64 [k, 2]; with u < v if undirected."""
        directed = self._store.manifest.directed
        for index, sizes in enumerate(self._sizes.tolist()):
            for name, count in zip(self._names, sizes, strict=True):
                for first in range(0, count, CHUNK):
                    last = min(first + CHUNK, count)
                    pairs = np.stack(self._edges(index, name, first, last), axis=1)
                    if not directed and name == "nd":  # dn, which is not read, has v, u
                        pairs.sort(axis=1)
                    elif not directed:
                        pairs = pairs[pairs[:, 0] < pairs[:, 1]]
                    yield pairs

    def _load(self, index: int) -> Part:
        if self._part is None or self._part.index != index:
            self._part = self._store.load_part(index)
        return self._part

    def _edges(self, index: int, name: str, first: int, last: int) -> tuple[Ids, Ids]:
        part = self._load(index)
        u, v = ends_of(part, name, part.delegates, self._ids_of, first, last)
        return self._outside(u), self._outside(v)

    def _ids_of(self, index: int) -> Ids:
        """Return the ids of a part's vertex numbers, cached."""
        ids = self._ids[index]
        if ids is None:
            held = self._part
            ids = self._load(index).ids()
            self._ids[index] = ids
            if held is not None and held.index != index:
                self._part = held
        return ids

    def _outside(self, ids: Ids) -> Ids:
        return ids if self._permutation is None else self._permutation.inverse(ids)


def tuple_degrees_for(
    world: World, store: Store, parts: int, permute_seed: int | None
) -> dict[int, Ids]:
    """Count the ends of tuples for a new number of parts (collective).

    Returns a dictionary from each new part of this rank to int64 [local], by local id.
    """
    manifest = store.manifest
    n = manifest.n
    before = permutation_of(store)
    after = permutation_by(n, permute_seed)
    layout, placement = Layout(n, parts), Placement(parts, world.size)
    out = {
        part: np.zeros(layout.local_count(part), dtype=np.int64)
        for part in placement.parts_of(world.rank)
    }
    for first in range(0, manifest.parts, world.size):
        index = first + world.rank
        ids = ends = np.zeros(0, dtype=np.int64)
        if index < manifest.parts:
            with store.part_file(index) as datasets:
                digests = manifest.records[index].digests
                vertices, ends = (
                    read_array(datasets[name], name, digests[name])
                    for name in ("vertices", "tuple_degrees")
                )
            ids = manifest.layout.global_of(index, vertices)
            if before is not None:
                ids = before.inverse(ids)
            if after is not None:
                ids = after.forward(ids)
        rank = placement.rank_of(ids % parts)
        pairs = np.stack([ids, ends], axis=1)
        vertex, count = send(world, pairs, rank).T
        for part_index, array in out.items():
            in_part = vertex % parts == part_index
            array[vertex[in_part] // parts] = count[in_part]
    return out
