"""Result tables: text in columns, optionally compressed, or Parquet."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from distbfs.errors import UsageError
from distbfs.formats.columns import load
from distbfs.formats.compressed import plain_name
from distbfs.formats.ids import IdMap, names_or
from distbfs.formats.writing import check_place, placed, text_file
from distbfs.leftovers import DASH
from distbfs.types import Array, Ids

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " "}
PARQUET = (".parquet", ".pq")
TABLES = (".csv", ".tsv", *PARQUET)
ROWS = 1 << 16  # at a time

Columns: TypeAlias = Mapping[str, Any]  # arrays or lists of one length
TakeColumns: TypeAlias = Callable[[Columns], None]


def ending_of(path: Path) -> str:
    """Return the ending that names a format; text may be compressed, - means CSV."""
    if path == DASH:
        return ".csv"
    plain = Path(plain_name(path)).suffix
    return plain if plain in SEPARATORS else path.suffix.lower()


def is_table(path: Path | None) -> bool:
    """Return whether a path names a table, or standard output."""
    return path is not None and ending_of(path) in TABLES


def check_ending(
    path: Path, endings: tuple[str, ...], what: str = "results", *, force: bool = True
) -> None:
    """Raise UsageError for a place or an ending that is not allowed."""
    check_place(path, force=force)
    if ending_of(path) not in endings:
        raise UsageError(
            f"{path}: the ending '{path.suffix}' names no format of {what}; allowed: "
            f"{', '.join(endings)}; text also compressed, and - for CSV on stdout"
        )


def list_of(values: Any) -> list[Any]:
    """Return an array, or a list, as a list."""
    return list(values.tolist() if hasattr(values, "tolist") else values)


@contextmanager
def text_rows(path: Path, *, force: bool) -> Iterator[Any]:
    """Yield a writer of the module csv for a file, or for standard output.

    The file appears only at the end, and not if the block raises an error.
    Raises UsageError if the file exists without ``force`` or cannot be written.
    """
    form: Any = {"delimiter": SEPARATORS[ending_of(path)], "lineterminator": "\n"}
    if path == DASH:
        yield csv.writer(sys.stdout, **form)
        return
    with placed(path, force=force) as at, text_file(at) as raw:
        text = TextIOWrapper(raw, encoding="utf-8", newline="")
        yield csv.writer(text, **form)
        text.flush()
        text.detach()


@contextmanager
def table_at(path: Path, *, force: bool) -> Iterator[TakeColumns]:
    """Yield a function that adds rows to a new table; the first call names columns.

    The file appears only at the end; see ``text_rows``.
    """
    head: list[str] = []
    with ExitStack() as stack:
        if ending_of(path) not in PARQUET:
            out = stack.enter_context(text_rows(path, force=force))

            def add(columns: Columns) -> None:
                if not head:
                    head.extend(columns)
                    out.writerow(head)
                lists = map(list_of, columns.values())
                out.writerows(zip(*lists, strict=True))

            yield add
            return
        pyarrow, parquet = load("pyarrow"), load("pyarrow.parquet")
        at = stack.enter_context(placed(path, force=force))
        writers: list[Any] = []

        def add_group(columns: Columns) -> None:
            table = pyarrow.table(dict(columns))
            if not writers:
                made = parquet.ParquetWriter(at, table.schema)
                writers.append(stack.enter_context(made))
            writers[0].write_table(table)

        yield add_group
        if not writers:
            parquet.write_table(pyarrow.table({}), at)


def add_vertices(
    add: TakeColumns,
    columns: Mapping[str, Array],
    ids: IdMap | None,
    some: Ids | None = None,
    **same: Any,
) -> None:
    """Add a row for each vertex, with its name and its value of each column [n].

    some: the vertices of the rows, int64 [k], None for all
    same: values that are equal in all rows, by name of their column

    A column ``parent`` contains names of vertices, too; without a parent it is -1, or
    empty if ids are text.
    """
    names: Callable[[Array], Any] = (lambda x: x) if ids is None else ids.names
    none: int | str = "" if ids is not None and ids.kind == "text" else -1
    length = len(next(iter(columns.values())))
    for first in range(0, max(length, 1), ROWS):
        values = {name: x[first : first + ROWS] for name, x in columns.items()}
        vertices = np.arange(first, min(first + ROWS, length), dtype=np.int64)
        vertices = vertices if some is None else some[vertices]
        rows: dict[str, Any] = {k: [x] * len(vertices) for k, x in same.items()}
        rows |= {"vertex": names(vertices), **values}
        if "parent" in values and ids is not None:
            rows["parent"] = names_or(ids, values["parent"], none)
        add(rows)
