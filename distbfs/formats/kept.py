"""Columns of a file besides the ids, kept as attributes of its edges.

They are read separately, after the ids: tables by pyarrow, and lines of text by
Python's ``csv``, which reads about a million lines a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import InputError, UsageError
from distbfs.formats.attributes import FLOATS, Values, check_names, values_of_column
from distbfs.formats.base import Reader
from distbfs.formats.columns import TableReader
from distbfs.formats.edge_list import EdgeListReader, read_head
from distbfs.formats.lines import BLANKS, LineRules, Records, cut
from distbfs.formats.matrix_market import MatrixMarketReader
from distbfs.formats.packed import BinaryFile
from distbfs.formats.text import TextFile, sound

if TYPE_CHECKING:
    from pathlib import Path

    from distbfs.types import Array

KEEP = re.compile(r"(\w+)(?:=([1-9][0-9]{0,3}))?")
INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def wanted_columns(keep: Sequence[str]) -> dict[str, int | None]:
    """Parse the attributes to keep; return name -> number of its column, from 1.

    The number is None if the attribute has the name of its column.

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
    paths: Sequence[Path], reader: Reader, keep: Sequence[str], tuples: int
) -> dict[str, Values]:
    """Return columns of an input, one value per tuple, by attribute name.

    reader: reader that has read the files
    keep: NAME or NAME=PLACE for each attribute
    tuples: number of edges

    The values of a Matrix Market file may get any name. Raises UsageError for formats
    without columns, InputError for missing columns.
    """
    wanted, kind = wanted_columns(keep), reader.name
    if kind not in READ:
        allowed = ", ".join(READ)
        raise UsageError(f"format {kind} has no columns to keep; allowed: {allowed}")
    parts = [READ[kind](path, reader, wanted) for path in paths]
    kept: dict[str, Values] = {}
    for label in wanted:
        pieces = [part[label] for part in parts]
        lists = isinstance(pieces[0], list)
        column = typed(pieces) if lists else np.concatenate(pieces)
        if len(column) != tuples:
            what = f"{len(column)} values for {tuples} edges"
            raise InputError(f"{paths[0]}: column {label:.40} has {what}")
        kept[label] = values_of_column(label, column)
    return kept


def typed(pieces: Sequence[Sequence[str]]) -> Array:
    """Convert words to int64 if all are integers, else to float64 or to text."""
    words = [word for piece in pieces for word in piece]
    if all(map(INTEGER.fullmatch, words)):
        return np.array(list(map(int, words)), dtype=np.int64)
    try:
        return np.array(list(map(float, words)), dtype=np.float64)
    except ValueError:
        return np.array(words, dtype=object)


def _place(path: Path, label: str, at: int | None, names: Sequence[str]) -> int:
    """Return the index of a column of a table with names."""
    if at is None and label in names:
        return names.index(label)
    if at is None or at > len(names):
        shown = " ".join(", ".join(f"{name:.40}" for name in names[:8]).split())
        raise InputError(
            f"{path}: the table has no column {label:.40}; it has: {shown or 'none'}"
        )
    return at - 1


def _of_records(
    file: TextFile, separator: str, places: dict[str, int]
) -> dict[str, list[str]]:
    words: dict[str, list[str]] = {label: [] for label in places}
    records = Records(file, file.blocks(), LineRules(separator=separator))
    for row in records:
        for label, place in places.items():
            if place >= len(row):
                what = f"{len(row)} columns, where {label:.40} is column {place + 1}"
                raise file.refuse(what, records.begin)
            words[label].append(row[place].strip(BLANKS + "\r\n"))
    return words


def _edge_list(
    path: Path, reader: EdgeListReader, wanted: dict[str, int | None]
) -> dict[str, list[str]]:
    with TextFile(path) as file:
        layout = reader.layout_of(file, read_head(file).plain)
        header = b"".join(file.header_line() for _ in range(layout.header))
        lines = header.decode(errors="surrogateescape").splitlines(keepends=True)
        first: list[str] = next(cut(lines, layout.separator, strict=False), [])
        reader.names = reader.names or [x.strip(BLANKS + "\r\n") for x in first]
        names, places = reader.names, dict[str, int]()
        for label, at in wanted.items():
            if at is None and not names:
                what = f"the columns have no names; --keep {label:.40}=PLACE, from 1"
                raise InputError(f"{path}: {what}, names one")
            places[label] = _place(path, label, at, names) if names else (at or 1) - 1
        return _of_records(file, layout.separator, places)


def _matrix_market(
    path: Path,
    reader: Reader,  # noqa: ARG001
    wanted: dict[str, int | None],
) -> dict[str, list[str]]:
    with TextFile(path) as file:
        field, symmetry, banner = MatrixMarketReader.header(file)
        if len(wanted) != 1 or field in ("pattern", "complex"):
            what = f"a {field} matrix; allowed with --keep: integer and real ones"
            raise InputError(f"{path}: {what}")
        MatrixMarketReader.sizes(file, symmetry, banner)
        return _of_records(file, " ", dict.fromkeys(wanted, 2))


def _table(
    path: Path, reader: TableReader, wanted: dict[str, int | None]
) -> dict[str, Array]:
    with BinaryFile(path) as file, sound(str(path)):
        stored = reader.table(file)
        names = stored.schema.names
        places = {k: names[_place(path, k, at, names)] for k, at in wanted.items()}
        table = stored.read(list(dict.fromkeys(places.values())))
        columns = {label: table.column(name) for label, name in places.items()}
    for label, column in columns.items():
        if column.null_count and not str(column.type).startswith(FLOATS):
            raise InputError(
                f"{path}: column {label:.40} has a null; every row needs a value"
            )
    return {label: column.to_numpy() for label, column in columns.items()}


READ: dict[str, Callable[..., dict[str, Any]]] = {
    "edge-list": _edge_list,
    "matrix-market": _matrix_market,
    "parquet": _table,
    "arrow": _table,
}
