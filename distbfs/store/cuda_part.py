"""A degree-separated part of a store in the memory of the current device.

A part file has the same arrays as a part on a device, so they are copied there while
they are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda
from distbfs.graph.device_graph import COLUMN_PAD
from distbfs.partition.device_part import DevicePart, DeviceSubgraph
from distbfs.store.cuda_files import PartFiles
from distbfs.store.cuda_rows import NO_WORDS
from distbfs.types import SUBGRAPHS, DeviceArray

if TYPE_CHECKING:
    import h5py

    from distbfs.progress import Sum
    from distbfs.store.hdf5 import Store


def part_of_store(store: Store, index: int, done: Sum | None = None) -> DevicePart:
    """Load a part of a symmetric store to the current device.

    done: called with the number of bytes to read, and with the bytes that have been
    read. Raises StoreError if the file does not match the manifest, ResourceError if
    device memory is short.
    """
    manifest, cupy = store.manifest, cuda.cupy()
    files = PartFiles(store, done)
    local = manifest.layout.local_count(index)
    files.done.more(manifest.records[index].array_bytes)
    with store.part_file(index) as datasets:
        for name in ("degrees", "delegate_degrees"):
            files.skip(index, datasets, name)
        numbers = cupy.empty(local, np.uint32)
        rising = cupy.arange(local, dtype=np.uint32)
        vertices, ends = _vertices(files, index, datasets, rising)
        numbers[vertices] = rising
        delegates = files.whole(index, datasets, "delegates")
        named = cupy.empty(len(delegates), np.uint32)
        files.launch(
            "name_delegates",
            len(delegates),
            np.uint64(manifest.n),
            delegates,
            cupy.asarray(NO_WORDS),
            named,
        )
        files.check("delegates")
        graphs = {name: _rows(files, index, datasets, name) for name in SUBGRAPHS}
    return DevicePart(
        manifest.layout,
        index,
        manifest.threshold,
        manifest.records[index].active,
        delegates.get(),
        graphs["nn"],
        graphs["nd"],
        graphs["dn"],
        graphs["dd"],
        vertices,
        numbers,
        ends,
    )


def _vertices(
    files: PartFiles, index: int, datasets: dict[str, h5py.Dataset], rising: DeviceArray
) -> tuple[DeviceArray, DeviceArray]:
    """Return (local ids, ends of input tuples) by number, uint32 [local] each.

    rising: uint32 [local], all numbers in ascending order
    """
    cupy, local = cuda.cupy(), len(rising)
    vertices = files.whole(index, datasets, "vertices")
    seen = cupy.zeros(-(-local // 32) + 1, np.uint32)
    files.launch(
        "name_vertices",
        local,
        np.uint32(0),
        np.uint32(1),
        vertices,
        cupy.asarray(NO_WORDS),
        seen,
        cupy.empty(local, np.uint32),
    )
    files.check("vertices")
    ends = cupy.empty(local, np.uint32)
    for start, values in files.slices(index, datasets, "tuple_degrees"):
        names = rising[start : start + len(values)]
        files.launch(
            "keep_ends", len(values), values, names, np.uint32(1), np.uint32(0), ends
        )
    files.check("tuple_degrees")
    return vertices, ends


def _rows(
    files: PartFiles, index: int, datasets: dict[str, h5py.Dataset], name: str
) -> DeviceSubgraph:
    """Load the rows of a subgraph."""
    offsets, dataset = files.offsets(index, datasets, name), datasets[f"{name}/columns"]
    columns = cuda.cupy().zeros(dataset.size + COLUMN_PAD, dataset.dtype)
    for _, values in files.slices(index, datasets, f"{name}/columns", columns):
        bounds = files.bounds(index, name)
        # mutant: files.launch("check_columns", len(values), values, *bounds) -> pass
        #   : test_store_rows::test_forged_contents
        files.launch("check_columns", len(values), values, *bounds)
    files.check(name, files.below(index, name))
    return DeviceSubgraph(offsets, columns)
