"""Parquet tables: two columns of ids; other columns are ignored.

Source: Apache Parquet, file format specification 2.11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from distbfs.formats.columns import (
    DIRECTED,
    ONE_BASED,
    ROWS,
    VERTICES,
    Table,
    TableReader,
    load,
    opened,
)
from distbfs.formats.packed import BinaryFile
from distbfs.formats.read_ahead import in_order
from distbfs.formats.text import sound
from distbfs.formats.writing import Edges, Writer

if TYPE_CHECKING:
    from pathlib import Path

    from distbfs.types import Ids

MAGIC = b"PAR1"
MOST_ROWS = 1 << 20  # of row groups that are read in parallel
BUFFERED: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 20}


class ParquetReader(TableReader):
    """Reads Parquet tables, row group by row group."""

    name = "parquet"
    suffixes = (".parquet", ".pq")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Return whether the file begins with the magic number."""
        return head.startswith(MAGIC)

    @staticmethod
    def columns(file: BinaryFile) -> tuple[list[str], Callable[[list[str]], Any]]:
        """Return the names of a table's columns, and a function that reads columns."""
        table = load("pyarrow.parquet").ParquetFile(opened(file))
        return table.schema_arrow.names, table.read

    def rows(self, file: BinaryFile, table_of: Callable[[Any], Table]) -> Iterator[Ids]:
        """Yield the pairs; row groups are read in parallel unless they are large."""
        where, parquet = str(file.path), load("pyarrow.parquet")
        with sound(where):
            plain = parquet.ParquetFile(opened(file), **BUFFERED)
            schema = plain.schema_arrow
        table = table_of(schema)
        with sound(where):
            metadata = plain.metadata
            sizes = [
                metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)
            ]

            def batches(groups: list[int], threads: bool) -> Iterator[Any]:
                made = parquet.ParquetFile(opened(file), metadata=metadata, **BUFFERED)
                rows = made.iter_batches(
                    ROWS, columns=table.names, row_groups=groups, use_threads=threads
                )
                return iter(rows)

        if table.words is not None or not 0 <= max(sizes, default=0) <= MOST_ROWS:
            with sound(where):
                all_rows = batches(list(range(len(sizes))), threads=True)
            yield from table.pieces(all_rows)
            return

        def work(group: int, _: None) -> list[Ids]:
            with sound(where):
                rows = batches([group], threads=False)
            return list(table.pieces(rows, begin=sum(sizes[:group])))

        groups = in_order(work, range(len(sizes)), lambda: None)
        yield from chain.from_iterable(groups)


class ParquetWriter(Writer):
    """Writes tables with the columns src and dst, one edge per row.

    Numbers are stored uncompressed, in 32 bits if they fit: such files are about as
    long as with compressed 64-bit numbers, and are read many times as fast. Metadata
    hold the number of vertices, whether ids begin at 1, and whether edges lead one way.
    If the vertices' ids are not consecutive, the columns hold the ids, the metadata no
    number of vertices, and each vertex without edges gets a loop.
    """

    name = "parquet"
    suffixes = ParquetReader.suffixes
    keeps_ids = True

    def write(self, path: Path, graph: Edges) -> None:
        """Write a graph; LibraryMissing if pyarrow is not installed."""
        pyarrow, parquet = load("pyarrow"), load("pyarrow.parquet")
        ids = None if graph.one_based else graph.ids
        text = ids is not None and ids.kind == "text"
        kind = pyarrow.int64()
        if text:
            kind = pyarrow.string()
        elif ids is None and graph.n + graph.one_based <= 1 << 31:
            kind = pyarrow.int32()
        stated = {DIRECTED: b"1" if graph.directed else b"0"}
        if ids is None:
            stated[VERTICES] = str(graph.n).encode()
        if graph.one_based:
            stated[ONE_BASED] = b"1"
        schema = pyarrow.schema([("src", kind), ("dst", kind)], stated)
        chunks = graph.chunks() if ids is None else graph.with_lone()
        form = {} if text else {"compression": "none", "use_dictionary": False}
        with parquet.ParquetWriter(path, schema, **form) as out:
            for pairs in chunks:
                sides: list[Any] = [*(pairs + graph.one_based).T]
                if ids is not None:
                    sides = [ids.names(side) for side in sides]
                columns = [pyarrow.array(side, kind) for side in sides]
                out.write_table(pyarrow.Table.from_arrays(columns, schema=schema))
