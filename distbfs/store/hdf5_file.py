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


class Sink(io.RawIOBase):
    """The file object below HDF5; a failed write is recorded for later.

    HDF5 cannot close a file whose last writes failed: it leaks memory, or crashes when
    the process ends. So failed writes are reported to HDF5 as successful, and the
    writer raises ``failure`` after the current slice and after closing.
    """

    def __init__(self, path: Path) -> None:
        self._file = -1
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        self._position = 0
        self.failure: OSError | None = None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position of the next read or write."""
        base = 0
        if whence == io.SEEK_END:
            base = os.fstat(self._file).st_size
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; bytes after the end of the file read as zeros."""
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view):
            got = os.preadv(self._file, [view[done:]], self._position + done)
            if got == 0:
                view[done:] = bytes(len(view) - done)
                break
            done += got
        self._position += len(view)
        return len(view)

    def write(self, buffer: Any) -> int:
        """Write a whole buffer, or record the failure."""
        view = memoryview(buffer).cast("B")
        done = 0
        try:
            while done < len(view) and self.failure is None:
                done += os.pwrite(self._file, view[done:], self._position + done)
        except OSError as error:
            self.failure = error
        self._position += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file, or record the failure."""
        size = self._position if size is None else size
        try:
            if self.failure is None:
                os.ftruncate(self._file, size)
        except OSError as error:
            self.failure = error
        return size

    def check(self) -> None:
        """Raise the first failure, if there was one."""
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """Flush to disk and close; record the failure."""
        if self._file >= 0:
            try:
                if self.failure is None:
                    os.fsync(self._file)
            except OSError as error:
                self.failure = error
            finally:
                os.close(self._file)
                self._file = -1
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
