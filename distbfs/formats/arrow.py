"""Arrow tables, as files (also Feather) or streams: two columns of ids.

Other columns are ignored. Source: Apache Arrow, columnar format 1.5, IPC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distbfs.formats.columns import ROWS, TableFile, TableReader, load, opened
from distbfs.formats.packed import BinaryFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FILE_MAGIC = b"ARROW1"
STREAM_MAGIC = b"\xff\xff\xff\xff"
SCHEMA_BYTES = 1 << 20


class ArrowReader(TableReader):
    """Reads Arrow tables."""

    name = "arrow"
    suffixes = (".arrow", ".arrows", ".feather", ".ipc")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Return whether ``head`` begins an Arrow file or stream."""
        size = int.from_bytes(head[4:8], "little")
        stream = head.startswith(STREAM_MAGIC) and 0 < size < SCHEMA_BYTES
        return head.startswith(FILE_MAGIC) or stream

    @staticmethod
    def table(file: BinaryFile) -> TableFile:
        """Open the table in a file or a stream."""

        def batches(chosen: Sequence[int]) -> Iterator[Any]:
            return _batches(_open(file, sorted(set(chosen))))

        def read(names: list[str]) -> Any:
            return _open(file).read_all().select(names)

        return TableFile(_open(file).schema, batches, read)


def _open(file: BinaryFile, fields: list[int] | None = None) -> Any:
    """Open a file or stream; read only the columns ``fields`` unless it is None."""
    ipc = load("pyarrow.ipc")
    options = ipc.IpcReadOptions(included_fields=fields)
    whole = file.peek(min(file.size, len(FILE_MAGIC)), 0) == FILE_MAGIC
    form = ipc.open_file if whole else ipc.open_stream
    return form(opened(file), options=options)


def _batches(reader: Any) -> Iterator[Any]:
    """Yield record batches; long ones are split into slices."""
    batches = reader
    if hasattr(reader, "get_batch"):  # of a file
        batches = map(reader.get_batch, range(reader.num_record_batches))
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS):
            yield batch.slice(start, ROWS)
