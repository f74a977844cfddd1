"""Compressed files, detected by content and decompressed as streams.

Formats are gzip, bzip2, xz and Zstandard. A file holds any number of streams, one after
the other, possibly with zeros between them. Memory is bounded for any decompressed
size: output is requested in pieces, and a stream whose decoder needs more than
WINDOW_BYTES is refused.
"""

from __future__ import annotations

import re
import sys
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

from distbfs.errors import InputError
from distbfs.registry import optional

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKINGS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
MARKS = re.compile(
    rb"(?P<gzip>\x1f\x8b\x08)|(?P<bzip2>BZh[1-9](?:1AY&SY|\x17rE8P\x90))"
    rb"|(?P<xz>\xfd7zXZ\0)|(?P<zstd>\x28\xb5\x2f\xfd)"
)
WINDOW_BYTES = 128 << 20
FEED_BYTES = 64 << 10
GZIP_WINDOW = 31  # bits of the window, plus 16 for the header of gzip


def packing_of(path: Path) -> str:
    """Return the compression that a file's name suggests, "" for none."""
    return PACKINGS.get(path.suffix.lower(), "")


def packing_in(head: bytes, path: Path) -> str:
    """Return the compression shown by a file's first bytes, else by its name."""
    mark = MARKS.match(head)
    return mark.lastgroup or "" if mark else packing_of(path)


def plain_name(path: Path) -> str:
    """Return the name of a file in lower case, without a compression suffix."""
    return (path.stem if packing_of(path) else path.name).lower()


def load_zstd() -> Any:
    """Return the Zstandard module; raise LibraryMissing if it is not installed."""
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    what = f"{name} is missing, which unpacks Zstandard"
    return optional(name, f"{what}; pip install backports.zstd")


def make_decoder(packing: str) -> tuple[Any, tuple[type[Exception], ...]]:
    """Return a decoder for one stream, and its exceptions for bad data."""
    if packing == "gzip":
        return zlib.decompressobj(GZIP_WINDOW), (zlib.error,)
    if packing == "bzip2":
        return import_module("bz2").BZ2Decompressor(), (OSError, ValueError)
    if packing == "xz":
        lzma = import_module("lzma")
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=WINDOW_BYTES)
        return decoder, (lzma.LZMAError,)
    zstd = load_zstd()
    limit = {zstd.DecompressionParameter.window_log_max: WINDOW_BYTES.bit_length() - 1}
    return zstd.ZstdDecompressor(options=limit), (zstd.ZstdError,)


class Unpacker:
    """The content of a compressed file, read once from start to end.

    packing: a value of PACKINGS
    feed: function of a count that returns at most so many of the file's next bytes, b""
    at the end
    """

    def __init__(self, path: Path, packing: str, feed: Callable[[int], bytes]) -> None:
        self._path = path
        self._packing = packing
        self._feed = feed
        self._decoder: Any = None
        self._faults: tuple[type[Exception], ...] = ()
        self._waiting = b""
        self._taken = 0
        self._begun = self._full = False

    def read(self, count: int) -> bytes:
        """Return the next ``count`` bytes, fewer only at the end of the file.

        Raises InputError for truncated or corrupt data or another format.
        """
        pieces = []
        while count and (self._decoder is not None or self._next_stream()):
            if piece := self._decode(count):
                pieces.append(piece)
                count -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _next_stream(self) -> bool:
        """Start the next stream; False at the end of the file."""
        zeros = b"\0" * self._begun  # that may stand between two streams
        while not (waiting := self._waiting.lstrip(zeros)):
            waiting = self._waiting = self._fetch()
            if not waiting and self._begun:
                return False
            if not waiting:
                raise self._refuse("the file is empty")
        self._waiting, self._begun = waiting, True
        self._decoder, self._faults = make_decoder(self._packing)
        return True

    def _decode(self, most: int) -> bytes:
        """Return the next output of the stream, possibly empty."""
        decoder = self._decoder
        # zlib does not say whether it holds output: it may where all of ``most`` came
        if not self._waiting and getattr(decoder, "needs_input", not self._full):
            self._waiting = self._fetch()
            if not self._waiting:
                raise self._refuse(f"the {self._packing} data is truncated")
        data, self._waiting = self._waiting, b""
        try:
            out = decoder.decompress(data, most)
        except self._faults as error:
            what = " ".join(str(error).split()) or "no reason given"
            kind = self._packing
            raise self._refuse(f"the {kind} data is corrupt: {what}") from error
        self._full = len(out) == most
        self._waiting = getattr(decoder, "unconsumed_tail", b"")  # of zlib
        if decoder.eof:
            self._waiting, self._decoder = decoder.unused_data, None
        return out

    def _fetch(self) -> bytes:
        """Return the next bytes of the file."""
        data = self._feed(FEED_BYTES)
        self._taken += len(data)
        return data

    def _refuse(self, what: str) -> InputError:
        return InputError(f"{self._path}: byte {self._taken}: {what}")
