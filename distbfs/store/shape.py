"""The size of a stored part, from the records of the manifest."""

from __future__ import annotations

from distbfs.plan.memory import PartShape
from distbfs.store.hdf5 import Store


def shape_of(store: Store, index: int) -> PartShape:
    """Return the counts of a part, as recorded in the manifest."""
    manifest, record = store.manifest, store.manifest.records[index]
    return PartShape.recorded(
        manifest.layout,
        index,
        manifest.delegates,
        record.active,
        record.edges,
        record.array_bytes,
        directed=record.directed,
    )
