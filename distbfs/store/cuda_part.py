"""A degree-separated part of a store in the memory of the current device.

A part file has the same arrays as a part on a device, so they are copied there while
they are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda
from distbfs.graph.csr import CSR
from distbfs.graph.device_graph import COLUMN_PAD
from distbfs.partition.part import INTO, Part, fields_of
from distbfs.store.cuda_files import PartFiles, TupleEnds
from distbfs.types import SUBGRAPHS

if TYPE_CHECKING:
    import h5py

    from distbfs.progress import Sum
    from distbfs.store.hdf5 import Store


def part_of_store(store: Store, index: int, done: Sum | None = None) -> Part:
    """Load a part of a store to the current device.

    done: called with the number of bytes to read, and with the bytes that have been
    read. Raises StoreError if the file does not match the manifest, ResourceError if
    device memory is short.
    """
    manifest, cupy = store.manifest, cuda.cupy()
    files = PartFiles(store, done)
    local = manifest.layout.local_count(index)
    files.done.more(manifest.records[index].array_bytes)
    with store.part_file(index) as datasets:
        numbers, ends = (cupy.empty(local, np.uint32) for _ in range(2))
        rising = cupy.arange(local, dtype=np.uint32)
        vertices = files.vertices(index, datasets, cupy.empty(local, np.uint32))
        files.ends(index, datasets, rising, [TupleEnds(1, 0, ends)])
        numbers[vertices] = rising
        delegates, _ = files.delegates(index, datasets)
        names = manifest.records[index].subgraphs
        graphs = {name: _rows(files, index, datasets, name) for name in names}
        if manifest.directed and not len(delegates):
            graphs |= {INTO[x]: graphs[x] for x in SUBGRAPHS[1:]}  # without edges
    part = Part(
        layout=manifest.layout,
        index=index,
        threshold=manifest.threshold,
        delegates=delegates.get(),
        delegate_degrees=None,
        vertices=vertices,
        degrees=None,
        tuple_degrees=ends,
        active=manifest.records[index].active,
        **fields_of(graphs),
    )
    part.numbers = numbers
    return part


def _rows(
    files: PartFiles, index: int, datasets: dict[str, h5py.Dataset], name: str
) -> CSR:
    """Load the rows of a subgraph."""
    offsets, dataset = files.offsets(index, datasets, name), datasets[f"{name}/columns"]
    columns = cuda.cupy().zeros(dataset.size + COLUMN_PAD, dataset.dtype)
    for _, values in files.slices(index, datasets, f"{name}/columns", columns):
        bounds = files.bounds(index, name)
        # mutant: files.launch("check_columns", len(values), values, *bounds) -> pass
        #   : test_store_rows::test_forged_contents
        files.launch("check_columns", len(values), values, *bounds)
    files.check(name, files.below(index, name))
    return CSR(offsets, columns[: dataset.size])
