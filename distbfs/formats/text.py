"""Open and hash files, with checks; split text into blocks at line ends."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import xxhash

from distbfs.errors import FileError, InputError, system_error
from distbfs.formats.compressed import Unpacker, packing_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Self

Progress: TypeAlias = Callable[[int], None]

BLOCK_BYTES = 16 << 20
LONGEST_LINE = 16 << 20
BOM = b"\xef\xbb\xbf"


def check_readable(path: Path) -> None:
    """Raise FileError unless a path names a regular file."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise FileError(f"{path}: no such file") from None
    except OSError as error:
        raise system_error(error, path) from error
    if stat.S_ISDIR(mode):
        raise FileError(f"{path}: a directory, not a file")
    if not stat.S_ISREG(mode):
        raise FileError(f"{path}: not a regular file")


def read_text(path: Path) -> str:
    """Read a small UTF-8 text file; InputError names a line that is not UTF-8."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise system_error(error, path) from error
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8") from error


def text_lines(path: Path) -> list[str]:
    """Return the lines of a small file; InputError as in ``read_text``."""
    return re.split(r"\r\n?|\n", read_text(path))


class HashedFile:
    """A file, compressed or not, that is opened with checks and read once.

    ``digest`` is of the file's own bytes, ``take`` returns its content. ``progress`` is
    called with the number of its bytes read so far.
    """

    def __init__(self, path: Path, *, progress: Progress | None = None) -> None:
        """Open the file; InputError where there is nothing to read."""
        check_readable(path)
        self.path = path
        self.packing = packing_of(path)
        self._hash = xxhash.xxh3_128()
        self._progress = progress
        self._fetched = 0
        self._unpacker: Unpacker | None = None
        if self.packing:
            self._unpacker = Unpacker(path, self.packing, self._fetch)
        try:
            self._raw = path.open("rb", buffering=0)
        except OSError as error:
            raise system_error(error, path) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    @property
    def digest(self) -> str:
        """XXH3 of the bytes read so far, 32 hexadecimal digits."""
        return self._hash.hexdigest()

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes, fewer only at the end."""
        if self._unpacker is not None:
            return self._unpacker.read(count)
        data = self._fetch(count)
        while data and len(data) < count:
            more = self._fetch(count - len(data))
            if not more:
                break
            data += more
        return data

    def _fetch(self, count: int) -> bytes:
        """Return up to ``count`` next bytes of the file itself, none at its end."""
        try:
            data = self._raw.read(count)
        except OSError as error:
            raise system_error(error, self.path) from error
        self._seen(data)
        return data

    def _seen(self, data: bytes | memoryview) -> None:
        """Hash bytes of the file and report progress."""
        self._hash.update(data)
        self._fetched += len(data)
        if self._progress is not None:
            self._progress(self._fetched)


class TextFile(HashedFile):
    """A text file that is read once from start to end, with its digest.

    A byte order mark at the start is skipped. ``line`` is the number, from 1, of the
    first line not yet parsed; the parser of a block advances it, and adds to ``extra``
    the lines with more than two columns.
    """

    def __init__(
        self,
        path: Path,
        block_bytes: int = BLOCK_BYTES,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Open the file; InputError where there is nothing to read."""
        super().__init__(path, progress=progress)
        self.block_bytes = block_bytes
        self.line = 1
        self.extra = 0
        self._ahead = b""
        self._at = 0
        self._begun = False

    def refuse(self, what: str, line: int | None = None) -> InputError:
        """Return the error ``FILE:LINE: what``, by default for the current line."""
        return InputError(f"{self.path}:{self.line if line is None else line}: {what}")

    def header_line(self) -> bytes:
        """Return the next line with its end and count it; empty at the end."""
        line = b""
        while not line.endswith(b"\n"):
            if self._at == len(self._ahead):
                self._ahead, self._at = self._more(), 0
                if not self._ahead:
                    break
            end = self._ahead.find(b"\n", self._at) + 1 or len(self._ahead)
            piece = self._ahead[self._at : end]
            self._check(piece, line)
            line += piece
            self._at = end
        self.line += bool(line)
        return line

    def unread(self, line: bytes) -> None:
        """Put back the line that ``header_line`` has just returned."""
        self._ahead, self._at = line + self._ahead[self._at :], 0
        self.line -= bool(line)

    def peek(self, count: int) -> bytes:
        """Return the next ``count`` bytes, fewer only at the end; consume none."""
        pieces = [self._ahead[self._at :] if self._at else self._ahead]
        while sum(map(len, pieces)) < count and (data := self._more()):
            pieces.append(data)
        self._ahead, self._at = b"".join(pieces), 0
        return self._ahead[:count]

    def next_block(self) -> bytes:
        """Return the bytes read ahead, then block after block; empty at the end."""
        data = self._ahead[self._at : self._at + self.block_bytes]
        self._at += len(data)
        if self._at == len(self._ahead):
            self._ahead, self._at = b"", 0
        return data or self._more()

    def _more(self) -> bytes:
        """Return the next block of the file."""
        data = self.take(self.block_bytes)
        if not self._begun:
            data, self._begun = data.removeprefix(BOM), True
        return data

    def blocks(self) -> Iterator[bytes]:
        """Yield the rest of the file in pieces that end at a line end.

        A missing line end at the end of the file is added.
        """
        carry = b""
        while data := self.next_block():
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
        """Refuse binary data and lines without an end."""
        zero = data.find(b"\0")
        if zero >= 0:
            line = self.line + data.count(b"\n", 0, zero)
            raise self.refuse("binary data, not text", line)
        if len(carry) + len(data) > LONGEST_LINE and b"\n" not in data:
            raise self.refuse(f"a line of more than {LONGEST_LINE} bytes")
