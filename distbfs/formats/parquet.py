"""Parquet tables: two columns of ids; other columns are ignored.

Source: Apache Parquet, file format specification 2.11.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from distbfs.formats.columns import (
    DIRECTED,
    ONE_BASED,
    ROWS,
    VERTICES,
    TableFile,
    TableReader,
    load,
    opened,
)
from distbfs.formats.packed import BinaryFile
from distbfs.formats.writing import Edges, Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

BUFFER_BYTES = 1 << 20


class ParquetReader(TableReader):
    """Reads Parquet tables."""

    name = "parquet"
    suffixes = (".parquet", ".pq")
    mark = re.compile(b"PAR1")

    @staticmethod
    def table(file: BinaryFile) -> TableFile:
        """Open the table in a file."""
        stored = load("pyarrow.parquet").ParquetFile(
            opened(file), pre_buffer=False, buffer_size=BUFFER_BYTES
        )

        def batches(chosen: Sequence[int]) -> Iterator[Any]:
            names = [stored.schema_arrow.names[k] for k in chosen]
            return iter(stored.iter_batches(ROWS, columns=names))

        return TableFile(stored.schema_arrow, batches, stored.read)


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
