"""Compress bytes as the tools do, to be read back.

Zstandard is left out where its module is missing, but never on CI.
"""

import bz2
import gzip
import lzma
import os
from contextlib import suppress

from distbfs.errors import ResourceError
from distbfs.formats.compressed import load_zstd

PACK = {
    ".gz": lambda data: gzip.compress(data, 1),
    ".bz2": bz2.compress,
    ".xz": lambda data: lzma.compress(data, preset=0),
}
with suppress(*(() if os.environ.get("CI") else (ResourceError,))):
    PACK[".zst"] = load_zstd().compress
