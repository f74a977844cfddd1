"""Attributes of edge tuples, assigned to the stored edges of parts.

If an edge has several tuples, the smallest value is kept; text is compared by code
points, numbers by value, and NaN is kept only if all values are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.build.host.parts import BuildSummary, construct
from distbfs.formats.attributes import Attribute, Values
from distbfs.generate.hashing import permutation_by
from distbfs.partition.edge_keys import EdgeIds, keys_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.options import BuildOptions
    from distbfs.partition.part import Part
    from distbfs.types import Array, Ids, TupleSource, Words, World


def attributes_of(source: Any) -> Mapping[str, Values]:
    """Return the attributes of a source's tuples by name; most sources have none."""
    kept: Mapping[str, Values] = getattr(source, "attributes", {})
    return kept


def construct_kept(
    source: TupleSource,
    world: World,
    parts: int,
    options: BuildOptions,
    sink: Callable[[Part], None],
    counted: TupleSource | None = None,
    *,
    kept: bool = False,
    owned: bool = False,
) -> BuildSummary:
    """Build parts as ``construct`` does, with attributes of the tuples (collective).

    kept, owned: see ``construct``; counted: the same tuples with a progress count, read
    while parts are built

    If there are attributes, each rank holds all its parts at once and reads all tuples.
    """
    tuples = counted or source
    if not attributes_of(source):
        return construct(tuples, world, parts, options, sink, kept=kept, owned=owned)
    made: list[Part] = []
    take = made.append
    summary = construct(tuples, world, parts, options, take, kept=True, owned=owned)
    for part in with_attributes(source, world, made, options.permute_seed):
        sink(part)
    return summary


def with_attributes(
    source: TupleSource, world: World, parts: Sequence[Part], permute_seed: int | None
) -> Iterator[Part]:
    """Yield this rank's parts with the attributes of the tuples (collective)."""
    permutation = permutation_by(source.n, permute_seed)
    ids = EdgeIds(world, parts, permutation.inverse if permutation else straight)
    for part in parts:
        yield replace(part, attributes=_attributes(source, ids, part))


def straight(ids: Ids) -> Ids:
    """Return ids unchanged."""
    return ids


def smallest_of(values: Array, count: int) -> Array:
    """Return [count] start values for minima: NaN or the dtype's largest integer."""
    if values.dtype.kind == "f":
        return np.full(count, np.nan, dtype=values.dtype)
    return np.full(count, np.iinfo(values.dtype).max, dtype=values.dtype)


def _attributes(source: TupleSource, ids: EdgeIds, part: Part) -> dict[str, Attribute]:
    """Return the attributes of the stored edges of a part."""
    names = list(part.subgraphs)
    keys: list[Words] = [ids.keys(part, name) for name in names]
    distinct, place = np.unique(np.concatenate(keys), return_inverse=True)
    cuts = np.cumsum([len(x) for x in keys])[:-1]
    held = attributes_of(source)
    least = {name: smallest_of(x.array, len(distinct)) for name, x in held.items()}
    start = 0
    for u, v in source.chunks(0, source.tuples):
        wanted = keys_of(u, v, directed=part.directed)
        at = np.searchsorted(distinct, wanted)
        here = np.flatnonzero(at < len(distinct))
        here = here[distinct[at[here]] == wanted[here]]
        for name, values in held.items():
            np.fmin.at(least[name], at[here], values.array[start + here])
        start += len(u)
    return {
        name: Attribute(
            dict(zip(names, np.split(values[place], cuts), strict=True)),
            held[name].words,
        )
        for name, values in least.items()
    }
