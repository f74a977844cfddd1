"""Text files that are checked, hashed and split into blocks at line ends."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

import xxhash

from distbfs.errors import (
    DiskFull,
    DistbfsError,
    FileError,
    InputError,
    naming,
)
from distbfs.formats.compressed import Unpacker, packing_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

Progress: TypeAlias = Callable[[int], None]

BLOCK_BYTES = 16 << 20
SIZE = re.compile(rb"[0-9]{1,19}")
BOM = b"\xef\xbb\xbf"
COPY_BYTES = 4 << 20
STDIN = Path("/dev/stdin")
LARGEST_SIZE = (1 << 63) - 1
MARK_BYTES = 16
SHORT = "the file ends before the last value"


def open_raw(path: Path) -> BufferedReader:
    """Open a file or a pipe; raise FileError for anything else.

    A terminal or a socket counts as a pipe if it is standard input.
    """
    if isinstance(path, CopiedPath):
        return Path(f"/proc/self/fd/{path.content.fileno()}").open("rb")
    with naming(path):
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise FileError(f"{path}: a directory, not a file")
        if path == STDIN and (stat.S_ISSOCK(mode) or os.isatty(0)):
            return os.fdopen(os.dup(0), "rb")
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise FileError(f"{path}: neither a regular file nor a pipe")
        return path.open("rb")


def unnamed_copy(path: Path, take: Callable[[int], bytes], what: str) -> IO[bytes]:
    """Write everything that ``take`` returns to an unnamed temporary file.

    path, what: text for the message of DiskFull, "cannot WHAT PATH"
    """
    try:
        with ExitStack() as stack:
            out = stack.enter_context(tempfile.TemporaryFile())
            while data := take(COPY_BYTES):
                out.write(data)
            out.seek(0)
            stack.pop_all()
            return out
    except DistbfsError:
        raise
    except OSError as error:
        where = f"{tempfile.gettempdir()}: cannot {what} {path}"
        raise DiskFull(f"{where}: {error.strerror or error}") from error


class CopiedPath(type(Path())):  # type: ignore[misc]  # the class of paths of this system
    """The path of a pipe or of a file in an archive, whose content was copied."""

    content: IO[bytes]

    @classmethod
    def of(cls, path: Path, content: IO[bytes]) -> CopiedPath:
        """Return a path that is opened from a copy, ``content``."""
        copy = cls(path)
        copy.content = content
        return copy


@contextmanager
def sound(where: str) -> Iterator[None]:
    """Convert a library's error about a broken file into InputError ``WHERE: …``."""
    try:
        yield
    except DistbfsError:
        raise
    except Exception as error:
        what = (str(error).splitlines() or [""])[0] or type(error).__name__
        what = re.sub("(malformed .* on line [0-9]+):.*", r"\1", what)  # no objects
        what = what.replace("mmap length is greater than file size", SHORT)
        raise InputError(f"{where}: the file cannot be read: {what:.200}") from error


def read_text(path: Path) -> str:
    """Read a small UTF-8 text file; InputError names the first line not in UTF-8."""
    with HashedFile(path) as file:
        data = b"".join(iter(lambda: file.take(BLOCK_BYTES), b""))
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

    ``digest`` is the hash of the file's own bytes; ``take`` is a function of a count
    that returns so many bytes of the decompressed content, fewer only at the end.
    ``progress`` is called with the number of the file's bytes read so far.
    """

    def __init__(self, path: Path, *, progress: Progress | None = None) -> None:
        """Open the file; InputError if there is nothing to read."""
        self._raw = open_raw(path)
        self.path = path
        try:
            with naming(path):
                self.packing = packing_in(self._raw.peek(MARK_BYTES), path)
        except DistbfsError:
            self.close()
            raise
        self._hash = xxhash.xxh3_128()
        self._progress = progress
        self._fetched = 0
        self.take = self._fetch
        if self.packing:
            self.take = Unpacker(path, self.packing, self._fetch).read

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    @property
    def digest(self) -> str:
        """The XXH3 hash of the bytes read so far, 32 hexadecimal digits."""
        return self._hash.hexdigest()

    def _fetch(self, count: int) -> bytes:
        """Return the next ``count`` bytes of the file itself, fewer only at its end."""
        with naming(self.path):
            data = self._raw.read(count)
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
    first line not yet parsed; ``entries`` counts the pairs, ``extra`` the lines with
    more than two columns. The parser of a block advances all three. ``longest`` is the
    most bytes of a line.
    """

    longest = 16 << 20

    def __init__(
        self,
        path: Path,
        block_bytes: int = BLOCK_BYTES,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Open the file; InputError if there is nothing to read."""
        super().__init__(path, progress=progress)
        self.block_bytes = block_bytes
        self.line = 1
        self.entries = self.extra = 0
        self._ahead = b""
        self._at = 0
        self._begun = False

    def refuse(self, what: str, line: int | None = None) -> InputError:
        """Return the error ``FILE:LINE: what``; LINE is the current line by default."""
        return InputError(f"{self.path}:{self.line if line is None else line}: {what}")

    def refuse_last(self, what: str) -> InputError:
        """Return the error for the line just read."""
        return self.refuse(what, max(self.line - 1, 1))

    def header_line(self) -> bytes:
        """Count the next line and return it with its line end; b"" after the last."""
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

    def line_after(self, comment: bytes) -> bytes:
        """Return the next line that is neither blank nor a comment; b"" if none is.

        comment: bytes with which comments begin

        Raises InputError for an empty file.
        """
        while line := self.header_line():
            text = line.strip()
            if text and not text.startswith(comment):
                return line
        if self.line == 1:
            raise self.refuse("the file is empty")
        return line

    def sizes(self, words: list[bytes], count: int, lacking: str) -> list[int]:
        """Return the sizes (vertices, edges) that the line just read states.

        lacking: message if these are not ``count`` numbers of at most 19 digits
        """
        if len(words) != count or not all(map(SIZE.fullmatch, words)):
            raise self.refuse_last(lacking)
        sizes = list(map(int, words))
        if max(sizes) > LARGEST_SIZE:
            raise self.refuse_last("a size is above 2^63-1")
        if not max(sizes[:-1]):
            raise self.refuse_last("no vertices")
        return sizes

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

    def _more(self) -> bytes:
        """Return the next block of the file."""
        data = self.take(self.block_bytes)
        if not self._begun:
            data, self._begun = data.removeprefix(BOM), True
        return data

    def blocks(self) -> Iterator[bytes]:
        """Yield the rest of the file in blocks of whole lines.

        A missing line end at the end of the file is added.
        """
        carry, ahead = b"", self._ahead[self._at :]
        self._ahead, self._at = b"", 0
        for data in chain([ahead], iter(self._more, b"")):
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
        """Refuse binary data, and lines that are too long."""
        zero = data.find(b"\0")
        if zero >= 0:
            line = self.line + data.count(b"\n", 0, zero)
            raise self.refuse("binary data, not text", line)
        if len(carry) + len(data) > self.longest and b"\n" not in data:
            raise self.refuse(f"a line of more than {self.longest} bytes")
