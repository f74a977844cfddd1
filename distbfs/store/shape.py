"""The size of a stored part, from the records of the manifest."""

from __future__ import annotations

from dataclasses import replace

from distbfs.plan.memory import PartShape, array_bytes
from distbfs.store.hdf5 import Store


def shape_of(store: Store, index: int) -> PartShape:
    """Return the counts of a part, as recorded in the manifest.

    The bytes that other counts do not explain give ``nd_sources``; ``owned`` is the
    mean over the parts.
    """
    manifest, record = store.manifest, store.manifest.records[index]
    shape = PartShape(
        n=manifest.n,
        parts=manifest.parts,
        delegates=manifest.delegates,
        local=manifest.layout.local_count(index),
        active=record.active,
        owned=-(-manifest.delegates // manifest.parts),
        edges=record.edges,
        nd_sources=0,
        directed=record.directed,
    )
    rest = record.array_bytes - sum(array_bytes(shape).values())
    return replace(shape, nd_sources=max(rest, 0) // 4)
