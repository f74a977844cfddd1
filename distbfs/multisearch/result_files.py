"""Result files of applications: written under a temporary name, then renamed.

``OUT.h5`` holds ``sources`` int64 [k] and the application's results, by input id:
``level`` [k, n], ``value`` [n] or ``within`` int64 [k, hops + 1]; for reachability
``pair`` int64 [q, 2] and ``reachable`` uint8 [q]. If vertices have other ids in their
file, ``ids`` [n] holds them. Tables (``search.result_table``) have a row for each
vertex with a value, for each source and vertex (levels), or for each source and number
of hops; ``OUT.parquet`` of levels holds the columns ``source`` and ``level``, a list of
n numbers, one row for each source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from distbfs.formats.columns import load
from distbfs.formats.ids import IdMap, name_of
from distbfs.formats.writing import placed
from distbfs.search.result_file import ENDINGS, write_names
from distbfs.search.result_table import (
    PARQUET,
    TABLES,
    TakeColumns,
    add_vertices,
    ending_of,
    is_table,
    table_at,
)
from distbfs.store.hdf5_file import Sink, new_file
from distbfs.types import Array, Ids

FILES = (*ENDINGS, *TABLES)
CHUNK = (64, 1 << 14)
UNREACHED = "unreached"


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
    *,
    force: bool,
) -> None:
    """Write small results: a table, or one dataset for each array."""
    if is_table(path):
        with table_at(path, force=force) as add:
            add_results(add, arrays, ids)
        return
    with placed(path, force=force) as at, result_file(at, attributes, ids) as (file, _):
        for name, array in arrays.items():
            flags = array.dtype == np.bool_
            file.create_dataset(name, data=array.view(np.uint8) if flags else array)


def add_results(
    add: TakeColumns, arrays: Mapping[str, Array], ids: IdMap | None
) -> None:
    """Add arrays to a table; arrays [n] have a row for each vertex with a value.

    An array [k, hops + 1], ``within``, has a row for each source and number of hops,
    and ``pair`` one for each pair.
    """
    names: Callable[[Ids], Any] = (lambda x: x) if ids is None else ids.names
    if "pair" in arrays:
        ends = dict(zip(("from", "to"), map(names, arrays["pair"].T), strict=True))
        add({**ends, "reachable": arrays["reachable"].view(np.uint8)})
        return
    values = {name: array for name, array in arrays.items() if name != "sources"}
    if "within" not in values:
        one = next(iter(values.values()))
        known = np.flatnonzero(one >= 0)  # neither NaN nor -1
        some = {name: array[known] for name, array in values.items()}
        add_vertices(add, some, ids, known)
        return
    within, sources = values["within"], arrays["sources"]
    width = within.shape[1]
    hops = np.tile(np.arange(width), len(sources))
    source = names(np.repeat(sources, width))
    add({"source": source, "hops": hops, "within": within.ravel()})


@contextmanager
def level_rows(
    path: Path,
    sources: Ids,
    n: int,
    dtype: str,
    attributes: Mapping[str, Any],
    ids: IdMap | None,
    *,
    force: bool,
) -> Iterator[Any]:
    """Yield ``take(first row, levels [some, n])``, which writes rows in order."""
    if is_table(path) and ending_of(path) not in PARQUET:
        with table_at(path, force=force) as add:

            def add_levels(first: int, rows: Array) -> None:
                for source, row in zip(sources[first:].tolist(), rows, strict=False):
                    add_vertices(add, {"level": row}, ids, source=name_of(source, ids))

            yield add_levels
        return
    with ExitStack() as stack:
        at = stack.enter_context(placed(path, force=force))
        if is_table(path):
            yield stack.enter_context(_level_table(at, sources, n, dtype, ids))
            return
        file, sink = stack.enter_context(result_file(at, attributes, ids))
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
