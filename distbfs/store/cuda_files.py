"""Arrays of the part files of a store, on the current device.

Files pass through pinned memory in slices of 64 MiB; host memory never holds a whole
array of a part. Digests are checked during reading; kernels check offsets, numbers and
columns (cuda_rows.cu).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.pinned_ring import PinnedRing
from distbfs.errors import InputError
from distbfs.generate.hashing import ROUNDS
from distbfs.partition.part import KIND, PART_SHIFT, edges_in, mask_words
from distbfs.progress import Sum
from distbfs.store import chunks, schema
from distbfs.store.hdf5 import compare_array
from distbfs.types import SUBGRAPHS

if TYPE_CHECKING:
    import h5py

    from distbfs.store.hdf5 import Store
    from distbfs.types import DeviceArray, KernelArgument, Words

BLOCK = 256
NO_WORDS = np.zeros(3 + 2 * ROUNDS, dtype=np.uint64)  # of the identity
BUFFERS = 3  # pinned: one being read, one being hashed, one being copied
KERNELS = Path(__file__).with_name("cuda_rows.cu")
FAULTS = {  # bits of cuda_rows.cu
    1: "row offsets do not start at 0",
    2: "row offsets do not rise",
    4: "the last row offset is not the number of columns",
    8: "a column is not below {below}",
    16: "a column is beyond the vertices of its owner",
    32: "vertices is not a permutation of the local ids",
    64: "a delegate is not a vertex",
    128: "has edges at rows that are not active",
    512: "a vertex has fewer than 0 ends of tuples, or 2^32 and more",
}


def by_number(name: str) -> bool:
    """Return whether rows of a subgraph are vertices of its part, not delegates."""
    return KIND[name] in ("nn", "nd")


@dataclass
class TupleEnds:
    """Where ends of tuples go: array[id div owners], if id mod owners = owner."""

    owners: int
    owner: int
    array: DeviceArray


class PartFiles:
    """The part files of a store, for the current device.

    words: the permutation from ids of the store to names, uint64 [11]
    done: called with the number of bytes to read, then with the bytes of each slice
    read

    Raises StoreError if a file does not match the manifest, ResourceError if device
    memory is short.
    """

    def __init__(self, store: Store, done: Sum | None, words: Words = NO_WORDS) -> None:
        cupy, manifest = cuda.cupy(), store.manifest
        self.store, self.manifest, self.done = store, manifest, done or Sum()
        self._kernel = programs.Module(KERNELS).kernel
        most = max(_largest(store), 1)
        self._ring, self._stage = PinnedRing(most, BUFFERS), cupy.empty(most, np.uint8)
        self.fault = cupy.zeros(1, np.uint32)
        layout = manifest.layout
        counts = [layout.local_count(part) for part in range(layout.parts)]
        self.starts = np.cumsum([0, *counts]).astype(np.uint64)
        self._starts, self._words = cupy.asarray(self.starts), cupy.asarray(words)

    def count(self, part: int, names: Sequence[str] = SUBGRAPHS) -> int:
        """Return the number of stored edges in some subgraphs of a part."""
        edges = self.manifest.records[part].edges
        return sum(edges_in(edges, name) for name in names)

    def by_owner(self, name: str) -> bool:
        """Return whether columns of a subgraph include the parts of the vertices."""
        return KIND[name] == "nn" and self.manifest.parts > 1

    def column_bytes(self, part: int, names: Sequence[str]) -> int:
        """Return the bytes of the columns of some subgraphs of a part."""
        return sum(4 * (1 + self.by_owner(x)) * self.count(part, [x]) for x in names)

    def below(self, part: int, name: str) -> int:
        """Return the upper bound of a subgraph's columns."""
        if KIND[name] in ("nd", "dd"):
            return self.manifest.delegates
        if self.by_owner(name):
            return self.manifest.parts << PART_SHIFT
        return self.manifest.layout.local_count(part)

    def bounds(self, part: int, name: str) -> tuple[DeviceArray | np.uint64, np.uint64]:
        """Return the two arguments that bound the columns in kernels.

        If columns include parts, these are the first number of each part, device uint64
        [parts + 1], and the number of parts; otherwise 0 and the upper bound of
        columns.
        """
        if self.by_owner(name):
            return self._starts, np.uint64(self.manifest.parts)
        return np.uint64(0), np.uint64(self.below(part, name))

    def launch(self, name: str, count: int, *arguments: KernelArgument) -> None:
        """Launch a kernel over ``count`` items; ``check`` reports its faults."""
        if count:
            grid = cuda.blocks_for(count, BLOCK)
            self._kernel(name)(grid, BLOCK, np.uint64(count), *arguments, self.fault)

    def check(self, name: str, below: int = 0) -> None:
        """Raise InputError if a kernel has found a fault.

        below: upper bound of columns, for the message
        """
        faults = int(self.fault.get()[0])
        for bit, text in FAULTS.items():
            if faults & bit:
                raise InputError(f"{name}: {text.format(below=below)}")

    def slices(
        self,
        part: int,
        datasets: dict[str, h5py.Dataset],
        name: str,
        out: DeviceArray | None = None,
    ) -> Iterator[tuple[int, DeviceArray]]:
        """Yield (start, values on the device) of a dataset, of its dtype, in slices.

        Values are views of ``out``; without ``out``, they are valid until the next
        slice.
        Raises StoreError if the digest differs.
        """
        dataset = datasets[name]
        digest, place = self.manifest.records[part].digests[name], self._ring.place
        for start, values in chunks.slices(dataset, name, digest, place(dataset.dtype)):
            if out is None:
                target = self._stage[: values.nbytes].view(values.dtype)
            else:
                target = out[start : start + len(values)]
            self._ring.copy(values, target)
            self.done(values.nbytes)
            yield start, target

    def whole(
        self, part: int, datasets: dict[str, h5py.Dataset], name: str
    ) -> DeviceArray:
        """Return a dataset in device memory, of its dtype."""
        out = cuda.cupy().empty(datasets[name].size, datasets[name].dtype)
        for _ in self.slices(part, datasets, name, out):
            pass
        return out

    def vertices(
        self,
        part: int,
        datasets: dict[str, h5py.Dataset],
        names: DeviceArray,
        place: tuple[int, int] = (0, 1),
    ) -> DeviceArray:
        """Return the local ids of a part by number, uint32 [local], and name them.

        names: uint32 [local], written; place: the part and the number of parts of the
        ids that are named, by default those of the part itself
        """
        vertices = self.whole(part, datasets, "vertices")
        seen = cuda.cupy().zeros(-(-len(names) // 32) + 1, np.uint32)
        own, parts = map(np.uint32, place)
        self.launch(
            "name_vertices", len(names), own, parts, vertices, self._words, seen, names
        )
        self.check("vertices")
        return vertices

    def ends(
        self,
        part: int,
        datasets: dict[str, h5py.Dataset],
        names: DeviceArray,
        every: Sequence[TupleEnds],
    ) -> None:
        """Store the ends of tuples of a part's vertices; names: by number."""
        for start, values in self.slices(part, datasets, "tuple_degrees"):
            named = names[start : start + len(values)]
            for ends in every:
                place = np.uint32(ends.owners), np.uint32(ends.owner)
                self.launch("keep_ends", len(values), values, named, *place, ends.array)
        self.check("tuple_degrees")

    def delegates(
        self, part: int, datasets: dict[str, h5py.Dataset]
    ) -> tuple[DeviceArray, DeviceArray]:
        """Return the ids of delegates, int64 [d], and their names, uint32 [d].

        Their degrees, and those of the part's vertices, are only checked.
        """
        for name in ("degrees", "delegate_degrees"):
            for _ in self.slices(part, datasets, name):
                pass
        delegates = self.whole(part, datasets, "delegates")
        named, n = cuda.cupy().empty(len(delegates), np.uint32), self.manifest.n
        self.launch(
            "name_delegates", len(named), np.uint64(n), delegates, self._words, named
        )
        self.check("delegates")
        return delegates, named

    def offsets(
        self,
        part: int,
        datasets: dict[str, h5py.Dataset],
        name: str,
        names: DeviceArray | None = None,
        degrees: DeviceArray | None = None,
    ) -> DeviceArray:
        """Return the row offsets of a subgraph, uint32 or uint64 [rows + 1].

        names: uint32 [rows], the names of the rows; degrees: uint32 [n] by name, to
        which row lengths are added. Raises InputError for invalid offsets.
        """
        held = self.whole(part, datasets, f"{name}/offsets")
        rows, active = len(held) - 1, self.manifest.records[part].active
        filled = cuda.cupy().zeros(2 * mask_words(max(rows, 1)), np.uint32)
        none = np.uint64(0)
        self.launch(
            "measure_rows",
            max(rows, 1),
            np.uint64(rows),
            np.uint64(active if by_number(name) else rows),
            np.uint64(self.count(part, [name])),
            held,
            np.uint32(held.dtype.itemsize == 8),
            none if names is None else names,
            none if degrees is None else degrees,
            filled,
        )
        self.check(name)
        if name in SUBGRAPHS[1:]:  # which has a list, or mask, of rows with edges
            sources, words = f"{name}_sources", filled.get()
            dataset, digests = datasets[sources], self.manifest.records[part].digests
            every = words.view(np.uint64)[: dataset.size]
            if name == "nd":
                bits = np.unpackbits(words.view(np.uint8), bitorder="little")
                every = np.flatnonzero(bits).astype(np.uint32)
            compare_array(dataset, sources, digests[sources], every)
            self.done(dataset.nbytes)
        return held


def _largest(store: Store) -> int:
    """Return the number of bytes of a store's largest slice of a dataset."""
    manifest = store.manifest
    every = [manifest.specs(part) for part in range(manifest.parts)]
    most = max(8 * spec.most for specs in every for spec in specs.values())
    return min(most, schema.SLICE_BYTES)
