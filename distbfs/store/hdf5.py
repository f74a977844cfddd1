"""Reading and writing of a graph store.

Each rank writes and reads the files of its own parts with serial h5py; rank 0 writes
the manifest last and renames the folder to its final name. Arrays are read and written
in slices of 64 MiB and hashed at the same time, so nothing is read or copied twice.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import xxhash

from distbfs import leftovers
from distbfs.errors import PeerFailed, StoreError, UsageError
from distbfs.formats.attributes import Attribute
from distbfs.formats.ids import CountedIds, id_map
from distbfs.graph.csr import CSR
from distbfs.options import check_range
from distbfs.partition.part import Part, fields_of
from distbfs.progress import Sum, Tell, untold
from distbfs.store import atomic_folder as folders
from distbfs.store import chunks, safety, schema
from distbfs.store.hdf5_file import Sink, new_file
from distbfs.store.schema import DatasetSpec, IdsRecord, Manifest, PartRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from typing_extensions import Self

    from distbfs.formats.ids import IdMap
    from distbfs.types import Array

LIBRARY_VERSION = ("v110", "v110")  # checksums on all metadata, HDF5 1.10 or newer


def write_file(
    path: Path,
    arrays: Mapping[str, Array],
    attributes: Mapping[str, int],
    done: Sum | None = None,
) -> dict[str, str]:
    """Write one file of a store and return the digest of each dataset.

    The file is written under a temporary name, synced and renamed.

    done: called with the number of bytes written. Raises OSError, ResourceError.
    """
    done = done or Sum()
    partial = path.with_name(f"{path.name}.tmp")
    digests = {}
    with new_file(partial, LIBRARY_VERSION, rdcc_nbytes=8 << 20) as (file, sink):
        for name, value in attributes.items():
            file.attrs.create(name, value, dtype="<i8")
        for name, array in arrays.items():
            digests[name] = write_array(file, name, array, sink, done)
    partial.rename(path)
    return digests


def write_array(file: h5py.File, name: str, array: Array, sink: Sink, done: Sum) -> str:
    """Write an array [k] with a dtype of the schema as a dataset; return its digest."""
    dtype = array.dtype.newbyteorder("<")
    layout: dict[str, Any] = {}
    if len(array):
        chunk = schema.chunk_elements(len(array), dtype.itemsize)
        layout = {"chunks": (chunk,), "fletcher32": True}
    dataset = file.create_dataset(name, shape=array.shape, dtype=dtype, **layout)
    digest = xxhash.xxh3_128()
    step = schema.SLICE_BYTES // dtype.itemsize
    for start in range(0, len(array), step):
        values = np.ascontiguousarray(array[start : start + step], dtype=dtype)
        digest.update(values.view(np.uint8).data)
        dataset.write_direct(values, None, np.s_[start : start + len(values)])
        done(values.nbytes)
        sink.check()
    return digest.hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``manifest.h5`` into a folder; raises StoreError, OSError."""
    text = np.frombuffer(manifest.to_json().encode(), dtype=np.uint8)
    if len(text) > schema.MANIFEST_LIMIT:
        raise StoreError(
            f"the manifest has {len(text)} bytes; allowed: {schema.MANIFEST_LIMIT}"
        )
    write_file(
        folder / schema.MANIFEST_NAME,
        {schema.MANIFEST_DATASET: text},
        {schema.VERSION_ATTRIBUTE: manifest.format_version},
    )


class StoreWriter:
    """Writes a store that appears complete or not at all.

    folder: the store to create; overwrite: whether a store there is replaced, after the
    new one is complete. token: a result of ``new_token()``, the same on every rank, so
    that all write to the same partial folder; a single process needs none.

    Every rank creates a writer and writes its parts; after a barrier rank 0 alone calls
    :meth:`finish`. As a context manager, it removes the files if the block raises an
    exception. Raises StoreError, and ResourceError (exit code 3) if the disk is full;
    the partial folder is then removed.
    """

    def __init__(
        self, folder: str | Path, overwrite: bool = False, token: str | None = None
    ) -> None:
        with safety.guarded(folder):
            token = folders.new_token() if token is None else token
            self._partial = folders.PartialFolder(folder, overwrite, token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._partial.release()
        else:
            self.discard()

    @property
    def path(self) -> Path:
        """The folder being written, before it gets its final name."""
        return self._partial.path

    def write_part(self, part: Part, tell: Tell = untold) -> PartRecord:
        """Write one part; return its record for the manifest.

        tell: called with (bytes written, total). Raises StoreError if the part does
        not match the format.
        """
        path = self.path / schema.part_name(part.index)
        with self._writing():
            arrays, edges = schema.part_arrays(part), schema.part_edges(part)
            layout, index, d = part.layout, part.index, part.delegate_count
            directed = part.directed
            kinds = {name: x.kind for name, x in part.attributes.items()}
            specs = schema.part_specs(
                layout, index, d, edges, directed=directed, kinds=kinds
            )
            safety.check_part(part)
            attributes = schema.part_attributes(
                layout, index, part.threshold, part.active
            )
            facts = self._write(path, arrays, attributes, specs, Sum(tell))
            leftovers.sync(self.path)
            return PartRecord(part.index, int(part.active), edges, **facts)

    def write_ids(self, ids: IdMap) -> IdsRecord:
        """Write the vertices' ids in their input file; return the record."""
        path = self.path / schema.IDS_NAME
        with self._writing():
            attributes = schema.ids_attributes(ids.count)
            specs = schema.ids_specs(ids.kind, ids.count)
            facts = self._write(path, ids.arrays(), attributes, specs, Sum())
            return IdsRecord(ids.kind, ids.count, **facts)

    @staticmethod
    def _write(
        path: Path,
        arrays: Mapping[str, Array],
        attributes: Mapping[str, int],
        specs: Mapping[str, DatasetSpec],
        done: Sum,
    ) -> dict[str, Any]:
        """Write a file and check it; return what every record of a file has."""
        total = sum(array.nbytes for array in arrays.values())
        done.more(total)
        facts: dict[str, Any] = {"array_bytes": total}
        facts["digests"] = write_file(path, arrays, attributes, done)
        facts["file_bytes"] = path.stat().st_size
        with safety.opened(path, attributes, specs) as datasets:
            facts["frame"] = chunks.frame_digest(path, datasets.values())
        return facts

    def finish(self, manifest: Manifest) -> Path:
        """Write the manifest and rename the store to its final name; return its folder.

        Only rank 0 calls it, once all ranks have written their parts. Raises StoreError
        if a part is missing or differs from its record in the manifest.
        """
        with self._writing():
            manifest = Manifest.from_json(manifest.to_json().encode())  # and its types
            safety.check_folder(self.path, manifest)
            store = Store(self.path, manifest)
            for index in range(manifest.parts):
                with store.part_file(index):
                    pass  # which checks all but the data
            write_manifest(self.path, manifest)
            self._partial.place()
            return self._partial.target

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Remove the written files if the block raises an error.

        Raises PeerFailed if the folder is gone: another rank discarded it.
        """
        try:
            with safety.guarded(self._partial.target):
                yield
        except BaseException as error:
            gone = isinstance(error, StoreError) and not self.path.is_dir()
            self.discard()
            if gone:
                raise PeerFailed(
                    f"{self._partial.target}: the folder that was written was removed"
                ) from error
            raise

    def discard(self) -> None:
        """Remove the written files; does nothing after :meth:`finish`."""
        self._partial.discard()


@dataclass(frozen=True)
class Store:
    """An opened store: its folder and manifest; parts are loaded one by one."""

    folder: Path
    manifest: Manifest

    @property
    def digest(self) -> str:
        """A digest of the manifest, and thereby of all arrays, as hex digits."""
        return xxhash.xxh3_128_hexdigest(self.manifest.to_json().encode())

    def part_bytes(self, index: int) -> int:
        """Return the number of bytes that all arrays of a part take in memory."""
        check_range("part", index, 0, self.manifest.parts - 1)
        return self.manifest.records[index].array_bytes

    def check_frame(self, index: int) -> None:
        """Check the bytes of a part's file that are not values of datasets.

        Stores that were written without this digest pass the check.  Raises StoreError.
        """
        with self.part_file(index) as datasets:
            path = self.folder / schema.part_name(index)
            check_frame(path, self.manifest.records[index].frame, datasets)

    def load_ids(self, first_id: int | None = None) -> IdMap | None:
        """Return the vertices' ids in their input file, None if they are 0 to n - 1.

        They are checked like parts.

        first_id: the id of the first vertex, 0 or 1, instead of that in the file.
        Raises StoreError, and UsageError for a ``first_id`` if the ids are not
        consecutive.
        """
        record = self.manifest.ids
        if first_id is not None:
            check_range("first_id", first_id, 0, 1)
            if record is not None:
                raise UsageError(
                    f"{self.folder} keeps ids; first_id is for consecutive numbers"
                )
        if record is None:
            first = self.manifest.first_id if first_id is None else first_id
            return CountedIds(self.manifest.n, first) if first else None
        path = self.folder / schema.IDS_NAME
        attributes = schema.ids_attributes(record.count)
        specs = schema.ids_specs(record.kind, record.count)
        with safety.opened(path, attributes, specs, record) as datasets:
            arrays = {
                name: read_array(item, name, record.digests[name])
                for name, item in datasets.items()
            }
            check_frame(path, record.frame, datasets)
            return id_map(record.kind, arrays)

    @contextmanager
    def part_file(self, index: int) -> Iterator[dict[str, h5py.Dataset]]:
        """Yield the datasets of a part by name, after all checks that need no data.

        Errors in the ``with`` block become StoreErrors that name the file. Raises
        UsageError for an unknown part.
        """
        check_range("part", index, 0, self.manifest.parts - 1)
        manifest, record = self.manifest, self.manifest.records[index]
        path = self.folder / schema.part_name(index)
        expected = schema.part_attributes(
            manifest.layout, index, manifest.threshold, record.active
        )
        specs = manifest.specs(index)
        with safety.opened(path, expected, specs, record) as datasets:
            yield datasets

    def load_part(self, index: int, done: Sum | None = None) -> Part:
        """Load a part, checking it while it is read.

        Each array is allocated once and filled in slices.

        done: called with the bytes of each slice, before the whole array is checked.
        Raises StoreError if the file does not exactly match the manifest, UsageError
        for an unknown part.
        """
        manifest = self.manifest
        with self.part_file(index) as datasets:
            record = manifest.records[index]

            def read(name: str) -> Array:
                return read_array(datasets[name], name, record.digests[name], done)

            graphs = {
                name: CSR(read(f"{name}/offsets"), read(f"{name}/columns"))
                for name in record.subgraphs
            }
            part = Part(
                layout=manifest.layout,
                index=index,
                threshold=manifest.threshold,
                delegates=read("delegates"),
                delegate_degrees=read("delegate_degrees"),
                vertices=read("vertices"),
                degrees=read("degrees"),
                tuple_degrees=read("tuple_degrees"),
                active=record.active,
                attributes={
                    name: Attribute(
                        {x: read(f"{x}/attribute_{name}") for x in graphs},
                        manifest.words_of(name),
                    )
                    for name in manifest.attributes
                },
                **fields_of(graphs),
            )
            safety.check_part(part)
            for name, kept in part.attributes.items():
                safety.check_words(name, kept)
            for name in ("nd_sources", "dn_sources", "dd_sources"):
                compare_array(
                    datasets[name], name, record.digests[name], getattr(part, name)
                )
            return part


def open_store(folder: str | Path) -> Store:
    """Open a store; check its manifest and its list of files.

    Raises StoreError, with a message of one line, for anything but a complete store of
    this format version.
    """
    folder = Path(folder)
    if leftovers.HIDDEN.fullmatch(folder.absolute().parent.name):
        raise StoreError(
            f"{folder}: is a remnant of an unfinished write; write the store again"
        )
    path = folder / schema.MANIFEST_NAME
    with safety.guarded(folder):
        if folder.is_file():
            raise StoreError(
                f"{folder}: is a file, not the folder of a store; store its graph by "
                f"'distbfs convert {folder} -o FOLDER'"
            )
        if not folder.is_dir():
            raise StoreError(
                f"{folder}: there is no such file or folder; {hint(folder)}"
            )
        if schema.MANIFEST_NAME not in os.listdir(folder):
            raise StoreError(
                f"{folder}: has no {schema.MANIFEST_NAME}; it is not a graph store"
            )
    most = schema.MANIFEST_LIMIT
    specs = {schema.MANIFEST_DATASET: schema.DatasetSpec(("<u1",), 1, most)}
    attributes = {schema.VERSION_ATTRIBUTE: schema.FORMAT_VERSION}
    with safety.opened(path, attributes, specs) as datasets:
        manifest = Manifest.from_json(datasets[schema.MANIFEST_DATASET][:].tobytes())
    with safety.guarded(folder):
        safety.check_folder(folder, manifest)
    return Store(folder, manifest)


def check_frame(path: Path, frame: str, datasets: Mapping[str, h5py.Dataset]) -> None:
    """Raise StoreError if bytes that are not values of datasets were altered."""
    if frame and chunks.frame_digest(path, datasets.values()) != frame:
        raise StoreError("is altered outside its datasets")


def hint(folder: Path) -> str:
    """Suggest what to do about a missing store."""
    with suppress(OSError):
        for old in leftovers.waiting(folder.parent):
            if old.name == folder.name:
                return (
                    f"an interrupted replacement left the old one as {old}; the next "
                    "write puts it back"
                )
    return "'distbfs convert FILE -o FOLDER' makes the folder of a store"


def read_array(
    dataset: h5py.Dataset, name: str, digest: str, done: Sum | None = None
) -> Array:
    """Return a dataset as an array, [size] of its dtype.

    done: called with the bytes of each slice. Raises StoreError if its digest differs.
    """
    whole = np.empty(dataset.size, dataset.dtype)
    for _, values in chunks.slices(dataset, name, digest, lambda a, b: whole[a:b]):
        if done is not None:
            done(values.nbytes)
    return whole


def compare_array(
    dataset: h5py.Dataset, name: str, digest: str, expected: Array
) -> None:
    """Raise StoreError unless a dataset agrees with the subgraphs."""
    same = dataset.size == len(expected)
    for start, values in chunks.slices(dataset, name, digest):
        same = same and np.array_equal(values, expected[start : start + len(values)])
    if not same:
        raise StoreError(f"/{name} does not fit the row offsets")
