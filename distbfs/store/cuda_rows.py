"""The edges of a store on the current device, as pairs of input ids.

The kernels that map rows and columns to ids are in cuda_rows.cu.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda
from distbfs.partition.part import KIND
from distbfs.progress import Sum
from distbfs.store.cuda_files import NO_WORDS, PartFiles, TupleEnds, by_number
from distbfs.store.tuples import permutation_of
from distbfs.types import SUBGRAPHS, DeviceArray

if TYPE_CHECKING:
    import h5py

    from distbfs.store.hdf5 import Store

    Room = Callable[[int, int], tuple[DeviceArray, DeviceArray]]

NAMED_BYTES = 12  # bytes read a vertex of any part: its id, its ends of tuples


@dataclass
class PartRows:
    """The arrays that are needed to expand the columns of a part.

    offsets: by subgraph, uint32 or uint64 [rows + 1]; delegates: uint32 [d], input ids
    """

    offsets: dict[str, DeviceArray]
    delegates: DeviceArray


class StoreRows(PartFiles):
    """The rows of some parts of a store, on the current device.

    names: uint32 [n], input ids by number, part after part
    degrees: uint32 [n] by input id, to which row lengths are added; for a directed
    store, a second array for the edges in; possibly none
    ends: memory for the ends of input tuples of all parts
    done: called with the number of bytes to read, which ``expect`` raises by those of
    columns, and with the bytes of each slice read

    Raises StoreError if a file does not match the manifest, ResourceError if
    device memory is short.
    """

    def __init__(
        self,
        store: Store,
        parts: Sequence[int],
        *,
        degrees: Sequence[DeviceArray] = (),
        ends: Sequence[TupleEnds] = (),
        done: Sum | None = None,
    ) -> None:
        back, count = permutation_of(store), store.manifest.parts
        words = NO_WORDS if back is None else back.turned.words()
        super().__init__(store, done, words)
        self.done.more(self._bytes(parts))
        self.names = cuda.cupy().empty(self.manifest.n, np.uint32)
        self._rows: dict[int, PartRows] = {}
        for part in range(count):
            own = self._named(part)
            with store.part_file(part) as datasets:
                self.vertices(part, datasets, own, (part, count))
                self.ends(part, datasets, own, ends)
                if part in parts:
                    self._rows[part] = self._measure(part, datasets, degrees)

    def _bytes(self, parts: Sequence[int]) -> int:
        """Return the number of bytes to read, without the columns of parts."""
        layout, total = self.manifest.layout, NAMED_BYTES * self.manifest.n
        for part in parts:
            total += self.manifest.records[part].array_bytes
            total -= NAMED_BYTES * layout.local_count(part)
            total -= self.column_bytes(part, self.manifest.records[part].subgraphs)
        return total

    def expect(self, passes: int, part: int, names: Sequence[str]) -> None:
        """Announce ``passes`` reads of some columns."""
        self.done.more(passes * self.column_bytes(part, names))

    def pairs(
        self, part: int, room: Room, names: Sequence[str] = SUBGRAPHS
    ) -> Iterator[tuple[DeviceArray, DeviceArray]]:
        """Yield the edges of some subgraphs of a part as (u, v), slice by slice.

        room: returns two CuPy uint32 arrays for the edges start … stop-1 of these
        subgraphs
        """
        before = 0
        with self.store.part_file(part) as datasets:
            for name in names:
                for at, columns in self.slices(part, datasets, f"{name}/columns"):
                    first = before + at
                    u, v = room(first, first + len(columns))
                    self._expand(part, name, at, columns, u, v)
                    yield u, v
                self.check(name, self.below(part, name))
                before += self.count(part, [name])

    def _expand(
        self,
        part: int,
        name: str,
        at: int,
        columns: DeviceArray,
        u: DeviceArray,
        v: DeviceArray,
    ) -> None:
        rows, own = self._rows[part], self._named(part)
        offsets = rows.offsets[name]
        names = rows.delegates if KIND[name] in ("nd", "dd") else own
        self.launch(
            "expand_slice",
            len(columns),
            np.uint64(at),
            np.uint64(len(offsets) - 1),
            offsets,
            np.uint32(offsets.dtype.itemsize == 8),
            columns,
            own if by_number(name) else rows.delegates,
            # mutant: self.names if self.by_owner(name) else names -> names
            #   : test_store_rows::test_the_graph_is_that_of_the_tuples
            self.names if self.by_owner(name) else names,
            *self.bounds(part, name),
            u,
            v,
        )

    def _named(self, part: int) -> DeviceArray:
        return self.names[int(self.starts[part]) : int(self.starts[part + 1])]

    def _measure(
        self,
        part: int,
        datasets: dict[str, h5py.Dataset],
        degrees: Sequence[DeviceArray],
    ) -> PartRows:
        """Return the offsets of a part; reads its file except for the columns."""
        _, named = self.delegates(part, datasets)
        offsets = {}
        for name in self.manifest.records[part].subgraphs:
            names = self._named(part) if by_number(name) else named
            lengths = degrees[name not in SUBGRAPHS] if degrees else None
            offsets[name] = self.offsets(part, datasets, name, names, lengths)
        return PartRows(offsets, named)
