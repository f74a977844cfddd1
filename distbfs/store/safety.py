"""The checks that a graph store must pass before its data are used.

Each file is checked in this order: it is a regular file of the size in the manifest, a
valid HDF5 file, of the right format version, with exactly the objects of the schema,
reached by plain hard links, and each dataset has the right type, layout, filters, shape
and number of stored bytes. Nothing is allocated and no link is followed before that.
The contents are checked while they are read (fletcher32, digest) and afterwards as a
part (offsets, ids).
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5l, h5o, h5s, h5t, h5z

from distbfs.errors import (
    DistbfsError,
    InputError,
    OutOfMemory,
    StoreError,
    naming,
)
from distbfs.partition.part import KIND, NUMBER_MASK, PART_SHIFT
from distbfs.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from distbfs.formats.attributes import Attribute
    from distbfs.partition.part import Part
    from distbfs.store.schema import DatasetSpec, IdsRecord, Manifest, PartRecord
    from distbfs.types import Array, Numbers

SIGNATURE = b"\x89HDF\r\n\x1a\n"
END_AT = 28  # of the superblock from version 2 on: the size of the file, uint64


@contextmanager
def guarded(path: Path | str) -> Iterator[None]:
    """Convert errors of HDF5 and the system to one line about ``path``.

    Raises StoreError, or ResourceError if the disk or the memory is full.
    """
    try:
        with naming(path, StoreError):
            yield
    except StoreError as error:
        if str(error).startswith(str(path)):
            raise
        raise StoreError(f"{path}: {error}") from error
    except InputError as error:
        raise StoreError(f"{path}: {error}") from error
    except DistbfsError:
        raise
    except MemoryError as error:
        raise OutOfMemory(f"{path}: not enough memory to hold it") from error
    except (RuntimeError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise StoreError(f"{path}: {one_line(error)}") from error


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Prefix the message of a StoreError with the name of a group or dataset."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"{name}: {error}") from error


def one_line(error: Exception) -> str:
    """Return the message of an error without line breaks."""
    return " ".join(str(error).split())


def regular_file(path: Path) -> int:
    """Return the size of a file; raise StoreError unless it is a regular file.

    A symbolic link is refused and not followed.
    """
    with naming(path, StoreError):
        status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        kind = (
            "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
        )
        raise StoreError(f"{path}: is {kind}; allowed: a regular file")
    return status.st_size


def check_folder(folder: Path, manifest: Manifest) -> None:
    """Raise StoreError unless the folder has exactly the files of the manifest."""
    expected = {schema.part_name(index) for index in range(manifest.parts)}
    for name in sorted(os.listdir(folder)):
        if name.startswith("part-") and name not in expected:
            raise StoreError(
                f"{folder / name}: does not belong to the {manifest.parts} parts of "
                "the manifest"
            )
    for record in manifest.records:
        check_size(folder / schema.part_name(record.index), record.file_bytes)
    path = folder / schema.IDS_NAME
    if manifest.ids is not None:
        check_size(path, manifest.ids.file_bytes)
    elif os.path.lexists(path):
        raise StoreError(f"{path}: does not belong to the manifest, which has no ids")


def check_size(path: Path, expected: int) -> None:
    """Raise StoreError unless a path is a regular file of this size."""
    size = regular_file(path)
    if size != expected:
        raise StoreError(
            f"{path}: has {size} bytes instead of {expected}; "
            "it is truncated or altered"
        )


@contextmanager
def opened(
    path: Path,
    attributes: Mapping[str, int],
    specs: Mapping[str, DatasetSpec],
    record: PartRecord | IdsRecord | None = None,
) -> Iterator[dict[str, h5py.Dataset]]:
    """Open a file of a store; yield its datasets by name after all checks but of data.

    Errors in the block become StoreErrors that name the file.

    attributes: all of the file, with their values; specs: all of its datasets
    record: the manifest's record of the file, None if it has none
    """
    size = regular_file(path) if record is None else record.file_bytes
    check_size(path, size)
    with guarded(path):
        with path.open("rb") as plain:
            if plain.read(len(SIGNATURE)) != SIGNATURE:
                raise StoreError("is not an HDF5 file")
        try:
            with h5py.File(
                path, "r", locking="best-effort", rdcc_nbytes=8 << 20
            ) as file:
                check_end(path)
                check_version(file)
                check_attributes(file, attributes)
                datasets = check_objects(file, specs, size)
                total = sum(x.size * x.dtype.itemsize for x in datasets.values())
                if record is not None and total != record.array_bytes:
                    raise StoreError(f"holds {total} bytes, not {record.array_bytes}")
                yield datasets
        except DistbfsError:
            raise
        except BlockingIOError as error:  # of HDF5's lock
            raise StoreError(
                "another process is writing the store; try again when it has ended"
            ) from error
        except (OSError, RuntimeError, KeyError, ValueError) as error:
            if isinstance(error, OSError) and error.errno:
                raise
            raise StoreError(
                "is truncated or altered; allowed: a file as distbfs wrote it"
            ) from error


def check_end(path: Path) -> None:
    """Raise StoreError unless an HDF5 file ends where its superblock says."""
    with path.open("rb") as plain:
        plain.seek(END_AT)
        check_size(path, int.from_bytes(plain.read(8), "little"))


def check_version(file: h5py.File) -> None:
    """Raise StoreError unless the file is of this format version."""
    if not h5a.exists(file.id, schema.VERSION_ATTRIBUTE.encode()):
        raise StoreError("has no format version; it is not a file of a graph store")
    version = read_attribute(file, schema.VERSION_ATTRIBUTE)
    if version != schema.FORMAT_VERSION:
        raise StoreError(schema.wrong_version(version))


def read_attribute(file: h5py.File, name: str) -> int:
    """Return an int64 attribute of the file; raise StoreError for another type."""
    attribute = h5a.open(file.id, name.encode())
    scalar = attribute.get_space().get_simple_extent_type() == h5s.SCALAR
    if not scalar or not attribute.get_type().equal(h5t.STD_I64LE):
        raise StoreError(f"attribute {name} has a wrong type; allowed: one int64")
    value = np.zeros((), dtype="<i8")
    attribute.read(value)
    return int(value)


def check_attributes(file: h5py.File, expected: Mapping[str, int]) -> None:
    """Raise StoreError unless the file has exactly these attributes and values."""
    count = h5a.get_num_attrs(file.id)
    for name, value in expected.items():
        if not h5a.exists(file.id, name.encode()):
            raise StoreError(f"lacks the attribute {name}")
        stored = read_attribute(file, name)
        if stored != value:
            raise StoreError(
                f"attribute {name} is {stored}, but the manifest says {value}"
            )
    if count != len(expected):
        raise StoreError(f"has {count} attributes instead of {len(expected)}")


def check_objects(
    file: h5py.File, specs: Mapping[str, DatasetSpec], file_bytes: int
) -> dict[str, h5py.Dataset]:
    """Return the datasets of a file by name, after all checks.

    Raises StoreError unless the file holds exactly the groups and datasets of
    ``specs``, each with one plain hard link, each dataset passes :func:`dataset`, and
    all datasets together fit in the file.
    """
    children: dict[str, set[str]] = {"": set()}
    for name in specs:
        group, _, leaf = name.rpartition("/")
        children.setdefault(group, set()).add(leaf)
        if group:
            children[""].add(group)
    nodes = {"": file.id}
    for group, names in children.items():
        with inside(f"/{group}"):
            if group:
                nodes[group] = hard_object(file.id, group, h5o.TYPE_GROUP)
            check_names(nodes[group], names)
    datasets, stored, places = {}, 0, set()
    for name, spec in specs.items():
        group, _, leaf = name.rpartition("/")
        with inside(f"/{name}"):
            array = dataset(nodes[group], leaf, spec, file_bytes)
        stored += array.get_storage_size()
        places.add(h5o.get_info(array).addr)
        datasets[name] = h5py.Dataset(array)
    if len(places) != len(specs) or stored > file_bytes:
        raise StoreError(f"datasets overlap: {stored} bytes in a file of {file_bytes}")
    return datasets


def check_names(node: Any, expected: set[str]) -> None:
    """Raise StoreError unless a group has exactly these links."""
    count = node.get_num_objs()
    names = set()
    if count <= len(expected):
        names = {name.decode(errors="replace") for name in node}
    if names != expected:
        raise StoreError(
            f"holds {count} objects; allowed: exactly {', '.join(sorted(expected))}"
        )


def hard_object(node: Any, name: str, kind: int) -> Any:
    """Open the object of a hard link; raise StoreError for other links and kinds.

    The object must have this one name and no attributes.
    """
    link = node.links.get_info(name.encode())
    if link.type != h5l.TYPE_HARD:
        kinds = {h5l.TYPE_SOFT: "a soft link", h5l.TYPE_EXTERNAL: "an external link"}
        what = kinds.get(link.type, "a user-defined link")
        raise StoreError(f"is {what}; allowed: plain datasets and groups")
    info = h5o.get_info(node, name.encode())
    if info.type != kind or info.rc != 1:
        expected = "group" if kind == h5o.TYPE_GROUP else "dataset"
        raise StoreError(f"is not a {expected} with one name")
    opened_object = h5o.open(node, name.encode())
    if h5a.get_num_attrs(opened_object):
        raise StoreError("has attributes; allowed: none")
    return opened_object


def file_type(name: str) -> Any:
    """Return HDF5's type of a NumPy dtype."""
    return h5t.py_create(np.dtype(name))


def dataset(node: Any, leaf: str, spec: DatasetSpec, file_bytes: int) -> Any:
    """Return the low-level dataset; raise StoreError unless it matches ``spec``.

    It must have one dimension of fixed size and an allowed dtype, and be stored in this
    file: contiguous and without filters if it is empty, else in the schema's chunks
    with fletcher32 as the only filter, and with exactly as many bytes as its shape
    requires.
    """
    item = hard_object(node, leaf, h5o.TYPE_DATASET)
    created = item.get_create_plist()
    layout, filters = created.get_layout(), created.get_nfilters()
    if layout == h5d.VIRTUAL or created.get_external_count():
        raise StoreError("is virtual or stored in other files; allowed: this file")
    kinds = [name for name in spec.dtypes if item.get_type().equal(file_type(name))]
    if not kinds:
        raise StoreError(f"has a wrong dtype; allowed: {', '.join(spec.dtypes)}")
    space = item.get_space()
    if space.get_simple_extent_type() != h5s.SIMPLE:
        raise StoreError("is not an array; allowed: one dimension")
    shape = space.get_simple_extent_dims()
    if len(shape) != 1 or not spec.least <= shape[0] <= spec.most:
        allowed = f"({spec.least},)" if spec.least == spec.most else "one dimension"
        raise StoreError(f"has shape {shape}; allowed: {allowed}, at most {spec.most}")
    if space.get_simple_extent_dims(True) != shape:
        raise StoreError("has no fixed shape")
    items, itemsize = int(shape[0]), np.dtype(kinds[0]).itemsize
    if items * itemsize > file_bytes:
        raise StoreError(
            f"claims {items * itemsize} bytes in a file of {file_bytes} bytes"
        )
    if items == 0:
        if layout != h5d.CONTIGUOUS or filters:
            raise StoreError("is empty and has chunks or filters; allowed: none")
        return item
    chunk = schema.chunk_elements(items, itemsize)
    if layout != h5d.CHUNKED or created.get_chunk() != (chunk,):
        raise StoreError(f"has another storage layout; allowed: chunks of {chunk}")
    if filters != 1 or created.get_filter(0)[0] != h5z.FILTER_FLETCHER32:
        raise StoreError("has other filters; allowed: fletcher32 alone")
    needed = -(-items // chunk) * (chunk * itemsize + 4)
    if item.get_storage_size() != needed:
        raise StoreError(
            f"stores {item.get_storage_size()} bytes instead of {needed}; "
            "chunks are missing or altered"
        )
    return item


def check_numbers(vertices: Numbers) -> None:
    """Raise InputError if a local id is not below the number of vertices of a part."""
    if len(vertices) and int(vertices.max()) >= len(vertices):
        raise InputError("vertices is not a permutation of the local ids")


def check_active(name: str, offsets: Array, active: int) -> None:
    """Raise InputError if rows beyond the active ones of a subgraph have edges."""
    if int(offsets[active]) != int(offsets[-1]):
        raise InputError(f"{name} has edges at rows that are not active")


def check_part(part: Part) -> None:
    """Raise InputError unless offsets ascend and every id of a part is in range.

    Beyond ``Part.check``, it detects the faults of a forged file: vertex numbers that
    are too large, nn columns beyond the vertices of their owner, edges at inactive
    rows, delegates among the normal vertices.
    """
    n = part.local_count
    check_numbers(part.vertices)
    part.check()
    for name, rows in part.subgraphs.items():
        if KIND[name] in ("nn", "nd"):
            check_active(name, rows.offsets, part.active)
    own_delegates = np.zeros(n, dtype=np.bool_)
    own_delegates[part.owned_delegates()[1]] = True
    if own_delegates[part.vertices[: part.active]].any():
        raise InputError("a delegate is numbered as a normal vertex")
    if part.layout.parts == 1:
        return
    counts = np.array(
        [part.layout.local_count(owner) for owner in range(part.layout.parts)],
        dtype=np.uint64,
    )
    step = schema.SLICE_BYTES // 8
    for name, rows in part.subgraphs.items():
        for start in range(0, rows.edges if KIND[name] == "nn" else 0, step):
            columns = rows.columns[start : start + step]
            owners = (columns >> np.uint64(PART_SHIFT)).astype(np.intp)
            if np.any((columns & np.uint64(NUMBER_MASK)) >= counts[owners]):
                raise InputError(
                    f"an {name} column is beyond the vertices of its owner"
                )


def check_words(name: str, attribute: Attribute) -> None:
    """Raise StoreError unless the values of a text attribute index its words."""
    if attribute.words is None:
        return
    for numbers in attribute.values.values():
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(
            attribute.words
        ):
            raise StoreError(f"attribute {name:.40} has a value that is not a word")
