"""Fuzz a reader by coverage, with atheris (pip install atheris), for some seconds.

Whatever a file holds, it is read or refused with one line that names it; anything else,
more than 10 s or more than 2 GiB of memory ends the run with the input that did it.

    python scripts/fuzz_formats.py edge-list --seconds 60
"""

from __future__ import annotations

import argparse
import gzip
import io
import struct
import sys
import tempfile
from itertools import product
from pathlib import Path
from unittest.mock import patch

import atheris
import numpy as np

with atheris.instrument_imports(include=["distbfs.formats"]):
    from distbfs.device import cc
    from distbfs.errors import InputError, UsageError
    from distbfs.formats.base import Reader, ReaderOptions
    from distbfs.registry import READERS, lookup

RELABELLED = ("edge-list", "parquet", "arrow", "numpy")


def seeds(name: str) -> list[bytes]:
    """Return small files of a format, to start with."""
    if name in ("parquet", "arrow"):
        return tables(name)
    array, archive = io.BytesIO(), io.BytesIO()
    np.save(array, np.array([[0, 1], [1, 2]]))
    np.savez(archive, src=np.array([0, 1]), dst=np.array([1, 2]))
    sg = struct.pack("<?5q2i", False, 2, 2, 0, 1, 2, 1, 0)
    matrix = b"%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 1\n2 1 0.5\n"
    return {
        "edge-list": [
            b"# c\n0 1 0.5\n1\t2\n",
            b'a b\n"b c" d\n',
            b'\xef\xbb\xbfx;Source;Target\r\n5;"0";1\r\n% c\r\n6;1;2\r\n',
            b'0,1,"x\n2,3"\n4,5\n',
            b"% bip unweighted\n% 2 2 3\n1 1\n2 3\n",
        ],
        "matrix-market": [matrix],
        "dimacs": [
            b"c x\np sp 3 2\na 1 2 1\na 2 3 1\n",
            b"p max 3 1\nn 1 s\na 1 2 9\n",
            b"p edge 3 1\nn 1 4\ne 1 2\n",
            b"p tw 3 1\n1 2\n",
        ],
        "galois": [struct.pack("<6Q2I", 1, 0, 2, 2, 1, 2, 1, 0)],
        "gap-sg": [sg],
        "graph500-int64": [struct.pack("<4q", 0, 1, 1, 2)],
        "graph500-packed": [bytes(24)],
        "metis": [b"3 2 11 1\n1 2 5\n1 1 5 3 5\n1 2 5\n"],
        "numpy": [array.getvalue(), archive.getvalue()],
    }[name]


def tables(name: str) -> list[bytes]:
    """Return small tables."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import feather, parquet  # noqa: PLC0415

    table, out = pa.table({"src": [0, 1], "dst": [1, 2], "w": ["a", "b"]}), io.BytesIO()
    if name == "parquet":
        parquet.write_table(table, out)
    else:
        feather.write_feather(table, out, compression="uncompressed")
    return [out.getvalue()]


def read(reader: Reader, path: Path) -> None:
    """Read a file; RuntimeError if it is refused in another way than one line."""
    try:
        reader.read(path, lambda _: None)
    except (InputError, UsageError) as error:
        if not str(error).startswith(f"{path}:") or "\n" in str(error):
            raise RuntimeError(f"not one line: {error}") from error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format", choices=list(READERS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--packed", action="store_true", help="fuzz it inside gzip")
    args = parser.parse_args()
    kind = lookup(READERS, "format", args.format)
    ways = [ReaderOptions()]
    if args.format in RELABELLED:
        ways.append(ReaderOptions(relabel="text"))
    if getattr(kind, "bipartite", False):
        ways.append(ReaderOptions(bipartite=True))
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        for number, body in enumerate(seeds(args.format)):
            (corpus / str(number)).write_bytes(
                gzip.compress(body) if args.packed else body
            )
        path = Path(folder, "file.gz" if args.packed else "file")

        def one(data: bytes) -> None:
            path.write_bytes(data)
            for options, load in product(ways, (cc.load_or_none, lambda _: None)):
                with patch.object(cc, "load_or_none", load):
                    read(kind(options), path)

        limits = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=4096"]
        limits.append(f"-max_total_time={args.seconds}")
        atheris.Setup([sys.argv[0], *limits, str(corpus)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
