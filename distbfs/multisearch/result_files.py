"""Result files of applications: written under a temporary name, then renamed.

``OUT.h5`` holds ``sources`` int64 [k] and the application's results, by input id:
``level`` [k, n], ``value`` [n] or ``within`` int64 [k, hops + 1]; for reachability
``pair`` int64 [q, 2] and ``reachable`` uint8 [q]. Where vertices have other ids in
their file, ``ids`` [n] are those. ``OUT.parquet`` holds the columns ``source`` and
``level``, a list of n numbers, one row for each source.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from distbfs.errors import UsageError
from distbfs.formats.columns import load
from distbfs.formats.ids import IdMap
from distbfs.search.result_file import ENDINGS, write_names
from distbfs.store.hdf5_file import Sink, new_file
from distbfs.types import Array, Ids

TABLES = (".parquet", ".pq")
FILES = ENDINGS
TEXTS = (".txt", ".csv", ".tsv")
CHUNK = (64, 1 << 14)
UNREACHED = "unreached"


def check_name(path: Path, app: str, endings: tuple[str, ...]) -> None:
    """Raise UsageError where an application cannot write a file of this ending."""
    if not endings:
        raise UsageError(f"{app} prints what it finds; leave out --output")
    if path.suffix.lower() not in endings:
        raise UsageError(f"{path}: {app} writes files of {', '.join(endings)}")


@contextmanager
def result_file(
    path: Path, attributes: Mapping[str, Any], ids: IdMap | None
) -> Iterator[tuple[h5py.File, Sink]]:
    """Yield a new HDF5 file and its sink; OSError if it cannot be written."""
    with new_file(path) as (file, sink):
        for name, value in attributes.items():
            file.attrs[name] = value
        if ids is not None:
            write_names(file, ids)
        yield file, sink


def write_arrays(
    path: Path,
    arrays: Mapping[str, Array],
    attributes: Mapping[str, Any],
    ids: IdMap | None,
) -> None:
    """Write small results: one dataset for each array."""
    with result_file(path, attributes, ids) as (file, _):
        for name, array in arrays.items():
            file.create_dataset(name, data=array)


@contextmanager
def level_rows(
    path: Path,
    sources: Ids,
    n: int,
    dtype: str,
    attributes: Mapping[str, Any],
    ids: IdMap | None,
) -> Iterator[Any]:
    """Yield ``take(first row, levels [some, n])``, which writes rows in order."""
    if path.suffix.lower() in TABLES:
        with _level_table(path, sources, n, dtype, ids) as take:
            yield take
        return
    with result_file(path, attributes, ids) as (file, sink):
        file.create_dataset("sources", data=sources)
        shape = (len(sources), n)
        layout: dict[str, Any] = {}
        if all(shape):
            chunks = tuple(min(a, b) for a, b in zip(CHUNK, shape, strict=True))
            layout = {"chunks": chunks, "fletcher32": True}
        level = file.create_dataset("level", shape, dtype=dtype, **layout)
        level.attrs[UNREACHED] = np.array(-1).astype(dtype)

        def take(first: int, rows: Array) -> None:
            level[first : first + len(rows)] = rows
            sink.check()

        yield take


@contextmanager
def _level_table(
    path: Path, sources: Ids, n: int, dtype: str, ids: IdMap | None
) -> Iterator[Any]:
    """Yield a function that writes rows of levels to a Parquet table, in groups."""
    pyarrow, parquet = load("pyarrow"), load("pyarrow.parquet")
    text = ids is not None and ids.kind == "text"
    kind = pyarrow.from_numpy_dtype(np.dtype(dtype))
    schema = pyarrow.schema(
        [
            ("source", pyarrow.string() if text else pyarrow.int64()),
            ("level", pyarrow.list_(kind, n)),
        ],
        {UNREACHED: str(np.array(-1).astype(dtype)).encode()},
    )
    with parquet.ParquetWriter(path, schema) as out:

        def take(first: int, rows: Array) -> None:
            some = sources[first : first + len(rows)]
            names = some if ids is None else ids.names(some)
            flat = pyarrow.array(rows.ravel(), kind)
            columns = [
                pyarrow.array(names, schema.field("source").type),
                pyarrow.FixedSizeListArray.from_arrays(flat, n),
            ]
            out.write_table(pyarrow.Table.from_arrays(columns, schema=schema))

        yield take


def write_pairs(path: Path, names: list[tuple[str, str]], answers: Array) -> None:
    """Write a line for each pair: both ids as given, and 0 or 1 of bool [q]."""
    blank = {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower(), " ")
    with path.open("x", encoding="utf-8") as out:
        lines = csv.writer(out, delimiter=blank, lineterminator="\n")
        for pair, answer in zip(names, answers.tolist(), strict=True):
            lines.writerow([*pair, int(answer)])
