"""Parquet tables: two columns of ids, other columns are not looked at.

Source: Apache Parquet, file format specification 2.11.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distbfs.formats.base import EdgeFile, ReaderOptions, Take
from distbfs.formats.columns import ROWS, Table, hashed_aside, load, opened, sound
from distbfs.formats.packed import BinaryFile

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"PAR1"
BUFFER_BYTES = 1 << 20


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


BUFFERED: dict[str, Any] = {"pre_buffer": False, "buffer_size": BUFFER_BYTES}
