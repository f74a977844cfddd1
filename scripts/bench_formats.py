"""Measure how fast files of edges are read, over the rate at which the disk gives them.

Writes one random graph as an edge list of --bytes bytes, a Parquet table, a GAP graph
and a Parquet table as pyarrow writes it by default (int64, dictionaries, Snappy).
Readers and a plain read of the same file alternate.  Medians are printed: of reading
alone, and of reading into the spool that a store is built from; from the disk, where
the pages of the file are dropped from memory before, and from memory.

    python scripts/bench_formats.py --folder /data --json results.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np

from distbfs.device.cc import thread_count
from distbfs.formats.base import ReaderOptions, make_reader
from distbfs.formats.tuples import open_tuples
from distbfs.formats.writing import Edges, placed, writer_for
from distbfs.ranks.world import SoloWorld
from distbfs.report.tables import print_table
from distbfs.types import Ids

CHUNK = 1 << 20
PLAIN_BYTES = 4 << 20
LINE_BYTES = 13.5  # of two ids below 10^6, a blank and a line end
DEGREE = 16
SNAPPY = "snappy.parquet"
NAMES = ("edges.el", "edges.parquet", SNAPPY, "edges.sg", "edges.el.gz")


def graph_of(count: int) -> Edges:
    """Return a random graph of about ``count`` edges, the same at every call."""
    n = max(count // DEGREE, 1 << 10)

    def pairs() -> Iterator[Ids]:
        rng = np.random.default_rng(1)
        for start in range(0, count, CHUNK):
            some = rng.integers(0, n, (min(CHUNK, count - start), 2))
            yield np.sort(some[some[:, 0] != some[:, 1]], axis=1)

    return Edges(n, sum(len(x) for x in pairs()), pairs)


def drop(path: Path) -> None:
    """Drop the pages of a file from memory, so that it is read from the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def plain(path: Path) -> None:
    """Read a file and discard it."""
    with path.open("rb", buffering=0) as file:
        while file.read(PLAIN_BYTES):
            pass


def read(path: Path) -> None:
    make_reader(path, "", ReaderOptions()).read(path, lambda _: None)


def spool(path: Path) -> None:
    place = patch.object(tempfile, "tempdir", str(path.parent))
    with place, open_tuples(SoloWorld(), path):
        pass


WAYS: dict[str, Callable[[Path], None]] = {"plain": plain, "read": read, "spool": spool}

PLACES = ("disk", "memory")


def write_as_usual(path: Path, graph: Edges) -> None:
    """Write a table with pyarrow's defaults."""
    import pyarrow  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    sides = np.concatenate(list(graph.chunks())).T
    parquet.write_table(pyarrow.table(list(sides), names=["src", "dst"]), path)


def measure(path: Path, repeats: int) -> dict[str, dict[str, float]]:
    """Return MB/s of the plain read, the reader and the reader with its spool.

    From the disk and from memory.
    """
    seconds: dict[tuple[str, str], list[float]] = {}
    for way in WAYS.values():
        way(path)  # compiles kernels, loads libraries
    for _ in range(repeats):
        for place in PLACES:
            for name, way in WAYS.items():
                if place == "disk":
                    drop(path)
                began = time.perf_counter()
                way(path)
                took = time.perf_counter() - began
                seconds.setdefault((place, name), []).append(took)
    size = path.stat().st_size / 1e6
    return {
        place: {x: size / statistics.median(seconds[place, x]) for x in WAYS}
        for place in PLACES
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=10**8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--names", nargs="+", default=list(NAMES))
    parser.add_argument("--json", type=Path, default=None)
    args = parser.parse_args()
    graph = graph_of(int(args.bytes / LINE_BYTES))
    rows, values = [], []
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for name in args.names:
            path = Path(folder, name)
            if name == SNAPPY:
                write_as_usual(path, graph)
            else:
                with placed(path, force=False) as partial:
                    writer_for(path).write(partial, graph)
            rates = measure(path, args.repeats)
            size = path.stat().st_size
            values.append({"file": name, "bytes": size, "edges": graph.m, **rates})
            for place, rate in rates.items():
                ratio = rate["read"] / rate["plain"]
                rows.append((name, size, place, *rate.values(), ratio))
            path.unlink()
    heads = ("file", "bytes", "from", *(f"{x} MB/s" for x in WAYS), "read / plain")
    print_table(heads, rows)
    print(f"{thread_count()} cores")
    if args.json:
        args.json.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
