"""The edges of a store on the current device, as pairs of input ids.

Files pass through pinned memory in slices of 64 MiB, and no array of a part stands
whole in host memory.  Digests are checked on the way; offsets, numbers and columns are
checked by the kernels that name rows and columns (device_rows.cu).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.errors import InputError
from distbfs.generate.cuda import permutation_words
from distbfs.generate.hashing import ROUNDS
from distbfs.partition.part import PART_SHIFT, mask_words
from distbfs.progress import Sum
from distbfs.store import hdf5, schema
from distbfs.store.tuples import permutation_of
from distbfs.types import SUBGRAPHS

if TYPE_CHECKING:
    import h5py

    from distbfs.store.hdf5 import Store
    from distbfs.types import Array

    Room = Callable[[int, int], tuple[Any, Any]]

BLOCK = 256
BLOCKS_PER_MULTIPROCESSOR = 16
BUFFERS = 3  # one is read into, one is hashed, one is copied
INTO = "incoming"  # the rows in of a directed store, beside nn, its rows out
BY_NUMBER = ("nn", "nd", INTO)  # rows of these are vertices, of others delegates
NAMED_BYTES = 12  # of what is read of a vertex of any part: its id, its ends of tuples
SOURCES = 256  # a bit of device_rows.cu, as those of FAULTS
FAULTS = {  # bits of device_rows.cu
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


class Ring:
    """Pinned buffers that arrays pass through in order."""

    def __init__(self, size: int) -> None:
        self._bytes = [cuda.pinned_empty(size, np.uint8) for _ in range(BUFFERS)]
        self._done: list[Any] = [None] * BUFFERS
        self._given = self._taken = 0

    def place(self, dtype: Any) -> Callable[[int, int], Array]:
        """Return what gives room for values start … stop-1 of a dtype."""

        def give(start: int, stop: int) -> Array:
            turn, self._given = self._given % BUFFERS, self._given + 1
            if self._done[turn] is not None:
                self._done[turn].synchronize()
            size = (stop - start) * np.dtype(dtype).itemsize
            room: Array = self._bytes[turn][:size].view(dtype)
            return room

        return give

    def copy(self, values: Array, out: Any) -> None:
        """Copy the values that were given first to the device; does not wait."""
        stream = cuda.cupy().cuda.get_current_stream()
        out.set(values, stream)
        self._done[self._taken % BUFFERS] = stream.record()
        self._taken += 1

    def skip(self) -> None:
        """Leave the values that were given first."""
        self._taken += 1


@dataclass
class PartRows:
    """What expands the columns of a part.

    offsets: by subgraph, uint32 or uint64 [rows + 1]; delegates: uint32 [d], input ids
    """

    offsets: dict[str, Any]
    delegates: Any


@dataclass
class Ends:
    """Where ends of tuples go: array[id div owners], of ids mod owners = owner."""

    owners: int
    owner: int
    array: Any


class StoreRows:
    """The rows of some parts of a store, on the current device.

    names: uint32 [n], input ids by number, part after part
    degrees: uint32 [n], row lengths are added to it by input id; of a directed store
        one more for its rows in; or none
    ends: where ends of input tuples are kept; those of all parts
    done: told how many bytes to read, those of columns by ``expect``, and of each slice
        that was read

    Raises StoreError where a file is not what the manifest says, ResourceError where
    device memory is short.
    """

    def __init__(
        self,
        store: Store,
        parts: Sequence[int],
        *,
        degrees: Sequence[Any] = (),
        ends: Sequence[Ends] = (),
        done: Sum | None = None,
    ) -> None:
        cupy, manifest = cuda.cupy(), store.manifest
        self.store, self._manifest, self._ends = store, manifest, ends
        self._done = done or Sum()
        code = cuda.Module(Path(__file__).with_suffix(".cu"))
        self._kernel = code.kernel
        self._blocks = cuda.multiprocessors() * BLOCKS_PER_MULTIPROCESSOR
        most = max(_largest(store), 1)
        self._ring, self._stage = Ring(most), cupy.empty(most, np.uint8)
        self._fault = cupy.zeros(1, np.uint32)
        back = permutation_of(store)
        none = np.zeros(3 + 2 * ROUNDS, dtype=np.uint64)
        self._words = cupy.asarray(
            none if back is None else permutation_words(back.turned)
        )
        layout = manifest.layout
        counts = [layout.local_count(part) for part in range(layout.parts)]
        self._starts = np.cumsum([0, *counts]).astype(np.uint64)
        self._parts = cupy.asarray(self._starts)
        self._done.more(self._bytes(parts))
        self.names = cupy.empty(manifest.n, np.uint32)
        self._rows: dict[int, PartRows] = {}
        for part in range(layout.parts):
            with store.part_file(part) as found:
                self._name(part, found)
                if part in parts:
                    self._rows[part] = self._measure(part, found, degrees)

    def count(self, part: int, names: Sequence[str] = SUBGRAPHS) -> int:
        """Return the stored edges of some subgraphs of a part."""
        edges = self._manifest.records[part].edges
        return sum(edges["nn" if name == INTO else name] for name in names)

    def _bytes(self, parts: Sequence[int]) -> int:
        """Return the bytes that are read besides the columns of parts."""
        layout, total = self._manifest.layout, NAMED_BYTES * self._manifest.n
        for part in parts:
            record = self._manifest.records[part]
            names = (*SUBGRAPHS, *([INTO] if record.directed else []))
            columns = sum(self._column_bytes(part, name) for name in names)
            named = NAMED_BYTES * layout.local_count(part)
            total += record.array_bytes - columns - named
        return total

    def _column_bytes(self, part: int, name: str) -> int:
        width = 8 if name == "nn" and self._manifest.parts > 1 else 4
        return width * self.count(part, [name])

    def expect(self, passes: int, part: int, names: Sequence[str]) -> None:
        """Take that some columns will be read, so many times."""
        self._done.more(passes * sum(self._column_bytes(part, x) for x in names))

    def pairs(
        self, part: int, room: Room, names: Sequence[str] = SUBGRAPHS
    ) -> Iterator[tuple[Any, Any]]:
        """Yield the edges of some subgraphs of a part as (u, v), slice by slice.

        room: returns CuPy uint32 arrays for the edges start … stop-1 of these subgraphs
        """
        before = 0
        with self.store.part_file(part) as found:
            for name in names:
                for at, columns in self._slices(part, found, f"{name}/columns"):
                    first = before + at
                    u, v = room(first, first + len(columns))
                    self._expand(part, name, at, columns, u, v)
                    yield u, v
                self._check(name, self._below(part, name))
                before += self.count(part, [name])

    def _below(self, part: int, name: str) -> int:
        """Return what the columns of a subgraph must be less than."""
        if name in ("nd", "dd"):
            return self._manifest.delegates
        if name == "nn" and self._manifest.parts > 1:
            return self._manifest.parts << PART_SHIFT
        return len(self._named(part))

    def _expand(
        self, part: int, name: str, at: int, columns: Any, u: Any, v: Any
    ) -> None:
        rows = self._rows[part]
        offsets = rows.offsets[name]
        by_owner = name == "nn" and self._manifest.parts > 1
        own = self._named(part)
        row_names = own if name in BY_NUMBER else rows.delegates
        names = rows.delegates if name in ("nd", "dd") else own
        self._launch(
            "expand_slice",
            len(columns),
            np.uint64(at),
            np.uint64(len(offsets) - 1),
            offsets,
            np.uint32(offsets.dtype.itemsize == 8),
            columns,
            row_names,
            self.names if by_owner else names,
            self._parts if by_owner else np.uint64(0),
            np.uint64(self._manifest.parts if by_owner else len(names)),
            u,
            v,
        )

    def _launch(self, name: str, count: int, *arguments: Any) -> None:
        """Launch a kernel over so many items; faults are looked at by ``_check``."""
        if count:
            grid = min(-(-count // BLOCK), self._blocks)
            given = (np.uint64(count), *arguments, self._fault)
            self._kernel(name)(grid, BLOCK, *given)

    def _check(self, name: str, below: int = 0) -> None:
        """Raise InputError where a kernel has found a fault.

        below: what columns must be less than
        """
        found = int(self._fault.get()[0])
        for bit, text in FAULTS.items():
            if found & bit:
                raise InputError(f"{name}: {text.format(below=below)}")

    def _named(self, part: int) -> Any:
        return self.names[int(self._starts[part]) : int(self._starts[part + 1])]

    def _slices(
        self, part: int, found: dict[str, h5py.Dataset], name: str, out: Any = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield (start, values on the device) of a dataset.

        Values are views of ``out``, without it valid until the next.
        """
        dataset = found[name]
        digest, place = self._manifest.records[part].digests[name], self._ring.place
        for start, values in hdf5.slices(dataset, name, digest, place(dataset.dtype)):
            if out is None:
                here = self._stage[: values.nbytes].view(values.dtype)
            else:
                here = out[start : start + len(values)]
            self._ring.copy(values, here)
            self._done(values.nbytes)
            yield start, here

    def _whole(self, part: int, found: dict[str, h5py.Dataset], name: str) -> Any:
        """Return a dataset in device memory."""
        out = cuda.cupy().empty(found[name].size, found[name].dtype)
        for _ in self._slices(part, found, name, out):
            pass
        return out

    def _name(self, part: int, found: dict[str, h5py.Dataset]) -> None:
        """Name the numbers of a part, and keep ends of tuples."""
        own = self._named(part)
        vertices = self._whole(part, found, "vertices")
        seen = cuda.cupy().zeros(-(-len(own) // 32) + 1, np.uint32)
        parts = np.uint32(self._manifest.parts)
        form = (np.uint32(part), parts, vertices, self._words, seen, own)
        self._launch("name_vertices", len(own), *form)
        self._check("vertices")
        for start, values in self._slices(part, found, "tuple_degrees"):
            names = own[start : start + len(values)]
            for ends in self._ends:
                owners = (np.uint32(ends.owners), np.uint32(ends.owner))
                given = (values, names, *owners, ends.array)
                self._launch("keep_ends", len(values), *given)
        self._check("tuple_degrees")

    def _measure(
        self, part: int, found: dict[str, h5py.Dataset], degrees: Sequence[Any]
    ) -> PartRows:
        """Return the offsets of a part; all in its file but the columns is read."""
        cupy, record = cuda.cupy(), self._manifest.records[part]
        for name in ("degrees", "delegate_degrees"):
            digest, place = record.digests[name], self._ring.place(found[name].dtype)
            for _, values in hdf5.slices(found[name], name, digest, place):
                self._ring.skip()
                self._done(values.nbytes)
        delegates = self._whole(part, found, "delegates")
        named = cupy.empty(len(delegates), np.uint32)
        given = (np.uint64(self._manifest.n), delegates, self._words, named)
        self._launch("name_delegates", len(delegates), *given)
        self._check("delegates")
        offsets = {}
        for name in (*SUBGRAPHS, *([INTO] if record.directed else [])):
            held = offsets[name] = self._whole(part, found, f"{name}/offsets")
            rows, by_number = len(held) - 1, name in BY_NUMBER
            filled = cupy.zeros(2 * mask_words(max(rows, 1)), np.uint32)
            self._launch(
                "measure_rows",
                max(rows, 1),
                np.uint64(rows),
                np.uint64(record.active if by_number else rows),
                np.uint64(self.count(part, [name])),
                held,
                np.uint32(held.dtype.itemsize == 8),
                self._named(part) if by_number else named,
                degrees[name == INTO] if degrees else np.uint64(0),
                filled,
            )
            self._check(name)
            if name not in ("nn", INTO):
                self._check_sources(part, found, f"{name}_sources", rows, filled)
        return PartRows(offsets, named)

    def _check_sources(
        self,
        part: int,
        found: dict[str, h5py.Dataset],
        name: str,
        rows: int,
        filled: Any,
    ) -> None:
        """Raise InputError unless a list or mask of rows with edges fits offsets."""
        told = self._whole(part, found, name)
        words = filled.get().view(np.uint64)
        if name != "nd_sources":
            same = np.array_equal(told.get(), words[: len(told)])
        else:
            same = len(told) == int(np.unpackbits(words.view(np.uint8)).sum())
            given = (np.uint64(rows), told, filled)
            self._launch("check_sources", len(told), *given)
            same = same and not int(self._fault.get()[0]) & SOURCES
        if not same:
            raise InputError(f"/{name} does not fit the row offsets")


def _largest(store: Store) -> int:
    """Return the bytes of the largest slice of any dataset of a store."""
    manifest, most = store.manifest, 0
    for part, record in enumerate(manifest.records):
        specs = schema.part_specs(
            manifest.layout, part, manifest.delegates, record.edges
        )
        most = max(most, *(8 * spec.most for spec in specs.values()))
    return min(most, schema.SLICE_BYTES)
