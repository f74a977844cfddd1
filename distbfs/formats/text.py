"""Text files: opened with checks and cut into blocks at line ends."""

from __future__ import annotations

import hashlib
import stat
from typing import TYPE_CHECKING

from distbfs.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

BLOCK_BYTES = 16 << 20
LONGEST_LINE = 16 << 20
DIGEST_BYTES = 32


def check_readable(path: Path) -> None:
    """Raise InputError unless a path names a regular file."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise unreadable(path, error) from error
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: a directory, not a file")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: not a regular file")


def unreadable(path: Path, error: OSError) -> InputError:
    """Return the error for a file that the system does not let us read."""
    return InputError(f"{path}: cannot be read: {error.strerror or error}")


class HashedFile:
    """A file that is opened with checks and read once, with its digest."""

    def __init__(self, path: Path) -> None:
        """Open the file; InputError where there is nothing to read."""
        check_readable(path)
        self.path = path
        self._hash = hashlib.blake2b(digest_size=DIGEST_BYTES)
        try:
            self._handle = path.open("rb")
        except OSError as error:
            raise unreadable(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._handle.close()

    @property
    def digest(self) -> str:
        """BLAKE2b of the bytes read so far, 64 hexadecimal digits."""
        return self._hash.hexdigest()


class TextFile(HashedFile):
    """A text file that is read once from begin to end, with its digest.

    ``line`` is the number, from 1, of the first line that was not parsed yet; who
    parses a block raises it.  ``digest`` is the BLAKE2b of what was read so far.
    """

    def __init__(self, path: Path, block_bytes: int = BLOCK_BYTES) -> None:
        """Open the file; InputError where there is nothing to read."""
        super().__init__(path)
        self.block_bytes = block_bytes
        self.line = 1

    def refuse(self, what: str, line: int | None = None) -> InputError:
        """Return the error ``FILE:LINE: what``, by default for the current line."""
        return InputError(f"{self.path}:{self.line if line is None else line}: {what}")

    def header_line(self) -> bytes:
        """Return the next line with its end and count it; nothing at the end."""
        try:
            line = self._handle.readline(LONGEST_LINE + 1)
        except OSError as error:
            raise unreadable(self.path, error) from error
        self._check(line, b"")
        self.line += bool(line)
        return line

    def blocks(self) -> Iterator[bytes]:
        """Yield the rest of the file in pieces that end at a line end.

        A missing line end at the end of the file is added.
        """
        carry = b""
        while True:
            try:
                data = self._handle.read(self.block_bytes)
            except OSError as error:
                raise unreadable(self.path, error) from error
            if not data:
                break
            self._check(data, carry)
            cut = data.rfind(b"\n") + 1
            if cut:
                yield carry + data[:cut]
                carry = data[cut:]
            else:
                carry += data
        if carry:
            yield carry + b"\n"

    def _check(self, data: bytes, carry: bytes) -> None:
        """Hash new bytes; refuse binary data and lines without an end."""
        self._hash.update(data)
        zero = data.find(b"\0")
        if zero >= 0:
            line = self.line + data.count(b"\n", 0, zero)
            raise self.refuse("binary data, not text", line)
        if len(carry) + len(data) > LONGEST_LINE and b"\n" not in data:
            raise self.refuse(f"a line of more than {LONGEST_LINE} bytes")
