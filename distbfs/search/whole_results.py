"""Whole results on single devices, from parts on many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.exchange.local_phase import brought_here
from distbfs.search.vertices import VertexMap, host_array

if TYPE_CHECKING:
    from distbfs.search.result import Result

NARROW = 126  # the largest level of a byte


def collect(
    vertices: VertexMap, results: Sequence[Result], ranks: Sequence[int]
) -> tuple[Any, Any] | None:
    """Return (level, parent or None) of result number k on rank ``ranks[k]``.

    CuPy arrays [n] by id inside, on the current device; None on other ranks.  One
    result at most for each rank of ``ranks``, which are those with shards.  Collective.
    """
    if len(ranks) == vertices.layout.parts == 1:
        return results[0].shards[0] if vertices.shards else None
    arrays = [narrow_arrays(result, 0) for result in results]
    level = _collected(vertices, arrays, ranks)
    parent = None
    if results[0].has_parents:
        arrays = [narrow_arrays(result, 1) for result in results]
        parent = _collected(vertices, arrays, ranks)
    return None if level is None else (level, parent)


def narrow_arrays(result: Result, which: int) -> list[Any]:
    """Return levels (0) or parents (1) of the shards, levels int8 where they fit."""
    arrays = [pair[which] for pair in result.shards]
    if which or result.depth > NARROW:
        return arrays
    narrow = []
    for array in arrays:
        with array.device:
            narrow.append(array.astype(np.int8, copy=False))
    return narrow


def _collected(
    vertices: VertexMap, results: Sequence[list[Any]], ranks: Sequence[int]
) -> Any:
    """Return the arrays of result k joined by id on rank ``ranks[k]`` (collective)."""
    cp, layout, world = cuda.cupy(), vertices.layout, vertices.world
    if world.size == 1:
        with cuda.memory_of("results of all parts"):
            out = cp.empty(layout.n, dtype=results[0][0].dtype)
            for shard, array in zip(vertices.shards, results[0], strict=True):
                out[shard.index :: layout.parts] = brought_here(array)
        return out
    kind = results[0][0].dtype
    outgoing = [np.zeros(0, kind) for _ in range(world.size)]
    for rank, arrays in zip(ranks, results, strict=False):
        outgoing[rank] = np.concatenate([host_array(x) for x in arrays])
    indices = world.allgather(np.array([x.index for x in vertices.shards]))
    arrived = world.alltoall(outgoing)
    if world.rank not in ranks[: len(results)]:
        return None
    with cuda.memory_of("results of all parts"):
        out = cp.empty(layout.n, dtype=kind)
        for values, parts in zip(arrived, indices, strict=True):
            start = 0
            for part in parts.tolist():
                stop = start + layout.local_count(part)
                out[part :: layout.parts] = cp.asarray(values[start:stop])
                start = stop
    return out
