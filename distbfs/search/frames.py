"""Tables of pandas, polars and Arrow: edges read from them, results written to them.

None of the libraries is imported before it is needed.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

from distbfs.errors import InputError, LibraryMissing, UsageError, WrongTypeError
from distbfs.formats.attributes import FLOATS, Values, check_names, values_of_column
from distbfs.formats.columns import choose, text_in
from distbfs.formats.word_table import WordTable, ranked, split
from distbfs.options import type_name
from distbfs.registry import optional
from distbfs.search.program_arrays import lacking
from distbfs.types import Array, Bytes, Ids

LONE = "surrogatepass"  # surrogates in text are kept
FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}


def library(name: str) -> Any:
    """Return a library; LibraryMissing if it is not installed."""
    top = name.partition(".")[0]
    return optional(name, f"{top} is missing; pip install {top}")


def library_of(table: Any) -> str:
    """Return the library of a table; WrongTypeError for anything else."""
    for name, kind in FRAMES.items():
        module = sys.modules.get(name)
        if module is not None and isinstance(table, getattr(module, kind)):
            return name
    raise WrongTypeError(
        f"the table is of type {type_name(table)}; allowed: a DataFrame of pandas or "
        "polars, a pyarrow Table"
    )


def column_names(table: Any) -> list[str]:
    """Return the names of the columns of a table; WrongTypeError for anything else."""
    arrow = library_of(table) == "pyarrow"
    return [str(name) for name in (table.column_names if arrow else table.columns)]


def column_of(table: Any, place: int) -> tuple[Any, Any, int]:
    """Return a column of a table, its type, and how many values are missing in it."""
    library_name = library_of(table)
    if library_name == "polars":
        column = table.to_series(place)
        return column, column.dtype, lacking(column)
    if library_name == "pyarrow":
        column = table.column(place)
        if library("pyarrow.types").is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return column, column.type, lacking(column)
    column = table.iloc[:, place]
    kind, missing = column.dtype, lacking(column)
    if hasattr(kind, "numpy_dtype") and (kind.kind == "f" or not missing):
        # nullable numbers, of which to_numpy alone could make objects
        values = column.to_numpy(kind.numpy_dtype, na_value=np.nan)
        column = library("pandas").Series(values)
    return column, kind, missing


def column_pair(src: Any, dst: Any) -> tuple[str, str] | None:
    """Return the names of the columns of ends, None if none is given."""
    if (src is None) != (dst is None):
        raise UsageError("one column is named; allowed: both src and dst, or none")
    return None if src is None else (str(src), str(dst))


def ends_in(
    table: Any, src: Any, dst: Any, *, relabel: bool
) -> tuple[Array, Array, list[Any] | None]:
    """Return two columns of a table, integers [rows] each, and the vertices' names.

    src, dst: names of the columns; if both are None, a usual pair of names, or else the
    only two columns
    relabel: whether any ids are allowed; those that occur name the vertices

    Raises InputError if a column does not exist or has missing values.
    """
    names = column_names(table)
    places = choose(names, column_pair(src, dst), "the table")
    columns = [column_of(table, place) for place in places]
    if relabel and not any(missing for _, _, missing in columns):
        texts = [text for column, *_ in columns if (text := text_of(column))]
        if len(texts) == len(columns):
            words = WordTable()
            sides = [words.number(x, y[:-1], np.diff(y)) for x, y in texts]
            known, ranks = names_in(words)
            return ranks[sides[0]], ranks[sides[1]], known
    ends = []
    for place, (column, type_, missing) in zip(places, columns, strict=True):
        values = column.to_numpy()
        if missing or (values.dtype.kind == "f" and np.isnan(values).any()):
            raise InputError(
                f"column {names[place]:.40} has a null; every row needs an id"
            )
        if values.dtype.kind not in "iu" and not relabel:
            raise WrongTypeError(
                f"column {names[place]:.40} has values of {type_}; allowed: integers, "
                "or any ids with relabel=True"
            )
        ends.append(values)
    return renumbered(*ends) if relabel else (*ends, None)


def text_of(column: Any) -> tuple[Bytes, Ids] | None:
    """Return the text of a column and where each word begins, as ``text_in`` does.

    Return None if the column is not of text, or without pyarrow.
    """
    try:
        types = library("pyarrow.types")
    except LibraryMissing:
        return None
    if hasattr(column, "to_arrow"):  # of polars
        array = column.to_arrow()
    elif hasattr(column, "array"):  # of pandas
        if not hasattr(column.array, "__arrow_array__"):
            return None
        array = column.array.__arrow_array__()
    else:
        array = column
    kinds = types.is_string, types.is_large_string, types.is_string_view
    if not len(array) or not any(is_text(array.type) for is_text in kinds):
        return None
    array = array.cast("large_string")
    return text_in(array.combine_chunks() if hasattr(array, "chunks") else array)


def names_in(words: WordTable) -> tuple[list[str], Ids]:
    """Return the words of a table, ascending, and the rank of each, int64 [k]."""
    ranks, offsets, text = words.ranked()
    return [word.decode(errors=LONE) for word in split(text, offsets)], ranks


def kept_in(table: Any, keep: Sequence[str]) -> dict[str, Values]:
    """Return columns of a table as attributes of its edges, one value per row.

    Raises InputError if a column does not exist or has nulls.
    """
    names = column_names(table)
    kept = {}
    for label in check_names(keep):
        if names.count(label) != 1:
            shown = ", ".join(f"{name:.40}" for name in names[:8])
            raise InputError(f"the table has no column {label:.40}; it has: {shown}")
        column, type_, missing = column_of(table, names.index(label))
        values = np.asarray(column.to_numpy())
        if missing and not str(type_).lower().startswith(FLOATS):
            raise InputError(f"column {label:.40} has a null; every row needs a value")
        kept[label] = values_of_column(label, values)
    return kept


def check_counted(n: Any) -> None:
    """Raise UsageError if ``n`` is given where vertices are relabelled."""
    if n is not None:
        raise UsageError("relabelling counts the vertices; leave out n")


def renumbered(u: Array, v: Array) -> tuple[Ids, Ids, list[Any]]:
    """Return both ends of edges, [k] each, as ranks of ids, and the ids, ascending."""
    both = np.concatenate([u, v])
    if {u.dtype.kind, v.dtype.kind} <= {"i", "u"} and both.dtype.kind in "iu":
        names, numbers = numbered(both.astype(np.dtype(f"{both.dtype.kind}8")))
    else:
        names, numbers = numbered_objects([*u.tolist(), *v.tolist()])
    return numbers[: len(u)], numbers[len(u) :], names


def numbered(values: Array) -> tuple[list[Any], Ids]:
    """Return the distinct 64-bit integers, ascending, and the rank of each, [k]."""
    table = WordTable()
    numbers = table.number(values)
    ids, ranks = ranked(table.numbers(values.dtype))
    return ids.tolist(), ranks[numbers]


def numbered_objects(words: list[Any]) -> tuple[list[Any], Ids]:
    """Return the distinct words, ascending, and the rank of each word, int64 [k].

    Raises WrongTypeError if the words cannot be ordered.
    """
    if set(map(type, words)) == {str}:
        # a zero after each word, where none has zeros itself
        text = np.frombuffer("\0".join([*words, ""]).encode(errors=LONE), np.uint8)
        if len(ends := np.flatnonzero(text == 0)) == len(words):
            table, begins = WordTable(), np.concatenate(([0], ends[:-1] + 1))
            numbers = table.number(text, begins, ends - begins)
            names, ranks = names_in(table)
            return names, ranks[numbers]
    try:
        names = sorted(set(words))
    except TypeError as error:
        raise WrongTypeError(f"ids of different types: {error}") from error
    place = {name: k for k, name in enumerate(names)}
    return names, np.fromiter(map(place.__getitem__, words), np.int64, len(words))


def whole_names(names: Array) -> Array:
    """Return names [k] as int64 where all are integers, else unchanged."""
    kinds = {type(x) for x in names.tolist()} if names.dtype == object else {int}
    return names.astype(np.int64) if kinds <= {int} else names


class Tabular(ABC):
    """The results that become tables: of a search, a row for each vertex; of edges."""

    @abstractmethod
    def _columns(self) -> dict[str, Array]:
        """Return the columns as arrays by name."""

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame: a row for each vertex of a search, or each edge.

        Returns
        -------
        pandas.DataFrame
            Of a search, columns ``vertex`` (names as in the graph), and ``level`` and
            ``parent`` if they were requested.  Both are -1 for unreached vertices; if
            names are not integers, their parent is missing.  On several ranks, the
            vertices of this rank's block.  Of edges, ``u``, ``v``, ``level_u`` and
            ``level_v``.

        Raises
        ------
        LibraryMissing
            pandas is not installed.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([(0, 1), (1, 2)], n=4)
        >>> print(distbfs.bfs(graph, 0).to_pandas())
           vertex  level  parent
        0       0      0       0
        1       1      1       0
        2       2      2       1
        3       3     -1      -1
        >>> print(distbfs.k_hop_subgraph(graph, 0).to_pandas())
           u  v  level_u  level_v
        0  0  1        0        1
        1  1  2        1        2
        """
        return library("pandas").DataFrame(self._columns())

    def to_polars(self) -> Any:
        """Return a polars DataFrame: a row for each vertex of a search, or each edge.

        Returns
        -------
        polars.DataFrame
            Columns as in ``to_pandas``.

        Raises
        ------
        LibraryMissing
            polars is not installed.
        WrongTypeError
            The names of the vertices have types that no column can hold.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([(0, 1), (1, 2)])
        >>> distbfs.bfs(graph, 0).to_polars().rows()
        [(0, 0, 0), (1, 1, 0), (2, 2, 1)]
        """
        return self._typed(library("polars").DataFrame)

    def to_arrow(self) -> Any:
        """Return an Arrow table: a row for each vertex of a search, or each edge.

        Returns
        -------
        pyarrow.Table
            Columns as in ``to_pandas``.

        Raises
        ------
        LibraryMissing
            pyarrow is not installed.
        WrongTypeError
            The names of the vertices have types that no column can hold.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([(0, 1), (1, 2)])
        >>> distbfs.bfs(graph, 0, parents=False).to_arrow().column_names
        ['vertex', 'level']
        """
        return self._typed(library("pyarrow").table)

    def _typed(self, make: Callable[[dict[str, Any]], Any]) -> Any:
        """Return a table whose columns of objects are made of lists, null of None."""
        columns = self._columns()
        try:
            return make(
                {k: x.tolist() if x.dtype == object else x for k, x in columns.items()}
            )
        except Exception as error:
            why = " ".join(str(error).split())
            raise WrongTypeError(f"no column can hold the names: {why:.200}") from error


def html_table(title: str, rows: Sequence[tuple[str, object]]) -> str:
    """Return HTML that notebooks show: a title, then names and values."""
    lines = [
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(f'{value}')}</td></tr>"
        for name, value in rows
    ]
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"
