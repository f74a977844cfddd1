"""Columns of a file besides the ids, kept as attributes of its edges.

They are read separately, after the ids: tables by pyarrow, lines of text by Python's
``csv``, about a million lines a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import InputError, UsageError
from distbfs.formats.arrow import open_columns as open_arrow
from distbfs.formats.attributes import FLOATS, Values, check_names, values_of_column
from distbfs.formats.base import HEAD_BYTES, ReaderOptions, sniff
from distbfs.formats.columns import sound
from distbfs.formats.delimited import find_layout
from distbfs.formats.edge_list import read_head
from distbfs.formats.lines import BLANKS, LineRules, Records, cut
from distbfs.formats.matrix_market import MatrixMarketReader
from distbfs.formats.packed import BinaryFile
from distbfs.formats.parquet import open_columns as open_parquet
from distbfs.formats.text import TextFile

if TYPE_CHECKING:
    from pathlib import Path

    from distbfs.types import Array

KEEP = re.compile(r"(\w+)(?:=([1-9][0-9]{0,3}))?")
INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def wanted_columns(keep: Sequence[str]) -> dict[str, int | None]:
    """Parse attributes to keep: name -> column from 1, or None: the column's name.

    Raises UsageError unless each is NAME or NAME=PLACE.
    """
    wanted: dict[str, int | None] = {}
    for word in keep:
        match = KEEP.fullmatch(word)
        if match is None:
            raise UsageError(f"keep is {word!r:.60}; allowed: NAME or NAME=PLACE")
        if match[1] in wanted:
            raise UsageError(f"attribute {match[1]:.40} is kept twice")
        wanted[match[1]] = int(match[2]) if match[2] else None
    check_names(list(wanted))
    return wanted


def read_kept(
    path: Path, name: str, options: ReaderOptions, keep: Sequence[str], tuples: int
) -> dict[str, Values]:
    """Return columns of a file, one value a tuple, by attribute name.

    name: the format, "" to detect it; keep: NAME or NAME=PLACE each; tuples: number of
    edges in the file. The values of a Matrix Market file may get any one name. Raises
    UsageError for formats without columns, InputError for missing columns.
    """
    wanted = wanted_columns(keep)
    kind = name or sniff(path)
    if kind not in READ:
        allowed = ", ".join(READ)
        raise UsageError(f"format {kind} has no columns to keep; allowed: {allowed}")
    columns = READ[kind](path, options, wanted)
    for label, column in columns.items():
        if len(column) != tuples:
            raise InputError(
                f"{path}: column {label:.40} has {len(column)} values for {tuples} "
                "edges"
            )
    return {label: values_of_column(label, x) for label, x in columns.items()}


def typed(words: list[str]) -> Array:
    """Convert words to int64 if all are integers, else to float64, else to text."""
    if all(map(INTEGER.fullmatch, words)):
        return np.array(list(map(int, words)), dtype=np.int64)
    try:
        return np.array(list(map(float, words)), dtype=np.float64)
    except ValueError:
        return np.array(words, dtype=object)


def _lacking(path: Path, label: str, names: Sequence[str]) -> InputError:
    shown = " ".join(", ".join(f"{name:.40}" for name in names[:8]).split())
    return InputError(f"{path}: no column {label:.40}; there are: {shown or 'none'}")


def _place(path: Path, label: str, at: int | None, names: Sequence[str]) -> int:
    """Return the index of a column of a table with names."""
    if at is None and label in names:
        return names.index(label)
    if at is None or at > len(names):
        raise _lacking(path, label, names)
    return at - 1


def _of_records(
    file: TextFile, separator: str, places: dict[str, int]
) -> dict[str, Array]:
    words: dict[str, list[str]] = {label: [] for label in places}
    records = Records(file, file.blocks(), LineRules(separator=separator))
    for row in records:
        for label, place in places.items():
            if place >= len(row):
                what = f"{len(row)} columns, where {label:.40} is column {place + 1}"
                raise file.refuse(what, records.begin)
            words[label].append(row[place].strip(BLANKS + "\r\n"))
    return {label: typed(column) for label, column in words.items()}


def _edge_list(
    path: Path, options: ReaderOptions, wanted: dict[str, int | None]
) -> dict[str, Array]:
    with TextFile(path) as file:
        read_head(file)
        layout = find_layout(
            file.peek(HEAD_BYTES), options.columns, f"{path}", options.header
        )
        header = b"".join(file.header_line() for _ in range(layout.header))
        lines = header.decode(errors="surrogateescape").splitlines(keepends=True)
        first: list[str] = next(cut(lines, layout.separator), []) if lines else []
        names = [x.strip(BLANKS + "\r\n") for x in first]
        if not names:
            for label, at in wanted.items():
                if at is None:
                    what = (
                        f"the columns have no names; --keep {label:.40}=PLACE, from 1"
                    )
                    raise InputError(f"{path}: {what}, names one")
        places = {
            label: _place(path, label, at, names) if names else (at or 1) - 1
            for label, at in wanted.items()
        }
        return _of_records(file, layout.separator, places)


def _matrix_market(
    path: Path,
    options: ReaderOptions,  # noqa: ARG001
    wanted: dict[str, int | None],
) -> dict[str, Array]:
    with TextFile(path) as file:
        field, symmetry, banner = MatrixMarketReader.header(file)
        if len(wanted) != 1 or field in ("pattern", "complex"):
            what = f"a {field} matrix; allowed with --keep: integer and real ones"
            raise InputError(f"{path}: {what}")
        MatrixMarketReader.sizes(file, symmetry, banner)
        return _of_records(file, " ", dict.fromkeys(wanted, 2))


def _table(
    path: Path,
    options: ReaderOptions,  # noqa: ARG001
    wanted: dict[str, int | None],
    open_table: Callable[
        [BinaryFile], tuple[Sequence[str], Callable[[list[str]], Any]]
    ],
) -> dict[str, Array]:
    with BinaryFile(path) as file, sound(str(path)):
        names, read = open_table(file)
        places = {k: names[_place(path, k, at, names)] for k, at in wanted.items()}
        table = read(list(dict.fromkeys(places.values())))
        columns = {label: table.column(name) for label, name in places.items()}
    for label, column in columns.items():
        if column.null_count and not str(column.type).startswith(FLOATS):
            raise InputError(f"{path}: column {label:.40} has a null, no value")
    return {label: column.to_numpy() for label, column in columns.items()}


READ: dict[str, Callable[..., dict[str, Array]]] = {
    "edge-list": _edge_list,
    "matrix-market": _matrix_market,
    "parquet": partial(_table, open_table=open_parquet),
    "arrow": partial(_table, open_table=open_arrow),
}
