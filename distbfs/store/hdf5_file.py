"""The Python file object that HDF5 writes to."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import h5py

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Sink(io.FileIO):
    """The file object below HDF5; a failed write is recorded for later.

    HDF5 cannot close a file whose last writes failed: it leaks memory, or crashes when
    the process ends. So failed writes are reported to HDF5 as successful, and the
    writer raises ``failure`` after the current slice and after closing.
    """

    def __init__(self, path: Path) -> None:
        self.failure: OSError | None = None
        super().__init__(path, "x+b")

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; bytes after the end of the file read as zeros."""
        view, done = memoryview(buffer).cast("B"), 0
        while got := super().readinto(view[done:]):
            done += got
        view[done:] = bytes(len(view) - done)
        self.seek(len(view) - done, io.SEEK_CUR)
        return len(view)

    def write(self, buffer: Any) -> int:
        """Write a whole buffer, or record the failure."""
        view, done, start = memoryview(buffer).cast("B"), 0, self.tell()
        try:
            while done < len(view) and self.failure is None:
                done += os.pwrite(self.fileno(), view[done:], start + done)
        except OSError as error:
            self.failure = error
        self.seek(start + len(view))
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file, or record the failure."""
        size = self.tell() if size is None else size
        try:
            if self.failure is None:
                os.ftruncate(self.fileno(), size)
        except OSError as error:
            self.failure = error
        return size

    def check(self) -> None:
        """Raise the first failure, if there was one."""
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """Flush to disk and close; record the failure."""
        if not self.closed and self.failure is None:
            try:
                os.fsync(self.fileno())
            except OSError as error:
                self.failure = error
        super().close()


@contextmanager
def new_file(
    path: Path, libver: Any = "earliest", **options: Any
) -> Iterator[tuple[h5py.File, Sink]]:
    """Yield a new HDF5 file and its sink; OSError if it cannot be written."""
    sink = Sink(path)
    try:
        with h5py.File(sink, "w", libver=libver, **options) as file:
            yield file, sink
    finally:
        sink.close()
        sink.check()
