"""Parquet tables: two columns of ids, other columns are not looked at.

Source: Apache Parquet, file format specification 2.11.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distbfs.formats.base import EdgeFile, ReaderOptions, Take
from distbfs.formats.columns import (
    ROWS,
    VERTICES,
    Table,
    hashed_aside,
    load,
    opened,
    sound,
)
from distbfs.formats.packed import BinaryFile
from distbfs.formats.writing import Edges

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"PAR1"
BUFFERED: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 20}


class ParquetReader:
    """Reads Parquet tables, row group by row group."""

    name = "parquet"
    text_ids = True
    named_columns = True
    suffixes = (".parquet", ".pq")

    def __init__(self, options: ReaderOptions | None = None) -> None:
        self.options = options or ReaderOptions()

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Return whether the mark is there."""
        return head.startswith(MAGIC)

    def read(self, path: Path, take: Take) -> EdgeFile:
        """Read a file; InputError where it is broken or has no such columns."""
        with BinaryFile(path, progress=self.options.progress) as file:
            if not file.size:
                raise file.refuse("the file is empty")
            with hashed_aside(file):
                found = self._read(file, take)
            return replace(found, digest=file.digest)

    def _read(self, file: BinaryFile, take: Take) -> EdgeFile:
        where, parquet = str(file.path), load("pyarrow.parquet")
        with sound(where):
            plain = parquet.ParquetFile(opened(file), **BUFFERED)
            schema = plain.schema_arrow
        table = Table(where, schema, self.options)
        with sound(where):
            types = load("pyarrow.types")
            text = [x for x in table.names if types.is_string(schema.field(x).type)]
            made = parquet.ParquetFile(opened(file), read_dictionary=text, **BUFFERED)
            batches = made.iter_batches(ROWS, columns=table.names)
        return table.hand_over(map(table.ordered, batches), take, self.name)


class ParquetWriter:
    """Writes tables of the columns src and dst, an edge a row.

    The number of vertices stands in the metadata.  Where vertices have ids of their
    own, the columns hold those, and a vertex without edges has a loop.
    """

    name = "parquet"
    suffixes = ParquetReader.suffixes
    keeps_ids = True
    packs = False

    def write(self, path: Path, graph: Edges) -> None:
        """Write a graph; ResourceError where pyarrow is missing."""
        pyarrow, parquet = load("pyarrow"), load("pyarrow.parquet")
        ids = graph.ids
        text = ids is not None and ids.kind == "text"
        kind = pyarrow.string() if text else pyarrow.int64()
        stated = {VERTICES: str(graph.n).encode()} if ids is None else None
        schema = pyarrow.schema([("src", kind), ("dst", kind)], stated)
        chunks = graph.chunks() if ids is None else graph.with_lone()
        with parquet.ParquetWriter(path, schema) as out:
            for pairs in chunks:
                sides: list[Any] = [pairs[:, 0], pairs[:, 1]]
                if ids is not None:
                    sides = [ids.names(side) for side in sides]
                columns = [pyarrow.array(side, kind) for side in sides]
                out.write_table(pyarrow.Table.from_arrays(columns, schema=schema))
